"""Claims about which signals say that a workload is in use, as the table in docs/states.md does."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision import activation
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.decision.summary import recommended_replicas
from keda_gpu_scaler.service import messages, streams
from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import Demand, OnEmpty, OnUnknown
from keda_gpu_scaler.spec.workload import Selected
from keda_gpu_scaler.times import NO_GPU_SECONDS, UNKNOWN_SCRAPE_SECONDS
from testbed.triggers import spec
from tests.decision.deciding import EMPTY, LISTED, decide_about
from tests.repository.test_docs import ROOT, section
from tests.support.snapshots import COLLECTION, NOW, bert, said, unseen

BESIDE = spec(activationWorkload="router")


def _own(
    *pods: Pod,
    remembered: State | None = None,
    policy: str = "hold",
    evidence: NamespaceEvidence | None = None,
) -> Decision:
    trigger = spec(onUnknown=policy)
    return decide_about(
        *pods, trigger=trigger, evidence=evidence, remembered=remembered, trouble="HTTP 503"
    )


IDLE, LOST, SHORT = bert("b", 0), bert("b", 0, last_seen=NOW - 90), bert("b", [0.0] * 4)
MISSING = bert("z", 0, last_seen=NOW - 90)
BUSY_BEFORE = bert("b", 90, last_seen=NOW - 90)
STARTING, STALLED = (unseen("z", said(never=True, created=NOW - age)) for age in (60, 1900))
LOADS = {
    "busy": [_own(bert("b", 90)), *(_own(BUSY_BEFORE, policy=policy) for policy in OnUnknown)],
    "idle, with pods": [_own(IDLE), _own(STALLED, evidence=LISTED)],
    "no pods": [
        _own(),
        _own(evidence=EMPTY),
        _own(LOST, remembered=State.ENDED),
        _own(LOST, remembered=State.EMPTY),
    ],
    "active by itself": [
        _own(SHORT),
        _own(STARTING, evidence=LISTED),
        _own(IDLE, MISSING),
        _own(LOST, remembered=State.MEASURED),
    ],
    "an error, or zero by choice": [
        _own(LOST),
        _own(LOST, remembered=State.EMPTY, policy="error"),
        _own(LOST, remembered=State.EMPTY, policy="zero"),
    ],
}
"""The decisions from the workload's own GPUs, by their name in the table."""
ALL = [load for loads in LOADS.values() for load in loads]
LOADS["any but busy"] = [load for load in ALL if not load.activated]
UNKNOWN = {State.UNKNOWN, State.EMPTY}
LOADS["known"] = [load for load in LOADS["any but busy"] if load.state not in UNKNOWN]
LOADS["unknown"] = [load for load in LOADS["any but busy"] if load.state in UNKNOWN]
LOADS["any other"] = LOADS["active by itself"] + LOADS["an error, or zero by choice"]
NEIGHBOURS: dict[str, list[Decision | None]] = {
    "unasked": [None],
    "busy": [*LOADS["busy"]],
    "not busy": [None, _own(IDLE), _own()],
    "not known": [_own(LOST), _own(SHORT)],
}
NEIGHBOURS["any but busy"] = NEIGHBOURS["not busy"] + NEIGHBOURS["not known"]
DEMANDS = {"above": Demand(7.0), "not above": Demand(5.0), "not known": Demand(None, "HTTP 503")}


class Row(NamedTuple):
    """What is answered in some cases; the page has the first that matches, without the reasons."""

    load: str
    neighbour: str
    other: str
    """That an alert fires; else the demand."""
    on_empty: str
    active: str
    value: str
    reason: str

    @property
    def alert(self) -> str | None:
        return None if self.other in DEMANDS else "GpuBusy"


