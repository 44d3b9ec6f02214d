"""Claims about what the cluster has said of a pod, and what exporters show of it as well."""

import math
from dataclasses import replace
from typing import Any

import pytest

from keda_gpu_scaler.snapshot.evidence import (
    Evidence,
    EvidenceSource,
    NamespaceEvidence,
    PodStatement,
    PodStatus,
    Readiness,
    Unschedulable,
)
from keda_gpu_scaler.snapshot.observation import Observation, Target
from keda_gpu_scaler.snapshot.pod_status import (
    REMEMBERED,
    PodStatuses,
    Watch,
    advance_pod_statuses,
    build_snapshot,
    silenced,
)
from keda_gpu_scaler.snapshot.reported_pods import ReportedPods
from keda_gpu_scaler.snapshot.snapshot import NEVER_SEEN, Pod, Snapshot
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.times import YOUNG_SECONDS
from tests.support.snapshots import COLLECTION, NOW, pod, said

AT = 10_000.0
KEY = ("ml", "bert-0")
ONE = Target("ksm", "10.0.1.1:8080")
TWO = Target("ksm", "10.0.1.2:8080")
STARTING = PodStatement(created_at=AT - 100, ready=False)
READY = PodStatement(created_at=AT - 100, ready=True, ready_at=AT - 20)


def _said(
    at: float, statement: PodStatement | None = None, *, targets: tuple[Target, ...] = (ONE,)
) -> Evidence:
    """Return what is said by a scrape of the instant `at`, 30 s after the one before."""
    return Evidence(
        {} if statement is None else {KEY: statement},
        covered=frozenset({"ml"}),
        scrapes=dict.fromkeys(targets, at),
        stable_since=dict.fromkeys(targets, 30.0),
    )


def _after(*evidence: tuple[float, Evidence]) -> PodStatuses:
    book = PodStatuses()
    for at, spoken in evidence:
        book = advance_pod_statuses(book, spoken, {"ml"}, at)
    return book


def _told(*statements: PodStatement) -> PodStatus:
    times = [AT + 15 * n for n in range(len(statements))]
    told = [(at, _said(at, one)) for at, one in zip(times, statements, strict=True)]
    return _after(*told).pods[KEY]


WAITING = replace(STARTING, unschedulable=Unschedulable(AT - 90, "no room"))
UNDATED = replace(READY, ready_at=None)
"""Nobody says since when it is Ready."""
STOPPED = replace(READY, ready=False, ready_at=None)
ENDING = replace(READY, ready=None, ended=True)
NAMELESS = replace(READY, created_at=None)
"""Nobody tells when it was created, so nothing tells it from another one of its name."""
ANEW = replace(STARTING, created_at=AT + 10)
STATUSES: dict[str, tuple[tuple[PodStatement, ...], dict[str, object]]] = {
    "it became Ready": ((STARTING, READY), {"readiness": Readiness.EVER, "ready_since": AT - 20}),
    "it was never Ready": ((STARTING,), {"readiness": Readiness.NEVER}),
    "nobody says": ((PodStatement(),), {"readiness": Readiness.UNKNOWN}),
    "it was Ready, and is again": (
        (READY, STOPPED, replace(READY, ready_at=AT + 5)),
        {"readiness": Readiness.EVER, "ready_since": AT - 20, "ready": True},
    ),
    "it was Ready within the last hour": (
        (replace(STARTING, was_ready=True),),
        {"readiness": Readiness.EVER, "ready_since": NEVER_SEEN, "ready": False},
    ),
    "seen to become Ready": ((STARTING, UNDATED), {"ready_since": AT + 15}),
    "seen to become Ready, of any age": (
        (replace(STARTING, created_at=None), replace(UNDATED, created_at=None)),
        {"ready_since": AT + 15},
    ),
    "Ready and young": ((UNDATED,), {"ready_since": AT}),
    "lately Ready": (
        (replace(UNDATED, created_at=None, ready_recently=True),),
        {"ready_since": AT},
    ),
    "Ready and old": (
        (replace(UNDATED, created_at=AT - YOUNG_SECONDS),),
        {"ready_since": NEVER_SEEN},
    ),
    "Ready, of any age": ((replace(UNDATED, created_at=None),), {"ready_since": NEVER_SEEN}),
    "no node is found": ((STARTING, WAITING), {"unschedulable": WAITING.unschedulable}),
    "a node was found": ((WAITING, STARTING), {"unschedulable": None}),
    "alive": ((READY,), {"alive_at": AT, "ended_at": math.inf, "ready": True}),
    "ended": ((READY, ENDING), {"alive_at": AT, "ended_at": AT + 15, "ready": None}),
    "ended for long": (
        (READY, ENDING, ENDING),
        {"alive_at": AT, "ended_at": AT + 15, "listed_at": AT + 30},
    ),
    "ended, and never seen alive": ((ENDING,), {"alive_at": float("-inf"), "ended": True}),
    "an end is for good": ((replace(READY, ended=True), READY), {"ended": True}),
    "another one of its name": ((ENDING, ANEW), {"readiness": Readiness.NEVER, "ended": False}),
    "perhaps another one of its name": (
        (replace(NAMELESS, ended=True), NAMELESS),
        {"ended": False},
    ),
    "still the same": ((replace(NAMELESS, ended=True),) * 2, {"ended": True}),
}
"""What is said of a pod one time after the other, and the status that follows."""


