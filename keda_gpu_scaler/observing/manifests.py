"""Texts → the triggers in them that are for this scaler, and what is refused. Pure.

ScaledObjects are written as for KEDA. Objects of other kinds and triggers of other scalers are
ignored, so that whatever a chart renders can be put there as it is.
"""

from collections.abc import Mapping
from typing import NamedTuple

from keda_gpu_scaler import check
from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.objects import Terms
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.trigger.access import Access

VALUES_LIMIT = 50_000
"""Of one file: half a second of work."""
_NOT_OURS = (
    "none of its triggers is for this scaler: expected one of type external or external-push, "
    "with gpu-scaler in its scalerAddress, or with the key workload or podPattern"
)
_NO_NAMESPACE = "metadata.namespace: not given; expected the namespace that it would be applied to"


class Observed(NamedTuple):
    """One trigger to observe."""

    scaled_object: ScaledObject
    spec: TriggerSpec


class Refused(NamedTuple):
    """What of a file is not observed."""

    file: str
    line: int
    why: str
    """With the key, the value and what was expected."""


class Reading(NamedTuple):
    """What is in some files."""

    triggers: tuple[Observed, ...]
    refused: tuple[Refused, ...]


def read(texts: Mapping[str, str], access: Access) -> Reading:
    """Return the triggers in the texts of some files; one that is wrong hides no other."""
    manifests, problems = check.read(texts, Terms(namespace=""), VALUES_LIMIT)
    refused = [_refused(problem) for problem in problems]
    triggers: dict[Observed, None] = {}
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
        for trigger in manifest.ours:
            spec, findings = check.parse(trigger, access)
            refused += map(_refused, findings)
            if spec is not None:
                triggers[Observed(manifest.scaled_object, spec)] = None
    return Reading(tuple(triggers), tuple(refused))


def _refused(finding: Finding) -> Refused:
    return Refused(finding.file, finding.position.line, finding.message)