LOW = "demand 5 is not above demandActivationThreshold 5"
HIGH = LOW.replace("5 is not", "7 is")
OUT, BY = "the demand is not known (HTTP 503)", "by demandOnEmpty"
BUSY, FIRES = "GPUs of deployment/router are busy", "alert GpuBusy fires"
HELD, ANY = ": hold, and active", "any but busy"
ROWS = tuple(
    Row(*(cell.strip() for cell in line.split("|")))
    for line in f"""\
busy            | unasked   | unasked   | any      | active   | own  |
known           | busy      | unasked   | any      | active   | own  | {BUSY}
unknown         | busy      | unasked   | any      | active   | hold | but {BUSY}{HELD}
known           | {ANY}     | fires     | any      | active   | own  | {FIRES}
unknown         | {ANY}     | fires     | any      | active   | hold | but {FIRES}{HELD}
known           | {ANY}     | above     | any      | active   | own  | {HIGH}
unknown         | {ANY}     | above     | any      | active   | hold | but {HIGH}{HELD}
{ANY}           | not busy  | not above | any      | own      | own  | {LOW}
idle, with pods | not known | not above | any      | active   | own  | : not idle; {LOW}
no pods         | not known | not above | any      | inactive | own  | : inactive; {LOW}
any other       | not known | not above | any      | own      | own  | {LOW}
idle, with pods | not busy  | not known | any      | active   | own  | {OUT}: not idle
idle, with pods | not known | not known | any      | active   | own  | : not idle; {OUT}
no pods         | {ANY}     | not known | error    | error    | own  | {OUT}: an error {BY} error
no pods         | {ANY}     | not known | inactive | inactive | own  | {OUT}: inactive {BY} inactive
no pods         | {ANY}     | not known | active   | active   | own  | {OUT}: active {BY} active
any other       | {ANY}     | not known | any      | own      | own  | {OUT}
""".splitlines()
)


@dataclass(frozen=True, slots=True)
class Case:
    """One of the cases that a row is about."""

    load: Decision
    neighbour: Decision | None
    alert: str | None
    demand: Demand | None
    on_empty: str

    def decided(self) -> Decision:
        """Return the decision."""
        decided = activation.apply_neighbour_and_alert(
            BESIDE, self.load, self.neighbour, self.alert
        )
        if self.demand is None:
            assert decided.activated, "the demand has to be asked for"
            return decided
        assert not decided.activated, "the demand is not asked for"
        keys = {"demandQuery": "sum(waiting)", "demandActivationThreshold": "5"}
        wanted = spec(**keys, demandOnEmpty=self.on_empty)
        return activation.activate_by_demand(wanted, decided, self.demand)


def _walked() -> Iterator[tuple[Row, Case]]:
    """Yield every row once for each case that it speaks of."""
    for row in ROWS:
        policies = list(OnEmpty) if row.on_empty == "any" else [row.on_empty]
        neighbours = NEIGHBOURS[row.neighbour]
        for load, neighbour, policy in itertools.product(LOADS[row.load], neighbours, policies):
            yield row, Case(load, neighbour, row.alert, DEMANDS.get(row.other), policy)


def _answered(decided: Decision, *, has_replicas: bool = False) -> str:
    try:
        active = messages.activity(decided, has_replicas=has_replicas).result
    except errors.UnknownLoadError:
        return "error"
    return "active" if active else "inactive"


def _load(decided: Decision) -> str:
    try:
        found = messages.metric_value("gpu-utilization", decided).metricValues
    except errors.UnknownLoadError:
        return "error"
    return str([one.metricValueFloat for one in found]) if found else "hold"


def test_each_row_says_what_is_answered(subtests: pytest.Subtests) -> None:
    for number, (row, case) in enumerate(_walked()):
        with subtests.test(f"{number} {row.load}, {row.neighbour}, {row.other}"):
            decided = case.decided()
            active, value = _answered(case.load), _load(case.load)
            assert _answered(decided) == (active if row.active == "own" else row.active)
            assert _load(decided) == (value if row.value == "own" else row.value)
            is_signal = row.other in {"unasked", "fires", "above"}
            assert streams.Pushes().is_due(decided, NOW) is is_signal
            assert decided.reason.startswith(case.load.reason)
            assert decided.reason.removeprefix(case.load.reason).endswith(row.reason)
            assert (decided is case.load) == (not row.reason)


def test_the_page_says_what_is_answered(subtests: pytest.Subtests) -> None:
    """Where no input says active: by the first row that matches; an empty cell matches all."""
    lines = section(ROOT / "docs" / "states.md", "signals")[2:]
    page = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    for number, (row, case) in enumerate(_walked()):
        decided = case.decided()
        words = [
            next((name for name in ("idle, with pods", "no pods") if case.load in LOADS[name]), ""),
            "not known" if case.neighbour in NEIGHBOURS["not known"] else "",
            row.other,
        ]
        answer = next(
            answer
            for *cells, answer in page
            if all(cell in {"", word} for cell, word in zip(cells, words, strict=True))
        )
        named = {"as without inputs": _answered(case.load), "`demandOnEmpty`": str(case.on_empty)}
        with subtests.test(f"{number} {words}"):
            is_active = decided.activated
            assert _answered(decided) == ("active" if is_active else named.get(answer, answer))