@pytest.mark.parametrize("case", STATUSES)
def test_the_status_that_follows_from_what_is_said_of_a_pod(case: str) -> None:
    statements, expected = STATUSES[case]
    status = _told(*statements)
    assert {field: getattr(status, field) for field in expected} == expected


@pytest.mark.parametrize(
    ("statement", "seconds", "readiness"),
    [
        (READY, 900, Readiness.EVER),
        (STARTING, 120, Readiness.NEVER),
        (STARTING, 121, Readiness.UNKNOWN),
    ],
)
def test_what_cannot_be_undone_is_kept_while_nobody_speaks(
    statement: PodStatement, seconds: float, readiness: Readiness
) -> None:
    book = _after((AT, _said(AT, statement)), (AT + seconds, Evidence({}, down=frozenset({ONE}))))
    found = book.status(KEY, AT + seconds)
    assert found is not None
    assert (found.readiness, bool(found.ready)) == (readiness, False)
    assert [book.is_current(AT + later) for later in (120, 121)] == [True, False]


def test_a_pod_is_forgotten_an_hour_after_it_was_last_listed() -> None:
    assert KEY in _after((AT, _said(AT, READY)), (AT + 3600, _said(AT + 3600))).pods
    assert KEY not in _after((AT, _said(AT, READY)), (AT + 3601, _said(AT + 3601))).pods


def test_a_namespace_nobody_asks_about_is_forgotten() -> None:
    book = _after((AT, _said(AT, READY)))
    assert not advance_pod_statuses(book, _said(AT + 15), {"web"}, AT + 15).pods


def _listed(at: float, statement: PodStatement | None = None) -> Evidence:
    """Return what the Kubernetes API says of the instant `at`."""
    spoken = _said(at, statement)
    return replace(spoken, stable_since={ONE: 0.0}, evidence_source=EvidenceSource.KUBERNETES)


def _later(seconds: float, **how: Any) -> tuple[float, Evidence]:
    """Return a list without the pod, so long after it was listed."""
    return AT + seconds, replace(_said(AT + seconds), **how)


PROOFS = {
    "just listed": ([], False),
    "not listed for less than a minute": ([_later(59)], False),
    "not listed for a minute": ([_later(60)], True),
    "while the list has just restarted": ([_later(90, stable_since={})], False),
    "while one of two is down": ([_later(90, down=frozenset({TWO}))], False),
    "while the only one is down": ([(AT + 90, Evidence({}, down=frozenset({ONE})))], False),
    "while nobody lists": ([(AT + 90, Evidence({}))], False),
    "while another namespace is listed": ([_later(90, covered=frozenset({"web"}))], False),
    "listed by another one, which replaced the first": (
        [(AT + 90, _said(AT + 90, targets=(TWO,)))],
        True,
    ),
    "by a slow scrape": ([_later(100, stable_since={ONE: 60.0})], False),
    "by the Kubernetes API": ([(AT + 1, _listed(AT + 1))], True),
}
"""What is listed after a list with the pod, and whether the pod is gone then."""


