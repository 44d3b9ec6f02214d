"""Claims about combining what exporters show and what the cluster says of a pod."""

import pytest

from keda_gpu_scaler.snapshot.evidence import (
    NamespaceEvidence,
    PodStatus,
    Readiness,
    Unschedulable,
)
from keda_gpu_scaler.snapshot.joining import build_snapshot
from keda_gpu_scaler.snapshot.observation import Observation
from keda_gpu_scaler.snapshot.pod_status import PodStatuses, Watch
from keda_gpu_scaler.snapshot.reported_pods import ReportedPods
from keda_gpu_scaler.snapshot.snapshot import Pod, Snapshot
from tests.support.snapshots import COLLECTION, NOW, pod, said

NAMESPACES = ("ml", "web")
KEY = ("ml", "bert-0")
WHOLE = Watch(is_whole=True, steady=1, steady_at=NOW, interval_seconds=30.0)
NAME = "bert-0"


def _taken(
    shown: Pod | None,
    status: PodStatus | None,
    *,
    scraped: float = NOW - 10,
    watch: Watch = WHOLE,
) -> Snapshot:
    reported_pods = ReportedPods(NOW, {} if shown is None else {KEY: shown})
    statuses = {} if status is None else {KEY: status}
    evidence = NamespaceEvidence(scraped, watch.is_whole)
    pod_statuses = PodStatuses(scraped, statuses, watch, dict.fromkeys(NAMESPACES, evidence))
    observation = Observation(
        (NOW,), (), {}, absence_known=True, collection_seconds=COLLECTION, unmatched_elements=3
    )
    return build_snapshot(reported_pods, pod_statuses, observation, NAMESPACES, {"ml"})


def _found(shown: Pod | None, status: PodStatus | None, **how: float | Watch) -> Pod | None:
    taken = _taken(shown, status, **how)  # type: ignore[arg-type]  # a table of any
    return taken.namespaces["ml"].pods.get(NAME)


def _evidence(taken: Snapshot, namespace: str) -> NamespaceEvidence:
    found = taken.of(namespace).evidence
    assert found is not None
    return found


SHOWN = pod(NAME, 90)


def test_a_pod_that_both_know_carries_what_both_know() -> None:
    found = _found(SHOWN, said())
    assert found is not None
    assert (found.status, found.last_seen, found.ended) == (said(), NOW, False)


def test_a_pod_that_no_exporter_has_shown_is_there() -> None:
    status = said(never=True)
    assert _found(None, status) == Pod(NAME, collection_seconds=COLLECTION, status=status)
    assert _taken(None, said()).pod_count == 0


def test_that_a_pod_which_reports_was_never_ready_is_not_known_once_nobody_speaks() -> None:
    """Nor whether it is still unschedulable."""
    never = said(never=True, listed=NOW - 130, unschedulable=Unschedulable(NOW - 600))
    found = _found(SHOWN, never, scraped=NOW - 130)
    assert found is not None
    assert found.status is not None
    assert (found.readiness, found.ended) == (Readiness.UNKNOWN, False)
    assert found.status.unschedulable is None


UNHEARD: dict[str, float | Watch] = {"scraped": NOW - 130}
NEVER_SHOWN: dict[str, tuple[PodStatus, dict[str, float | Watch], bool | None]] = {
    "ended": (said(ended=True, asks_gpu=False), {}, None),
    "not listed any more": (said(listed=NOW - 70, asks_gpu=False), {}, None),
    "nobody speaks": (said(listed=NOW - 130, asks_gpu=False), UNHEARD, None),
    "nobody speaks of one never Ready": (said(listed=NOW - 130, never=True), UNHEARD, None),
    # One that was Ready and may have a GPU may work unseen: its share is in no sum before, and not
    # in the others yet.
    "a GPU pod, nobody speaks": (said(listed=NOW - 130), UNHEARD, False),
    "a GPU pod, the list may be short": (said(listed=NOW - 70), {"watch": Watch()}, False),
    "a GPU pod, ended": (said(ended=True), {}, True),
    "a GPU pod, not listed any more": (said(listed=NOW - 70), {}, True),
}
"""Pods that no exporter has shown, and whether they have ended; None: they are not there."""


@pytest.mark.parametrize("case", NEVER_SHOWN)
def test_a_pod_that_no_exporter_has_shown_is_there_if_it_may_work(case: str) -> None:
    status, how, has_ended = NEVER_SHOWN[case]
    found = _found(None, status, **how)
    assert (None if found is None else found.ended) == has_ended


