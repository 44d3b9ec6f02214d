"""Claims about a new pod: when its samples count."""

from keda_gpu_scaler.decision.pod_state import PodState, pod_states
from keda_gpu_scaler.snapshot.snapshot import Pod
from tests.support.snapshots import NOW, bert, said
from tests.support.triggers import spec

OLD, NEW = said(), said(ready=NOW - 50)
"""Only the newest sample of the new pod is about the time it was Ready."""
MEASURED, WARMING = PodState.MEASURED, PodState.WARMING
FULL = bert("b", 100, status=OLD)


def _conditions(*pods: Pod, **metadata: str) -> list[PodState]:
    return [one.reporting for one in pod_states(spec(**metadata), pods, NOW, NOW)]


def test_a_new_pod_waits_for_half_a_window_whatever_the_others_show() -> None:
    assert _conditions(bert("c", 100, status=NEW)) == [WARMING]
    assert _conditions(FULL, bert("c", 100, status=NEW)) == [MEASURED, WARMING]


def test_where_readiness_is_not_known_warmup_and_an_exporters_delay_are_waited_for() -> None:
    """Its series begin as late as its samples are: `warmup` protects for as long as it says."""
    for age, state in ((164, WARMING), (165, MEASURED)):
        young = bert("c", 100, first_seen=NOW - age)
        assert _conditions(bert("b", 100), young) == [MEASURED, state]
