"""The scrape source against exporters on real sockets, good ones and bad ones."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
import pytest_asyncio

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.settings import ScrapeSettings
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Target
from keda_gpu_scaler.sources.scrape.source import KEEP_SECONDS, ScrapeSource
from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.facts import Fact, Queried
from keda_gpu_scaler.transport import resolver
from keda_gpu_scaler.transport.resolver import LookUp
from tests.support import http_replies as web
from tests.support import processes
from tests.support.http_replies import HttpServer

UTIL = "DCGM_FI_DEV_GPU_UTIL"
BOUND_SECONDS = 60.0
"""Only a test that hangs reaches this bound."""
LONG_SECONDS, SHORT_SECONDS = 20.0, 0.2
"""Timeouts for an answer: the second is for tests without an answer, or with a retry."""


def text(*pods: str, value: float = 50) -> str:
    lines = [
        f'{UTIL}{{gpu="0",UUID="GPU-{pod}",namespace="ml",pod="{pod}"}} {value}' for pod in pods
    ]
    return "".join(f"{line}\n" for line in [f"# TYPE {UTIL} gauge", *lines])


def snapshot_query(window: float = 0.5, span: float = 60) -> SnapshotQuery:
    return SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({"ml"}), span, window)


@asynccontextmanager
async def scraping(
    *targets: str,
    observe: facts.Observer = facts.ignore,
    clock: Callable[[], float] = time.monotonic,
    timeout_seconds: float = LONG_SECONDS,
    look_up: LookUp = resolver.look_up,
    **given: object,
) -> AsyncIterator[ScrapeSource]:
    """Scrape several times a second; an answer may take longer than the settings would allow."""
    settings = ScrapeSettings.model_validate({"targets": targets, "interval": "200ms", **given})
    patient = settings.model_copy(update={"timeout_seconds": timeout_seconds})
    source = ScrapeSource("gpus", patient, observe, clock, look_up)
    source.start()
    try:
        yield source
    finally:
        await source.close()
        await web.generators_closed()


async def observed(source: ScrapeSource, asked: SnapshotQuery | None = None) -> Observation:
    async with asyncio.timeout(BOUND_SECONDS):
        await source.synchronize()
    return await source.fetch(asked or snapshot_query(), source.instant())


async def until_observed(
    source: ScrapeSource,
    condition: Callable[[Observation], bool],
    claim: str,
    within_seconds: float = BOUND_SECONDS,
) -> Observation:
    """Fetch until an observation is as it should be, and return it."""
    found: list[Observation] = []

    async def is_so() -> bool:
        with contextlib.suppress(errors.SourceTimeoutError, errors.SourceUnreachableError):
            found[:] = [await observed(source)]
            return condition(found[0])
        return False

    await processes.until(is_so, within_seconds, claim)
    return found[0]


async def rounds(source: ScrapeSource, count: int) -> None:
    """Wait for this many more rounds."""
    seen: set[float] = {source.instant()}

    async def are_there() -> bool:
        seen.add(source.instant())
        return len(seen) > count

    await processes.until(are_there, BOUND_SECONDS, f"{count} rounds")


@pytest_asyncio.fixture
async def one() -> AsyncIterator[HttpServer]:
    async with HttpServer(web.says(text("bert-0"), content_type="text/plain")) as running:
        yield running


@pytest_asyncio.fixture
async def other() -> AsyncIterator[HttpServer]:
    async with HttpServer(web.says(text("bert-1", "bert-2"), content_type="text/plain")) as running:
        yield running


# Good exporters


async def test_every_target_is_scraped(one: HttpServer, other: HttpServer) -> None:
    other.reply = web.says(text("bert-1", "bert-2") + f'{UTIL}{{gpu="1",UUID="GPU-b"}} 9\n')
    async with scraping(one.url, f"{other.url}/a/path") as source:
        assert source.instant() == float("-inf")
        before = source.now()
        observation = await observed(source)
        assert before <= source.instant() <= source.now() == pytest.approx(time.time(), abs=60)
        assert await source.history(snapshot_query(), source.now()) is None
        reports = await source.locate(["GPU-bert-0", "GPU-b", "GPU-gone"], source.instant())

    assert {series.pod for series in observation.series} == {"bert-0", "bert-1", "bert-2"}
    first = Target("gpus", f"{one.url}/metrics")
    second = Target("gpus", f"{other.url}/a/path")
    assert {series.target for series in observation.series} == {first, second}
    assert observation.good_scrapes.keys() == {first, second}
    assert observation.instants
    assert all(series.present == observation.instants for series in observation.series)
    assert reports == GpuReports(frozenset({"GPU-bert-0", "GPU-b"}), frozenset({"GPU-b"}))


# Bad exporters


GOOD = text("bert-0")
NO_ANSWER = "no answer"
FAULTS = [
    pytest.param(web.says("out of\norder", 500), "HTTP 500: out of order", id="500"),
    pytest.param(web.says(GOOD, 203), "HTTP 203: ", id="another success"),
    pytest.param(web.says(GOOD[:-8]), "the text is cut", id="cut by text"),
    pytest.param(web.says(GOOD * 1000), "more than 10240 bytes", id="huge"),
    pytest.param(web.hangs, NO_ANSWER, id="hangs"),
]
"""One of each kind: what a page may not be is a claim of its reader."""


@pytest.mark.parametrize(("fault", "words"), FAULTS)
async def test_a_bad_scrape_is_not_good_and_nothing_of_it_is_used(
    one: HttpServer, other: HttpServer, fault: web.Reply, words: str
) -> None:
    stated: list[Fact] = []
    targets = Target("gpus", f"{one.url}/metrics"), Target("gpus", f"{other.url}/metrics")

    def are_good(seen: Observation) -> list[bool]:
        return [seen.at in seen.good_scrapes.get(one, ()) for one in targets]

    async with scraping(
        one.url,
        other.url,
        observe=stated.append,
        timeout_seconds=SHORT_SECONDS if words == NO_ANSWER else LONG_SECONDS,
        max_response_bytes=10240,
    ) as source:
        good = await until_observed(source, lambda seen: all(are_good(seen)), "two good scrapes")
        one.reply = fault
        observation = await until_observed(
            source, lambda seen: are_good(seen) == [False, True], "a bad scrape beside a good one"
        )

    assert good.at < observation.at
    present = {series.pod: series.present[-1] for series in observation.series}
    assert present["bert-0"] < observation.at
    assert present["bert-1"] == observation.at
    assert not observation.absence_known
    troubles = [fact.error for fact in stated if isinstance(fact, Queried) and fact.error]
    (trouble, *_) = [each for each in troubles if each.startswith(f"{one.url}/metrics: ")]
    assert words in trouble


async def test_without_a_good_target_the_source_is_unreachable(one: HttpServer) -> None:
    stated: list[Fact] = []
    one.reply = web.says("out of order", 500)
    unknown = "dns+http://no-such-name.invalid:9400/metrics"
    async with scraping(one.url, unknown, observe=stated.append) as source:
        with pytest.raises(errors.SourceUnreachableError) as raised:
            await observed(source)
        one.reply = web.says(GOOD)
        await until_observed(source, lambda seen: bool(seen.series), "it comes back")

    assert str(raised.value).startswith(f"none of 2 exporters answers; the first: {unknown}: ")
    (told,) = {
        fact.error for fact in stated if isinstance(fact, Queried) and fact.target == unknown
    }
    assert str(told).startswith(f"{unknown}: ")


async def test_an_exporter_is_read_as_long_as_its_name_stands_for_it(
    one: HttpServer, other: HttpServer
) -> None:
    addresses = {f"{one.url}/metrics"}

    async def look_up(_: httpx.URL) -> frozenset[str]:
        return frozenset(addresses)

    async with scraping("dns+http://name.test/metrics", look_up=look_up) as source:
        await until_observed(source, lambda seen: bool(seen.series), "the first is read")
        addresses.add(f"{other.url}/metrics")
        await until_observed(source, lambda seen: len(seen.series) == 3, "both are read")
        addresses.remove(f"{one.url}/metrics")
        left = Target("gpus", f"{one.url}/metrics")
        observation = await until_observed(
            source, lambda seen: seen.at not in seen.good_scrapes[left], "one is left alone"
        )
        asked = len(one.requests)
        await rounds(source, 3)

    assert len(one.requests) == asked
    assert observation.at in observation.good_scrapes[Target("gpus", f"{other.url}/metrics")]


SECRET = "s3cr3t-of-the-test"  # noqa: S105 - guards nothing


@pytest.mark.parametrize(
    "reply",
    [web.says(f"no entry with token={SECRET}", 403), web.says(f"token={SECRET}\n"), web.hangs],
)
async def test_the_query_of_a_target_is_never_shown(one: HttpServer, reply: web.Reply) -> None:
    stated: list[Fact] = []
    one.reply = reply
    query = f"?token={SECRET}"
    unresolved = f"dns+http://no-such-name.invalid/metrics{query}"
    async with scraping(
        f"{one.url}/metrics{query}",
        unresolved,
        observe=stated.append,
        timeout_seconds=SHORT_SECONDS,
    ) as source:
        await processes.until(lambda: _was_asked(one), BOUND_SECONDS, "it is scraped")
        await rounds(source, 2)
        try:
            shown = [repr(await observed(source))]
        except errors.SourceUnreachableError as error:
            shown = [str(error)]
        shown += map(repr, stated)

    assert one.requests[0].path == f"/metrics{query}"
    assert not any(SECRET in words for words in shown)
    assert any(f"{one.url}/metrics?***" in words for words in shown)


async def test_two_targets_that_differ_in_their_queries_alone_stay_two(one: HttpServer) -> None:
    async def reply(request: web.Request, writer: asyncio.StreamWriter) -> None:
        pod = request.path.partition("=")[2]
        await web.says(text(pod))(request, writer)

    one.reply = reply
    async with scraping(f"{one.url}/?pod=bert-0", f"{one.url}/?pod=bert-1") as source:
        observation = await until_observed(
            source, lambda seen: len(seen.series) == 2, "both are read"
        )

    assert {series.pod: series.target.instance for series in observation.series} == {
        "bert-0": f"{one.url}/?***1",
        "bert-1": f"{one.url}/?***2",
    }


# Memory and life


async def test_samples_are_forgotten_after_what_anybody_asked_for(one: HttpServer) -> None:
    ticks = itertools.count(step=50)  # the time leaps ahead at each look at it
    async with scraping(one.url, clock=lambda: float(next(ticks))) as source:
        await source.synchronize()
        await rounds(source, 8)
        observation = await observed(source, snapshot_query(span=100_000))
        await rounds(source, 8)
        longer = await observed(source, snapshot_query(span=100_000))

    assert observation.at - observation.instants[0] <= KEEP_SECONDS
    assert observation.series[0].present == observation.instants
    assert longer.at - longer.instants[0] > KEEP_SECONDS


async def test_a_fault_of_ours_is_raised_to_who_waits_and_not_waited_for(one: HttpServer) -> None:
    def fail(fact: Fact) -> None:
        raise ZeroDivisionError(fact)

    async with scraping(one.url, observe=fail) as source:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                async with asyncio.timeout(BOUND_SECONDS):
                    await source.synchronize()


@pytest.mark.parametrize("reply", [web.stalls, web.says(GOOD)])
async def test_closing_ends_the_rounds_and_leaves_no_task(
    one: HttpServer, reply: web.Reply
) -> None:
    one.reply = reply
    async with scraping(one.url, interval="1h"):
        await processes.until(lambda: _was_asked(one), BOUND_SECONDS, "it scrapes")
    asked = len(one.requests)

    # The fixture that looks for tasks left behind checks the rest.
    assert asked == 1


async def _was_asked(exporter: HttpServer) -> bool:
    return bool(exporter.requests)


@pytest.mark.slow
async def test_a_source_that_never_started_can_be_closed() -> None:
    settings = ScrapeSettings.model_validate({"targets": "http://127.0.0.1:1", "interval": "100ms"})
    source = ScrapeSource("gpus", settings)
    with pytest.raises(errors.SourceTimeoutError):
        await source.synchronize()
    await source.close()