@pytest.mark.parametrize("case", PROOFS)
def test_a_pod_that_a_whole_list_lacks_is_gone(case: str) -> None:
    later, is_gone = PROOFS[case]
    statuses = _after((AT, _said(AT, READY)), *later)
    assert statuses.proves_gone(KEY, AT) is is_gone
    assert not statuses.proves_gone(KEY, statuses.scraped_at), "it was seen since"


def test_a_pod_that_was_never_listed_is_gone_once_it_is_silent() -> None:
    assert _after((AT, _said(AT))).proves_gone(("ml", "other"), AT - 60)


@pytest.mark.parametrize(("hour", "is_gone"), [(3600, False), (3601, True)])
def test_one_of_several_that_went_away_is_waited_for_an_hour(*, hour: float, is_gone: bool) -> None:
    both = _said(AT, READY, targets=(ONE, TWO))
    assert _after((AT, both), _later(15), _later(hour)).proves_gone(KEY, AT) is is_gone


def test_without_up_a_list_is_taken_for_a_minute_old() -> None:
    book = _after((AT, Evidence({KEY: READY})))
    assert book.scraped_at == AT - 60
    assert book.is_current(AT)


def test_a_namespace_that_is_spoken_of_is_heard_also_where_it_has_no_pods() -> None:
    book = _after((AT, Evidence({}, covered=frozenset({KEY[0]}))))
    assert book.is_current(AT)
    assert not book.proves_gone(KEY, AT - 3600)


def test_the_kubernetes_api_is_one_however_many_list_the_pods_elsewhere() -> None:
    both = _said(AT, READY, targets=(ONE, TWO))
    book = _after((AT, both), (AT + 15, _listed(AT + 15)))
    assert book.proves_gone(KEY, AT)
    assert book.evidence_source(AT + 15) is EvidenceSource.KUBERNETES
    assert book.evidence_source(AT + 15 + 121) is EvidenceSource.EXPORTERS


def test_one_that_was_silenced_proves_nothing_and_keeps_what_cannot_be_undone() -> None:
    owners = frozenset({Owner("ReplicaSet", "bert-7b6667bd9")})
    book = silenced(_after((AT, _listed(AT, replace(READY, owners=owners)))))
    assert not book.proves_gone(("ml", "other"), AT - 90)
    assert book.evidence_source(AT) is EvidenceSource.EXPORTERS
    assert (book.pods[KEY].readiness, book.pods[KEY].owners) == (Readiness.EVER, owners)


