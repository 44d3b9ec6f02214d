"""Facts → metrics, read back from what a Prometheus would see."""

import itertools
from dataclasses import replace

import pytest
from prometheus_client import generate_latest

from keda_gpu_scaler import __version__
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.spec.retention import FORGET_SECONDS
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics import Telemetry
from keda_gpu_scaler.telemetry.series import Recent
from tests.support import triggers
from tests.support.clocks import Clock

TRIGGER = {"namespace": "ml", "scaled_object": "bert", "metric": "gpu-utilization"}
SNAPSHOT = {"source": "default", "signal": "utilization", "profile": "auto"}
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
OTHER = ScaledObject("ml", "other")
UNKNOWN = Decision(state=State.UNKNOWN, reason="no answer", value=None, active=None)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counted(clock: Clock) -> Telemetry:
    return Telemetry(clock)


def evaluated(decision: Decision = MEASURED, age: float | None = 2.0) -> facts.Evaluated:
    asks_for = None if decision.value is None else 3
    return facts.Evaluated(triggers.BERT, triggers.spec(), decision, age, recommended=asks_for)


def taken(refused_samples: int = 0) -> facts.SnapshotTaken:
    return facts.SnapshotTaken("default", "utilization", "auto", 1.0, 5, refused_samples)


def value(counted: Telemetry, name: str, **labels: str) -> float | None:
    return counted.registry.get_sample_value(f"keda_gpu_scaler_{name}", labels)


def test_calls_are_counted_and_timed(counted: Telemetry) -> None:
    counted(facts.Called("GetMetrics", "OK", 0.002))
    counted(facts.Called("GetMetrics", "UNAVAILABLE", 3.0))
    assert value(counted, "rpcs_total", method="GetMetrics", code="OK") == 1
    assert value(counted, "rpcs_total", method="GetMetrics", code="UNAVAILABLE") == 1
    assert value(counted, "rpc_duration_seconds_count", method="GetMetrics") == 2
    assert value(counted, "rpc_duration_seconds_bucket", method="GetMetrics", le="0.0025") == 1


def test_queries_are_counted_by_outcome_and_timed(counted: Telemetry) -> None:
    counted(facts.Queried("default", "snapshot", 0.5, None))
    counted(facts.Queried("default", "snapshot", 0.25, "connection refused"))
    labels = {"source": "default", "query": "snapshot"}
    assert value(counted, "source_queries_total", **labels, outcome="ok") == 1
    assert value(counted, "source_queries_total", **labels, outcome="error") == 1
    assert value(counted, "source_query_duration_seconds_sum", **labels) == 0.75


def test_a_source_is_up_or_down_as_was_stated_last(counted: Telemetry) -> None:
    assert value(counted, "source_up", source="default") is None
    counted(facts.SourceChanged("default", works=True, reason="it answers"))
    assert value(counted, "source_up", source="default") == 1
    counted(facts.SourceChanged("default", works=False, reason="refused"))
    assert value(counted, "source_up", source="default") == 0
    counted(facts.SourceChanged("default", works=True, reason="it answers again"))
    assert value(counted, "source_up", source="default") == 1


def test_a_source_that_gave_a_snapshot_is_up_also_after_it_was_forgotten(
    counted: Telemetry, clock: Clock
) -> None:
    counted(taken())
    clock.now += 1000
    assert value(counted, "source_up", source="default") is None
    counted(taken())
    assert value(counted, "source_up", source="default") == 1


def test_a_snapshot_shows_its_pods_and_what_it_left_out(counted: Telemetry) -> None:
    counted(taken(refused_samples=2))
    assert value(counted, "snapshot_pods", **SNAPSHOT) == 5
    assert value(counted, "snapshot_refused_samples", **SNAPSHOT) == 2
    assert value(counted, "snapshot_age_seconds", **SNAPSHOT) is None


def test_the_age_of_a_snapshot_grows_while_people_ask(counted: Telemetry, clock: Clock) -> None:
    counted(evaluated(age=2.0))
    counted(taken())
    clock.now += 30
    assert value(counted, "snapshot_age_seconds", **SNAPSHOT) == 32
    counted(evaluated(age=3.0))
    assert value(counted, "snapshot_age_seconds", **SNAPSHOT) == 3
    assert value(counted, "snapshot_pods", **SNAPSHOT) == 5


def test_without_a_snapshot_there_is_no_age(counted: Telemetry) -> None:
    counted(evaluated(UNKNOWN, age=None))
    assert value(counted, "snapshot_age_seconds", **SNAPSHOT) is None


def test_a_trigger_shows_what_was_decided_last(counted: Telemetry) -> None:
    counted(evaluated(UNKNOWN))
    counted(evaluated())
    shown = {
        name: value(counted, f"trigger_{name}", **TRIGGER)
        for name in (
            "value",
            "average",
            "threshold",
            "active",
            "expected_replicas",
            "measured_replicas",
            "reporting_pods",
            "ignored_pods",
        )
    }
    assert shown == {
        "value": 167,
        "average": 83.5,
        "threshold": 70,
        "active": 1,
        "expected_replicas": 3,
        "measured_replicas": 2,
        "reporting_pods": 4,
        "ignored_pods": 1,
    }


