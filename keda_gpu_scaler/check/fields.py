"""The fields of a ScaledObject as of KEDA 2.21: unknown, missing, or with a wrong value. Pure.

The table has the names in which a mistake is silent: where an object is applied without strict
validation, the API server drops a field that it does not know, and KEDA uses its default.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from keda_gpu_scaler.check.findings import Wrong
from keda_gpu_scaler.check.nodes import Node
from keda_gpu_scaler.check.objects import Manifest, shown
from keda_gpu_scaler.check.workloads import Workloads

_HPA = ("spec", "advanced", "horizontalPodAutoscalerConfig")
_SCALING = ("policies", "selectPolicy", "stabilizationWindowSeconds", "tolerance")
_FIELDS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("spec",): (
        "scaleTargetRef",
        "pollingInterval",
        "cooldownPeriod",
        "initialCooldownPeriod",
        "idleReplicaCount",
        "minReplicaCount",
        "maxReplicaCount",
        "fallback",
        "advanced",
        "triggers",
    ),
    ("spec", "scaleTargetRef"): ("name", "kind", "apiVersion", "envSourceContainerName"),
    ("spec", "fallback"): ("failureThreshold", "replicas", "behavior"),
    ("spec", "advanced"): (
        "restoreToOriginalReplicaCount",
        "horizontalPodAutoscalerConfig",
        "scalingModifiers",
    ),
    _HPA: ("name", "behavior"),
    (*_HPA, "behavior"): ("scaleUp", "scaleDown"),
    (*_HPA, "behavior", "scaleUp"): _SCALING,
    (*_HPA, "behavior", "scaleDown"): _SCALING,
    ("spec", "advanced", "scalingModifiers"): (
        "formula",
        "target",
        "activationTarget",
        "metricType",
    ),
}
"""The names that KEDA knows in each mapping of a ScaledObject."""
_TRIGGER = ("type", "name", "metadata", "metricType", "useCachedMetrics", "authenticationRef")
_LEAST = {
    ("spec", "pollingInterval"): 1,
    ("spec", "cooldownPeriod"): 0,
    ("spec", "idleReplicaCount"): 0,
    ("spec", "minReplicaCount"): 0,
    ("spec", "maxReplicaCount"): 1,
    ("spec", "fallback", "replicas"): 0,
    (*_HPA, "behavior", "scaleDown", "stabilizationWindowSeconds"): 0,
}
"""The whole numbers that other rules read, each with the least that the API server accepts."""


def unknown_field(manifest: Manifest, _: Workloads) -> Iterator[Wrong]:
    """Yield each field that KEDA does not know."""
    for path, known in _FIELDS.items():
        yield from _unknown(manifest.node.block(*path), ".".join(path), known)
    for number, trigger in enumerate(manifest.triggers):
        yield from _unknown(trigger.node, f"spec.triggers[{number}]", _TRIGGER)


def _unknown(block: Node, path: str, known: tuple[str, ...]) -> Iterator[Wrong]:
    by_lower_case = {field.lower(): field for field in known}
    for key, entry in block.entries.items():
        if key in known:
            continue
        name = shown(f"{path}.{key}")
        why = f'KEDA has no field "{name}": the API server refuses it or drops it'
        fix = f"Known are {', '.join(known)}."
        near = get_close_matches(key[:100].lower(), by_lower_case, n=1)
        if near:
            fix = f"Did you mean {by_lower_case[near[0]]}?"
        yield Wrong(entry.position, why, fix)


def missing_field(manifest: Manifest, _: Workloads) -> Iterator[Wrong]:
    """Yield each field of a trigger that KEDA requires and that is missing."""
    for trigger in manifest.triggers:
        paths: list[tuple[str, ...]] = [("type",), ("metadata",)]
        if trigger.is_external and trigger.node.has("metadata"):
            paths.append(("metadata", "scalerAddress"))
        for path in paths:
            if not trigger.node.has(*path):
                why = f"{'.'.join(path)} is missing, and KEDA requires it"
                yield Wrong(trigger.node.place(*path), why, f"Add {path[-1]}.")


def wrong_type(manifest: Manifest, _: Workloads) -> Iterator[Wrong]:
    """Yield each value of another type than the API server accepts, or below its least."""
    for path, minimum in _LEAST.items():
        value, name = manifest.node.get(*path), ".".join(path)
        if value is None:
            continue
        number = manifest.node.integer(*path)
        if number is None:
            why = f"{name} is a {value.kind}, and the API server accepts only a whole number here"
            yield Wrong(manifest.node.place(*path), why, "Write a whole number, without quotes.")
        elif number < minimum:
            why = f"{name} is {number}: the API server refuses less than {minimum}"
            yield Wrong(manifest.node.place(*path), why, f"Write {minimum} or more.")
    for index, trigger in enumerate(manifest.triggers):
        for key, entry in trigger.node.block("metadata").entries.items():
            if entry.value.kind not in ("string", "null"):
                name = f"spec.triggers[{index}].metadata.{shown(key)}"
                why = (
                    f"{name} is a {entry.value.kind}, and the API server accepts only a string here"
                )
                text = shown(trigger.node.text("metadata", key))
                fix = f'Put it in quotes: "{text}".' if text else "Write a string."
                yield Wrong(entry.position, why, fix)


def replica_bounds(manifest: Manifest, _: Workloads) -> Iterator[Wrong]:
    """Yield replica counts that contradict each other."""
    minimum, maximum = manifest.minimum, manifest.maximum
    idle = manifest.node.integer("spec", "idleReplicaCount")
    # A count that is refused by itself is one finding already.
    if minimum > maximum >= 1:
        why = (
            f"minReplicaCount {minimum} is above maxReplicaCount {maximum}: KEDA refuses the object"
        )
        fix = f"Write {maximum} at most."
        yield Wrong(manifest.node.place("spec", "minReplicaCount"), why, fix)
    if idle is not None and (idle > 0 or minimum == 0):
        why = (
            f"idleReplicaCount is {idle} and minReplicaCount is {minimum}: KEDA refuses the "
            "object, as idleReplicaCount has to be 0, and less than minReplicaCount"
        )
        fix = "Remove idleReplicaCount, or write 0 and a minReplicaCount of 1 or more."
        yield Wrong(manifest.node.place("spec", "idleReplicaCount"), why, fix)
