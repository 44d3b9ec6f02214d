"""The table in docs/states.md, row by row: each decision is the documented one."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from keda_gpu_scaler.decision.decision import (
    Asking,
    Context,
    Decision,
    State,
    decide,
    is_never_seen,
)
from keda_gpu_scaler.snapshot.evidence import (
    EvidenceSource,
    NamespaceEvidence,
    PodStatus,
    Readiness,
)
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.workload import Selected
from tests.repository.test_docs import ROOT, section
from tests.support.snapshots import BERT_DEPLOYMENT, NOW, bert, said, snapshot, unseen
from tests.support.triggers import spec

LISTED = NamespaceEvidence(NOW - 10, absence_known=True)
EMPTY = replace(LISTED, without_pods=frozenset({BERT_DEPLOYMENT}))
EXPORTERS, KUBE_STATE_METRICS, KUBERNETES = "exporters", "kube-state-metrics", "kubernetes"
BASES = {
    "all": (KUBERNETES, KUBE_STATE_METRICS, EXPORTERS),
    "the cluster's": (KUBERNETES, KUBE_STATE_METRICS),
}
POLICIES = ("hold", "error", "zero")


@dataclass(frozen=True, slots=True)
class World:
    """Pods without a status from the cluster, and what differs from a healthy source."""

    pods: tuple[Pod, ...]
    listed: NamespaceEvidence = LISTED
    complete: bool = True
    remembered: State | None = State.MEASURED
    asking: Asking | None = None
    """The HPA asks about the workload."""
    selected: bool = False
    """The trigger is about the pods that a label selector selects."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table."""

    state: str
    evidence: str
    case: str
    policy: str
    value: str
    active: str


def _rows() -> Iterator[Row]:
    for line in section(ROOT / "docs" / "states.md", "states")[2:]:
        yield Row(*(cell.strip() for cell in line.strip("|").split("|")))


def _young(value: float) -> Pod:
    return bert("z", value, first_seen=NOW - 40, status=said(ready=NOW - 40))


def _missing() -> Pod:
    return bert("z", 0, last_seen=NOW - 90)


def _pods(count: int, value: float) -> tuple[Pod, ...]:
    return tuple(bert(letter, value) for letter in "bcdfg"[:count])


def _unready(age: float) -> Pod:
    return unseen("z", said(never=True, created=NOW - age))


def _unseen(suffix: str = "z") -> Pod:
    return unseen(suffix, said(is_ready=True))


UNSHOWN = "a Ready pod asks for a GPU that no exporter has shown in 15 minutes"
HALF = bert("b", [0.0] * 4)
LATE = 1900.0
UNTOLD = "the pods selected by the label selector are not known"
SELECTED = World(_pods(5, 0), selected=True)
CASES: dict[str, World] = {
    "a GPU was busy within `activationWindow`": World(_pods(2, 50)),
    "no GPU was busy, and samples cover `activationWindow` or the pods' life": World(_pods(2, 0)),
    "no GPU was busy, and samples do not cover it yet": World((HALF,)),
    "no GPU was busy, and another pod was never Ready, within `startTimeout`": World(
        (*_pods(2, 0), _unready(60))
    ),
    "no GPU was busy, and another pod was never Ready, beyond `startTimeout`": World(
        (*_pods(2, 0), _unready(LATE))
    ),
    "the owner asks for more replicas than are Ready, and these are above `threshold`": World(
        _pods(3, 90), replace(LISTED, wanted={BERT_DEPLOYMENT: 4})
    ),
    "the owner asks for more replicas than are Ready, and these alone ask for more still": World(
        _pods(5, 95), replace(LISTED, wanted={BERT_DEPLOYMENT: 6})
    ),
    "a replica left recently, and it is not known until when it worked": World(
        (*_pods(5, 50), bert("z", 50, ended=True, status=said(ended=True, ended_at=NOW)))
    ),
    "a pod is too young to be measured, and the others alone ask for more": World(
        (*_pods(5, 100), _young(100))
    ),
    "a pod is too young to be measured, and the others do not": World((*_pods(5, 0), _young(0))),
    "exporters that are scraped directly have not been for a whole window": World(
        tuple(replace(one, sampled_since=NOW - 60) for one in _pods(5, 0))
    ),
    "no pod was ever Ready, within `startTimeout`": World((_unready(60),)),
    "no pod was ever Ready, beyond `startTimeout`": World((_unready(LATE),)),
    "a pod is missing, and the others alone ask for more": World((*_pods(5, 100), _missing())),
    "a pod is missing, and the others do not": World((*_pods(5, 0), _missing())),
    "a Ready pod that reported is silent, and all others are full": World(
        (bert("b", 100), replace(_missing(), status=said(is_ready=True)))
    ),
    f"{UNSHOWN}, and half are measured": World((bert("b", 0), _unseen())),
    f"{UNSHOWN}, and fewer are measured": World((bert("b", 0), _unseen(), _unseen("x"))),
    "pods may be overlooked": World(_pods(5, 0), complete=False),
    "the owner has no replicas": World((), EMPTY),
    "the API lists no pod of it": World(()),
    "each pod ended, or none was seen for an hour": World((bert("b", 90, ended=True),)),
    "no pod is seen, and the HPA asks about one, within `startTimeout`": World(
        (), asking=Asking(NOW - 60, NOW)
    ),
    "no pod is seen, and the HPA asks about one, beyond `startTimeout`": World(
        (), asking=Asking(NOW - LATE, NOW)
    ),
    "its last pod is ending, or went within the last minute": World(
        (bert("b", 90, ended=True, status=said(ended=True)),)
    ),
    "no pod is listed, and the owner has no count": World(()),
    "a GPU was busy within `activationWindow`, and no pod reports": World(
        (bert("b", 90, last_seen=NOW - 90),)
    ),
    "no pod reports; before, it was `ended` or `empty`": World(
        (_missing(),), remembered=State.EMPTY
    ),
    "no pod reports; before, it was another state": World((_missing(),)),
    "no pod reports, and nothing is remembered": World((_missing(),), remembered=None),
    "no pod reports, nothing is remembered, and the cluster lists one": World(
        (_missing(),), remembered=None
    ),
    "no pod reports, nothing is remembered, and the HPA asks about one": World(
        (_missing(),), remembered=None, asking=Asking(NOW - 60, NOW)
    ),
    "no pod reports, or samples are older than `maxAge`": World((_missing(),)),
    f"{UNTOLD}; before, it was `ended` or `empty`": replace(SELECTED, remembered=State.EMPTY),
    f"{UNTOLD}; before, it was another state": SELECTED,
    f"{UNTOLD}, and nothing is remembered": replace(SELECTED, remembered=None),
    UNTOLD: SELECTED,
}


