"""Claims about which signals say that a workload is in use, as the table in docs/states.md does."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision import activation, by_demand
from keda_gpu_scaler.decision.decision import Context, Decision, State, decide
from keda_gpu_scaler.service import responses, streams
from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot
from keda_gpu_scaler.spec.demand import Demand, OnEmpty
from keda_gpu_scaler.spec.spec import OnUnknown
from tests.repository.test_docs import ROOT, section
from tests.support.snapshots import BERT_DEPLOYMENT, NOW, bert, said, snapshot, unseen
from tests.support.triggers import spec

BESIDE = spec(activationWorkload="router")
LISTED = NamespaceEvidence(NOW - 10, absence_known=True)
EMPTY = replace(LISTED, without_pods=frozenset({BERT_DEPLOYMENT}))


def _own(
    seen: NamespaceSnapshot, remembered: State | None = None, policy: str = "hold"
) -> Decision:
    context = Context(NOW, remembered=remembered, trouble="HTTP 503")
    return decide(spec(onUnknown=policy), seen, context)


def _listed(*pods: object, by: NamespaceEvidence = LISTED) -> NamespaceSnapshot:
    return snapshot(*pods, evidence=by)  # type: ignore[arg-type]  # pods of tests.snapshots


IDLE, LOST = bert("b", 0), snapshot(bert("b", 0, last_seen=NOW - 90))
BUSY_BEFORE = snapshot(bert("b", 90, last_seen=NOW - 90))
LOADS = {
    "busy": [_own(snapshot(bert("b", 90))), *(_own(BUSY_BEFORE, policy=one) for one in OnUnknown)],
    "idle, with pods": [
        _own(snapshot(IDLE)),
        _own(_listed(unseen("z", said(never=True, created=NOW - 1900)))),
    ],
    "no pods": [
        _own(snapshot()),
        _own(_listed(by=EMPTY)),
        _own(LOST, State.ENDED),
        _own(LOST, State.EMPTY),
    ],
    "active by itself": [
        _own(snapshot(bert("b", [0.0] * 4))),
        _own(_listed(unseen("z", said(never=True, created=NOW - 60)))),
        _own(snapshot(IDLE, bert("z", 0, last_seen=NOW - 90))),
        _own(LOST, State.MEASURED),
    ],
    "an error, or zero by choice": [
        _own(LOST),
        _own(LOST, State.EMPTY, "error"),
        _own(LOST, State.EMPTY, "zero"),
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
    "not looked at": [None],
    "busy": [*LOADS["busy"]],
    "not busy": [None, _own(snapshot(IDLE)), _own(snapshot())],
    "not known": [_own(LOST), _own(snapshot(bert("b", [0.0] * 4)))],
}
NEIGHBOURS["any but busy"] = NEIGHBOURS["not busy"] + NEIGHBOURS["not known"]
ALERTS = {"not looked at": "GpuBusy", "fires": "GpuBusy", "none": None}
DEMANDS = {
    "above": Demand(7.0),
    "not above": Demand(5.0),
    "not known": Demand(None, "HTTP 503"),
    "not asked": None,
}


@dataclass(frozen=True, slots=True)
class Row:
    """What is answered in some cases; the page has the first that matches, without the reasons."""

    load: str
    neighbour: str
    alert: str
    demand: str
    on_empty: str
    active: str
    value: str
    reason: str


HIGH = "demand 7 is above demandActivationThreshold 5"
LOW = "demand 5 is not above demandActivationThreshold 5"
NOT_KNOWN = "the demand is not known (HTTP 503)"
ROWS = (
    Row("busy", "not looked at", "not looked at", "not asked", "any", "active", "its own", ""),
    Row(
        "known",
        "busy",
        "not looked at",
        "not asked",
        "any",
        "active",
        "its own",
        "GPUs of deployment/router are busy",
    ),
    Row(
        "unknown",
        "busy",
        "not looked at",
        "not asked",
        "any",
        "active",
        "hold",
        "but GPUs of deployment/router are busy: hold, and active",
    ),
    Row(
        "known",
        "any but busy",
        "fires",
        "not asked",
        "any",
        "active",
        "its own",
        "alert GpuBusy fires",
    ),
    Row(
        "unknown",
        "any but busy",
        "fires",
        "not asked",
        "any",
        "active",
        "hold",
        "but alert GpuBusy fires: hold, and active",
    ),
    Row("known", "any but busy", "none", "above", "any", "active", "its own", HIGH),
    Row(
        "unknown",
        "any but busy",
        "none",
        "above",
        "any",
        "active",
        "hold",
        f"but {HIGH}: hold, and active",
    ),
    Row("any but busy", "not busy", "none", "not above", "any", "its own", "its own", LOW),
    Row(
        "idle, with pods",
        "not known",
        "none",
        "not above",
        "any",
        "active",
        "its own",
        f": not idle; {LOW}",
    ),
    Row(
        "no pods",
        "not known",
        "none",
        "not above",
        "any",
        "inactive",
        "its own",
        f": inactive; {LOW}",
    ),
    Row("any other", "not known", "none", "not above", "any", "its own", "its own", LOW),
    Row(
        "idle, with pods",
        "not busy",
        "none",
        "not known",
        "any",
        "active",
        "its own",
        f"{NOT_KNOWN}: not idle",
    ),
    Row(
        "idle, with pods",
        "not known",
        "none",
        "not known",
        "any",
        "active",
        "its own",
        f": not idle; {NOT_KNOWN}",
    ),
    Row(
        "no pods",
        "any but busy",
        "none",
        "not known",
        "error",
        "error",
        "its own",
        f"{NOT_KNOWN}: an error by demandOnEmpty error",
    ),
    Row(
        "no pods",
        "any but busy",
        "none",
        "not known",
        "inactive",
        "inactive",
        "its own",
        f"{NOT_KNOWN}: inactive by demandOnEmpty inactive",
    ),
    Row(
        "no pods",
        "any but busy",
        "none",
        "not known",
        "active",
        "active",
        "its own",
        f"{NOT_KNOWN}: active by demandOnEmpty active",
    ),
    Row("any other", "any but busy", "none", "not known", "any", "its own", "its own", NOT_KNOWN),
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
        decided = activation.before_demand(BESIDE, self.load, self.neighbour, self.alert)
        if self.demand is None:
            assert decided.activated, "the demand has to be asked for"
            return decided
        assert not decided.activated, "the demand is not asked for"
        keys = {"demandQuery": "sum(waiting)", "demandActivationThreshold": "5"}
        wanted = spec(**keys, demandOnEmpty=self.on_empty)
        return activation.with_demand(wanted, decided, self.demand)


def _walked() -> Iterator[tuple[Row, Case]]:
    """Yield every row once for each case that it speaks of."""
    for row in ROWS:
        policies = list(OnEmpty) if row.on_empty == "any" else [row.on_empty]
        neighbours = NEIGHBOURS[row.neighbour]
        for load, neighbour, policy in itertools.product(LOADS[row.load], neighbours, policies):
            yield row, Case(load, neighbour, ALERTS[row.alert], DEMANDS[row.demand], policy)


def _answered(decided: Decision, *, has_replicas: bool = False) -> str:
    try:
        active = responses.activity(decided, has_replicas=has_replicas).result
    except errors.UnknownLoadError:
        return "error"
    return "active" if active else "inactive"


def _load(decided: Decision) -> str:
    try:
        found = responses.metric_value("gpu-utilization", decided).metricValues
    except errors.UnknownLoadError:
        return "error"
    return str([one.metricValueFloat for one in found]) if found else "hold"


def test_each_row_says_what_is_answered(subtests: pytest.Subtests) -> None:
    for number, (row, case) in enumerate(_walked()):
        with subtests.test(f"{number} {row.load}, {row.neighbour}, {row.demand}"):
            decided = case.decided()
            own = {"active": _answered(case.load), "load": _load(case.load)}
            assert _answered(decided) == (own["active"] if row.active == "its own" else row.active)
            assert _load(decided) == (own["load"] if row.value == "its own" else row.value)
            assert streams.Pushes().is_due(decided, NOW) is (row.demand in {"not asked", "above"})
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
            row.demand,
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
        (id(DEMANDS[name]) for name in ("above", "not above", "not known")),
        map(str, OnEmpty),
    )
    assert sorted(asked) == sorted(expected)


def test_an_error_about_a_workload_without_pods_does_not_wake_it() -> None:
    """The HPA asked within the last minute: it had replicas until just now."""
    for gone in (_own(snapshot()), _own(_listed(by=EMPTY))):
        case = Case(gone, None, None, DEMANDS["not known"], "error")
        assert _answered(case.decided(), has_replicas=True) == "error"
    nobody_knows = Case(_own(LOST), None, None, DEMANDS["not known"], "error")
    assert _answered(nobody_knows.decided(), has_replicas=True) == "active"


@pytest.mark.parametrize("policy", OnUnknown)
def test_the_metric_of_the_demand_is_the_demand(policy: OnUnknown) -> None:
    assert _demanded(Demand(7.0), policy) == "the demand"
    not_known = "error" if policy is OnUnknown.ERROR else "hold"
    assert _demanded(Demand(None, "HTTP 503"), policy) == not_known


def _demanded(demand: Demand, policy: OnUnknown) -> str:
    try:
        found = responses.demand_value("gpu-demand", demand, policy).metricValues
    except errors.UnknownLoadError:
        return "error"
    return {(): "hold", (7.0,): "the demand"}[tuple(one.metricValueFloat for one in found)]


def test_what_is_not_known_never_stops_a_workload_and_never_is_a_signal() -> None:
    """Several unknown signals in a row: the first does not hide the load from the second."""
    lost = _own(LOST)
    for load, on_empty in itertools.product(LOADS["any but busy"], OnEmpty):
        decided = Case(load, lost, None, DEMANDS["not known"], on_empty).decided()
        assert not decided.activated
        assert decided.active is not False or load.has_no_pods or load.is_zero_by_choice
        assert (decided.value, decided.refused) == (load.value, load.refused)


COVERS = "samples do not cover activationWindow yet, or a pod is not Ready yet"
STARTING = unseen("z", said(never=True, created=NOW - 60))


@pytest.mark.parametrize(
    ("neighbour", "words"),
    [
        (_own(snapshot(IDLE)), "is idle"),
        (_own(snapshot()), "has no pods"),
        (_own(snapshot(bert("b", [0.0] * 4))), f"may be in use ({COVERS}): not idle"),
        (_own(_listed(IDLE, STARTING)), f"may be in use ({COVERS}): not idle"),
        (_own(_listed(STARTING)), "may be in use (its pods are starting): not idle"),
        (
            _own(snapshot(IDLE, bert("z", 0, last_seen=NOW - 90))),
            "may be in use (not all of its pods are seen): not idle",
        ),
        (_own(LOST), "may be in use (its load is unknown): not idle"),
    ],
    ids=["idle", "no pods", "a short window", "one not Ready", "starting", "partial", "unknown"],
)
def test_the_sentence_says_what_is_known_of_another_workload(
    neighbour: Decision, words: str
) -> None:
    own = _own(snapshot(IDLE))
    reason = activation.before_demand(BESIDE, own, neighbour, None).reason
    assert reason == f"{own.reason}; deployment/router {words}"


def test_every_state_that_leaves_a_doubt_has_a_sentence() -> None:
    doubtful = {each.state for each in ALL if not each.activated and each.active is not False}
    assert doubtful == {state for state in State if not state.is_gone}


WAITING = {"demandPreset": "vllm-queue"}
HELD = {"demandPreset": "llm-d-epp-queue", "demandRouter": "llama-epp"}
NO_ANSWER = Demand(None, "nothing")


@pytest.mark.parametrize(
    ("keys", "load", "demand", "said"),
    [
        (WAITING, "any but busy", Demand(7), "demand of vllm-queue 7 is above "),
        (WAITING, "any but busy", Demand(0), "demand of vllm-queue 0 is not above "),
        (WAITING, "no pods", NO_ANSWER, "is not known (nothing), and cannot wake a workload with"),
        (WAITING, "no pods", NO_ANSWER, "without pods: inactive by demandOnEmpty inactive"),
        (WAITING, "idle, with pods", NO_ANSWER, "of vllm-queue is not known (nothing): not idle"),
        (HELD, "no pods", NO_ANSWER, "of llm-d-epp-queue is not known (nothing): an error by "),
    ],
)
def test_the_reason_names_the_preset_and_says_what_cannot_wake(
    keys: dict[str, str], load: str, demand: Demand, said: str
) -> None:
    for before in LOADS[load]:
        assert said in activation.with_demand(spec(**keys), before, demand).reason


SATURATION = {"demandPreset": "llm-d-epp-saturation", "demandRouter": "llama-epp"}


@pytest.mark.parametrize("demand", [Demand(7), Demand(0), NO_ANSWER])
def test_a_demand_that_never_activates_only_adds_that_to_the_reason(demand: Demand) -> None:
    alone = spec(threshold="", **SATURATION)
    for load in LOADS["any but busy"]:
        decided = activation.with_demand(alone, load, demand)
        said = "the demand of llm-d-epp-saturation does not say whether the workload is in use"
        assert decided == replace(load, reason=f"{load.reason}; {said}")
        scaled = by_demand.scaled(alone, decided, demand)
        assert scaled.value in {demand.value, None}
        assert scaled.active == load.active
        assert demand.trouble in scaled.reason


ALONE = spec(threshold="", demandPreset="vllm-requests", demandThreshold="16")
OF_TWO = snapshot(bert("b", 0), bert("c", 0))


@pytest.mark.parametrize("load", ALL)
@pytest.mark.parametrize("on_unknown", [OnUnknown.HOLD, OnUnknown.ERROR])
def test_without_threshold_the_number_is_the_demand(load: Decision, on_unknown: OnUnknown) -> None:
    """Of a workload that is not seen whole, it is a lower bound: it may raise, and never lower."""
    given = replace(ALONE, on_unknown=on_unknown)
    replicas = load.expected
    is_whole = load.state not in {State.UNKNOWN, State.PARTIAL}
    for number in (0.0, 16.0 * replicas, 16.0 * replicas + 1):
        known = by_demand.scaled(given, load, Demand(number))
        raises = 0 < 16 * replicas < number
        assert known.value == (number if is_whole or raises else None)
        assert (known.refused, known.active) == (False, load.active)
        assert known.average == (number / replicas if replicas else None)
    nothing = replace(load, expected=0, wanted=None)
    assert (by_demand.scaled(given, nothing, Demand(9)).value is None) != is_whole
    unknown = by_demand.scaled(given, load, NO_ANSWER)
    is_refused = on_unknown is OnUnknown.ERROR and not load.activated
    assert (unknown.value, unknown.refused, unknown.active) == (None, is_refused, load.active)
    assert unknown.average is None
    answer = "an error by onUnknown error" if is_refused else "hold"
    assert unknown.reason.endswith(f"no number of replicas is known: {answer}")


def _scaled(view: NamespaceSnapshot, demand: Demand) -> str:
    """Return the reason of a decision whose number is the demand."""
    decided = activation.with_demand(ALONE, decide(ALONE, view, Context(NOW)), demand)
    return by_demand.scaled(ALONE, decided, demand).reason


ABOVE = "is above demandActivationThreshold 0; demand"
ASKS_FOR_1 = "demand 8 at demandThreshold 16 asks for 1 replica"
SENTENCES = {
    "more": (OF_TWO, Demand(70.0), f"70 {ABOVE} 70 at demandThreshold 16 asks for 5 replicas"),
    "unknown": (
        OF_TWO,
        NO_ANSWER,
        "(nothing): not idle; without the demand no number of replicas is known: hold",
    ),
    "busy": (
        snapshot(bert("b", 90)),
        NO_ANSWER,
        " 2 %; without the demand (nothing) no number of replicas is known: hold",
    ),
    "partial": (
        snapshot(bert("b", 90), bert("c", 90, last_seen=NOW - 90)),
        Demand(8.0),
        f"activationThreshold 2 %; {ASKS_FOR_1} at least: hold, as not all pods are seen",
    ),
    "empty": (_listed(by=EMPTY), Demand(8.0), f"demandActivationThreshold 0: active; {ASKS_FOR_1}"),
    "gap": (
        OF_TWO,
        Demand(32.0, is_least=True),
        "is on target for 2 replicas at least: hold, as servers may be missing just after a gap",
    ),
}


@pytest.mark.parametrize(("view", "demand", "end"), SENTENCES.values(), ids=SENTENCES)
def test_without_threshold_the_sentence_ends_with_the_demand_per_replica(
    view: NamespaceSnapshot, demand: Demand, end: str
) -> None:
    assert _scaled(view, demand).endswith(end)


def test_without_threshold_the_sentence_has_no_replicas_by_the_gpus() -> None:
    before, *_ = _scaled(OF_TWO, Demand(70.0)).split("; ")
    assert before == "mean utilization 0 % over 2 replicas"
