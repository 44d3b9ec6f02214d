"""Facts → metrics, read back from what a Prometheus would see."""

import itertools
from collections.abc import Iterable
from dataclasses import replace

import pytest
from msgspec import structs

from keda_gpu_scaler import __version__
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.spec import Demand, ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics import Recent, Telemetry
from keda_gpu_scaler.times import FORGET_SECONDS
from testbed import triggers
from testbed.clocks import Clock

TRIGGER = '{metric="gpu-utilization",namespace="ml",scaled_object="bert"}'
SNAPSHOT = '{profile="auto",signal="utilization",source="default"}'
SOURCE = '{source="default"}'
BERT = '{namespace="ml",scaled_object="bert"}'
MEASURED = Decision(
    state=State.MEASURED,
    reason="mean 83.5 over 2 pods",
    value=167.0,
    active=True,
    average=83.5,
    expected=3,
    measured=2,
    reporting_pods=4,
    evidence=EvidenceSource.KUBE_STATE_METRICS,
    ignored=("bert-0",),
)
UNKNOWN = Decision(state=State.UNKNOWN, reason="no answer", value=None, active=None)
OTHER = ScaledObject("ml", "other")
OWN = triggers.spec(query="load", signal="memory", activationThreshold="5")
OF_OWN = f'{{profile="{OWN.profile}",signal="number",source="default"}}'
UP = facts.SourceChanged("default", works=True, reason="it answers")
DOWN = facts.SourceChanged("default", works=False, reason="refused")
TAKEN = facts.SnapshotTaken("default", "utilization", "auto", 1.0, 5, 2, 3)
UNPROVEN = facts.EvidenceChanged("default", EvidenceSource.EXPORTERS, "nothing there")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counted(clock: Clock) -> Telemetry:
    return Telemetry(clock)


def evaluated(decision: Decision = MEASURED, age: float | None = 2.0) -> facts.Evaluated:
    asks_for = None if decision.value is None else 3
    return triggers.evaluated(decision, age_seconds=age, recommended=asks_for)


def demand(value: float | None) -> facts.DemandKnown:
    return facts.DemandKnown(triggers.BERT, triggers.spec(), Demand(value))


def firing(scaled_object: ScaledObject = triggers.BERT, *, fires: bool = True) -> facts.Fact:
    return facts.AlertChanged(scaled_object, "Busy", fires, "so it was said")


def samples(counted: Telemetry) -> dict[str, float]:
    """Return what is shown, by its name without the prefix and its labels in order."""
    return {
        f"{sample.name.removeprefix('keda_gpu_scaler_')}{_labels(sample.labels)}": sample.value
        for family in counted.registry.collect()
        for sample in family.samples
    }


def _labels(labels: dict[str, str]) -> str:
    named = ",".join(f'{name}="{labels[name]}"' for name in sorted(labels))
    return f"{{{named}}}" if named else ""


def _with_state(state: State) -> str:
    return TRIGGER.replace("}", f',state="{state}"}}')


