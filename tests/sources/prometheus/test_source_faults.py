"""The Prometheus source when the server, or a proxy in front of it, misbehaves."""

import asyncio
import functools
import itertools
import json
import math
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
import pytest_asyncio

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.promql_texts import EXPORTERS
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.observation import GpuReports
from keda_gpu_scaler.sources.evaluation_times import SYNCHRONIZED_SECONDS
from keda_gpu_scaler.sources.prometheus.source import (
    DETECTED_SECONDS,
    QUERIES_OF_A_STEP,
    PrometheusSource,
)
from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.facts import Fact, Queried
from tests.support import http_replies as web
from tests.support.clocks import Clock
from tests.support.http_replies import HttpServer
from tests.support.prometheus_source import connected

AT = 1_700_000_100.0
BOUND_SECONDS = 30.0
"""Only a test that hangs reaches this bound."""
LONG, SHORT = "20s", "200ms"
"""Timeouts for an answer: the second is for tests without an answer, or with a retry."""
NEED = SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({"ml"}), 300, 120)
ANSWERS = {"matrix": web.api("matrix", []), "vector": web.api("vector", [])}
REFUSED = {"status": "error", "errorType": "execution", "error": "query timed out in expression"}


@pytest_asyncio.fixture
async def server() -> AsyncIterator[HttpServer]:
    async with HttpServer(web.hangs) as running:
        yield running


async def healthy(request: web.Request, writer: asyncio.StreamWriter) -> None:
    """Answer every kind of question with nothing."""
    kind = "matrix" if request.form["query"].endswith("]") else "vector"
    await ANSWERS[kind](request, writer)


def in_turn(*replies: web.Reply) -> web.Reply:
    left = list(replies)

    async def reply(request: web.Request, writer: asyncio.StreamWriter) -> None:
        await left.pop(0)(request, writer)

    return reply


# Faults


QUESTIONS: dict[str, Callable[[PrometheusSource], Awaitable[object]]] = {
    "clock": lambda source: source.synchronize(),
    "demand": lambda source: source.number("3"),
    "snapshot": lambda source: source.fetch(NEED, AT),
    "history": lambda source: source.history(NEED, AT),
    "gpus": lambda source: source.locate(["GPU-a"], AT),
}
FAULTS: dict[str, tuple[web.Reply, type[errors.SourceError], str]] = {
    "hangs": (web.hangs, errors.SourceTimeoutError, "no answer"),
    "closes": (web.closes, errors.SourceUnreachableError, "disconnected"),
    "refuses": (
        web.says(json.dumps(REFUSED), 422),
        errors.SourceRefusedError,
        "HTTP 422, execution: query timed out in expression",
    ),
    "partial": (
        web.api("vector", [], warnings=["store-3: context deadline exceeded"]),
        errors.SourceMalformedError,
        "an incomplete answer: ['store-3: context deadline exceeded']",
    ),
    "large": (web.says(b" " * 2_000_000), errors.SourceMalformedError, "an answer of more than"),
}
"""One of each kind: which answers there are is a claim of the reader and of the transport."""


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_is_named_in_time_in_the_servers_words(
    server: HttpServer, question: str, name: str
) -> None:
    server.reply, kind, words = FAULTS[name]
    stated: list[Fact] = []
    patience = SHORT if kind is errors.SourceTimeoutError else LONG
    async with connected(
        server.url, stated.append, timeout=patience, max_response_bytes="1MiB"
    ) as source:
        with pytest.raises(kind, match=re.escape(words)) as raised:
            async with asyncio.timeout(BOUND_SECONDS):
                await QUESTIONS[question](source)

    (fact,) = stated
    assert isinstance(fact, Queried)
    assert (fact.source, fact.query, fact.error) == ("default", question, str(raised.value))


async def test_a_failing_age_fails_the_fetch(server: HttpServer) -> None:
    server.reply = in_turn(ANSWERS["matrix"], ANSWERS["vector"], web.says("out of order", 503))
    async with connected(server.url) as source:
        with pytest.raises(errors.SourceRefusedError, match="out of order"):
            await source.fetch(NEED, AT)


async def test_jobs_without_end_do_not_make_questions_without_end(server: HttpServer) -> None:
    numbers = itertools.count()

    async def another_job(request: web.Request, writer: asyncio.StreamWriter) -> None:
        labels = {"job": f"job-{next(numbers)}"}
        await web.api("matrix", [{"metric": labels, "values": [[AT, "1"]]}])(request, writer)

    server.reply = another_job
    async with connected(server.url) as source:
        await source.history(NEED, AT)

    assert len(server.requests) == QUERIES_OF_A_STEP + 1  # and which exporters there are


async def test_strange_rows_about_gpus_are_passed_over(server: HttpServer) -> None:
    rows = [
        {"metric": {"UUID": "GPU-a"}, "value": [AT, "1"]},
        {"metric": {"UUID": "GPU-a", "state": "melted"}, "value": [AT, "1"]},
        {"metric": {"UUID": "GPU-b", "state": "reported"}, "value": [AT, "1"]},
        {"metric": {"uuid": "GPU-c", "UUID": "", "state": "busy"}, "value": [AT, "1"]},
        {"metric": {"gpu_uuid": "of-amd", "state": "busy"}, "value": [AT, "1"]},
    ]
    server.reply = web.api("vector", rows)
    async with connected(server.url) as source:
        reports = await source.locate(["GPU-a", "GPU-b", "GPU-c", "of-amd"], AT)
        assert await source.locate([], AT) == GpuReports()

    assert len(server.requests) == 1
    assert reports == GpuReports(frozenset({"GPU-b"}), frozenset({"GPU-c", "of-amd"}))