def test_the_rows_speak_once_of_every_case_in_which_the_demand_is_asked_for() -> None:
    asked = [
        (id(case.load), id(case.neighbour), id(case.demand), str(case.on_empty))
        for _, case in _walked()
        if case.demand is not None
    ]
    expected = itertools.product(
        map(id, LOADS["any but busy"]),
        map(id, NEIGHBOURS["any but busy"]),
        map(id, DEMANDS.values()),
        map(str, OnEmpty),
    )
    assert sorted(asked) == sorted(expected)


def test_an_error_about_a_workload_without_pods_does_not_wake_it() -> None:
    """The HPA asked within the last minute: it had replicas until just now."""
    for gone in (_own(), _own(evidence=EMPTY)):
        case = Case(gone, None, None, DEMANDS["not known"], "error")
        assert _answered(case.decided(), has_replicas=True) == "error"
    nobody_knows = Case(_own(LOST), None, None, DEMANDS["not known"], "error")
    assert _answered(nobody_knows.decided(), has_replicas=True) == "active"


def test_what_is_not_known_never_stops_a_workload_and_never_is_a_signal() -> None:
    """Several unknown signals in a row: the first does not hide the load from the second."""
    lost = _own(LOST)
    for load, on_empty in itertools.product(LOADS["any but busy"], OnEmpty):
        decided = Case(load, lost, None, DEMANDS["not known"], on_empty).decided()
        assert not decided.activated
        assert decided.active is not False or load.has_no_pods or load.is_zero_by_choice
        assert (decided.value, decided.refused) == (load.value, load.refused)


COVERS = "samples do not cover activationWindow yet, or a pod is not Ready yet"


@pytest.mark.parametrize(
    ("neighbour", "words"),
    [
        (_own(IDLE), "is idle"),
        (_own(), "has no pods"),
        (_own(SHORT), f"may be in use ({COVERS}): not idle"),
        (_own(IDLE, STARTING, evidence=LISTED), f"may be in use ({COVERS}): not idle"),
        (_own(STARTING, evidence=LISTED), "may be in use (its pods are starting): not idle"),
        (_own(IDLE, MISSING), "may be in use (not all of its pods are seen): not idle"),
        (_own(LOST), "may be in use (its load is unknown): not idle"),
    ],
    ids=["idle", "no pods", "a short window", "one not Ready", "starting", "partial", "unknown"],
)
def test_the_sentence_says_what_is_known_of_another_workload(
    neighbour: Decision, words: str
) -> None:
    own = _own(IDLE)
    reason = activation.apply_neighbour_and_alert(BESIDE, own, neighbour, None).reason
    assert reason == f"{own.reason}; deployment/router {words}"


def test_every_state_that_leaves_a_doubt_has_a_sentence() -> None:
    doubtful = {each.state for each in ALL if not each.activated and each.active is not False}
    assert doubtful == {state for state in State if not state.is_gone}


WAITING = {"demandPreset": "vllm-queue"}
ROUTED = {"demandPreset": "llm-d-epp-queue", "demandRouter": "llama-epp"}
NO_ANSWER = Demand(None, "nothing")


@pytest.mark.parametrize(
    ("keys", "load", "demand", "said"),
    [
        (WAITING, "any but busy", Demand(7), "demand of vllm-queue 7 is above "),
        (WAITING, "any but busy", Demand(0), "demand of vllm-queue 0 is not above "),
        (WAITING, "no pods", NO_ANSWER, "is not known (nothing), and cannot wake a workload with"),
        (WAITING, "no pods", NO_ANSWER, "without pods: inactive by demandOnEmpty inactive"),
        (WAITING, "idle, with pods", NO_ANSWER, "of vllm-queue is not known (nothing): not idle"),
        (ROUTED, "no pods", NO_ANSWER, "of llm-d-epp-queue is not known (nothing): an error by "),
    ],
)
def test_the_reason_names_the_preset_and_says_what_cannot_wake(
    keys: dict[str, str], load: str, demand: Demand, said: str
) -> None:
    for before in LOADS[load]:
        assert said in activation.activate_by_demand(spec(**keys), before, demand).reason


SATURATION = {"demandPreset": "llm-d-epp-saturation", "demandRouter": "llama-epp"}


@pytest.mark.parametrize("demand", [Demand(7), Demand(0), NO_ANSWER])
def test_a_demand_that_never_activates_only_adds_that_to_the_reason(demand: Demand) -> None:
    alone = spec(threshold="", **SATURATION)
    for load in LOADS["any but busy"]:
        decided = activation.activate_by_demand(alone, load, demand)
        said = "the demand of llm-d-epp-saturation does not tell whether the workload is in use"
        assert decided == replace(load, reason=f"{load.reason}; {said}")
        scaled = activation.scale_by_demand(alone, decided, demand)
        assert scaled.value in {demand.value, None}
        assert scaled.active == load.active
        assert demand.trouble in scaled.reason


