"""What the Prometheus source asks, when it asks again, and what it makes of a failed query."""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
import pytest_asyncio

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.promql_texts import (
    BREADTH_LABEL,
    EXPORTER_LABEL,
    STATE_LABEL,
    TARGETS,
)
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.snapshot.observation import GpuReports, Row
from keda_gpu_scaler.sources.evaluation_times import SYNCHRONIZED_SECONDS
from keda_gpu_scaler.sources.prometheus import client
from keda_gpu_scaler.sources.prometheus.source import (
    DETECTED_SECONDS,
    QUERIES_OF_A_STEP,
    PrometheusSource,
)
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from keda_gpu_scaler.telemetry import facts
from testbed.clocks import Clock
from tests.sources.prometheus.scripted import ScriptedClient, rows
from tests.support import http_replies as web
from tests.support.http_replies import HttpServer
from tests.support.prometheus_source import connected

AT = 1_700_000_100.0
NEED = SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({"ml"}), 300, 120)
REFUSED = {"status": "error", "errorType": "execution", "error": "query timed out in expression"}


def scripted(
    answers: dict[str, object] | None = None,
    observe: facts.Observer = facts.ignore,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[PrometheusSource, ScriptedClient]:
    prometheus = ScriptedClient(answers, observe, clock)
    return PrometheusSource(prometheus), prometheus


@pytest_asyncio.fixture
async def server() -> AsyncIterator[HttpServer]:
    async def healthy(request: web.Request, writer: asyncio.StreamWriter) -> None:
        """Answer every kind of question with nothing."""
        kind = "matrix" if request.form["query"].endswith("]") else "vector"
        await web.api(kind, [])(request, writer)

    async with HttpServer(healthy) as running:
        yield running


# Faults


QUESTIONS: dict[str, Callable[[PrometheusSource], Awaitable[object]]] = {
    "clock": lambda source: source.synchronize(),
    "demand": lambda source: source.number("3"),
    "snapshot": lambda source: source.fetch(NEED, AT),
    "history": lambda source: source.history(NEED, AT),
    "gpus": lambda source: source.locate(["GPU-a"], AT),
}


@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_fault_is_a_fact_in_the_servers_words(server: HttpServer, question: str) -> None:
    """Which answers are faults is a claim of the reader and of the transport."""
    server.reply = web.says(json.dumps(REFUSED), 422)
    stated: list[facts.Fact] = []
    async with connected(server.url, stated.append) as source:
        with pytest.raises(errors.SourceRefusedError) as raised:
            await QUESTIONS[question](source)

    (fact,) = stated
    assert isinstance(fact, facts.Queried)
    assert (fact.source, fact.query, fact.error) == ("default", question, str(raised.value))
    assert fact.error == "HTTP 422, execution: query timed out in expression"


async def test_a_failing_age_fails_the_fetch() -> None:
    source, _ = scripted({"age": errors.SourceRefusedError("out of order")})
    with pytest.raises(errors.SourceRefusedError, match="out of order"):
        await source.fetch(NEED, AT)


async def test_jobs_without_end_do_not_make_questions_without_end() -> None:
    numbers = itertools.count()

    def another_job(_: float | None) -> list[Row]:
        return rows({"job": f"job-{next(numbers)}"})

    source, prometheus = scripted({"history": another_job})
    await source.history(NEED, AT)
    assert len(prometheus.texts("history")) == QUERIES_OF_A_STEP


async def test_strange_rows_about_gpus_are_passed_over() -> None:
    shown = rows(
        {"UUID": "GPU-a"},
        {"UUID": "GPU-a", STATE_LABEL: "melted"},
        {"UUID": "GPU-b", STATE_LABEL: "reported"},
        {"uuid": "GPU-c", "UUID": "", STATE_LABEL: "busy"},
    )
    source, prometheus = scripted({"gpus": shown})
    reports = await source.locate(["GPU-a", "GPU-b", "GPU-c"], AT)
    assert reports == GpuReports(frozenset({"GPU-b"}), frozenset({"GPU-c"}))
    assert await source.locate([], AT) == GpuReports()
    assert len(prometheus.queries) == 1


# Requests


@pytest.mark.parametrize("later", [0, 105])
@pytest.mark.parametrize("span", [15, 300])
async def test_history_and_a_snapshot_overlap(later: float, span: float) -> None:
    source, _ = scripted()
    wide, at = replace(NEED, span_seconds=span), AT + later
    history = await source.history(wide, at)
    observation = await source.fetch(wide, at)

    assert observation.instants[0] <= history.at < at
    assert history.at in observation.instants


async def test_a_question_names_its_time_and_its_limit(server: HttpServer) -> None:
    async with connected(f"{server.url}/prefix/", timeout="2500ms") as source:
        await source.fetch(NEED, AT)
        await source.number("3")

    *fetched, number = server.requests
    assert "time" not in number.form
    assert {request.form["time"] for request in fetched} == {"1700000100.000"}
    for request in server.requests:
        assert request.path == "/prefix/api/v1/query"
        assert request.form["timeout"] == "2.500"
        assert request.form["partial_response"] == "false"
        assert request.form["deny_partial_response"] == "1"


async def test_other_exporters_are_looked_for_every_few_minutes_and_stay() -> None:
    clock, stated = Clock(), list[facts.Fact]()
    source, prometheus = scripted(observe=stated.append, clock=clock)

    def shown(*names: str) -> None:
        prometheus.answers["exporters"] = rows(*({EXPORTER_LABEL: name} for name in names))

    shown("hami", "another", "dcgm", "")
    await source.fetch(replace(NEED, profile="dcgm"), AT)
    assert not prometheus.texts("exporters")
    await asyncio.gather(*(source.fetch(NEED, AT) for _ in range(5)))
    clock.now += DETECTED_SECONDS - 1
    await source.fetch(NEED, AT)
    assert len(prometheus.texts("exporters")) == 1
    shown("amd")
    clock.now += 1
    await source.fetch(NEED, AT)
    prometheus.answers["exporters"] = errors.SourceRefusedError("out of order")
    clock.now += DETECTED_SECONDS
    for _ in range(2):
        await source.fetch(NEED, AT)
    assert len(prometheus.texts("exporters")) == 3
    exporters = [fact.found for fact in stated if isinstance(fact, facts.ExportersFound)]
    assert exporters == [("hami",), ("amd",)]
    assert "gpu_gfx_activity" in prometheus.texts("snapshot")[-1]
    assert "hami_container_device_utilization_ratio" in prometheus.texts("snapshot")[-1]


async def test_how_much_jobs_show_is_asked_every_few_minutes_if_there_are_two() -> None:
    clock, stated = Clock(), list[facts.Fact]()
    source, prometheus = scripted(observe=stated.append, clock=clock)
    known = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "namespace": "ml", "pod": "bert-0"}

    def shown(*jobs: str) -> None:
        points = [(AT - 15, 50.0), (AT, 50.0)]
        labels = [{**known, "job": job, "UUID": f"GPU-{job}"} for job in jobs]
        prometheus.answers["snapshot"] = [Row.of(each, points) for each in labels]

    def breadth(**targets: int) -> None:
        prometheus.answers["breadth"] = [
            Row.of({"job": job, BREADTH_LABEL: TARGETS}, [(AT, count)])
            for job, count in targets.items()
        ]

    async def read() -> tuple[list[str], int]:
        observation = await source.fetch(NEED, AT)
        jobs = [gpu.target.job for gpu in observation.series]
        return jobs, len(prometheus.texts("breadth"))

    shown("a")
    assert await read() == (["a"], 0)
    shown("a", "b")
    # As long as the server does not say, the job counts that counted before.
    prometheus.answers["breadth"] = errors.SourceRefusedError("out of order")
    assert await read() == (["a"], 1)
    assert await read() == (["a"], 1)
    clock.now += DETECTED_SECONDS
    breadth(a=2, b=1)
    assert await read() == (["a"], 2)
    clock.now += DETECTED_SECONDS - 1
    breadth(a=2, b=3)
    assert await read() == (["a"], 2)
    clock.now += 1
    assert await read() == (["b"], 3)
    # A new one is asked about at once, also where it turns out to show nothing.
    shown("a", "b", "c")
    assert await read() == (["b"], 4)
    assert await read() == (["b"], 4)
    clock.now += DETECTED_SECONDS
    prometheus.answers["breadth"] = errors.SourceRefusedError("out of order")
    assert await read() == (["b"], 5)
    overruled = [(one.job, one.wider) for one in stated if isinstance(one, facts.JobOverruled)]
    assert overruled[:4] == [("b", "a")] * 4
    assert set(overruled[4:]) == {("a", "b"), ("c", "b")}


