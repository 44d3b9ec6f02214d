"""Claims about the pod status that follows from all statements about a pod."""

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
from keda_gpu_scaler.snapshot.observation import Target
from keda_gpu_scaler.snapshot.pod_status import (
    REMEMBERED,
    PodStatuses,
    advance_pod_statuses,
    silenced,
)
from keda_gpu_scaler.snapshot.snapshot import NEVER_SEEN
from keda_gpu_scaler.spec.workload import Owner

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
    for at, said in evidence:
        book = advance_pod_statuses(book, said, {"ml"}, at)
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
    "Ready and young": ((UNDATED,), {"ready_since": AT}),
    "lately Ready": (
        (replace(UNDATED, created_at=None, ready_recently=True),),
        {"ready_since": AT},
    ),
    "Ready and old": ((replace(UNDATED, created_at=AT - 5000),), {"ready_since": NEVER_SEEN}),
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
    said = _said(at, statement)
    return replace(said, stable_since={ONE: 0.0}, evidence_source=EvidenceSource.KUBERNETES)


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
    assert _after((AT, both), _later(hour)).proves_gone(KEY, AT) is is_gone


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
        said = Evidence(pods, covered=frozenset({"ml"}), scrapes={Target("ksm", "a"): at})
        book = advance_pod_statuses(book, said, {"ml"}, at)
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
    late = AT + 3601
    owners = _after((AT, first), (late, listed(late, "api"))).evidence["ml"].owners
    assert owners == {"Deployment": {"api"}}
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
