"""The cases in docs/states.md, one by one: each decision is the documented one."""

import itertools
import math
import re
from collections.abc import Iterator
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
    Readiness,
)
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.workload import Selected
from testbed.triggers import spec
from tests.decision.deciding import EMPTY, LISTED, decide_about
from tests.repository.test_docs import ROOT, section
from tests.support.snapshots import BERT_DEPLOYMENT, NOW, bert, said, snapshot, unseen

EXPORTERS, KUBE_STATE_METRICS, KUBERNETES = "exporters", "kube-state-metrics", "kubernetes"
BASES = {
    "": (KUBERNETES, KUBE_STATE_METRICS, EXPORTERS),
    "cluster": (KUBERNETES, KUBE_STATE_METRICS),
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
    """One case of the page."""

    state: str
    evidence: str
    case: str
    value: str
    active: str

    @property
    def is_of_hold(self) -> bool:
        """`onUnknown` changes the answer: the page has that of `hold`."""
        return self.state == "`unknown`" and self.case != BUSY_BEFORE

    def by(self, policy: str) -> tuple[str, str]:
        """Return both answers with this `onUnknown`."""
        held = self.value, self.active
        return {"error": ("error", "error"), "zero": ("0", "inactive")}.get(policy, held)


NAMES = {
    "cluster": "cluster",
    "exporters": EXPORTERS,
    "kube-state-metrics": KUBE_STATE_METRICS,
    "Kubernetes API": KUBERNETES,
}
"""What the page calls an evidence, after a case."""
_ITEM = re.compile(r"^(`\w+`)|^- \*\*(.+?), (\w+)\*\*: ((?:.+\n)(?:  .+\n)*)", re.MULTILINE)


def _rows() -> Iterator[Row]:
    """Yield every case of the page: a state's answers come after it, and an answer's cases."""
    state = ""
    text = "\n".join([*section(ROOT / "docs" / "states.md", "states"), ""])
    for named, value, active, cases in _ITEM.findall(text):
        state = named or state
        for case in filter(None, " ".join(cases.split()).rstrip(".").split("; ")):
            words, _, evidence = case.removesuffix(")").partition(" (")
            yield Row(state, NAMES[evidence] if evidence else "", words, value, active)


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


BUSY_BEFORE = "a GPU was busy within `activationWindow`"
HALF = bert("b", [0.0] * 4)
LATE = spec().start_timeout_seconds
ASKED = replace(LISTED, wanted={BERT_DEPLOYMENT: 4})
OF_OTHERS = {"Deployment": frozenset({"berta", "api"}), "StatefulSet": frozenset[str]()}
OTHERS = replace(LISTED, owners=OF_OTHERS)
SELECTED = World(_pods(5, 0), selected=True)
CASES: dict[str, World] = {
    "a GPU was busy": World(_pods(2, 50)),
    "no GPU was busy": World(_pods(2, 0)),
    "samples do not cover `activationWindow` yet": World((HALF,)),
    "another pod was never Ready, within `startTimeout`": World((*_pods(2, 0), _unready(60))),
    "another pod was never Ready, beyond `startTimeout`": World((*_pods(2, 0), _unready(LATE))),
    "fewer replicas are Ready than were asked for, and are above `threshold`": World(
        _pods(3, 90), ASKED
    ),
    "fewer replicas are Ready than were asked for, and ask for more still": World(
        _pods(5, 95), replace(LISTED, wanted={BERT_DEPLOYMENT: 6})
    ),
    "a replica left, and it is not known until when it worked, or what it did": World(
        (*_pods(5, 50), bert("z", 50, ended=True, status=said(ended=True, ended_at=NOW)))
    ),
    "a pod is too young to be measured, and the others alone ask for more": World(
        (*_pods(5, 100), _young(100))
    ),
    "a pod is too young to be measured, and the others do not": World((*_pods(5, 0), _young(0))),
    "a direct source has been scraped for less than a `window`": World(
        tuple(replace(one, sampled_since=NOW - 60) for one in _pods(5, 0))
    ),
    "no pod was ever Ready, within `startTimeout`": World((_unready(60),)),
    "no pod was ever Ready, beyond `startTimeout`": World((_unready(LATE),)),
    "a pod is missing, and the others alone ask for more": World((*_pods(5, 100), _missing())),
    "a pod is missing, and the others do not": World((*_pods(5, 0), _missing())),
    "a pod is silent, and all others are full": World(
        (bert("b", 100), replace(_missing(), status=said(is_ready=True)))
    ),
    "pods are unseen, at most half of them": World((bert("b", 0), _unseen())),
    "more than half of the pods are unseen": World((bert("b", 0), _unseen(), _unseen("x"))),
    "pods may be overlooked": World(_pods(5, 0), complete=False),
    "the owner has no replicas": World((), EMPTY),
    "it lists no pod": World(()),
    "each pod ended, or none was seen for an hour": World((bert("b", 90, ended=True),)),
    "no pod is seen, and the HPA asks, within `startTimeout`": World(
        (), asking=Asking(NOW - 60, NOW)
    ),
    "no pod is seen, and the HPA asks, beyond `startTimeout`": World(
        (), asking=Asking(NOW - LATE, NOW)
    ),
    "its last pod is ending, or went within the last minute": World(
        (bert("b", 90, ended=True, status=said(ended=True)),)
    ),
    "its pods have been ending for two minutes, and the owner asks for others": World(
        (bert("b", 90, ended=True, status=said(ended=True, ended_at=NOW - 121)),), ASKED
    ),
    "no pod is listed, and the owner has no count": World(()),
    BUSY_BEFORE: World((bert("b", 90, last_seen=NOW - 90),)),
    "the state before was `ended` or `empty`": World((_missing(),), remembered=State.EMPTY),
    "the state before was another one": World((_missing(),)),
    "nothing is remembered": World((_missing(),), remembered=None),
    "nothing is remembered, and the cluster lists a pod": World((_missing(),), remembered=None),
    "nothing is remembered, and the HPA asks": World(
        (_missing(),), remembered=None, asking=Asking(NOW - 60, NOW)
    ),
    "no workload has the name": World((), OTHERS, remembered=State.EMPTY),
    "no workload has the name, and the HPA asks": World((), OTHERS, asking=Asking(NOW - LATE, NOW)),
    "nothing is remembered of selected pods": replace(SELECTED, remembered=None),
}
ALSO = {
    "the state before was `ended` or `empty`": replace(SELECTED, remembered=State.EMPTY),
    "the state before was another one": SELECTED,
    "no pod is listed, and the owner has no count": World(
        (bert("b", 90, ended=True, status=said(ended=True, listed=NOW - 100)),), ASKED
    ),
    "its last pod is ending, or went within the last minute": World(
        (bert("b", 90, ended=True, status=said(ended=True, ended_at=NOW - 120)),), ASKED
    ),
    # What the seen pods need is no sum, however much it is.
    "pods may be overlooked": World(_pods(5, 100), complete=False),
}
"""Another world in the same case, such as pods of a label selector that is not known."""


def _walked() -> Iterator[tuple[Row, World, str, str]]:
    """Yield every row once for each world, each evidence and each policy it speaks of."""
    for row in _rows():
        worlds = [CASES[row.case], *([ALSO[row.case]] if row.case in ALSO else [])]
        bases = BASES.get(row.evidence, (row.evidence,))
        yield from (
            (row, world, base, policy)
            for world, base, policy in itertools.product(worlds, bases, POLICIES)
        )


def _decided(world: World, evidence_source: str, policy: str) -> Decision:
    trigger, evidence, pods = spec(onUnknown=policy), None, world.pods
    if world.selected:
        trigger = replace(trigger, pods=Selected("ml", "models.example.com", "bert"))
    if evidence_source == EXPORTERS:
        pods = tuple(replace(pod, status=None) for pod in pods)
    else:
        pods = tuple(replace(pod, status=pod.status or said()) for pod in pods)
        evidence = replace(world.listed, evidence_source=EvidenceSource(evidence_source))
    return decide_about(
        *pods,
        trigger=trigger,
        evidence=evidence,
        complete=world.complete,
        remembered=world.remembered,
        asking=world.asking,
    )


def _value(decided: Decision) -> str:
    if decided.refused:
        return "error"
    return "hold" if decided.value is None else "the value"


_ACTIVE = {True: "active", False: "inactive", None: "error"}


def test_the_page_says_what_is_decided(subtests: pytest.Subtests) -> None:
    for row, world, evidence_source, policy in _walked():
        with subtests.test(f"{row.state} {row.case} {evidence_source} {policy}"):
            decided = _decided(world, evidence_source, policy)
            value, active = row.by(policy) if row.is_of_hold else (row.value, row.active)
            assert (f"`{decided.state}`", decided.evidence) == (row.state, evidence_source)
            assert _ACTIVE[decided.active] == active
            if value == "0":
                assert decided.value == 0
            else:
                assert _value(decided) == value


def test_every_case_is_on_the_page() -> None:
    assert {row.case for row in _rows()} == CASES.keys()
    assert {row.state for row in _rows()} == {f"`{state}`" for state in State}


def test_nothing_but_what_the_page_allows_is_zero_or_inactive() -> None:
    for row in _rows():
        late = "beyond `startTimeout`" in row.case
        remembered = row.case == "the state before was `ended` or `empty`"
        assert row.value != "0" or row.state == "`empty`"
        is_at_rest = row.state in {"`measured`", "`empty`", "`ended`"} or late or remembered
        assert row.active != "inactive" or is_at_rest


@pytest.mark.parametrize(
    "evidence_source", [EvidenceSource.KUBERNETES, EvidenceSource.KUBE_STATE_METRICS]
)
def test_a_listed_pod_of_which_nobody_knows_how_it_is_has_not_ended(
    evidence_source: EvidenceSource,
) -> None:
    listed = said(readiness=Readiness.UNKNOWN)
    scraped = replace(LISTED, scraped_at=listed.listed_at, evidence_source=evidence_source)
    decided = decide_about(unseen("b", listed), evidence=scraped, remembered=State.MEASURED)
    assert (decided.state, decided.value, decided.active) == (State.UNKNOWN, None, True)


@pytest.mark.parametrize(
    ("load", "ended_at", "state", "active"),
    [
        pytest.param(0, NOW - 60, State.PARTIAL, False, id="idle, and gone after the list"),
        pytest.param(50, NOW - 60, State.PARTIAL, True, id="busy, and gone after the list"),
        pytest.param(0, NOW - 90, State.UNKNOWN, None, id="listed after it was gone"),
        pytest.param(0, math.inf, State.UNKNOWN, None, id="nothing shows that it is gone"),
    ],
)
def test_a_pod_that_exporters_show_to_be_gone_does_not_make_an_idle_workload_active(
    load: float, ended_at: float, state: State, *, active: bool | None
) -> None:
    gone = bert("b", load, last_seen=NOW - 100, status=said(listed=NOW - 90))
    listed = replace(LISTED, scraped_at=NOW - 30)
    decided = decide_about(replace(gone, ended_at=ended_at), evidence=listed)
    assert (decided.state, decided.value, decided.active) == (state, None, active)


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
    decided = decide(spec(), seen, Context(NOW))
    assert decided.state is state
    assert is_never_seen(spec(), seen, decided) is is_never


NAMESAKE = replace(OTHERS, owners={**OF_OTHERS, "StatefulSet": frozenset({"bert"})})
TYPO = "there is no deployment/bert (did you mean berta?) (evidence: kube-state-metrics): hold, "


@pytest.mark.parametrize(
    "evidence_source", [EvidenceSource.KUBERNETES, EvidenceSource.KUBE_STATE_METRICS]
)
@pytest.mark.parametrize(
    ("asking", "active", "why"),
    [
        pytest.param(Asking(NOW - 30, NOW - 5), True, "kept active: the HPA asks", id="with pods"),
        pytest.param(None, None, "and nothing remembered", id="nothing asks"),
    ],
)
def test_a_workload_that_the_cluster_does_not_list_is_unknown_whatever_was_before(
    evidence_source: EvidenceSource, asking: Asking | None, why: str, *, active: bool | None
) -> None:
    """Its name is a mistake, and the scale target may have busy pods: it has not ended."""
    listed = replace(OTHERS, evidence_source=evidence_source)
    other = replace(bert("b", 90), name="berta-7b6667bd9-bcdfg")
    decided = decide_about(other, evidence=listed, remembered=State.ENDED, asking=asking)
    assert (decided.state, decided.value, decided.active) == (State.UNKNOWN, None, active)
    begin = TYPO.replace("kube-state-metrics", evidence_source)
    assert decided.reason.startswith(begin + why)
    assert decided.unlisted == begin.removesuffix(": hold, ")


@pytest.mark.parametrize(
    ("listed", "keys", "meant"),
    [
        pytest.param(NAMESAKE, {}, " (did you mean statefulset/bert?)", id="of another kind"),
        pytest.param(OTHERS, {"workload": "lws/bert"}, "", id="group of pods"),
        pytest.param(
            OTHERS, {"workload": "sts/berta"}, " (did you mean deployment/berta?)", id="set"
        ),
    ],
)
def test_the_workload_that_may_be_meant_is_named(
    listed: NamespaceEvidence, keys: dict[str, str], meant: str
) -> None:
    trigger = spec(**keys)
    decided = decide_about(evidence=listed, trigger=trigger)
    assert (
        decided.unlisted == f"there is no {trigger.workload}{meant} (evidence: kube-state-metrics)"
    )


@pytest.mark.parametrize(
    ("pods", "listed", "keys", "state"),
    [
        pytest.param((), NAMESAKE, {"workload": "sts/bert"}, State.ENDED, id="it is listed"),
        pytest.param((), LISTED, {}, State.ENDED, id="its kind is not listed"),
        pytest.param((), OTHERS, {"workload": "rollout/bert"}, State.ENDED, id="a kind of others"),
        pytest.param((), OTHERS, {"workload": "isvc/bert"}, State.ENDED, id="without an owner"),
        pytest.param((bert("b", 90, ended=True),), OTHERS, {}, State.ENDED, id="a pod was seen"),
        pytest.param(
            (), replace(OTHERS, absence_known=False), {}, State.UNKNOWN, id="a list without a part"
        ),
        pytest.param((bert("b", 90),), OTHERS, {}, State.MEASURED, id="with a pod of its name"),
    ],
)
def test_a_workload_that_may_exist_is_no_mistake(
    pods: tuple[Pod, ...], listed: NamespaceEvidence, keys: dict[str, str], state: State
) -> None:
    decided = decide_about(*pods, evidence=listed, trigger=spec(**keys))
    assert (decided.state, decided.unlisted) == (state, "")


def test_an_old_list_does_not_say_that_a_workload_does_not_exist() -> None:
    decided = decide_about(evidence=OTHERS, now=NOW + 600, remembered=State.EMPTY)
    assert (decided.active, decided.unlisted) == (False, "")