ALONE = spec(threshold="", demandPreset="vllm-requests", demandThreshold="16")
OF_TWO = [bert("b", 0), bert("c", 0)]
ASKS_FOR_1 = "demand 8 needs 1 replica at demandThreshold 16"


@pytest.mark.parametrize("load", ALL)
@pytest.mark.parametrize("on_unknown", [OnUnknown.HOLD, OnUnknown.ERROR])
def test_without_threshold_the_number_is_the_demand(load: Decision, on_unknown: OnUnknown) -> None:
    """Of a workload that is not seen whole, it is a lower bound: it may raise, and never lower."""
    given = replace(ALONE, on_unknown=on_unknown)
    replicas = load.expected
    is_whole = load.state not in {State.UNKNOWN, State.PARTIAL}
    for number in (0.0, 16.0 * replicas, 16.0 * replicas + 1):
        known = activation.scale_by_demand(given, load, Demand(number))
        raises = 0 < 16 * replicas < number and load.state is not State.UNKNOWN
        assert known.value == (number if is_whole or raises else None)
        assert (known.refused, known.active) == (False, load.active)
        assert known.average == (number / replicas if replicas else None)
    by_owner = activation.scale_by_demand(given, replace(load, wanted=2), Demand(33))
    assert by_owner.value == 33
    nothing = replace(load, expected=0, wanted=None)
    assert (activation.scale_by_demand(given, nothing, Demand(9)).value is None) != is_whole
    unknown = activation.scale_by_demand(given, load, NO_ANSWER)
    is_refused = on_unknown is OnUnknown.ERROR and not load.activated
    assert (unknown.value, unknown.refused, unknown.active) == (None, is_refused, load.active)
    assert unknown.average is None
    answer = "an error by onUnknown error" if is_refused else "hold"
    assert unknown.reason.endswith(f"no number of replicas is known: {answer}")


def _ready(*suffixes: str, **how: Any) -> list[Pod]:
    """Return pods that are Ready, and of which no exporter has shown a GPU."""
    return [unseen(suffix, said(is_ready=True, **how)) for suffix in suffixes]


DARK, DELAY = _ready("b", "c"), UNKNOWN_SCRAPE_SECONDS + COLLECTION
SHOWN_FOR = NOW - DELAY - NO_GPU_SECONDS
"""A pod that has been Ready since then would have been shown for long enough."""
ENDED = unseen("d", said(ready=NOW - 90, ended=True))
SEEN = bert("d", 0, last_seen=NOW - 90, status=said(is_ready=True))
WHOLE: dict[str, tuple[list[Pod], dict[str, Any]]] = {
    "Ready for long": (DARK, {"wanted": 2}),
    "Ready for just long enough": (_ready("b", "c", ready=SHOWN_FOR), {"wanted": 2}),
    "of an unknown count": (DARK, {}),
    "asking for no GPU": (_ready("b", "c", asks_gpu=False), {"wanted": 2}),
    "beside one that ended": ([*DARK, replace(ENDED, ended=True)], {"wanted": 2}),
}
"""Servers of which none is missing, and that no exporter shows."""
NOT_WHOLE: dict[str, tuple[list[Pod], dict[str, Any]]] = {
    "Ready too short": ([*DARK, *_ready("d", ready=SHOWN_FOR + 1)], {"wanted": 3}),
    "starting": ([*DARK, STARTING], {"wanted": 2}),
    "stalled": ([*DARK, STALLED], {"wanted": 3}),
    "not Ready any more": ([*DARK, unseen("d", said())], {"wanted": 3}),
    "not listed": (DARK, {"wanted": 3}),
    "listed in part": (DARK, {"evidence": replace(LISTED, absence_known=False)}),
    "by exporters alone": (DARK, {"evidence": None}),
    "shown before": ([*DARK, SEEN], {"wanted": 3}),
    "beside one that was shown, and ended": ([*DARK, replace(SEEN, ended=True)], {"wanted": 2}),
    "not watched for an hour": (DARK, {"complete": False}),
    "as long ago as the source is cut off": (DARK, {"now": NOW + 181}),
    "none": ([], {"evidence": replace(LISTED, owners={"Deployment": frozenset()})}),
}


