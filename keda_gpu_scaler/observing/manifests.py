"""Texts → the triggers in them that are for this scaler, and what is refused. Pure.

ScaledObjects are written as for KEDA. Objects of other kinds and triggers of other scalers are
ignored, so that whatever a chart renders can be put there as it is.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.check import documents
from keda_gpu_scaler.check.objects import Manifest, Terms, Trigger, manifests
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.trigger.keys import FROM_ENV, KEYS

TRIGGERS_LIMIT = 1000
"""Each is decided at every step: together about a third of a second of work."""
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
    """Return the triggers in some texts; one that is wrong hides no other.

    Args:
        texts: by the names of their files.
        access: what ScaledObjects are allowed, by their namespace, as for KEDA's.
    """
    triggers: dict[Observed, None] = {}
    refused: list[Refused] = []
    for file, text in texts.items():
        parsed = documents.read(text, VALUES_LIMIT)
        problems = parsed.problems
        refused += [Refused(file, problem.position.line, problem.what) for problem in problems]
        for document in parsed.documents:
            for manifest in manifests(file, document, Terms(namespace="")):
                if manifest.kind != "ScaledObject" or not manifest.is_of_keda:
                    continue
                for outcome in _read_manifest(manifest, access):
                    if isinstance(outcome, Refused):
                        refused.append(outcome)
                    elif len(triggers) < TRIGGERS_LIMIT:
                        triggers[outcome] = None
                    else:
                        line = manifest.node.position.line
                        why = f"more than {TRIGGERS_LIMIT:,} triggers"
                        refused.append(Refused(file, line, why))
    return Reading(tuple(triggers), tuple(refused))


def _read_manifest(manifest: Manifest, access: Access) -> Iterator[Observed | Refused]:
    if not manifest.namespace:
        line = manifest.node.place("metadata").line
        yield Refused(manifest.file, line, _NO_NAMESPACE)
        return
    if not manifest.ours:
        line = manifest.node.place("spec", "triggers").line
        yield Refused(manifest.file, line, _NOT_OURS)
    for manifest_trigger in manifest.ours:
        yield from _read_trigger(manifest, manifest_trigger, access)


def _read_trigger(
    manifest: Manifest, manifest_trigger: Trigger, access: Access
) -> Iterator[Observed | Refused]:
    metadata = manifest_trigger.metadata
    from_env = [
        key for key in metadata if key.endswith(FROM_ENV) and key.removesuffix(FROM_ENV) in KEYS
    ]
    for key in from_env:
        why = f"{key}: its value is in the environment of the target, which is not known here; "
        why += f"write the value as {key.removesuffix(FROM_ENV)}"
        yield Refused(manifest.file, manifest_trigger.place(key).line, why)
    if from_env:
        return
    scaled_object = ScaledObject(manifest.namespace, manifest.name)
    try:
        yield Observed(scaled_object, trigger.parse(scaled_object, metadata, access))
    except errors.SpecError as error:
        for mistake in error.mistakes:
            line = manifest_trigger.place(mistake.key).line
            yield Refused(manifest.file, line, f"{mistake.what}; {mistake.advice}")
