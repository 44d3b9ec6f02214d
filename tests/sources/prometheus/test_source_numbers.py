"""The one number that a demandQuery gives, on real servers, confined to a namespace.

One server of each kind serves the whole module; every test has a namespace of its own.
"""

import time
from dataclasses import replace

import pytest

from keda_gpu_scaler import promql
from keda_gpu_scaler.evaluator.ports import Numbers
from keda_gpu_scaler.promql import Policy
from testbed.prometheus import PrometheusServer
from testbed.series import Series
from tests.repository.test_examples import EXAMPLES, read
from tests.support.prometheus_source import connected

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUEUED = "queued_requests"
GATEWAY = "gateway_requests_in_progress"


def queued(namespace: str, value: float, **labels: str) -> Series:
    """Return how many requests wait, as some router of a namespace has shown for minutes."""
    now = time.time()
    samples = [(now - 15 * age, value) for age in range(20, -1, -1)]
    return Series(QUEUED, {"namespace": namespace, "job": "router"} | labels, samples)


async def asked(source: Numbers, text: str, namespace: str) -> float | None:
    """Ask for what a trigger in this namespace says, as it is sent under the usual policy."""
    return await source.number(promql.number(text, Policy.NAMESPACED, namespace))


async def test_one_number_is_what_the_expression_gives_and_nothing_is_never_zero(
    server: PrometheusServer, ns: str, subtests: pytest.Subtests
) -> None:
    shown = [queued(ns, 3, pod="a"), queued(ns, 4.5, pod="b"), queued(f"{ns}-x", 1000)]
    await server.write(shown)
    expected = {
        "2 * 21.5": 43,
        "vector(7)": 7,
        f"sum({QUEUED})": 7.5,
        f'{QUEUED}{{pod="a"}}': 3,
        f"sum(rate({QUEUED}[1m]))": 0,
        "scalar(absent(nothing)) * 5": 5,
        "sum(nothing)": None,
        f"absent({QUEUED})": None,
        f'{QUEUED}{{namespace="other"}}': None,
    }
    async with connected(server.url) as source:
        for text, number in expected.items():
            with subtests.test(text):
                assert await asked(source, text, ns) == pytest.approx(number)


@pytest.mark.parametrize(
    ("requests", "up", "demand"),
    [((7.0, 2.0), 1.0, 9), ((), 1.0, 0), ((), 0.0, None), ((), None, None), ((3.0,), None, 3)],
)
async def test_the_example_takes_nothing_for_zero_only_while_its_gateway_is_scraped_well(
    server: PrometheusServer,
    ns: str,
    requests: tuple[float, ...],
    up: float | None,
    demand: float | None,
) -> None:
    (example,) = [path for path in EXAMPLES if path.stem == "demand"]
    metadata = read(example)["spec"]["triggers"][0]["metadata"]
    in_progress = [
        replace(queued(ns, value, service="bert", pod=f"gateway-{value}"), name=GATEWAY)
        for value in requests
    ]
    scrapes = [] if up is None else [replace(queued(ns, up, job="gateway"), name="up")]
    await server.write([*in_progress, *scrapes])
    async with connected(server.url) as source:
        assert await asked(source, metadata["demandQuery"], ns) == demand
