"""Decides the triggers of a folder, which KEDA does not ask about, at the step of their sources.

The files are read again at each round, and what cannot be read is refused file by file. Hidden
files are ignored, as Kubernetes keeps its own in a mounted ConfigMap. ScaledObjects are written as
for KEDA; objects of other kinds and triggers of other scalers are ignored, so that whatever a chart
renders can be put there as it is.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from keda_gpu_scaler.evaluator.evaluator import Caller, Evaluator
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.facts import ObserveRefused
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.workbench import check
from keda_gpu_scaler.workbench.check import FileTrigger
from keda_gpu_scaler.workbench.check.documents import BYTES_LIMIT
from keda_gpu_scaler.workbench.check.findings import Finding

LONGEST_PAUSE_SECONDS = 15.0
"""The usual step of a source, and how soon a change of the files is noticed."""
_NOT_OURS = (
    "none of its triggers is for this scaler: expected one of type external or external-push, "
    "with gpu-scaler in its scalerAddress, or with the key workload or podPattern"
)
_NO_NAMESPACE = "metadata.namespace: not given; expected the namespace that it would be applied to"


def contents(folder: Path) -> tuple[dict[str, str], list[ObserveRefused]]:
    """Return the texts of a folder's files by their names, and what cannot be read. It blocks."""
    try:
        paths = sorted(
            path for path in folder.iterdir() if path.suffix in {".yaml", ".yml", ".json"}
        )
    except OSError as error:
        reason = f"the folder cannot be read: {error.strerror}"
        return {}, [ObserveRefused(str(folder), 0, reason)]
    texts: dict[str, str] = {}
    refused: list[ObserveRefused] = []
    for path in paths:
        if path.name.startswith("."):
            continue
        if not path.is_file():  # a pipe would not end
            refused.append(ObserveRefused(path.name, 0, "it is no file"))
            continue
        try:
            with path.open("rb") as file:
                texts[path.name] = file.read(BYTES_LIMIT + 1).decode("utf-8-sig")
        except (OSError, ValueError) as error:  # also one that is not UTF-8
            refused.append(ObserveRefused(path.name, 0, str(error)))
    return texts, refused


def read_triggers(
    texts: Mapping[str, str], access: Access
) -> tuple[list[FileTrigger], list[ObserveRefused]]:
    """Return the triggers in some texts, and what of them is refused, which hides nothing else."""
    manifests, problems = check.read_objects(texts, namespace="")
    refused = list(map(_refused, problems))
    triggers: list[FileTrigger] = []
    for manifest in manifests:
        if manifest.kind != "ScaledObject":
            continue
        if not manifest.namespace:
            line = manifest.node.place("metadata").line
            refused.append(ObserveRefused(manifest.file, line, _NO_NAMESPACE))
            continue
        if not manifest.ours:
            line = manifest.node.place("spec", "triggers").line
            refused.append(ObserveRefused(manifest.file, line, _NOT_OURS))
        parsed, findings = check.parse(manifest.ours, access)
        triggers += parsed
        refused += map(_refused, findings)
    return list(dict.fromkeys(triggers)), refused


def _refused(finding: Finding) -> ObserveRefused:
    return ObserveRefused(finding.file, finding.position.line, finding.message)


class Observing:
    """Observes the triggers of a folder."""

    def __init__(
        self,
        folder: Path,
        *,
        access: Access,
        evaluator: Evaluator,
        observe: facts.Observer,
    ) -> None:
        self._folder, self._access, self._evaluator = folder, access, evaluator
        self._observe = observe
        self._contents: tuple[dict[str, str], list[ObserveRefused]] | None = None
        self._triggers: list[FileTrigger] = []

    async def run(self) -> None:
        """Read and evaluate at each step of the source, until this is cancelled."""
        while True:
            await self.round()
            await asyncio.sleep(min(self._evaluator.step_seconds, LONGEST_PAUSE_SECONDS))

    async def round(self) -> None:
        """Read the files, and evaluate all of their triggers once."""
        present = await asyncio.to_thread(contents, self._folder)
        if present != self._contents:
            self._contents = present
            texts, unreadable = present
            self._triggers, refused = await asyncio.to_thread(read_triggers, texts, self._access)
            # One line for a file: a hostile one has hundreds of thousands of mistakes.
            of_file = Counter(refusal.file for refusal in refused)
            first_of_file = {refusal.file: refusal for refusal in reversed(refused)}
            for fact in (*unreadable, *first_of_file.values()):
                more = of_file[fact.file] - 1
                reason = f"{fact.reason}; and {more} more in this file" if more > 0 else fact.reason
                self._observe(ObserveRefused(fact.file, fact.line, reason))
            refusals = len(unreadable) + len(refused)
            self._observe(facts.ObserveRead(len(texts), len(self._triggers), refusals))
        await asyncio.gather(*map(self._evaluate, self._triggers))

    async def _evaluate(self, trigger: FileTrigger) -> None:
        scaled_object, spec = trigger
        if spec.demand is not None and spec.demand.threshold is not None:
            await self._evaluator.demand(scaled_object, spec, None)  # the HPA would ask for it
        # The next round comes only a step later.
        await self._evaluator.evaluate(scaled_object, spec, None, Caller.STREAM)