def test_a_recommendation_is_shown_and_none_is_no_zero(counted: Telemetry) -> None:
    counted(evaluated())
    assert value(counted, "recommended_replicas", **TRIGGER) == 3
    counted(evaluated(UNKNOWN))
    assert value(counted, "recommended_replicas", **TRIGGER) is None


def test_exactly_the_state_it_is_in_is_one(counted: Telemetry) -> None:
    counted(evaluated())
    states = {
        str(state): value(counted, "trigger_state", **TRIGGER, state=state) for state in State
    }
    assert states == {str(state): float(state is State.MEASURED) for state in State}


def test_what_decisions_rest_on_is_one(counted: Telemetry) -> None:
    counted(evaluated())
    counted(facts.EvidenceChanged("default", EvidenceSource.EXPORTERS, "nothing there"))
    for evidence_source, trigger, source in (
        (EvidenceSource.KUBE_STATE_METRICS, 1, 0),
        (EvidenceSource.EXPORTERS, 0, 1),
    ):
        assert value(counted, "trigger_evidence", **TRIGGER, evidence=evidence_source) == trigger
        assert (
            value(counted, "source_evidence", source="default", evidence=evidence_source) == source
        )
    counted(evaluated(UNKNOWN))
    assert value(counted, "trigger_evidence", **TRIGGER, evidence=EvidenceSource.EXPORTERS) is None


def test_what_is_held_or_unknown_has_no_sample(counted: Telemetry) -> None:
    counted(evaluated())
    counted(evaluated(UNKNOWN))
    for name in ("value", "average", "active"):
        assert value(counted, f"trigger_{name}", **TRIGGER) is None
    assert value(counted, "trigger_state", **TRIGGER, state="unknown") == 1


def test_a_demand_is_shown_while_it_is_known(counted: Telemetry, clock: Clock) -> None:
    for demand in (Demand(7.0), Demand(0.0)):
        counted(facts.DemandKnown(triggers.BERT, triggers.spec(), demand))
        assert value(counted, "trigger_demand", **TRIGGER) == demand.value
    counted(facts.DemandKnown(triggers.BERT, triggers.spec(), Demand(None, "HTTP 503")))
    assert value(counted, "trigger_demand", **TRIGGER) is None
    counted(facts.DemandKnown(triggers.BERT, triggers.spec(), Demand(7.0)))
    clock.now += 601
    assert value(counted, "trigger_demand", **TRIGGER) is None


def test_inactive_is_zero_and_not_absent(counted: Telemetry) -> None:
    counted(evaluated(replace(MEASURED, active=False, value=0.0)))
    assert value(counted, "trigger_active", **TRIGGER) == 0
    assert value(counted, "trigger_value", **TRIGGER) == 0


def test_series_nobody_asks_for_end_after_ten_minutes(counted: Telemetry, clock: Clock) -> None:
    counted(evaluated())
    clock.now += 599
    assert value(counted, "trigger_value", **TRIGGER) == 167
    assert value(counted, "snapshot_age_seconds", **SNAPSHOT) == 601
    clock.now += 1
    assert value(counted, "trigger_value", **TRIGGER) is None
    assert value(counted, "trigger_state", **TRIGGER, state="measured") is None
    assert value(counted, "snapshot_age_seconds", **SNAPSHOT) is None


def test_how_long_ago_a_trigger_was_decided_is_shown(counted: Telemetry, clock: Clock) -> None:
    counted(evaluated())
    clock.now += 40
    assert value(counted, "trigger_decision_age_seconds", **TRIGGER) == 40
    counted(evaluated())
    assert value(counted, "trigger_decision_age_seconds", **TRIGGER) == 0


def test_two_triggers_with_the_same_names_share_their_series(counted: Telemetry) -> None:
    counted(evaluated())
    other = replace(evaluated(), spec=triggers.spec(workload="llama", threshold="50"))
    counted(other)
    assert value(counted, "trigger_threshold", **TRIGGER) == 50
    counted(replace(evaluated(), scaled_object=OTHER))
    assert value(counted, "trigger_threshold", **TRIGGER) == 50


def test_what_was_lost_of_the_log_is_counted() -> None:
    dropped = iter((0, 7))
    counted = Telemetry(lines_dropped=lambda: next(dropped))
    assert value(counted, "log_lines_dropped_total") == 0
    assert value(counted, "log_lines_dropped_total") == 7


def test_the_tasks_of_the_event_loop_are_counted_when_they_are_asked_for() -> None:
    counts = iter((3, 5))
    counted = Telemetry(tasks=lambda: next(counts))
    assert value(counted, "tasks") == 3
    assert value(counted, "tasks") == 5


def test_beyond_the_limit_what_was_put_longest_ago_ends(clock: Clock) -> None:
    recent: Recent[str, int] = Recent(2, clock)
    for number, key in enumerate("abac"):
        recent.put(key, number)
    assert dict(recent.items()) == {"a": 2, "c": 3}


