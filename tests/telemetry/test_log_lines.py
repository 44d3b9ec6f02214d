"""Which facts become log lines."""

import functools
from dataclasses import replace

import pytest
from msgspec import structs
from structlog.testing import LogCapture

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.log_lines import LogObserver, Observers
from testbed import triggers
from testbed.clocks import Clock
from testbed.triggers import BERT


def evaluated(decision: Decision | None = None, **trigger: str) -> facts.Evaluated:
    measured = Decision(
        state=State.MEASURED,
        reason="mean 83.5 over 2 pods",
        value=167.00049,
        active=True,
        average=83.500245,
    )
    return triggers.evaluated(decision or measured, triggers.spec(**trigger))


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


def test_each_change_is_told_once_and_each_decision_at_debug(lines: LogCapture) -> None:
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


WHY = "so it was said"
BUSY = functools.partial(facts.AlertChanged, triggers.BERT, "Busy", reason=WHY)
TOLD = functools.partial(facts.Notified, "grafana", text="taken: 1")
PEER = functools.partial(facts.PeerChanged, "http://10.0.0.1:8080", reason=WHY)
QUERIED = functools.partial(facts.Queried, "default", "snapshot", 0.125)
QUERY = functools.partial(facts.QueryChanged, "default", "query-1a2b3c4d", reason=WHY)
SOURCE = functools.partial(facts.SourceChanged, "default", reason=WHY)
WATCH = functools.partial(facts.WatchChanged, "pods", reason=WHY)
LINES: list[tuple[facts.Fact, str, str]] = [
    (SOURCE(works=True), "info", "source.up"),
    (SOURCE(works=False), "warning", "source.down"),
    (QUERY(works=True), "info", "query.works"),
    (QUERY(works=False), "warning", "query.failed"),
    (facts.ExportersFound("default", ("amd", "hami")), "info", "source.exporters"),
    (facts.JobsLeftOut("default", 250, "job-51"), "warning", "source.jobs_left_out"),
    (facts.JobOverruled("default", "team-a/app", "dcgm"), "warning", "source.job_overruled"),
    (facts.CauseFound("default", "none names pods", ("ml",)), "warning", "source.not_read"),
    (QUERIED(None), "debug", "source.queried"),
    # What takes the source down has a line of its own, and so has what was given up.
    (QUERIED(facts.GIVEN_UP), "debug", "source.queried"),
    (WATCH(works=True), "info", "kubernetes.watching"),
    (WATCH(works=False), "warning", "kubernetes.lost"),
    (BUSY(fires=True), "info", "alert.fires"),
    (BUSY(fires=False), "info", "alert.ended"),
    (facts.AlertsChanged(11, 2, WHY), "info", "alerts.changed"),
    (TOLD(200), "debug", "webhook.taken"),
    (TOLD(200, truncated=3), "warning", "webhook.truncated"),
    (TOLD(422), "warning", "webhook.refused"),
    (PEER(works=False), "warning", "peer.down"),
    (PEER(works=True), "info", "peer.up"),
    (facts.CertificateLoaded("grpc", 1_800_000_000.0), "info", "certificate.loaded"),
    (facts.CertificateRefused("http", WHY), "warning", "certificate.refused"),
    (facts.TriggerRefused(triggers.BERT, WHY), "warning", "trigger.refused"),
    (facts.TriggerChanged(triggers.BERT, (WHY,)), "warning", "trigger.target_rounded"),
    (facts.ObserveRead(2, 1, 1), "info", "observe.read"),
    (facts.ObserveRefused("a.yaml", 14, WHY), "warning", "observe.refused"),
]
NOT_WRITTEN = {
    *("works", "fires", "truncated", "target", "expires_at", "rounded", "text"),
    "is_one_of_many",
}
"""Fields of facts that the event says, or that have another form in the line."""
OTHER_FORMS: dict[str, dict[str, object]] = {
    "certificate.loaded": {"expires": "2027-01-15T08:00:00+00:00"},
    "trigger.target_rounded": {"reason": WHY},
    **{f"webhook.{end}": {"answer": "taken: 1"} for end in ("taken", "truncated", "refused")},
}