@pytest.mark.parametrize(("pods", "known"), WHOLE.values(), ids=WHOLE)
def test_without_threshold_the_demand_counts_for_servers_that_no_exporter_shows(
    pods: list[Pod], known: dict[str, Any]
) -> None:
    decided = decide_about(*pods, trigger=ALONE, **known)
    assert decided.state is State.UNKNOWN
    scaled = activation.apply_demand(ALONE, decided, Demand(8.0))
    assert (scaled.value, scaled.active) == (8.0, True)
    assert scaled.reason.startswith(f"{ASKS_FOR_1}; no exporter has named bert-")
    assert recommended_replicas(ALONE, scaled, Demand(8.0)) == 1
    just_back = activation.apply_demand(ALONE, decided, Demand(8.0, is_least=True))
    assert just_back.value is None


@pytest.mark.parametrize(("pods", "known"), NOT_WHOLE.values(), ids=NOT_WHOLE)
def test_without_threshold_the_demand_removes_no_server_while_one_may_be_missing(
    pods: list[Pod], known: dict[str, Any]
) -> None:
    decided = decide_about(*pods, trigger=ALONE, **known)
    assert activation.apply_demand(ALONE, decided, Demand(8.0)).value is None


@pytest.mark.parametrize("is_known", [True, False])
def test_without_threshold_the_demand_removes_no_server_of_an_unknown_selector(
    *, is_known: bool
) -> None:
    selector = Selected("ml", "models.example.com", "bert")
    selected = frozenset({selector.selected_by})
    pods = _ready("b", "c", owners=selected)
    evidence = replace(LISTED, selected=selected if is_known else frozenset())
    trigger = replace(ALONE, pods=selector)
    decided = decide_about(*pods, trigger=trigger, evidence=evidence)
    scaled = activation.apply_demand(trigger, decided, Demand(8.0))
    assert scaled.value == (8.0 if is_known else None)


def _scaled(pods: list[Pod], demand: Demand, evidence: NamespaceEvidence | None = None) -> str:
    """Return the reason of a decision whose number is the demand."""
    decided = decide_about(*pods, trigger=ALONE, evidence=evidence)
    return activation.apply_demand(ALONE, decided, demand).reason


ABOVE = "is above demandActivationThreshold 0; demand"
SENTENCES = {
    "more": (OF_TWO, Demand(70.0), f"70 {ABOVE} 70 needs 5 replicas at demandThreshold 16"),
    "unknown": (
        OF_TWO,
        NO_ANSWER,
        "(nothing): not idle; without the demand no number of replicas is known: hold",
    ),
    "busy": (
        [bert("b", 90)],
        NO_ANSWER,
        " 2 %; without the demand (nothing) no number of replicas is known: hold",
    ),
    "partial": (
        [bert("b", 90), MISSING],
        Demand(8.0),
        f"activationThreshold 2 %; {ASKS_FOR_1}; held: not all pods are seen",
    ),
    "gap": (
        OF_TWO,
        Demand(32.0, is_least=True),
        (
            "; demand 32 is on target for 2 replicas at demandThreshold 16; "
            "held: servers may be missing just after a gap"
        ),
    ),
}


@pytest.mark.parametrize(("pods", "demand", "end"), SENTENCES.values(), ids=SENTENCES)
def test_without_threshold_the_sentence_ends_with_the_demand_per_replica(
    pods: list[Pod], demand: Demand, end: str
) -> None:
    assert _scaled(pods, demand).endswith(end)
    at_zero = _scaled([], Demand(8.0), EMPTY)
    assert at_zero.endswith(f"demandActivationThreshold 0: active; {ASKS_FOR_1}")


def test_without_threshold_the_sentence_has_no_replicas_by_the_gpus() -> None:
    before, *_ = _scaled(OF_TWO, Demand(70.0)).split("; ")
    assert before == "mean utilization 0 % over 2 replicas"
    young = decide_about(STARTING, trigger=ALONE)
    assert young.reason.startswith(f"{STARTING.name} not Ready yet; no GPU sample shows")
    part = decide_about(IDLE, MISSING, trigger=ALONE)
    assert "without having ended: 1 of 2 replicas measured; busiest GPU" in part.reason


def test_with_threshold_the_demand_is_not_the_number() -> None:
    decided = _own(bert("b", 90))
    assert activation.apply_demand(spec(demandQuery="sum(x)"), decided, Demand(7.0)) is decided


def test_another_workload_that_the_cluster_does_not_list_is_named() -> None:
    listed = replace(LISTED, owners={"Deployment": frozenset({"bert"})})
    neighbour = decide_about(trigger=spec(workload="router"), evidence=listed)
    decided = activation.apply_neighbour_and_alert(BESIDE, _own(IDLE), neighbour, None)
    assert decided.active
    no_such = "there is no deployment/router (evidence: kube-state-metrics)"
    assert decided.reason.endswith(f"deployment/router may be in use ({no_such}): not idle")
