"""Claims about finding kube-state-metrics in a server."""

import math
from dataclasses import dataclass, field
from typing import Any

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.kube_state_metrics import JOBS, PODS
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.kube_state_metrics import KubeStateMetrics
from keda_gpu_scaler.transport.client import Client
from tests.support.clocks import Clock
from tests.support.promql_texts import kube_state_text


@dataclass(slots=True)
class Server(PrometheusClient):
    """Answers both questions; notes what it was asked."""

    jobs: list[str] = field(default_factory=list)
    shows: str = PODS
    requests: list[tuple[str, str]] = field(default_factory=list)
    fails: bool = False
    """It does not answer the question about pods."""

    def __post_init__(self) -> None:
        """Let everything be read at once."""
        self.http = Client(timeout_seconds=1)
        self._longest_bytes = math.inf

    async def ask(self, kind: str, text: str, at: float | None, *_: object) -> Any:  # noqa: ANN401
        """Answer."""
        assert at is not None
        self.requests.append((kind, text))
        if kind == "jobs":
            return [Row({"job": job, "__name__": self.shows}, [(at, 1.0)]) for job in self.jobs]
        if self.fails:
            raise errors.SourceTimeoutError("no answer")
        covered = Row({"stat": "covered", "namespace": "ml"}, [(at, 1.0)])
        return [covered, *(Row({"stat": "settled", "job": job}, [(at, 4.0)]) for job in self.jobs)]


async def test_it_is_looked_for_each_time_until_it_is_there_and_rarely_afterwards() -> None:
    server, clock = Server(), Clock()
    metrics = KubeStateMetrics(server, clock)
    for _ in range(2):
        assert await metrics.evidence({"ml"}, 0.0, 0.0) is None
        clock.now += 15
    assert server.requests == [("jobs", JOBS)] * 2
    server.jobs = ["ksm"]
    for _ in range(21):
        assert await metrics.evidence({"ml"}, 0.0, 0.0) is not None
        clock.now += 15
    assert [kind for kind, _ in server.requests].count("jobs") == 4
    assert server.requests[-1] == ("evidence", kube_state_text({"ml"}, {"ksm"}))


async def test_the_past_is_asked_about_where_nobody_watched_it() -> None:
    """Of a namespace that is new, was not covered, or that no trigger asked about for long."""
    server = Server(["ksm"])
    metrics = KubeStateMetrics(server, Clock())
    asked = [({"ml"}, 0.0), ({"ml", "new"}, 15.0), ({"ml", "new"}, 300.0), ({"ml"}, 601.0)]
    for namespaces, at in asked:
        await metrics.evidence(namespaces, at, at)
    assert [text for kind, text in server.requests if kind == "evidence"] == [
        kube_state_text({"ml"}, {"ksm"}, {"ml"}),
        kube_state_text({"ml", "new"}, {"ksm"}, {"new"}),
        kube_state_text({"ml", "new"}, {"ksm"}, {"new"}),
        kube_state_text({"ml"}, {"ksm"}, {"ml"}),
    ]


async def test_an_answer_that_did_not_come_leaves_the_past_to_be_asked_about() -> None:
    server = Server(["ksm"], fails=True)
    metrics = KubeStateMetrics(server, Clock())
    with pytest.raises(errors.SourceTimeoutError):
        await metrics.evidence({"ml"}, 0.0, 0.0)
    server.fails = False
    await metrics.evidence({"ml"}, 15.0, 15.0)
    assert server.requests[-1] == ("evidence", kube_state_text({"ml"}, {"ksm"}, {"ml"}))


@pytest.mark.parametrize(
    ("shows", "namespace", "stable_since"),
    [
        (PODS, None, True),
        pytest.param("kube_deployment_status_replicas", None, False, id="it lists no pods"),
        pytest.param(PODS, "ml", False, id="a proxy hides targets"),
    ],
)
async def test_only_a_list_of_all_pods_proves_absence(
    shows: str, namespace: str | None, *, stable_since: bool
) -> None:
    server = Server(["ksm"], shows)
    server.namespace = namespace
    said = await KubeStateMetrics(server, Clock()).evidence({"ml"}, 0.0, 0.0)
    assert said is not None
    assert bool(said.stable_since) is stable_since


async def test_one_that_is_down_is_not_one_that_was_never_there() -> None:
    server, clock = Server(["ksm"]), Clock()
    metrics = KubeStateMetrics(server, clock)
    await metrics.evidence({"ml"}, 0.0, 0.0)
    server.jobs = ["other"]
    clock.now += 300
    assert await metrics.evidence({"ml"}, 0.0, 0.0) is not None
    asked = kube_state_text({"ml"}, {"ksm", "other"})
    assert server.requests[-1] == ("evidence", asked)
