"""Which scrape jobs queries name: others write the names, and each stands in every query."""

from itertools import chain

import pytest

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.promql_texts import LONGEST_BYTES
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources.prometheus.source import (
    FOUND_SECONDS,
    LONGEST_JOB_CHARACTERS,
    MOST_JOBS,
    KubeStateMetrics,
    PrometheusSource,
)
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import REMEMBERED_SECONDS
from testbed.clocks import Clock
from tests.sources.prometheus.scripted import ScriptedClient, rows

AT = 1_700_000_100.0
NAMESPACE = "n" * 63
ASKED = SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({NAMESPACE}), 300, 120)
NAMES = {
    "many": [f"job-{number:03}" for number in range(300)],
    "long": [f"{number:03}{'j' * 4096}" for number in range(3)],
    "escaped": [f"{number:03}{'.' * 90}" for number in range(300)],
    "wide": [f"{number:03}{'😀' * 90}" for number in range(300)],
}


def gpus_of(job: str, *namespaces: str) -> list[Row]:
    return rows(*({"job": job, "exported_namespace": name} for name in namespaces))


class Server:
    """A source on a server that shows GPUs, or kube-state-metrics, of some jobs."""

    def __init__(self) -> None:
        self.clock, self.stated = Clock(), list[facts.Fact]()
        self.client = ScriptedClient(observe=self.stated.append, clock=self.clock)
        self.source = PrometheusSource(self.client)
        self.metrics = KubeStateMetrics(self.client)

    async def snapshot(self, *shown: list[Row]) -> str:
        """Return the next query after one that was answered with these rows."""
        self.client.answers["snapshot"] = list(chain(*shown))
        await self.source.fetch(ASKED, AT)
        await self.source.fetch(ASKED, AT)
        return self.client.texts("snapshot")[-1]

    async def evidence(self, *shown: list[Row]) -> str:
        self.client.answers["jobs"] = list(chain(*shown))
        self.clock.now += FOUND_SECONDS
        await self.metrics.evidence({NAMESPACE}, AT, AT)
        return self.client.texts("evidence")[-1]

    @property
    def left_out(self) -> int:
        stated = [fact.jobs for fact in self.stated if isinstance(fact, facts.JobsLeftOut)]
        return stated[-1] if stated else 0


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
async def test_no_names_of_jobs_make_a_query_too_long(names: list[str]) -> None:
    server = Server()
    found = rows(*({"exporter": name} for name in profiles.DETECTED))
    server.client.answers["exporters"] = found
    text = await server.snapshot(gpus_of("honest", "a", "b"), *(gpus_of(job, "c") for job in names))
    assert len(text.encode()) <= LONGEST_BYTES
    assert "honest" in text
    assert server.left_out > 0
    server = Server()
    shown = [rows({"job": job, "__name__": "kube_pod_owner"}) for job in names]
    honest = rows({"job": "honest", "__name__": "kube_pod_owner"}, value=2)
    text = await server.evidence(*shown, honest)
    assert len(text.encode()) <= LONGEST_BYTES
    assert "honest" in text
    assert server.left_out > 0


async def test_those_that_show_most_namespaces_and_those_that_are_known_come_first() -> None:
    server = Server()
    await server.snapshot(gpus_of("x-known", "a"))
    others = [gpus_of(f"job-{number:03}", "b") for number in range(300)]
    text = await server.snapshot(*others, gpus_of("x-known", "a"), gpus_of("y-wide", "a", "b"))
    assert "x\\\\-known" in text
    assert "y\\\\-wide" in text
    assert server.left_out == 302 - MOST_JOBS
    # A snapshot of one namespace shows one of those that the exporter has.
    text = await server.snapshot(*others, gpus_of("y-wide", "b"))
    assert "y\\\\-wide" in text


async def test_a_job_that_nothing_has_named_for_an_hour_is_forgotten() -> None:
    server = Server()
    honest = gpus_of("honest", "a")
    assert "gone" in await server.snapshot(honest, gpus_of("gone", "a", "b"))
    server.clock.now += REMEMBERED_SECONDS - 1
    assert "gone" in await server.snapshot(honest)
    server.clock.now += 1
    text = await server.snapshot(honest)
    assert "gone" not in text
    assert "honest" in text
    assert server.left_out == 0


async def test_a_kube_state_metrics_that_is_down_is_not_forgotten() -> None:
    """As long as it is to be scraped; other rows would look like a whole list of pods."""
    server = Server()
    owners = {"__name__": "kube_pod_owner"}
    other = rows({"job": "other", **owners})
    server.client.answers["evidence"] = rows({"stat": "down", "job": "down", "instance": "a"})
    await server.evidence(other, rows({"job": "down", **owners}), rows({"job": "gone", **owners}))
    for _ in range(round(REMEMBERED_SECONDS / FOUND_SECONDS)):
        text = await server.evidence(other)
    assert "down|other" in text
    assert "gone" not in text


async def test_the_line_about_jobs_left_out_has_a_short_name() -> None:
    server = Server()
    await server.snapshot(gpus_of("\x1b" + "j" * 4096, "a"))
    (fact, *_) = [fact for fact in server.stated if isinstance(fact, facts.JobsLeftOut)]
    assert (fact.source, fact.jobs) == ("default", 1)
    assert len(fact.first) <= LONGEST_JOB_CHARACTERS + 1
    assert "\x1b" not in fact.first
