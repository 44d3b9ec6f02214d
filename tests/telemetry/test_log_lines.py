"""Which facts become log lines."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
import structlog
from msgspec import structs
from structlog.testing import LogCapture

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.log_lines import LogObserver
from tests.support import triggers
from tests.support.clocks import Clock


@pytest.fixture
def lines() -> Iterator[LogCapture]:
    captured = LogCapture()
    structlog.configure(
        processors=[captured], wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG)
    )
    yield captured
    structlog.reset_defaults()


def evaluated(decision: Decision | None = None, **trigger: str) -> facts.Evaluated:
    measured = Decision(
        state=State.MEASURED,
        reason="mean 83.5 over 2 pods",
        value=167.00049,
        active=True,
        average=83.500245,
    )
    spec = triggers.spec(**trigger)
    return facts.Evaluated(triggers.BERT, spec, decision or measured, 2.0, "default")


def observe_each(observe: LogObserver, *decisions: Decision | None) -> None:
    """Let one trigger be decided again and again."""
    before = None
    for decision in decisions:
        fact = structs.replace(evaluated(decision), before=before)
        observe(fact)
        before = fact.decision


UNKNOWN = Decision(state=State.UNKNOWN, reason="no answer", value=None, active=None)


def named(lines: LogCapture, event: str) -> list[dict[str, object]]:
    return [dict(line) for line in lines.entries if line["event"] == event]


def test_the_first_decision_is_told_with_its_reason(lines: LogCapture) -> None:
    LogObserver()(evaluated())
    assert named(lines, "decision.changed") == [
        {
            "event": "decision.changed",
            "log_level": "info",
            "namespace": "ml",
            "scaled_object": "bert",
            "metric": "gpu-utilization",
            "workload": "deployment/bert",
            "state": "measured",
            "active": True,
            "value": 167.0,
            "average": 83.5,
            "evidence": None,
            "reason": "mean 83.5 over 2 pods",
        }
    ]


def test_at_info_only_what_changed_is_told(lines: LogCapture) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    observe_each(LogObserver(), None, None)
    assert [line["event"] for line in lines.entries] == ["decision.changed"]


def test_each_change_of_state_or_activity_is_told_once_and_each_decision_at_debug(
    lines: LogCapture,
) -> None:
    idle = replace(evaluated().decision, active=False)
    observe_each(LogObserver(), None, idle, idle, UNKNOWN, None)
    assert [line["log_level"] for line in named(lines, "decision.made")] == ["debug"] * 5
    changes = named(lines, "decision.changed")
    assert [(line["state"], line["active"]) for line in changes] == [
        ("measured", True),
        ("measured", False),
        ("unknown", None),
        ("measured", True),
    ]
    assert (changes[2]["value"], changes[2]["average"]) == (None, None)


def test_warnings_of_a_trigger_are_told_once(lines: LogCapture) -> None:
    observe = LogObserver()
    risky = evaluated(threshold="85")
    assert risky.spec.warnings
    observe(risky)
    observe(structs.replace(risky, before=risky.decision))
    warnings = named(lines, "trigger.warning")
    assert [line["warning"] for line in warnings] == list(risky.spec.warnings)
    assert {line["log_level"] for line in warnings} == {"warning"}
    assert {line["scaled_object"] for line in warnings} == {"bert"}


ERROR = ZeroDivisionError()
BERT = {"namespace": "ml", "scaled_object": "bert"}


def line(event: str, level: str, **keys: object) -> dict[str, object]:
    """Return a line as it is written."""
    return {"event": event, "log_level": level, **keys}


LINES: list[tuple[facts.Fact, dict[str, object]]] = [
    (
        facts.SourceChanged("default", works=True, reason="it answers"),
        line("source.up", "info", source="default", reason="it answers"),
    ),
    (
        facts.SourceChanged("default", works=False, reason="refused"),
        line("source.down", "warning", source="default", reason="refused"),
    ),
    (
        facts.QueryChanged("default", "query-1a2b3c4d", works=True, reason="it works"),
        line("query.works", "info", source="default", query="query-1a2b3c4d", reason="it works"),
    ),
    (
        facts.QueryChanged("default", "query-1a2b3c4d", works=False, reason="HTTP 422"),
        line(
            "query.failed", "warning", source="default", query="query-1a2b3c4d", reason="HTTP 422"
        ),
    ),
    (
        facts.ExportersFound("default", ("amd", "hami")),
        line("source.exporters", "info", source="default", found=("amd", "hami")),
    ),
    (
        facts.Queried("default", "snapshot", 0.12345, None),
        line(
            "source.queried", "debug", source="default", query="snapshot", seconds=0.123, error=None
        ),
    ),
    (  # What takes the source down has a line of its own, and so has what was given up.
        facts.Queried("default", "evidence", 2.0, facts.GIVEN_UP),
        line(
            "source.queried",
            "debug",
            source="default",
            query="evidence",
            seconds=2.0,
            error=facts.GIVEN_UP,
        ),
    ),
    (
        facts.WatchChanged("pods", works=True, reason="it is listed"),
        line("kubernetes.watching", "info", resource="pods", reason="it is listed"),
    ),
    (
        facts.WatchChanged("pods", works=False, reason="HTTP 403"),
        line("kubernetes.lost", "warning", resource="pods", reason="HTTP 403"),
    ),
    (
        facts.AlertChanged(triggers.BERT, "Busy", fires=True, reason="a message says so"),
        line("alert.fires", "info", **BERT, alert="Busy", reason="a message says so"),
    ),
    (
        facts.AlertChanged(triggers.BERT, "Busy", fires=False, reason="it is resolved"),
        line("alert.ended", "info", **BERT, alert="Busy", reason="it is resolved"),
    ),
    (
        facts.Notified("grafana", 200, "taken: 1"),
        line("webhook.taken", "debug", sender="grafana", status=200, answer="taken: 1"),
    ),
    (
        facts.Notified("alertmanager", 200, "taken: 1", truncated=3),
        line("webhook.truncated", "warning", sender="alertmanager", status=200, answer="taken: 1"),
    ),
    (
        facts.Notified("alertmanager", 422, "not taken: 1"),
        line(
            "webhook.refused", "warning", sender="alertmanager", status=422, answer="not taken: 1"
        ),
    ),
    (
        facts.PeerChanged("http://10.0.0.1:8080", works=False, reason="refused"),
        line("peer.down", "warning", peer="http://10.0.0.1:8080", reason="refused"),
    ),
    (
        facts.PeerChanged("http://10.0.0.1:8080", works=True, reason="it answers"),
        line("peer.up", "info", peer="http://10.0.0.1:8080", reason="it answers"),
    ),
    (
        facts.CertificateLoaded("grpc", 1_800_000_000.0),
        line("certificate.loaded", "info", server="grpc", expires="2027-01-15T08:00:00+00:00"),
    ),
    (
        facts.CertificateRefused("http", "/tls.key is not a key"),
        line("certificate.refused", "warning", server="http", reason="/tls.key is not a key"),
    ),
    (
        facts.TriggerRefused(triggers.BERT, "threshold 'none': expected a number"),
        line("trigger.refused", "warning", **BERT, reason="threshold 'none': expected a number"),
    ),
    (
        facts.ObserveRead(2, 1, 1),
        line("observe.read", "info", files=2, triggers=1, refused=1),
    ),
    (
        facts.ObserveRefused("a.yaml", 14, "threshold: expected a number"),
        line(
            "observe.refused",
            "warning",
            file="a.yaml",
            line=14,
            reason="threshold: expected a number",
        ),
    ),
]


@pytest.mark.parametrize(
    ("fact", "expected"), LINES, ids=[f"{row[1]['event']}-{row[1]['log_level']}" for row in LINES]
)
def test_a_fact_is_a_line(lines: LogCapture, fact: facts.Fact, expected: dict[str, object]) -> None:
    LogObserver()(fact)
    assert [dict(written) for written in lines.entries] == [expected]


REFUSED = facts.TriggerRefused(triggers.BERT, "threshold 'none': expected a number")
NOT_TAKEN = facts.Notified("alertmanager", 422, "not taken: 1")


@pytest.mark.parametrize(
    ("refused", "another"),
    [
        (REFUSED, structs.replace(REFUSED, reason="another mistake")),
        (NOT_TAKEN, facts.Notified("unknown", 401, "expected the token")),
    ],
    ids=["trigger", "message"],
)
def test_the_same_refusal_is_a_line_once_in_ten_minutes(
    lines: LogCapture, refused: facts.Fact, another: facts.Fact
) -> None:
    clock = Clock()
    observe = LogObserver(clock)
    for fact in (refused, refused, another):
        observe(fact)
    assert len(lines.entries) == 2
    clock.now += 601
    observe(refused)
    assert len(lines.entries) == 3


def test_targets_that_old_versions_of_keda_round_are_a_line_each_once(lines: LogCapture) -> None:
    observe = LogObserver()
    for _ in range(2):
        observe(facts.TriggerChanged(triggers.BERT, ("1, not 1.4", "1, not 0.2")))
    observe(facts.TriggerChanged(triggers.BERT))
    assert [dict(line) for line in lines.entries] == [
        line("trigger.target_rounded", "warning", **BERT, reason=reason)
        for reason in ("1, not 1.4", "1, not 0.2")
    ]


def test_samples_that_are_late_are_told_once_with_the_figure(lines: LogCapture) -> None:
    observe = LogObserver()
    before = 0.0
    for seconds in (150.0, 165.0, 0.0, 90.0):
        observe(facts.LagChanged("default", seconds, before))
        before = seconds
    assert [
        (line["event"], line["log_level"], line.get("lag_seconds")) for line in lines.entries
    ] == [
        ("source.late", "warning", 150),
        ("source.on_time", "info", None),
        ("source.late", "warning", 90),
    ]


def test_an_object_that_exporters_alone_speak_for_is_told_once_loudly(lines: LogCapture) -> None:
    observe = LogObserver()
    alone = evaluated(replace(evaluated().decision, evidence=EvidenceSource.EXPORTERS))
    observe_each(observe, UNKNOWN, alone.decision, alone.decision, UNKNOWN, alone.decision)
    observe(structs.replace(alone, spec=triggers.spec(window="9s")))
    spoken = replace(alone.decision, evidence=EvidenceSource.KUBE_STATE_METRICS)
    observe_each(LogObserver(), spoken, alone.decision)  # of this one the cluster spoke before
    (warning,) = named(lines, "trigger.exporters_only")
    assert (warning["log_level"], warning["scaled_object"]) == ("warning", "bert")
    assert "minReplicaCount 0" in str(warning["warning"])


PODS = ((), ("bert-0",), ("bert-0",), (), ("bert-0", "bert-1"))


@pytest.mark.parametrize(
    ("decisions", "event"),
    [
        ([replace(UNKNOWN, ignored=pods) for pods in PODS], "trigger.pods_ignored"),
        ([replace(UNKNOWN, unseen=pods) for pods in PODS], "trigger.pods_unseen"),
    ],
    ids=["without a GPU", "that no exporter shows"],
)
def test_pods_that_do_not_count_are_told_when_they_change(
    lines: LogCapture, decisions: list[Decision], event: str
) -> None:
    observe_each(LogObserver(), *decisions)
    warnings = [line for line in lines.entries if "pods" in line]
    assert [(line["event"], line["pods"]) for line in warnings] == [
        (event, ["bert-0"]),
        (event, ["bert-0", "bert-1"]),
    ]
    assert {line["log_level"] for line in warnings} == {"warning"}


def test_weaker_evidence_is_a_warning_and_stronger_is_not(lines: LogCapture) -> None:
    observe = LogObserver()
    for evidence_source in (
        *EvidenceSource,
        EvidenceSource.KUBE_STATE_METRICS,
        EvidenceSource.KUBERNETES,
    ):
        observe(facts.EvidenceChanged("default", evidence_source, "because"))
    levels = [line["log_level"] for line in lines.entries]
    assert levels == ["info", "warning", "warning", "info", "info"]


def test_an_exporter_that_is_lost_and_comes_back_is_told_once_each(lines: LogCapture) -> None:
    observe = LogObserver()
    for error in (None, "HTTP 500", "HTTP 500", None, None):
        observe(facts.Queried("default", "scrape", 0.1, error, "http://a/metrics"))
        observe(facts.Queried("default", "scrape", 0.1, None, "http://b/metrics"))
    written = [dict(line) for line in lines.entries if line["event"] != "source.queried"]
    named = {"source": "default", "query": "scrape", "target": "http://a/metrics"}
    assert written == [
        {"event": "source.part_lost", "log_level": "warning", **named, "reason": "HTTP 500"},
        {"event": "source.part_back", "log_level": "info", **named},
    ]


def test_a_demand_is_told_by_its_short_name_once_at_debug(lines: LogCapture) -> None:
    observe = LogObserver()
    trigger = triggers.demanding('sum(waiting{token="hunter2"})')
    wanted = trigger.demand
    assert wanted is not None
    first = structs.replace(evaluated(), spec=trigger)
    observe(first)
    observe(structs.replace(first, before=first.decision))
    (line,) = named(lines, "trigger.demand")
    assert (line["log_level"], line["query"]) == ("debug", wanted.name)
    assert (line["namespace"], line["scaled_object"]) == ("ml", "bert")
    assert "hunter2" not in str(lines.entries)


def test_calls_and_snapshots_are_no_lines(lines: LogCapture) -> None:
    observe = LogObserver()
    observe(facts.Called("GetMetrics", "OK", 0.001))
    observe(facts.SnapshotTaken("default", "utilization", "auto", 1.0, 1, 0))
    observe(facts.DemandKnown(triggers.BERT, triggers.spec(), Demand(7.0)))
    assert lines.entries == []
