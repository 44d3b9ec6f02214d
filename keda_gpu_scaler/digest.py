"""Ledger + observation → snapshot: the pods of each namespace, ready to be looked up by name.

Pure.
"""

from collections import defaultdict
from collections.abc import Collection

from keda_gpu_scaler.observation import Demand, Observation
from keda_gpu_scaler.presence import Ledger
from keda_gpu_scaler.snapshot import NO_PODS, NamespacePods, Pod, Snapshot


def snapshot(
    ledger: Ledger,
    observation: Observation,
    demand: Demand,
    recorded: Collection[str],
    step_seconds: float,
) -> Snapshot:
    """Return the snapshot that answers for every namespace of `demand`.

    Args:
        ledger: who is there, after `observation`.
        observation: what was fetched.
        demand: what it was fetched for.
        recorded: the namespaces whose last hour is known.
        step_seconds: the distance between two instants.
    """
    pods: dict[str, dict[str, Pod]] = defaultdict(dict)
    for (namespace, name), pod in ledger.pods.items():
        pods[namespace][name] = pod
    return Snapshot(
        at=observation.at,
        step_seconds=step_seconds,
        namespaces={
            namespace: _sorted(pods[namespace]) if namespace in pods else NO_PODS
            for namespace in demand.namespaces
        },
        absence_known_in=frozenset(recorded) if observation.absence_known else frozenset(),
        complete_in=frozenset() if observation.overlooks else frozenset(recorded),
        refused_samples=observation.refused_samples,
    )


def _sorted(pods: dict[str, Pod]) -> NamespacePods:
    return NamespacePods(tuple(sorted(pods)), pods)