# The clock


@pytest.mark.parametrize("offset", [-600.0, 1.999])
async def test_now_and_instants_follow_the_servers_clock(offset: float) -> None:
    here, clock = time.time() // 3600 * 3600, Clock()
    source, prometheus = scripted(
        {"clock": client.Clock(0.0, takes_long_queries=True)}, clock=clock
    )
    with pytest.raises(errors.SourceMalformedError, match="clocks that are less than a year"):
        await source.synchronize()
    assert abs(source.now() - time.time()) < 86_400  # this machine's time until then
    assert source.instant() % 15 == 0

    prometheus.answers["clock"] = client.Clock(here + offset, takes_long_queries=True)
    await source.synchronize()
    assert source.now() == here + offset
    assert source.instant() == (here + offset - 2) // 15 * 15
    clock.now += SYNCHRONIZED_SECONDS - 1
    await source.synchronize()
    assert source.now() == here + offset + SYNCHRONIZED_SECONDS - 1
    assert prometheus.queries == [("clock", "time()", None)] * 2

    clock.now += 1
    later = here + offset + SYNCHRONIZED_SECONDS + 0.25
    prometheus.answers["clock"] = client.Clock(later, takes_long_queries=True)
    await source.synchronize()
    assert source.now() == later


async def test_each_part_of_a_query_waits_where_the_past_is_read(server: HttpServer) -> None:
    waits = list[None]()

    async def wait() -> None:
        waits.append(None)

    settings = PrometheusSettings.model_validate({"url": server.url})
    prometheus = client.PrometheusClient("default", settings, before_query=wait)
    names = frozenset(f"{'long' * 15}-{number:03}" for number in range(400))
    await prometheus.rows("age", names, "|".join, AT, client.parse_vector)
    await prometheus.close()
    assert len(waits) == len(server.requests) > 1
