"""A user's own PromQL on a real Prometheus: right pods and numbers, no other namespace's data."""

import asyncio
import contextlib
import itertools
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from keda_gpu_scaler import promql
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.promql.lexer import tokens, unquoted
from testbed.prometheus import PrometheusServer
from testbed.series import STALE, Series
from tests.stories.promises.stack import Poll, Stack, running
from tests.support.expressions import by_hand, vectors

BERT = [f"bert-7b6667bd9-{letter * 5}" for letter in "bcd"]
BATCH = 150
CACHE = "vllm:gpu_cache_usage_perc"
STEP_SECONDS = 15


def load(
    name: str, value: float, labels: Mapping[str, str], begin: float = -1800, end: float = 0
) -> Series:
    """Return a series that people scrape from their own pods; times are relative to now."""
    now = time.time()
    samples: list[tuple[float, float | None]] = [
        (now + second, value) for second in range(int(begin), int(end) + 1, 15)
    ]
    return Series(name, labels, samples)


def cache(pod: str, value: float, namespace: str = "ml", end: float = 0, **labels: str) -> Series:
    named = {"namespace": namespace, "pod": pod, "job": "vllm", "instance": f"{pod}:8000"}
    return load(CACHE, value, named | labels, end=end)


def instants(begin: float) -> int:
    """Return about how many instants a source is asked about since then, at most."""
    lag, slack = 2, 1
    first, last = begin - lag - slack, time.time() - lag + slack
    return math.floor(last / STEP_SECONDS) - math.floor(first / STEP_SECONDS) + 1


async def poll(stack: Stack, query: str, **metadata: str) -> Poll:
    given_keys = {"metricName": "cache", "activationThreshold": "5", **metadata}
    return await stack.poll(query=query, **given_keys)


