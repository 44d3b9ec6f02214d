"""Decides the triggers of a folder, which KEDA does not ask about, at the step of their sources.

The files are read again at each round, and what cannot be read is refused file by file. Hidden
files are ignored, as Kubernetes keeps its own in a mounted ConfigMap. ScaledObjects are written as
for KEDA; objects of other kinds and triggers of other scalers are ignored, so that whatever a chart
renders can be put there as it is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from keda_gpu_scaler import check
from keda_gpu_scaler.check import ParsedTrigger
from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.objects import Terms
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access

BYTES_LIMIT = 4 << 20
"""Of all files together: four times what a ConfigMap may hold."""
LONGEST_PAUSE_SECONDS = 15.0
"""The usual step of a source, and how soon a change of the files is noticed."""
_ENDINGS = (".yaml", ".yml", ".json")
VALUES_LIMIT = 50_000
"""Of one file: half a second of work."""
_NOT_OURS = (
    "none of its triggers is for this scaler: expected one of type external or external-push, "
    "with gpu-scaler in its scalerAddress, or with the key workload or podPattern"
)
_NO_NAMESPACE = "metadata.namespace: not given; expected the namespace that it would be applied to"


class Refused(NamedTuple):
    """What of a file is not observed."""

    file: str
    line: int
    why: str
    """With the key, the value and what was expected."""


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


class Reading(NamedTuple):
    """What is in some files."""

    triggers: tuple[ParsedTrigger, ...]
    refused: tuple[Refused, ...]


def read(texts: Mapping[str, str], access: Access) -> Reading:
    """Return the triggers in the texts of some files; one that is wrong hides no other."""
    manifests, problems = check.read(texts, Terms(namespace=""), VALUES_LIMIT)
    refused = [_refused(problem) for problem in problems]
    triggers: list[ParsedTrigger] = []
    for manifest in manifests:
        if manifest.kind != "ScaledObject" or not manifest.is_of_keda:
            continue
        if not manifest.namespace:
            line = manifest.node.place("metadata").line
            refused.append(Refused(manifest.file, line, _NO_NAMESPACE))
            continue
        if not manifest.ours:
            line = manifest.node.place("spec", "triggers").line
            refused.append(Refused(manifest.file, line, _NOT_OURS))
        parsed, findings = check.parse(manifest.ours, access)
        triggers += parsed
        refused += map(_refused, findings)
    return Reading(tuple(dict.fromkeys(triggers)), tuple(refused))


def _refused(finding: Finding) -> Refused:
    return Refused(finding.file, finding.position.line, finding.message)


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
        self._triggers: tuple[ParsedTrigger, ...] = ()

    async def round(self) -> None:
        """Read the files if they have changed, and evaluate all of their triggers once."""
        present = await asyncio.to_thread(contents, self._folder)
        if present != self._contents:
            self._contents = present
            reading = await asyncio.to_thread(read, present.texts, self._access)
            self._triggers = reading.triggers
            refused = [*present.refused, *reading.refused]
            for refusal in refused:
                self._observe(facts.ObserveRefused(*refusal))
            counts = len(present.texts), len(reading.triggers), len(refused)
            self._observe(facts.ObserveRead(*counts))
        await asyncio.gather(*map(self._evaluate, self._triggers))

    async def run(self) -> None:
        """Read and evaluate at each step of the source, until this is cancelled."""
        while True:
            await self.round()
            await self._sleep(min(self._evaluator.step_seconds, LONGEST_PAUSE_SECONDS))

    async def _evaluate(self, trigger: ParsedTrigger) -> None:
        scaled_object, spec = trigger
        if spec.demand is not None and spec.demand.threshold is not None:
            await self._evaluator.demand(scaled_object, spec, None)  # the HPA would ask for it
        # The next round comes only a step later.
        await self._evaluator.evaluate(scaled_object, spec, None, wait_for_fresh=True)