def _walked() -> Iterator[tuple[Row, str, str]]:
    """Yield every row once for each evidence and each policy it speaks of."""
    for row in _rows():
        bases = BASES.get(row.evidence, (row.evidence,))
        policies = POLICIES if row.policy == "any" else (row.policy,)
        for evidence_source, policy in itertools.product(bases, policies):
            yield row, evidence_source, policy


def _decided(world: World, evidence_source: str, policy: str) -> Decision:
    has_evidence = evidence_source != EXPORTERS
    pods = [_told(pod) if has_evidence else replace(pod, status=None) for pod in world.pods]
    listed = (
        replace(world.listed, evidence_source=EvidenceSource(evidence_source))
        if has_evidence
        else None
    )
    seen = snapshot(*pods, complete=world.complete, evidence=listed)
    context = Context(NOW, 3600, remembered=world.remembered, asking=world.asking)
    asked = spec(onUnknown=policy)
    if world.selected:
        asked = replace(asked, pods=Selected("ml", "models.example.com", "bert"))
    return decide(asked, seen, context)


def _told(pod: Pod) -> Pod:
    """Return the pod with a status that says Ready for a long time, unless it has one."""
    status: PodStatus = pod.status or said()
    return replace(pod, status=status)


def _value(decided: Decision) -> str:
    if decided.refused:
        return "error"
    return "hold" if decided.value is None else "the value"


_ACTIVE = {True: "active", False: "inactive", None: "error"}


def test_the_table_says_what_is_decided(subtests: pytest.Subtests) -> None:
    for row, evidence_source, policy in _walked():
        with subtests.test(f"{row.state} {row.case} {evidence_source} {policy}"):
            decided = _decided(CASES[row.case], evidence_source, policy)
            assert (f"`{decided.state}`", decided.evidence) == (row.state, evidence_source)
            assert _ACTIVE[decided.active] == row.active
            if row.value == "0":
                assert decided.value == 0
            else:
                assert _value(decided) == row.value


def test_every_case_has_a_row() -> None:
    assert {row.case for row in _rows()} == CASES.keys()
    assert {row.state for row in _rows()} == {f"`{state}`" for state in State}


@pytest.mark.parametrize("named", ["GetMetrics", "IsActive"])
def test_nothing_but_what_the_table_allows_is_zero_or_inactive(named: str) -> None:
    read: Callable[[Row], bool] = {
        "GetMetrics": lambda row: row.value == "0",
        "IsActive": lambda row: row.active == "inactive",
    }[named]
    allowed = {"`empty`"} if named == "GetMetrics" else {"`measured`", "`empty`", "`ended`"}
    for row in filter(read, _rows()):
        late = "beyond `startTimeout`" in row.case
        remembered = "before, it was `ended` or `empty`" in row.case
        assert row.state in allowed or row.policy == "zero" or late or remembered


@pytest.mark.parametrize(
    "evidence_source", [EvidenceSource.KUBERNETES, EvidenceSource.KUBE_STATE_METRICS]
)
def test_a_listed_pod_of_which_nobody_knows_how_it_is_has_not_ended(
    evidence_source: EvidenceSource,
) -> None:
    listed = said(readiness=Readiness.UNKNOWN)
    scraped = NamespaceEvidence(
        listed.listed_at, absence_known=True, evidence_source=evidence_source
    )
    seen = snapshot(unseen("b", listed), evidence=scraped)
    decided = decide(spec(), seen, Context(NOW, 3600, remembered=State.MEASURED))
    assert (decided.state, decided.value, decided.active) == (State.UNKNOWN, None, True)


@pytest.mark.parametrize(
    ("pods", "listed", "state", "is_never"),
    [
        pytest.param((), None, State.ENDED, True, id="exporters show none"),
        pytest.param((), LISTED, State.ENDED, True, id="the cluster lists none"),
        pytest.param((), EMPTY, State.EMPTY, False, id="its own count is 0"),
        pytest.param((bert("b", 90, ended=True),), None, State.ENDED, False, id="its pod ended"),
        pytest.param((bert("b", 90),), None, State.MEASURED, False, id="it has a pod"),
    ],
)
def test_a_workload_of_which_nothing_shows_that_it_exists_was_never_seen(
    pods: tuple[Pod, ...], listed: NamespaceEvidence | None, state: State, *, is_never: bool
) -> None:
    seen = snapshot(*pods, evidence=listed)
    decided = decide(spec(), seen, Context(NOW, 3600))
    assert decided.state is state
    assert is_never_seen(spec(), seen, decided) is is_never
