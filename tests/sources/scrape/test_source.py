"""The scrape source against exporters on real sockets, good ones and bad ones, round by round."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
import pytest_asyncio

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import ScrapeSettings
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Target
from keda_gpu_scaler.sources.scrape.source import KEEP_SECONDS, ScrapeSource
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.facts import Fact, Queried
from keda_gpu_scaler.transport import resolver
from keda_gpu_scaler.transport.resolver import LookUp
from testbed.clocks import Clock
from testbed.processes import until
from tests.support import http_replies as web
from tests.support.http_replies import HttpServer

UTIL = "DCGM_FI_DEV_GPU_UTIL"
BOUND_SECONDS = 60.0
"""Only a test that hangs reaches this bound."""


def text(*pods: str) -> str:
    lines = [f'{UTIL}{{gpu="0",UUID="GPU-{pod}",namespace="ml",pod="{pod}"}} 50' for pod in pods]
    return "".join(f"{line}\n" for line in [f"# TYPE {UTIL} gauge", *lines])


def page(*pods: str) -> web.Reply:
    return web.says(text(*pods), content_type="text/plain")


@asynccontextmanager
async def scraping(
    *targets: str,
    observe: facts.Observer = facts.ignore,
    clock: Callable[[], float] = time.monotonic,
    timeout_seconds: float = 20.0,
    look_up: LookUp = resolver.look_up,
    wall_clock: Callable[[], float] = time.time,
    **given: object,
) -> AsyncIterator[ScrapeSource]:
    """Yield a source that scrapes when a test says so."""
    settings = ScrapeSettings.model_validate({"targets": targets, **given})
    patient = settings.model_copy(update={"timeout_seconds": timeout_seconds})
    source = ScrapeSource(
        "gpus", patient, observe, clock=clock, look_up=look_up, wall_clock=wall_clock
    )
    try:
        yield source
    finally:
        await source.close()
        await web.generators_closed()


async def observed(source: ScrapeSource, span: float = 60) -> Observation:
    """Hold a round, and return what is known after it."""
    async with asyncio.timeout(BOUND_SECONDS):
        await source.hold_round()
    snapshot_query = SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({"ml"}), span, 0.5)
    return await source.fetch(snapshot_query, source.instant())


@pytest_asyncio.fixture
async def one() -> AsyncIterator[HttpServer]:
    async with HttpServer(page("bert-0")) as running:
        yield running


@pytest_asyncio.fixture
async def other() -> AsyncIterator[HttpServer]:
    async with HttpServer(page("bert-1", "bert-2")) as running:
        yield running


# Good exporters


async def test_every_target_is_scraped(one: HttpServer, other: HttpServer) -> None:
    other.reply = web.says(text("bert-1", "bert-2") + f'{UTIL}{{gpu="1",UUID="GPU-b"}} 9\n')
    async with scraping(one.url, f"{other.url}/a/path") as source:
        assert source.instant() == float("-inf")
        before = source.now()
        observation = await observed(source)
        assert before <= source.instant() <= source.now() == pytest.approx(time.time(), abs=60)
        reports = await source.locate(["GPU-bert-0", "GPU-b", "GPU-gone"], source.instant())

    assert {series.pod for series in observation.series} == {"bert-0", "bert-1", "bert-2"}
    first = Target("gpus", f"{one.url}/metrics")
    second = Target("gpus", f"{other.url}/a/path")
    assert {series.target for series in observation.series} == {first, second}
    assert observation.good_scrapes.keys() == {first, second}
    assert all(series.present == observation.instants for series in observation.series)
    assert reports == GpuReports(frozenset({"GPU-bert-0", "GPU-b"}), frozenset({"GPU-b"}))


async def test_an_exporter_is_read_as_long_as_its_name_stands_for_it(
    one: HttpServer, other: HttpServer
) -> None:
    addresses = {f"{one.url}/metrics"}

    async def look_up(_: httpx.URL) -> frozenset[str]:
        return frozenset(addresses)

    async with scraping("dns+http://name.test/metrics", look_up=look_up) as source:
        assert len((await observed(source)).series) == 1
        addresses.add(f"{other.url}/metrics")
        assert len((await observed(source)).series) == 3
        addresses.remove(f"{one.url}/metrics")
        observation = await observed(source)

    assert (len(one.requests), len(other.requests)) == (2, 2)
    assert observation.at not in observation.good_scrapes[Target("gpus", f"{one.url}/metrics")]
    assert observation.at in observation.good_scrapes[Target("gpus", f"{other.url}/metrics")]


async def test_two_targets_that_differ_in_their_queries_alone_stay_two(one: HttpServer) -> None:
    async def reply(request: web.Request, writer: asyncio.StreamWriter) -> None:
        await page(request.path.partition("=")[2])(request, writer)

    one.reply = reply
    async with scraping(f"{one.url}/?pod=bert-0", f"{one.url}/?pod=bert-1") as source:
        observation = await observed(source)

    assert {series.pod: series.target.instance for series in observation.series} == {
        "bert-0": f"{one.url}/?***1",
        "bert-1": f"{one.url}/?***2",
    }


# Bad exporters


NO_ANSWER = "no answer within 2 s"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        pytest.param(web.says("out of\norder", 500), "HTTP 500: out of order", id="500"),
        pytest.param(web.says(text("bert-0"), 203), "HTTP 203: ", id="another success"),
        pytest.param(web.says(text("bert-0")[:-8]), "the text is cut", id="cut by text"),
        pytest.param(web.says(text("bert-0") * 1000), "more than 10240 bytes", id="huge"),
        pytest.param(web.hangs, NO_ANSWER, id="hangs"),
    ],
)
async def test_a_bad_scrape_is_not_good_and_nothing_of_it_is_used(
    one: HttpServer, other: HttpServer, fault: web.Reply, words: str
) -> None:
    """One of each kind: what a page may not be is a claim of its reader."""
    stated: list[Fact] = []
    patience = 2.0 if words == NO_ANSWER else 20.0
    async with scraping(
        one.url,
        other.url,
        observe=stated.append,
        timeout_seconds=patience,
        max_response_bytes=10240,
    ) as source:
        good = await observed(source)
        one.reply = fault
        observation = await observed(source)

    scrapes = observation.good_scrapes
    assert scrapes[Target("gpus", f"{one.url}/metrics")].keys() == {good.at}
    assert scrapes[Target("gpus", f"{other.url}/metrics")].keys() == {good.at, observation.at}
    present = {series.pod: series.present[-1] for series in observation.series}
    assert present == {"bert-0": good.at, "bert-1": observation.at, "bert-2": observation.at}
    assert not observation.absence_known
    (trouble,) = [fact.error for fact in stated if isinstance(fact, Queried) and fact.error]
    assert trouble.startswith(f"{one.url}/metrics: ")
    assert words in trouble


async def test_without_a_good_target_the_source_is_unreachable(one: HttpServer) -> None:
    stated: list[Fact] = []
    one.reply = web.says("out of order", 500)
    unknown = "dns+http://no-such-name.invalid:9400/metrics"
    async with scraping(one.url, unknown, observe=stated.append) as source:
        with pytest.raises(errors.SourceUnreachableError) as raised:
            await observed(source)
        one.reply = page("bert-0")
        observation = await observed(source)

    assert observation.series
    assert observation.misses_targets
    assert str(raised.value).startswith(f"none of 2 exporters answers; the first: {unknown}: ")
    (trouble,) = {
        fact.error for fact in stated if isinstance(fact, Queried) and fact.target == unknown
    }
    assert str(trouble).startswith(f"{unknown}: ")


SECRET = "s3cr3t-of-the-test"


@pytest.mark.parametrize(
    "reply",
    [web.says(f"no entry with token={SECRET}", 403), web.says(f"token={SECRET}\n"), web.closes],
)
async def test_the_query_of_a_target_is_never_shown(one: HttpServer, reply: web.Reply) -> None:
    stated: list[Fact] = []
    one.reply = reply
    query = f"?token={SECRET}"
    targets = f"{one.url}/metrics{query}", f"dns+http://no-such-name.invalid/metrics{query}"
    async with scraping(*targets, observe=stated.append) as source:
        with pytest.raises(errors.SourceUnreachableError) as raised:
            await observed(source)

    shown = [str(raised.value), *map(repr, stated)]
    assert one.requests[0].path == f"/metrics{query}"
    assert not any(SECRET in words for words in shown)
    assert any(f"{one.url}/metrics?***" in words for words in shown)


# Memory and life


async def test_samples_are_forgotten_after_what_anybody_asked_for(one: HttpServer) -> None:
    clock = Clock()
    async with scraping(one.url, clock=clock, wall_clock=clock) as source:
        observations = []
        for _ in range(2):
            for _ in range(8):
                await source.hold_round()
                clock.now += 150
            observations.append(await observed(source, span=100_000))
        observation, longer = observations

    assert observation.at - observation.instants[0] <= KEEP_SECONDS
    assert observation.series[0].present == observation.instants
    assert longer.at - longer.instants[0] > KEEP_SECONDS


async def test_a_clock_that_is_set_begins_anew_at_the_right_time(one: HttpServer) -> None:
    clock, wall_clock = Clock(), Clock(5000)
    async with scraping(one.url, clock=clock, wall_clock=wall_clock) as source:
        await observed(source)
        wall_clock.now += 3600
        observation = await observed(source)
    assert (source.now(), observation.instants) == (8600, (8600,))
    assert list(observation.good_scrapes.values()) == [{8600: 8600}]


async def later_than(source: ScrapeSource, instant: float) -> bool:
    return source.instant() > instant


async def test_a_round_that_fails_is_a_reason_and_the_next_one_works(one: HttpServer) -> None:
    lookups = itertools.count()

    async def look_up(url: httpx.URL) -> frozenset[str]:
        if not next(lookups):
            raise ZeroDivisionError(url)
        return frozenset([one.url])

    snapshot_query = SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({"ml"}), 60, 0.5)
    async with scraping(f"dns+{one.url}", interval="100ms", look_up=look_up) as source:
        source.start()
        async with asyncio.timeout(BOUND_SECONDS):
            await source.synchronize()
            with pytest.raises(errors.SourceUnreachableError, match="failed: ZeroDivisionError"):
                await source.fetch(snapshot_query, source.instant())
            failed_at = source.instant()
            await until(lambda: later_than(source, failed_at), BOUND_SECONDS, "the next round")
        assert (await source.fetch(snapshot_query, source.instant())).series


@pytest.mark.parametrize("last", [web.stalls, page("bert-0")])
async def test_rounds_follow_each_other_until_the_source_is_closed(
    one: HttpServer, last: web.Reply
) -> None:
    begun = asyncio.Event()

    async def reply(request: web.Request, writer: asyncio.StreamWriter) -> None:
        is_last = len(one.requests) >= 3
        if is_last:
            begun.set()
        await (last if is_last else page("bert-0"))(request, writer)

    one.reply = reply
    async with scraping(one.url, interval="100ms") as source:
        source.start()
        async with asyncio.timeout(BOUND_SECONDS):
            await begun.wait()
    # The fixture that looks for tasks left behind checks the rest.


@pytest.mark.slow
async def test_a_source_that_never_started_can_be_closed() -> None:
    async with scraping("http://127.0.0.1:1", timeout_seconds=0.1) as source:
        with pytest.raises(errors.SourceTimeoutError):
            await source.synchronize()
