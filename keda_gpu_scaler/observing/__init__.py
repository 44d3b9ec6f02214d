"""Decides the triggers of a folder, which KEDA does not ask about, at the step of their sources.

    manifests  texts → the triggers in them that are for this scaler, and what is refused

The files are read again at each round, and what cannot be read is refused file by file. Hidden
files are ignored, as Kubernetes keeps its own in a mounted ConfigMap. Nothing of it reaches KEDA:
the process that observes has no port that KEDA could call.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.observing import manifests
from keda_gpu_scaler.observing.manifests import Observed, Refused
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access

BYTES_LIMIT = 4 << 20
"""Of all files together: four times what a ConfigMap may hold."""
LONGEST_PAUSE_SECONDS = 15.0
"""The usual step of a source, and how soon a change of the files is noticed."""
_ENDINGS = (".yaml", ".yml", ".json")


class Contents(NamedTuple):
    """What a folder holds."""

    texts: dict[str, str]
    """By the names of the files."""
    refused: tuple[Refused, ...]


def contents(folder: Path) -> Contents:
    """Return what the files of a folder hold. It waits for the disk."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix in _ENDINGS)
    except OSError as error:
        why = f"the folder cannot be read: {error.strerror}"
        return Contents({}, (Refused(str(folder), 0, why),))
    texts: dict[str, str] = {}
    refused: list[Refused] = []
    room = BYTES_LIMIT
    for path in paths:
        if path.name.startswith("."):
            continue
        try:
            content = _read(path, room)
            texts[path.name] = content.decode()
        except (OSError, ValueError) as error:  # also one that is not UTF-8
            refused.append(Refused(path.name, 0, str(error)))
        else:
            room -= len(content)
    return Contents(texts, tuple(refused))


def _read(path: Path, room: int) -> bytes:
    if not path.is_file():  # a pipe would not end
        raise ValueError("it is no file")
    with path.open("rb") as file:
        content = file.read(room + 1)
    if len(content) > room:
        raise ValueError(f"all files together are larger than {BYTES_LIMIT >> 20} MiB")
    return content


class Observing:
    """Observes the triggers of a folder."""

    def __init__(
        self,
        folder: Path,
        *,
        access: Access,
        evaluator: Evaluator,
        observe: facts.Observer,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._folder, self._access, self._evaluator = folder, access, evaluator
        self._observe, self._sleep = observe, sleep
        self._contents: Contents | None = None
        self._triggers: tuple[Observed, ...] = ()

    async def round(self) -> None:
        """Read the files, and evaluate all of their triggers once."""
        await self._reread()
        await asyncio.gather(*map(self._evaluate, self._triggers))

    async def run(self) -> None:
        """Read and evaluate at each step of the source, until this is cancelled."""
        while True:
            await self.round()
            await self._sleep(min(self._evaluator.step_seconds, LONGEST_PAUSE_SECONDS))

    async def _reread(self) -> None:
        present = await asyncio.to_thread(contents, self._folder)
        if present == self._contents:
            return
        self._contents = present
        reading = await asyncio.to_thread(manifests.read, present.texts, self._access)
        self._triggers = reading.triggers
        refused = [*present.refused, *reading.refused]
        for refusal in refused:
            self._observe(facts.ObserveRefused(*refusal))
        self._observe(facts.ObserveRead(len(present.texts), len(reading.triggers), len(refused)))

    async def _evaluate(self, observed: Observed) -> None:
        scaled_object, spec = observed
        if spec.demand is not None and spec.demand.threshold is not None:
            await self._evaluator.demand(scaled_object, spec, None)  # the HPA would ask for it
        # The next round comes only a step later.
        await self._evaluator.evaluate(scaled_object, spec, None, wait_for_fresh=True)