async def reason(stack: Stack, query: str, **metadata: str) -> str:
    """Return why IsActive fails."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await poll(stack, query, **metadata)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    return caught.value.details() or ""


async def test_the_pods_of_a_workload_are_measured_by_a_users_own_query(
    prometheus: PrometheusServer,
) -> None:
    others = [cache("bert-canary-7b6667bd9-bbbbb", 1), cache(BERT[0], 1, namespace="other")]
    await prometheus.write([cache(BERT[0], 0.5), cache(BERT[1], 0.7), *others])
    begin = time.time()
    async with running(prometheus.url, step=f"{STEP_SECONDS}s") as stack:
        assert await poll(stack, f"100 * {CACHE}") == Poll(70, 120, active=True)
        whole = f"avg by (namespace, pod) (100 * avg_over_time({CACHE}[1m]))"
        assert await poll(stack, whole, threshold="60") == Poll(60, 120, active=True)
        assert await poll(stack, f"100 * {CACHE}", workload="") == Poll(70, 220, active=True)
        assert stack.queries("own") <= 2 * instants(begin)


async def test_another_namespaces_data_do_not_show_in_any_number(
    prometheus: PrometheusServer,
) -> None:
    await prometheus.write([cache(BERT[0], 50), cache(BERT[0], 90, namespace="other")])
    everything = f'max by (namespace, pod) ({CACHE} * 0 + scalar(sum({{__name__="{CACHE}"}})))'
    forged = f'label_replace({CACHE}, "namespace", "ml", "namespace", "other")'
    async with running(prometheus.url, step="15s") as stack:
        assert (await poll(stack, everything)).value == 50
        assert (await poll(stack, forged)).value == 50
        named = f'{CACHE}{{namespace="other"}}'
        assert "query shows no pod" in await reason(stack, named, name="named")
    async with running(prometheus.url, Policy.ALLOW, step="15s") as stack:
        assert (await poll(stack, everything)).value == 140
    async with running(prometheus.url, Policy.DENY, step="15s") as stack:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await poll(stack, CACHE)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_an_average_does_not_hide_that_its_samples_have_ended(
    prometheus: PrometheusServer,
) -> None:
    fresh, gone = cache(BERT[0], 50), cache(BERT[1], 50, end=-240)
    assert gone.samples[-1][0] < time.time() - 200
    ended = Series(gone.name, gone.labels, [*gone.samples, (time.time() - 225, STALE)])
    await prometheus.write([fresh, ended])
    async with running(prometheus.url, step="15s") as stack:
        assert await poll(stack, f"avg_over_time({CACHE}[10m])") == Poll(70, None, active=True)
        answer = await poll(stack, f"avg_over_time({CACHE}[10m])", maxAge="5m")
        assert answer == Poll(70, 100, active=True)


def data(one: str) -> list[Series]:
    """Return what two exporters show of a namespace, with and without honor_labels."""
    numbers = {"ml": 10.0, "other": 100.0}
    return [
        load(name, numbers[one] + index, {"pod": f"{pod}-{one}", "gpu": str(index)} | labels, -300)
        for name in ("load", "power", "sum", "by")
        for index, pod in enumerate("ab")
        for labels in (
            {"namespace": one},
            {"namespace": "ml", "exported_namespace": one},
            {"namespace": "other", "exported_namespace": one},
        )
    ]


async def answered(server: PrometheusServer, text: str, at: float) -> Any:
    """Return what a server answers, or in which way it refuses."""
    try:
        rows = await server.query(text, at)
    except httpx.HTTPStatusError as error:
        return error.response.json()["error"].partition(":")[0]
    return sorted((sorted(row["metric"].items()), _number(row["value"][1])) for row in rows)


def _number(text: str) -> str:
    value = float(text)
    return f"{value:.9g}" if math.isfinite(value) else str(value)


async def compared(directory: Path, batch: list[str]) -> int:
    """Compare each expression on data with and without the other namespace; count the leaks.

    Returns:
        In how many of them the other namespace would have shown.
    """
    both, alone = directory / "both", directory / "alone"
    for one in (both, alone):
        one.mkdir()
    leaks = 0
    async with PrometheusServer(both) as shared, PrometheusServer(alone) as own:
        # Written once: a second later, the same series would have other timestamps.
        ours, others = data("ml"), data("other")
        await shared.write([*ours, *others])
        await own.write(ours)
        at = round(time.time()) - 30.0
        for marked in batch:
            text = by_hand(marked, "", "")
            sent = promql.own(text, Policy.NAMESPACED, "ml").text
            answer = await answered(shared, sent, at)
            assert answer == await answered(own, sent, at), text
            plain = 'namespace="ml",exported_namespace=~"|ml"'
            hand = by_hand(marked, plain, 'exported_namespace="ml"')
            assert answer == await answered(shared, hand, at), text
            leaks += answer != await answered(shared, text, at)
    return leaks


@pytest.mark.needs("prometheus")
@settings(max_examples=2, phases=[Phase.generate], database=None)
@given(batch=st.lists(vectors, min_size=BATCH, max_size=BATCH))
def test_random_expressions_show_nothing_of_another_namespace(
    tmp_path_factory: pytest.TempPathFactory, batch: list[str]
) -> None:
    leaks = asyncio.run(compared(tmp_path_factory.mktemp("servers"), batch))
    assert leaks > BATCH / 10  # else there was nothing to be kept from


_PIECES = [
    *(f"\\{one}" for one in "abfnrtv\\'\"`d "),
    *(f"\\{one}" for one in ("x41", "x4", "X41", r"xc3\xa9", "101", "10", "400", "189")),
    *(f"\\{one}" for one in ("u00e9", "u00g0", "U0001F600", "U00110000", "ud800")),
    *"éa#{'0\"\n\r\t",
]
"""What can stand in quotes, among it what may not."""


def said(literal: str) -> str | None:
    """Return what a literal says to the scaler; None: it is none."""
    with contextlib.suppress(ValueError):
        (found,) = tokens(literal)
        return unquoted(found.text)
    return None


async def answer(server: PrometheusServer, literal: str) -> str | None:
    """Return what a literal says to a server; None: it is none."""
    with contextlib.suppress(httpx.HTTPStatusError):
        (row,) = await server.query(f'label_replace(vector(1), "said", {literal}, "", "")')
        return str(row["metric"]["said"])
    return None


async def test_a_text_in_quotes_says_what_it_says_to_prometheus(
    prometheus: PrometheusServer, subtests: pytest.Subtests
) -> None:
    pairs = map("".join, itertools.pairwise([*_PIECES, *_PIECES[::3]]))
    for inside in (*_PIECES, *pairs):
        for quote in "\"'`":
            literal = f"{quote}{inside}{quote}"
            with subtests.test(literal=literal):
                assert said(literal) == await answer(prometheus, literal)
