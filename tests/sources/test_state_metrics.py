"""Claims about finding kube-state-metrics in a server."""

from dataclasses import dataclass, field

import pytest

from keda_gpu_scaler import kube_state
from keda_gpu_scaler.observation import Row
from keda_gpu_scaler.sources.state_metrics import StateMetrics
from tests.clocks import Clock


@dataclass(slots=True)
class Server:
    """Answers both questions; notes what it was asked."""

    jobs: list[str] = field(default_factory=list)
    shows: str = kube_state.PODS
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def __call__(self, kind: str, text: str, at: float, /) -> list[Row]:
        """Answer."""
        self.asked.append((kind, text))
        if kind == "jobs":
            return [Row({"job": job, "__name__": self.shows}, [(at, 1.0)]) for job in self.jobs]
        return [Row({"stat": "settled", "job": job}, [(at, 4.0)]) for job in self.jobs]


async def test_it_is_looked_for_each_time_until_it_is_there() -> None:
    server, clock = Server(), Clock()
    metrics = StateMetrics(server, clock)
    for _ in range(2):
        assert await metrics.evidence({"ml"}, 0.0) is None
        clock.now += 15
    assert server.asked == [("jobs", kube_state.JOBS)] * 2
    server.jobs = ["ksm"]
    assert await metrics.evidence({"ml"}, 0.0) is not None


async def test_once_found_it_is_asked_each_time_and_looked_for_rarely() -> None:
    server, clock = Server(["ksm"]), Clock()
    metrics = StateMetrics(server, clock)
    for _ in range(21):
        assert await metrics.evidence({"ml"}, 0.0) is not None
        clock.now += 15
    assert [kind for kind, _ in server.asked].count("jobs") == 2
    assert server.asked[1] == ("evidence", kube_state.question({"ml"}, {"ksm"}))


@pytest.mark.parametrize(
    ("shows", "settled"), [(kube_state.PODS, True), ("kube_deployment_status_replicas", False)]
)
async def test_one_that_lists_no_pods_proves_no_absence(shows: str, *, settled: bool) -> None:
    said = await StateMetrics(Server(["ksm"], shows), Clock()).evidence({"ml"}, 0.0)
    assert said is not None
    assert bool(said.settled) is settled


async def test_one_that_is_down_is_not_one_that_was_never_there() -> None:
    server, clock = Server(["ksm"]), Clock()
    metrics = StateMetrics(server, clock)
    await metrics.evidence({"ml"}, 0.0)
    server.jobs = ["other"]
    clock.now += 300
    assert await metrics.evidence({"ml"}, 0.0) is not None
    assert server.asked[-1] == ("evidence", kube_state.question({"ml"}, {"ksm", "other"}))