PROVEN = f'trigger_evidence{{evidence="kube-state-metrics",{TRIGGER[1:]}'
NOT_PROVEN = f'trigger_evidence{{evidence="exporters",{TRIGGER[1:]}'
SHOWN: list[tuple[str, Iterable[facts.Fact], dict[str, float | None]]] = [
    (
        "calls are counted and timed",
        [facts.Called("GetMetrics", "OK", 0.002), facts.Called("GetMetrics", "INTERNAL", 3.0)],
        {
            'rpcs_total{code="OK",method="GetMetrics"}': 1,
            'rpcs_total{code="INTERNAL",method="GetMetrics"}': 1,
            'rpc_duration_seconds_count{method="GetMetrics"}': 2,
            'rpc_duration_seconds_bucket{le="0.0025",method="GetMetrics"}': 1,
        },
    ),
    (
        "queries are counted by outcome and timed",
        [
            facts.Queried("default", "snapshot", 0.5, None),
            facts.Queried("default", "snapshot", 0.25, "connection refused"),
        ],
        {
            'source_queries_total{outcome="ok",query="snapshot",source="default"}': 1,
            'source_queries_total{outcome="error",query="snapshot",source="default"}': 1,
            'source_query_duration_seconds_sum{query="snapshot",source="default"}': 0.75,
        },
    ),
    ("a source that does not answer is down", [UP, DOWN], {f"source_up{SOURCE}": 0}),
    (
        "a snapshot shows its pods and what it left out, and no age before it is used",
        [TAKEN],
        {
            f"source_up{SOURCE}": 1,
            f"snapshot_pods{SNAPSHOT}": 5,
            f"snapshot_refused_samples{SNAPSHOT}": 2,
            f"snapshot_stuck_gpus{SNAPSHOT}": 3,
            f"snapshot_age_seconds{SNAPSHOT}": None,
        },
    ),
    (
        "a decision says how old its snapshot is, if it has one",
        [evaluated(), evaluated(UNKNOWN, age=None)],
        {f"snapshot_age_seconds{SNAPSHOT}": 2},
    ),
    (
        "a trigger shows what was decided last",
        [evaluated(UNKNOWN), evaluated()],
        {
            f"trigger_value{TRIGGER}": 167,
            f"trigger_average{TRIGGER}": 83.5,
            f"trigger_threshold{TRIGGER}": 70,
            f"trigger_active{TRIGGER}": 1,
            f"trigger_expected_replicas{TRIGGER}": 3,
            f"trigger_measured_replicas{TRIGGER}": 2,
            f"trigger_reporting_pods{TRIGGER}": 4,
            f"trigger_ignored_pods{TRIGGER}": 1,
            f"trigger_unschedulable_replicas{TRIGGER}": None,
            f"trigger_futile_scale_out{TRIGGER}": None,
            f"recommended_replicas{TRIGGER}": 3,
            PROVEN: 1,
            NOT_PROVEN: 0,
            **{f"trigger_state{_with_state(state)}": state is State.MEASURED for state in State},
        },
    ),
    (
        "replicas that are unschedulable are counted, whatever else is known",
        [evaluated(replace(UNKNOWN, unschedulable=3))],
        {f"trigger_unschedulable_replicas{TRIGGER}": 3},
    ),
    (
        "a scale-out that did not help is shown",
        [evaluated(replace(UNKNOWN, futile="3 replicas instead of 2 did not help"))],
        {f"trigger_futile_scale_out{TRIGGER}": 1},
    ),
    (
        "what is unknown has no sample, and is no zero",
        [evaluated(), evaluated(UNKNOWN, age=None)],
        {
            f"trigger_value{TRIGGER}": None,
            f"trigger_average{TRIGGER}": None,
            f"trigger_active{TRIGGER}": None,
            f"recommended_replicas{TRIGGER}": None,
            PROVEN: None,
            f"trigger_state{_with_state(State.UNKNOWN)}": 1,
        },
    ),
    (
        "inactive is zero and not absent",
        [evaluated(replace(MEASURED, active=False, value=0.0))],
        {f"trigger_active{TRIGGER}": 0, f"trigger_value{TRIGGER}": 0},
    ),
    (
        "triggers with the same names share their series",
        [
            evaluated(),
            triggers.evaluated(MEASURED, triggers.spec(workload="llama", threshold="50")),
        ],
        {f"trigger_threshold{TRIGGER}": 50},
    ),
    (
        "what decisions of a source rest on is one",
        [UNPROVEN],
        {
            'source_evidence{evidence="exporters",source="default"}': 1,
            'source_evidence{evidence="kube-state-metrics",source="default"}': 0,
        },
    ),
    ("a demand of zero is known", [demand(7.0), demand(0.0)], {f"trigger_demand{TRIGGER}": 0}),
    ("an unknown one is no zero", [demand(7.0), demand(None)], {f"trigger_demand{TRIGGER}": None}),
    (
        "a source that is asked by namespace has an age for each",
        [structs.replace(evaluated(age=age), source=f"default/{age}") for age in (1.0, 2.0)],
        {
            f"snapshot_age_seconds{SNAPSHOT.replace('default', f'default/{age}')}": age
            for age in (1.0, 2.0)
        },
    ),
    (
        "a user's own query is shown by a short name and takes no source down",
        [
            facts.SnapshotTaken("default", OWN.shared_signal, OWN.profile, 1.0, 5, 0),
            structs.replace(evaluated(), spec=OWN),
            facts.QueryChanged("default", OWN.profile, works=False, reason="HTTP 422"),
        ],
        {
            f"snapshot_pods{OF_OWN}": 5,
            f"snapshot_age_seconds{OF_OWN}": 2,
            f"source_up{SOURCE}": 1,
        },
    ),
    (
        "a watch of the Kubernetes API is up or not",
        [
            facts.WatchChanged("pods", works=True, reason="it is listed"),
            facts.WatchChanged("jobs", works=False, reason="HTTP 403"),
        ],
        {'kubernetes_watch_up{resource="pods"}': 1, 'kubernetes_watch_up{resource="jobs"}': 0},
    ),
    (
        "the alerts that fire are counted for each object",
        [firing(), firing(), firing(OTHER), firing(fires=False), firing(OTHER, fires=False)],
        {f"alerts_firing{BERT}": 1, f"alerts_firing{BERT.replace('bert', 'other')}": None},
    ),
    (
        "messages are counted by sender and status",
        [facts.Notified("grafana", status, "taken: 1") for status in (200, 200, 422)],
        {
            'webhook_notifications_total{code="200",sender="grafana"}': 2,
            'webhook_notifications_total{code="422",sender="grafana"}': 1,
        },
    ),
    (
        "replicas that can be reached are shown beside those that cannot",
        [facts.PeersAsked(2, 1)],
        {'peers{state="reachable"}': 2, 'peers{state="unreachable"}': 1},
    ),
    ("the version that runs is shown", [], {f'build_info{{version="{__version__}"}}': 1}),
]


