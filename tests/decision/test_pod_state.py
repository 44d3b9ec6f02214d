"""Claims about workloads at their limit: when the first samples of a new pod count."""

import pytest

from keda_gpu_scaler.decision.pod_state import PodState, pod_states
from keda_gpu_scaler.snapshot.snapshot import Pod
from tests.support.snapshots import NOW, bert, said, unseen
from tests.support.triggers import spec

OLD, NEW = said(), said(ready=NOW - 50)
"""Only the newest sample of the new pod is about the time it was Ready."""
MEASURED, WARMING, STARTING = PodState.MEASURED, PodState.WARMING, PodState.STARTING
FULL = bert("b", 100, status=OLD)


def _conditions(*pods: Pod, **metadata: str) -> list[PodState]:
    return [one.reporting for one in pod_states(spec(**metadata), pods, NOW, NOW)]


def test_where_all_are_full_a_new_pod_counts_with_its_first_sample() -> None:
    assert _conditions(FULL, bert("c", 95, status=NEW)) == [MEASURED, MEASURED]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (bert("b", [100] * 7 + [94], status=OLD), bert("c", 100, status=NEW)),
        (bert("b", [94] + [100] * 7, status=OLD), bert("c", 100, status=NEW)),
        (bert("b", 100, 0, status=OLD), bert("c", 100, status=NEW)),
        (FULL, bert("c", 94, status=NEW)),
        (FULL, bert("c", 100, 0, status=NEW)),
    ],
    ids=["now", "a window ago", "one of two GPUs", "the new one", "one GPU of the new one"],
)
def test_one_sample_that_is_not_full_lets_the_new_pod_wait(old: Pod, new: Pod) -> None:
    assert _conditions(old, new) == [MEASURED, WARMING]


def test_what_was_not_full_before_the_window_does_not_matter() -> None:
    old = bert("b", [0] + [100] * 8, status=OLD)
    assert _conditions(old, bert("c", 100, status=NEW)) == [MEASURED, MEASURED]


def test_what_a_new_pod_showed_before_it_was_ready_does_not_matter() -> None:
    new = bert("c", [0, 0, 0, 100], status=NEW)
    assert _conditions(FULL, new) == [MEASURED, MEASURED]


def test_a_pod_alone_waits_for_half_a_window() -> None:
    assert _conditions(bert("c", 100, status=NEW)) == [WARMING]


def test_one_of_two_new_pods_without_a_sample_lets_both_wait() -> None:
    later = bert("d", 100, status=said(ready=NOW - 40))
    assert _conditions(FULL, bert("c", 100, status=NEW), later) == [MEASURED, WARMING, WARMING]


def test_a_pod_that_is_not_ready_yet_shows_nothing_that_matters() -> None:
    loading = bert("d", 0, status=said(never=True, created=NOW - 60))
    found = _conditions(FULL, bert("c", 100, status=NEW), loading, unseen("f", said(never=True)))
    assert found[:3] == [MEASURED, MEASURED, STARTING]


@pytest.mark.parametrize("signal", ["memory", "memory-used", "power", "temperature"])
def test_what_is_no_work_has_no_limit(signal: str) -> None:
    new = bert("c", 100, status=NEW)
    assert _conditions(FULL, new, signal=signal, activationThreshold="50") == [MEASURED, WARMING]


def test_where_readiness_is_not_known_the_warm_up_is_waited_for() -> None:
    young = bert("c", 100, first_seen=NOW - 60)
    assert _conditions(bert("b", 100), young) == [MEASURED, WARMING]