@pytest.mark.parametrize(("device", "asks"), [("npu", True), ("fpga", None)])
def test_a_resource_of_which_a_pod_was_shown_is_a_gpu(device: str, *, asks: bool | None) -> None:
    asking = said(asks_gpu=None, devices=frozenset({device, "card"}))
    statuses = {
        KEY: said(asks_gpu=None, devices=frozenset({"npu"})),
        ("ml", "bert-1"): asking,
        ("web", "api-0"): said(asks_gpu=None),
    }
    evidence = NamespaceEvidence(NOW - 10, absence_known=True)
    book = PodStatuses(NOW - 10, statuses, WHOLE, dict.fromkeys(NAMESPACES, evidence))
    observation = Observation((NOW,), (), {}, absence_known=True)
    taken = build_snapshot(
        ReportedPods(NOW, {KEY: SHOWN}), book, observation, NAMESPACES, NAMESPACES
    )
    found = [taken.of("ml").pods["bert-1"].status, taken.of("web").pods["api-0"].status]
    assert [status and status.asks_gpu for status in found] == [asks, None]


SILENT, LACKED = pod(NAME, 90, last_seen=NOW - 80), pod(NAME, 90, last_seen=NOW - 30, ended=True)
OLD = NOW - 500
BEFORE, AFTER = (pod(NAME, 90, last_seen=OLD + late, ended=True) for late in (-10, 10))
ENDS = {
    "being deleted, and reports": (SHOWN, said(ended=True), {}, True),
    # Another pod may have the name of one that ended.
    "deleted in a list long ago, and reports": (
        *(SHOWN, said(ended=True, listed=NOW - 130), {"scraped": NOW - 130}, False),
    ),
    "deleted in a list long ago, and ended by exporters": (
        *(LACKED, said(ended=True, listed=NOW - 200), {"scraped": NOW - 200}, True),
    ),
    "reports, and was never listed": (SHOWN, None, {}, False),
    "reports, and is not listed any more": (SHOWN, said(listed=NOW - 600), {"scraped": NOW}, False),
    "silent, and not listed any more": (SILENT, said(listed=NOW - 80), {}, True),
    "silent, and listed lately": (SILENT, said(listed=NOW - 60), {}, False),
    "silent, while the list may be short": (
        SILENT,
        said(listed=NOW - 80),
        {"watch": Watch()},
        False,
    ),
    # It may be the exporter that lost its map of pods; the list may be a little older.
    **{
        f"ended by exporters, and listed {late} s ago": (
            *(LACKED, said(listed=NOW - late), {"scraped": NOW - late}, False),
        )
        for late in (10, 30, 40)
    },
    "ended by exporters, and not in the newest list": (LACKED, said(listed=NOW - 20), {}, True),
    "ended by exporters, and never listed": (LACKED, None, {}, True),
    "ended after a list that is no evidence now": (AFTER, said(listed=OLD), {"scraped": OLD}, True),
    "ended before that list": (BEFORE, said(listed=OLD), {"scraped": OLD}, False),
}
"""What exporters and the cluster have shown of a pod, and whether it has ended."""


@pytest.mark.parametrize("case", ENDS)
def test_when_a_pod_that_was_shown_has_ended(case: str) -> None:
    shown, status, how, has_ended = ENDS[case]
    found = _found(shown, status, **how)  # type: ignore[arg-type]  # a table of any
    assert found is not None
    assert found.ended is has_ended


def test_where_a_whole_list_is_about_a_namespace_it_is_complete() -> None:
    taken = _taken(None, None)
    assert _evidence(taken, "web").absence_known
    assert taken.of("web").is_complete


def test_while_the_list_may_be_short_a_namespace_is_complete_only_by_its_exporters() -> None:
    taken = _taken(SHOWN, said(), watch=Watch())
    assert not _evidence(taken, "ml").absence_known
    assert taken.of("ml").is_complete
    assert not taken.of("web").is_complete


def test_where_nobody_has_spoken_for_long_there_is_no_evidence() -> None:
    taken = _taken(SHOWN, said(), scraped=NOW - 121)
    assert [taken.of(namespace).evidence for namespace in NAMESPACES] == [None, None]
    assert not taken.of("web").is_complete
