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
    found: dict[Observed, None] = {}
    refused: list[Refused] = []
    for file, text in texts.items():
        reading = documents.read(text, VALUES_LIMIT)
        refused += [Refused(file, one.position.line, one.what) for one in reading.problems]
        for document in reading.documents:
            for one in manifests(file, document, Terms(namespace="")):
                if one.kind != "ScaledObject" or not one.is_of_keda:
                    continue
                for each in _of(one, access):
                    if isinstance(each, Refused):
                        refused.append(each)
                    elif len(found) < TRIGGERS_LIMIT:
                        found[each] = None
                    else:
                        line, why = one.node.position.line, f"more than {TRIGGERS_LIMIT:,} triggers"
                        refused.append(Refused(file, line, why))
    return Reading(tuple(found), tuple(refused))


def _of(one: Manifest, access: Access) -> Iterator[Observed | Refused]:
    if not one.namespace:
        yield Refused(one.file, one.node.place("metadata").line, _NO_NAMESPACE)
        return
    if not one.ours:
        yield Refused(one.file, one.node.place("spec", "triggers").line, _NOT_OURS)
    for each in one.ours:
        yield from _read(one, each, access)


def _read(one: Manifest, each: Trigger, access: Access) -> Iterator[Observed | Refused]:
    from_env = [
        key
        for key in each.metadata
        if key.endswith(FROM_ENV) and key.removesuffix(FROM_ENV) in KEYS
    ]
    for key in from_env:
        why = f"{key}: its value is in the environment of the target, which is not known here; "
        why += f"write the value as {key.removesuffix(FROM_ENV)}"
        yield Refused(one.file, each.place(key).line, why)
    if from_env:
        return
    scaled_object = ScaledObject(one.namespace, one.name)
    try:
        yield Observed(scaled_object, trigger.parse(scaled_object, each.metadata, access))
    except errors.SpecError as error:
        for mistake in error.mistakes:
            line = each.place(mistake.key).line
            yield Refused(one.file, line, f"{mistake.what}; {mistake.advice}")