async def test_the_fresher_of_two_label_schemes_counts(server: HttpServer) -> None:
    ages = [
        {"metric": {"exported_namespace": "ml", "exported_pod": "a"}, "value": [AT, "200"]},
        {"metric": {"namespace": "ml", "pod": "a"}, "value": [AT, "100"]},
        {"metric": {"namespace": "ml", "pod": "b"}, "value": [AT, "150"]},
        {"metric": {"alive": "1"}, "value": [AT, "1"]},
    ]
    server.reply = in_turn(ANSWERS["matrix"], ANSWERS["vector"], web.api("vector", ages))
    async with connected(server.url) as source:
        observation = await source.fetch(NEED, AT)

    assert observation.sample_ages == {("ml", "a"): 100, ("ml", "b"): 150}
    assert observation.absence_known


# Requests


@pytest.mark.parametrize("later", [0, 105])
@pytest.mark.parametrize("span", [15, 300])
async def test_history_and_a_snapshot_overlap(
    server: HttpServer, later: float, span: float
) -> None:
    server.reply = healthy
    asked, at = replace(NEED, span_seconds=span), AT + later
    async with connected(server.url) as source:
        history = await source.history(asked, at)
        observation = await source.fetch(asked, at)

    assert observation.instants[0] <= history.at < at
    assert history.at in observation.instants


async def test_a_question_names_its_time_and_its_limit(server: HttpServer) -> None:
    server.reply = healthy
    async with connected(f"{server.url}/prefix/", timeout="2500ms") as source:
        await source.fetch(NEED, AT)
        await source.number("3")

    snapshot, exporters, age, number = server.requests
    assert "time" not in number.form
    assert snapshot.path == exporters.path == age.path == "/prefix/api/v1/query"
    assert snapshot.form["time"] == age.form["time"] == "1700000100.000"
    assert snapshot.form["timeout"] == age.form["timeout"] == "2.500"
    for request in server.requests:
        assert request.form["partial_response"] == "false"
        assert request.form["deny_partial_response"] == "1"


async def test_other_exporters_are_looked_for_every_few_minutes_and_stay(
    server: HttpServer,
) -> None:
    there = ["hami", "another", "dcgm", ""]

    async def reply(request: web.Request, writer: asyncio.StreamWriter) -> None:
        if request.form["query"] != EXPORTERS:
            await healthy(request, writer)
        elif there:
            found = [{"metric": {"exporter": name}, "value": [AT, "1"]} for name in there]
            await web.api("vector", found)(request, writer)
        else:
            await web.says("out of order", 503)(request, writer)

    def looks() -> int:
        return sum(request.form["query"] == EXPORTERS for request in server.requests)

    server.reply = reply
    clock, stated = Clock(), list[Fact]()
    async with connected(server.url, stated.append, clock) as source:
        await source.fetch(replace(NEED, profile="dcgm"), AT)
        assert looks() == 0
        await asyncio.gather(*(source.fetch(NEED, AT) for _ in range(5)))
        clock.now += DETECTED_SECONDS - 1
        await source.fetch(NEED, AT)
        assert looks() == 1
        there[:] = ["amd"]
        clock.now += 1
        await source.fetch(NEED, AT)
        there.clear()
        clock.now += DETECTED_SECONDS
        for _ in range(2):
            await source.fetch(NEED, AT)
        assert looks() == 3
    found = [fact.found for fact in stated if isinstance(fact, facts.ExportersFound)]
    assert found == [("hami",), ("amd",)]
    asked = server.requests[-2].form["query"]
    assert "gpu_gfx_activity" in asked
    assert "hami_container_device_utilization_ratio" in asked


# The clock


@functools.cache
def here() -> float:
    """Return this hour: a server is not believed whose clock is years away."""
    return time.time() // 3600 * 3600


def tells(seconds: float) -> web.Reply:
    return web.api("scalar", [0, str(seconds)])


@pytest.mark.parametrize("offset", [-600.0, 1.999])
async def test_now_and_instants_follow_the_servers_clock(server: HttpServer, offset: float) -> None:
    server.reply = tells(here() + offset)
    clock = Clock()
    async with connected(server.url, clock=clock) as source:
        await source.synchronize()

        assert source.now() == here() + offset
        assert source.instant() == (here() + offset - 2) // 15 * 15
        clock.now += SYNCHRONIZED_SECONDS - 1
        await source.synchronize()
        assert source.now() == here() + offset + SYNCHRONIZED_SECONDS - 1
        (asked,) = server.requests

        clock.now += 1
        server.reply = tells(here() + 900)
        await source.synchronize()
        assert source.now() == here() + 900
    assert "time" not in asked.form
    assert asked.form["query"] == "time()"


YEARS_AWAY = "clocks that are less than a year"


@pytest.mark.parametrize(
    ("times", "more", "words"),
    [
        (0, 1e308, YEARS_AWAY),
        (0, 0.0, YEARS_AWAY),
        (1, 400 * 86_400, YEARS_AWAY),
        (1, math.nan, "instead of one number of seconds"),
    ],
)
async def test_a_clock_that_is_none_is_an_error_and_asked_again_at_once(
    server: HttpServer, times: float, more: float, words: str
) -> None:
    server.reply = tells(here() * times + more)
    async with connected(server.url) as source:
        with pytest.raises(errors.SourceMalformedError, match=words):
            await source.synchronize()
        assert abs(source.now() - time.time()) < 86_400  # this machine's time until then
        assert source.instant() % 15 == 0
        server.reply = tells(here())
        await source.synchronize()
        assert abs(source.now() - here()) < 60
