"""Ledger + roster + observation → snapshot: the pods of each namespace, ready to be looked up.

Pure. This is where what exporters show and what the cluster says of a pod come together.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence, PodKey, Readiness
from keda_gpu_scaler.snapshot.observation import Observation
from keda_gpu_scaler.snapshot.pod_status import Roster
from keda_gpu_scaler.snapshot.reported_pods import Ledger
from keda_gpu_scaler.snapshot.snapshot import NEVER_SEEN, NO_PODS, NamespacePods, Pod, Snapshot
from keda_gpu_scaler.spec.workload import Owner


def build_snapshot(  # noqa: PLR0913, PLR0917 - what one fetch brought, and what is known from before
    ledger: Ledger,
    roster: Roster,
    observation: Observation,
    namespaces: Collection[str],
    recorded: Collection[str],
    step_seconds: float,
) -> Snapshot:
    """Return the snapshot that answers for all of `namespaces`.

    Args:
        ledger: who is there by the exporters, after `observation`.
        roster: who is there by what the cluster says.
        observation: what was fetched.
        namespaces: those that it was fetched for.
        recorded: the namespaces whose last hour is known.
        step_seconds: the distance between two instants.
    """
    at, pods = observation.at, defaultdict[str, dict[str, Pod]](dict)
    for (namespace, name), pod in (
        *_reported(ledger, roster, at),
        *_listed(ledger, roster, observation),
    ):
        pods[namespace][name] = pod
    return Snapshot(
        at=at,
        step_seconds=step_seconds,
        namespaces={
            namespace: _sorted(pods[namespace]) if namespace in pods else NO_PODS
            for namespace in namespaces
        },
        absence_known_in=frozenset(recorded) if observation.absence_known else frozenset(),
        complete_in=frozenset() if observation.overlooks else frozenset(recorded),
        evidence=_evidence(roster, namespaces) if roster.is_current(at) else {},
        refused_samples=observation.refused_samples,
        strangers=observation.strangers,
    )


def _reported(ledger: Ledger, roster: Roster, at: float) -> Iterator[tuple[PodKey, Pod]]:
    """Yield the pods that exporters have shown, with what the cluster says of each."""
    for key, pod in ledger.pods.items():
        status = roster.status(key, at)
        yield key, replace(pod, status=status, ended=_ended(key, pod, roster, at))


def _listed(
    ledger: Ledger, roster: Roster, observation: Observation
) -> Iterator[tuple[PodKey, Pod]]:
    """Yield the pods that no exporter has shown."""
    at, nothing = observation.at, Pod("", (), None, NEVER_SEEN, NEVER_SEEN)
    nothing = replace(nothing, collection_seconds=observation.collection_seconds)
    for key, known in roster.pods.items():
        if key not in ledger.pods and (roster.lists_end(key, known) or _is_there(key, roster, at)):
            status = roster.status(key, at)
            yield key, replace(nothing, name=key[1], status=status, ended=known.ended)


def _ended(key: PodKey, pod: Pod, roster: Roster, at: float) -> bool:
    """Tell whether a pod is gone: the cluster's word where it is newer than the last sighting."""
    status = roster.status(key, at)
    if status is not None and status.ended:
        return True
    if roster.proves_gone(key, pod.last_seen):
        return True
    stands = status is not None and roster.is_listed(status) and status.listed_at > pod.last_seen
    return pod.ended and not stands


def _is_there(key: PodKey, roster: Roster, at: float) -> bool:
    """Tell whether a pod that never reported is still believed to exist.

    One that has a GPU and was Ready is, while nobody speaks any more: it may work unseen.
    """
    known = roster.pods[key]
    lasts = known.asks_gpu and known.readiness is Readiness.EVER
    there = not known.ended and not roster.proves_gone(key, NEVER_SEEN)
    return there and (lasts or roster.is_current(at))


def _evidence(roster: Roster, namespaces: Collection[str]) -> dict[str, NamespaceEvidence]:
    empty, selected = _by_namespace(roster.without_pods), _by_namespace(roster.selected)
    return {
        namespace: NamespaceEvidence(
            roster.scraped_at,
            roster.watch.is_whole,
            frozenset(empty[namespace]),
            roster.watch.basis,
            frozenset(selected[namespace]),
        )
        for namespace in roster.covered.intersection(namespaces)
    }


def _by_namespace(said: Iterable[tuple[str, Owner]]) -> dict[str, set[Owner]]:
    found: dict[str, set[Owner]] = defaultdict(set)
    for namespace, owner in said:
        found[namespace].add(owner)
    return found


def _sorted(pods: dict[str, Pod]) -> NamespacePods:
    return NamespacePods(tuple(sorted(pods)), pods)