def test_a_key_that_ends_while_all_are_read_fails_nothing() -> None:
    times = itertools.count(0.0, FORGET_SECONDS / 4)
    recent: Recent[int, int] = Recent(10, lambda: next(times))
    for key in range(3):
        recent.put(key, key)
    assert recent.items()


def test_the_version_that_runs_is_shown(counted: Telemetry) -> None:
    assert value(counted, "build_info", version=__version__) == 1


def test_process_and_platform_are_shown_too(counted: Telemetry) -> None:
    shown = generate_latest(counted.registry).decode()
    assert "process_resident_memory_bytes" in shown
    assert "python_info" in shown


def test_a_source_that_stays_down_is_shown_while_people_ask(
    counted: Telemetry, clock: Clock
) -> None:
    counted(facts.SourceChanged("default", works=False, reason="refused"))
    counted(facts.EvidenceChanged("default", EvidenceSource.EXPORTERS, "nothing there"))
    for _ in range(3):
        clock.now += 500
        counted(evaluated(age=None))
    assert value(counted, "source_up", source="default") == 0
    labels = {"source": "default", "evidence": "exporters"}
    assert value(counted, "source_evidence", **labels) == 1
    clock.now += 601
    assert value(counted, "source_up", source="default") is None


def test_a_source_asked_by_namespace_has_an_age_for_each(counted: Telemetry) -> None:
    for name, age in (("default/a", 1.0), ("default/b", 2.0)):
        counted(replace(evaluated(age=age), source=name))
        labels = SNAPSHOT | {"source": name}
        assert value(counted, "snapshot_age_seconds", **labels) == age


def test_a_users_own_query_is_shown_by_a_short_name_and_takes_no_source_down(
    counted: Telemetry,
) -> None:
    own = triggers.spec(query="load", signal="memory", activationThreshold="5")
    counted(facts.SnapshotTaken("default", own.shared_signal, own.profile, 1.0, 5, 0))
    counted(facts.Evaluated(triggers.BERT, own, MEASURED, snapshot_age_seconds=2.0))
    counted(facts.QueryChanged("default", own.profile, works=False, reason="HTTP 422"))
    labels = {"source": "default", "signal": "number", "profile": own.profile}
    assert value(counted, "snapshot_pods", **labels) == 5
    assert value(counted, "snapshot_age_seconds", **labels) == 2
    assert value(counted, "source_up", source="default") == 1


def test_a_watch_of_the_kubernetes_api_is_up_or_not(counted: Telemetry) -> None:
    counted(facts.WatchChanged("pods", works=True, reason="it is listed"))
    assert value(counted, "kubernetes_watch_up", resource="pods") == 1
    counted(facts.WatchChanged("pods", works=False, reason="HTTP 403"))
    assert value(counted, "kubernetes_watch_up", resource="pods") == 0


def test_the_expiry_of_a_certificate_is_that_of_the_moment(counted: Telemetry) -> None:
    name = "certificate_expiry_timestamp_seconds"
    shown, authority = ({"server": "grpc", "kind": kind} for kind in ("server", "client_ca"))
    assert value(counted, name, **shown) is None
    expiries = {"server": 1000.0, "client_ca": 3000.0}
    counted.follow_certificate("grpc", lambda: expiries)
    assert value(counted, name, **shown) == 1000
    expiries.update(server=2000.0)
    assert value(counted, name, **shown) == 2000
    assert value(counted, name, **authority) == 3000
    assert value(counted, name, server="http", kind="server") is None


def firing(scaled_object: ScaledObject = triggers.BERT, *, fires: bool) -> facts.AlertChanged:
    return facts.AlertChanged(scaled_object, "Busy", fires, "so it was said")


def test_the_alerts_that_fire_are_counted_for_each_object(counted: Telemetry) -> None:
    bert = {"namespace": "ml", "scaled_object": "bert"}
    for fact in (firing(fires=True), firing(fires=True), firing(OTHER, fires=True)):
        counted(fact)
    assert value(counted, "alerts_firing", **bert) == 2
    counted(firing(fires=False))
    assert value(counted, "alerts_firing", **bert) == 1
    counted(firing(fires=False))
    assert value(counted, "alerts_firing", **bert) is None
    assert value(counted, "alerts_firing", namespace="ml", scaled_object="other") == 1


def test_messages_are_counted_by_sender_and_status(counted: Telemetry) -> None:
    for status in (200, 200, 422):
        counted(facts.Notified("grafana", status, "taken: 1"))
    assert value(counted, "webhook_notifications_total", sender="grafana", code="200") == 2
    assert value(counted, "webhook_notifications_total", sender="grafana", code="422") == 1


def test_replicas_that_can_be_reached_are_shown_beside_those_that_cannot(
    counted: Telemetry,
) -> None:
    assert value(counted, "peers", state="reachable") is None
    counted(facts.PeerChanged("http://10.0.0.1:8080", works=False, reason="refused"))
    counted(facts.PeersAsked(2, 1))
    assert value(counted, "peers", state="reachable") == 2
    assert value(counted, "peers", state="unreachable") == 1