@pytest.mark.parametrize(
    ("stated", "expected"), [row[1:] for row in SHOWN], ids=[row[0] for row in SHOWN]
)
def test_what_is_stated_is_shown(
    counted: Telemetry, stated: Iterable[facts.Fact], expected: dict[str, float | None]
) -> None:
    for fact in stated:
        counted(fact)
    shown = samples(counted)
    assert {name: shown.get(name) for name in expected} == expected


def test_ages_grow_and_series_end_after_ten_minutes(counted: Telemetry, clock: Clock) -> None:
    for fact in (evaluated(), TAKEN, demand(7.0)):
        counted(fact)
    began = clock.now
    for seconds, expected in ((30, 32), (599, 601), (600, None)):
        clock.now = began + seconds
        shown = samples(counted)
        assert shown.get(f"snapshot_age_seconds{SNAPSHOT}") == expected
        decision_age = None if expected is None else seconds
        assert shown.get(f"trigger_decision_age_seconds{TRIGGER}") == decision_age
        assert (f"trigger_value{TRIGGER}" in shown) == (expected is not None)
        assert (f"trigger_demand{TRIGGER}" in shown) == (expected is not None)
        is_shown = f"trigger_state{_with_state(State.MEASURED)}" in shown
        assert is_shown == (expected is not None)


def test_a_source_that_stays_down_is_shown(counted: Telemetry, clock: Clock) -> None:
    counted(DOWN)
    counted(UNPROVEN)
    for asked in (facts.Queried("default", "clock", 1.0, "refused"), evaluated(age=None)) * 2:
        clock.now += 500
        counted(asked)
    shown = samples(counted)
    assert shown[f"source_up{SOURCE}"] == 0
    assert shown['source_evidence{evidence="exporters",source="default"}'] == 1
    clock.now += 601
    assert f"source_up{SOURCE}" not in samples(counted)


def test_what_others_count_is_that_of_the_moment() -> None:
    tasks, dropped = iter((3, 5)), iter((0, 7))
    counted = Telemetry(tasks=lambda: next(tasks), lines_dropped=lambda: next(dropped))
    expiries = {"server": 1000.0, "client_ca": 3000.0}
    counted.follow_certificate("grpc", lambda: expiries)
    for in_loop, lost, expiry in ((3, 0, 1000), (5, 7, 2000)):
        shown = samples(counted)
        assert (shown["tasks"], shown["log_lines_dropped_total"]) == (in_loop, lost)
        name = "certificate_expiry_timestamp_seconds"
        assert {label: at for label, at in shown.items() if label.startswith(name)} == {
            f'{name}{{kind="server",server="grpc"}}': expiry,
            f'{name}{{kind="client_ca",server="grpc"}}': 3000,
        }
        expiries.update(server=2000.0)


def test_a_key_that_ends_while_all_are_read_fails_nothing() -> None:
    times = itertools.count(0.0, FORGET_SECONDS / 4)
    recent: Recent[int, int] = Recent(10, lambda: next(times))
    for key in range(3):
        recent.put(key, key)
    assert recent.items()
