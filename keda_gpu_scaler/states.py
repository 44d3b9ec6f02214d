"""How well a workload's load is known: one of six states.

Pure. What each of them means for the answer is in `decision.py`.
"""

from enum import StrEnum

from keda_gpu_scaler.condition import Reporting
from keda_gpu_scaler.load import Workload
from keda_gpu_scaler.selection import Selected
from keda_gpu_scaler.snapshot import Snapshot
from keda_gpu_scaler.spec import TriggerSpec


class State(StrEnum):
    """How well the workload's load is known."""

    MEASURED = "measured"
    STARTING = "starting"
    PARTIAL = "partial"
    EMPTY = "empty"
    ENDED = "ended"
    UNKNOWN = "unknown"

    @property
    def is_gone(self) -> bool:
        """Whether the workload is known to have no pods."""
        return self in (State.EMPTY, State.ENDED)


def of(spec: TriggerSpec, snapshot: Snapshot, found: Workload, now: float) -> State:
    """Return the state of a workload.

    Args:
        spec: the trigger.
        snapshot: the newest snapshot of its source.
        found: the workload's replicas in it.
        now: the time of the answer.
    """
    if now - snapshot.at > spec.max_age_seconds or not is_told(spec, snapshot):
        return State.UNKNOWN
    if not found.replicas:
        return _without_replicas(spec, snapshot, found)
    if not found.reporting_pods:
        return State.UNKNOWN
    if found.of(Reporting.MISSING) or not snapshot.is_complete(spec.pods.namespace):
        return State.PARTIAL
    return State.STARTING if found.of(Reporting.WARMING) else State.MEASURED


def is_told(spec: TriggerSpec, snapshot: Snapshot) -> bool:
    """Tell whether it is known which pods are the workload's.

    Those that a selector alone tells are known only while the cluster says whom it selects. Before
    and after that the ones that were known may be a part of them, and none is not no pod.
    """
    if not isinstance(spec.pods, Selected):
        return True
    said = snapshot.evidence.get(spec.pods.namespace)
    return said is not None and spec.pods.selected_by in said.selected


def _without_replicas(spec: TriggerSpec, snapshot: Snapshot, found: Workload) -> State:
    """No pod should report: none is Ready yet, or there is none."""
    namespace = spec.pods.namespace
    if found.starting or found.stalled:
        return State.STARTING
    said = snapshot.evidence.get(namespace)
    if said is not None and found.last_alive >= said.scraped_at:
        return State.UNKNOWN  # it is there, and nobody says how it is
    lists_ours = None if spec.only_shown else said
    if lists_ours is not None and lists_ours.denies(spec.pods.owner, found.last_listed):
        return State.EMPTY
    listed_absent = lists_ours is not None and lists_ours.absence_known
    if found.ended_pods or listed_absent or namespace in snapshot.absence_known_in:
        return State.ENDED
    return State.UNKNOWN