@pytest.mark.parametrize(
    ("fact", "level", "event"), LINES, ids=[f"{event}-{level}" for _, level, event in LINES]
)
def test_a_fact_is_a_line_with_its_fields(
    lines: LogCapture, fact: facts.Fact, level: str, event: str
) -> None:
    expected = structs.asdict(fact) | OTHER_FORMS.get(event, {})
    if scaled_object := expected.get("scaled_object"):
        expected |= {"namespace": scaled_object.namespace, "scaled_object": scaled_object.name}
    LogObserver()(fact)
    (line,) = lines.entries
    assert (line.pop("log_level"), line.pop("event")) == (level, event)
    assert line == {key: value for key, value in expected.items() if key not in NOT_WRITTEN}


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


def test_jobs_that_are_left_out_at_each_step_are_told_once_of_a_source(lines: LogCapture) -> None:
    observe = LogObserver()
    for source, jobs in (("default", 250), ("default", 251), ("other", 1)):
        observe(facts.JobsLeftOut(source, jobs, "job-51"))
    assert [(line["source"], line["jobs"]) for line in lines.entries] == [
        ("default", 250),
        ("other", 1),
    ]


def test_a_job_that_is_overruled_at_each_step_is_told_once(lines: LogCapture) -> None:
    clock = Clock()
    observe = LogObserver(clock)
    for job in ("team-a/app", "team-a/app", "team-b/app"):
        observe(facts.JobOverruled("default", job, "dcgm"))
        clock.now += 3600
    assert [line["job"] for line in lines.entries] == ["team-a/app", "team-b/app"]


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
def test_pods_that_do_not_count(lines: LogCapture, decisions: list[Decision], event: str) -> None:
    observe_each(LogObserver(), *decisions)
    warnings = [line for line in lines.entries if "pods" in line]
    assert [(line["event"], line["pods"]) for line in warnings] == [
        (event, ["bert-0"]),
        (event, ["bert-0", "bert-1"]),
    ]
    assert {line["log_level"] for line in warnings} == {"warning"}


def test_a_workload_that_the_cluster_does_not_list_is_told_once(lines: LogCapture) -> None:
    typo = replace(UNKNOWN, unlisted="there is no deployment/bret")
    observe_each(LogObserver(), UNKNOWN, typo, typo, UNKNOWN)
    (line,) = [line for line in lines.entries if line["event"] == "trigger.workload_unlisted"]
    assert (line["reason"], line["log_level"]) == ("there is no deployment/bret", "warning")


def test_weaker_evidence_is_a_warning_and_stronger_is_not(lines: LogCapture) -> None:
    observe = LogObserver()
    stronger = (EvidenceSource.KUBE_STATE_METRICS, EvidenceSource.KUBERNETES)
    for evidence_source in (*EvidenceSource, *stronger):
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


FACT = facts.Called("GetMetrics", "OK", 0.001)


def failing(_fact: facts.Fact) -> None:
    raise OSError(28, "No space left on device")


def test_a_failure_is_told_once_for_each_kind_and_others_get_all(lines: LogCapture) -> None:
    got: list[facts.Fact] = []
    stated = [FACT, FACT, facts.PeersAsked(1, 0)]
    fails = facts.Subscriber({facts.Called: failing, facts.PeersAsked: failing})
    keeps = facts.Subscriber({facts.Called: got.append, facts.PeersAsked: got.append})
    observe = Observers({"log": fails, "history": keeps, "traces": fails})
    for fact in (*stated, facts.CallBegan("IsActive", BERT, tuple)):
        observe(fact)
    assert got == stated
    reports = [(line["event"], line["log_level"], line["observer"]) for line in lines.entries]
    assert reports == [("observer.failed", "error", name) for name in ("log", "traces")] * 2
    assert [line["fact"] for line in lines.entries] == ["Called"] * 2 + ["PeersAsked"] * 2
    assert {str(line["exc_info"]) for line in lines.entries} == {
        "[Errno 28] No space left on device"
    }