def test_of_very_many_pods_those_that_are_gone_for_longest_are_forgotten() -> None:
    one = PodStatement(ready=True)
    first = {("ml", f"first-{number}"): one for number in range(REMEMBERED // 2)}
    second = {("ml", f"second-{number}"): one for number in range(REMEMBERED // 2 + 10)}
    book = PodStatuses()
    for at, pods in ((AT, first), (AT + 15, second)):
        spoken = Evidence(pods, covered=frozenset({"ml"}), scrapes={Target("ksm", "a"): at})
        book = advance_pod_statuses(book, spoken, {"ml"}, at)
    assert len(book.pods) == REMEMBERED
    assert ("ml", "first-9") not in book.pods
    assert ("ml", "first-10") in book.pods
    many = {("ml", f"third-{number}"): one for number in range(REMEMBERED + 5)}
    said = Evidence(many, covered=frozenset({"ml"}), scrapes={Target("ksm", "a"): AT + 30})
    assert advance_pod_statuses(book, said, {"ml"}, AT + 30).pods.keys() == many.keys()


def test_what_the_cluster_says_of_owners_holds_in_their_namespace_until_it_is_silent() -> None:
    deployment, target = Owner("Deployment", "bert"), Owner("models.example.com/scale", "bert")
    said = replace(
        _said(AT),
        covered=frozenset({"ml", "web"}),
        without_pods=frozenset({("ml", deployment)}),
        selected=frozenset({("web", target)}),
        wanted={("web", deployment): 3},
    )
    book = advance_pod_statuses(PodStatuses(), said, {"ml", "web"}, AT)
    listed = NamespaceEvidence(AT, absence_known=True)
    assert book.evidence == {
        "ml": replace(listed, without_pods=frozenset({deployment})),
        "web": replace(listed, selected=frozenset({target}), wanted={deployment: 3}),
    }
    assert not silenced(book).evidence


def test_an_owner_stays_known_for_an_hour_while_its_kind_is_listed() -> None:
    """One that is deleted and created again is no mistake in its name."""

    def listed(at: float, *names: str) -> Evidence:
        return replace(_said(at), owners={("ml", "Deployment"): frozenset(names)})

    first = listed(AT, "bert", "api")
    owners = _after((AT, first), (AT + 15, listed(AT + 15, "api"))).evidence["ml"].owners
    assert owners == {"Deployment": {"bert", "api"}}
    for late, names in ((AT + 3600, {"bert", "api"}), (AT + 3601, {"api"})):
        owners = _after((AT, first), (late, listed(late, "api"))).evidence["ml"].owners
        assert owners == {"Deployment": names}
    silent = _after((AT, first), (AT + 15, _said(AT + 15)), (AT + 30, listed(AT + 30)))
    assert silent.evidence["ml"].owners == {"Deployment": {"bert", "api"}}
    assert not _after((AT, first), (AT + 15, _said(AT + 15))).evidence["ml"].owners
    assert not advance_pod_statuses(silent, _said(AT + 45), {"web"}, AT + 45).owners


@pytest.mark.parametrize(
    ("whole", "names", "lacks"),
    [(True, {"api"}, True), (True, {"bert"}, False), (False, {"api"}, False), (True, None, False)],
)
def test_only_a_whole_list_of_its_kind_lacks_an_owner(
    names: set[str] | None, *, whole: bool, lacks: bool
) -> None:
    owners = {} if names is None else {"Deployment": frozenset(names)}
    listed = NamespaceEvidence(AT, absence_known=whole, owners=owners)
    assert listed.lacks(Owner("Deployment", "bert")) is lacks
    assert not listed.lacks(None)


NAMESPACES = ("ml", "web")
WHOLE = Watch(is_whole=True, steady=1, steady_at=NOW)
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


BY_API = replace(WHOLE, evidence_source=EvidenceSource.KUBERNETES)
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
    # The Kubernetes API also shows a pod that is ending, as long as it lists it.
    "ending, by the Kubernetes API": (said(ended=True, asks_gpu=False), {"watch": BY_API}, True),
    "ended, by the Kubernetes API": (
        said(ended=True, asks_gpu=False, listed=NOW - 20),
        {"watch": BY_API},
        None,
    ),
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
BEFORE, AFTER = (pod(NAME, 90, last_seen=OLD + late, ended=True) for late in (-10, 0))
ENDS = {
    "being deleted, and reports": (SHOWN, said(ended=True), {}, True),
    # Another pod may have the name of one that ended.
    "deleted in a list long ago, and reports": (
        *(SHOWN, said(ended=True, listed=NOW - 130), {"scraped": NOW - 130}, False),
    ),
    "deleted in a list a minute ago, and reports": (
        *(SHOWN, said(ended=True, listed=NOW - 60), {"scraped": NOW - 60}, True),
    ),
    "deleted in a list long ago, and ended by exporters": (
        *(LACKED, said(ended=True, listed=NOW - 200), {"scraped": NOW - 200}, True),
    ),
    "reports, and was never listed": (SHOWN, None, {}, False),
    "reports, and is not listed any more": (SHOWN, said(listed=NOW - 600), {"scraped": NOW}, False),
    "silent, and not listed any more": (SILENT, said(listed=NOW - 80), {}, True),
    "silent, and never listed": (SILENT, None, {}, True),
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
