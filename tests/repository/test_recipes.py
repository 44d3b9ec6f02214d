"""The recipes' queries give the documented numbers, on series as real exporters show them.

Names and labels are those of the production-stack's router, of ingress-nginx and of dcgm-exporter,
with the labels that a Prometheus adds to them at a scrape without `honor_labels`.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from keda_gpu_scaler.query import promql
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from tests.repository.test_examples import EXAMPLES, ours, parsed, read
from tests.support.gpus import Gpu
from tests.support.prometheus import ON_EVERY_SERVER, PrometheusServer
from tests.support.series import Series

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
PATHS = {path.stem: path for path in EXAMPLES}
HERE = "inference"
"""The namespace of the examples."""


def sent(example: str, namespace: str) -> str:
    """Return an example's demandQuery as the source is sent it, for another namespace."""
    document = read(PATHS[example])
    document["metadata"]["namespace"] = namespace
    (one,) = ours(document)
    query = one["metadata"]["demandQuery"].replace(HERE, namespace)
    demand = parsed(document, one["metadata"] | {"demandQuery": query}).demand
    assert demand is not None
    return demand.text


async def numbers(prometheus: PrometheusServer, *texts: str) -> list[float | None]:
    """Ask as the scaler does, all at the same time: the series do not go on."""
    source = PrometheusSource(PrometheusClient("default", PrometheusSettings(url=prometheus.url)))
    try:
        return await asyncio.gather(*(source.number(text) for text in texts))
    finally:
        await source.close()


@dataclass(frozen=True)
class Scraped:
    """A series of a sample every 15 s for a quarter of an hour."""

    name: str
    labels: Mapping[str, str]
    value: float
    """The value of the first sample."""
    per_minute: float = 0
    """What a counter gains."""
    since: int = -900
    """When it begins, in seconds relative to now."""
    restarts: int = 1
    """When it begins again with one, in seconds relative to now."""
    missed: int = 1
    """When a scrape of it was missed, in seconds relative to now."""

    def series(self, now: float) -> Series:
        """Return it, ending at `now`."""
        return Series(
            self.name,
            self.labels,
            [
                (now + second, None if second == self.missed else self._at(second))
                for second in range(self.since, 1, 15)
            ],
        )

    def _at(self, second: int) -> float:
        if second < self.restarts:
            return self.value + self.per_minute * (second - self.since) / 60
        return 1 + self.per_minute * (second - self.restarts) / 60


Part = Scraped | Gpu
Case = tuple[Sequence[Part], float | None]
"""What is stored, and the result of the query."""


def router(
    value: float, per_minute: float = 0, *, model: str = "llama", namespace: str = HERE
) -> Scraped:
    labels = {"model": model, **_router(namespace)}
    return Scraped("vllm:num_incoming_requests_total", labels, value, per_minute)


def router_up(value: float = 1, namespace: str = HERE) -> Scraped:
    return Scraped("up", _router(namespace), value)


def _router(namespace: str) -> dict[str, str]:
    return {"namespace": namespace, "job": "vllm-router-service", "pod": "vllm-router-0"}


def requests(
    value: float,
    per_minute: float = 0,
    *,
    status: str = "200",
    of: str = "bert",
    namespace: str = HERE,
) -> Scraped:
    rest = {"status": status, "method": "POST", "path": "/", "host": "bert.example.com"}
    labels = {**_ingress(of, namespace), "exported_service": of, **rest}
    return Scraped("nginx_ingress_controller_requests", labels, value, per_minute)


def known(of: str = "bert", namespace: str = HERE) -> list[Scraped]:
    name = "nginx_ingress_controller_orphan_ingress"
    labels = _ingress(of, namespace)
    return [Scraped(name, labels | {"type": kind}, 1) for kind in ("no-endpoint", "no-service")]


def _ingress(of: str, namespace: str) -> dict[str, str]:
    return {
        "namespace": "ingress-nginx",
        "pod": "ingress-nginx-controller-0",
        "controller_namespace": "ingress-nginx",
        "controller_class": "k8s.io/ingress-nginx",
        "exported_namespace": namespace,
        "ingress": of,
    }


def gpus(**loads: Sequence[float]) -> list[Gpu]:
    """Return the GPUs of these Deployments' pods, one for each load."""
    return [
        Gpu(f"{name.replace('_', '-')}-7b6667bd9-bcdf{number}", load, namespace=HERE)
        for name, numbers in loads.items()
        for number, load in enumerate(numbers)
    ]


def alert(state: str = "firing", namespace: str = HERE) -> Scraped:
    labels = {"alertname": "BertIsWanted", "alertstate": state, "namespace": namespace}
    return Scraped("ALERTS", labels, 1)


FULL = (95, 95, 95, 95)
RECIPES: Mapping[str, Mapping[str, Case]] = {
    "router": {
        "two-a-second": ([router(500, 120), router_up()], 2),
        "the-first-of-all": ([replace(router(1), since=-45), router_up()], 1 / 60),
        "long-ago": ([replace(router(1), since=-300), router_up()], 0),
        "missed-a-minute-ago": (
            [replace(router(500, 120), missed=-60), replace(router_up(0), since=-60)],
            None,
        ),
        "scraped-since": (
            [replace(router(500, 120), since=-45), replace(router_up(), since=-45)],
            None,
        ),
        "none-ever": ([router_up()], 0),
        "none-ever-and-it-is-down": ([router_up(0)], None),
        "no-router": ([], None),
        "of-another-model": ([router(500, 120, model="mistral"), router_up()], 0),
        "in-another-namespace": ([router(500, 120, namespace="b"), router_up(1, "b")], None),
        "restarted": ([replace(router(500, 120), restarts=-45), router_up()], 91 / 60),
        "restarted-by-the-first-of-all": (
            [replace(router(500), restarts=-45), router_up()],
            1 / 60,
        ),
    },
    "ingress": {
        "one-a-second": ([requests(500, 60), *known()], 1),
        "and-the-first-503s": (
            [requests(500, 60), replace(requests(3, status="503"), since=-45), *known()],
            63 / 60,
        ),
        "long-ago": ([replace(requests(3, status="503"), since=-300), *known()], 0),
        "missed-a-minute-ago": (
            [replace(part, missed=-60) for part in (requests(500, 60), *known())],
            None,
        ),
        "none-ever": (known(), 0),
        "of-another-ingress": ([requests(500, 60, of="gpt"), *known("gpt")], None),
        "in-another-namespace": ([requests(500, 60, namespace="b"), *known("bert", "b")], None),
    },
    "overflow": {
        "full": (gpus(llama_reserved=FULL), 60),
        "flows-over": (gpus(llama_reserved=FULL, llama_spot=(90, 90)), 240),
        "spread-evenly": (gpus(llama_reserved=(50, 50, 50, 50), llama_spot=(50, 50, 50)), 30),
        "at-its-own-threshold": (gpus(llama_reserved=(77, 77, 77, 77)), 0),
        "others-are-busy": (gpus(llama_reserved=(70,), llama=(99, 99), llama_test=(99,)), 0),
        "no-first-pool": (gpus(llama_spot=(90,)), None),
    },
    "alert": {
        "fires": ([alert()], 1),
        "is-pending": ([alert("pending")], 0),
        "none": ([], 0),
        "in-another-namespace": ([alert(namespace="b")], 0),
    },
}


def moved(series: Series, case: str) -> Series:
    """Return a series in namespaces of this case alone."""
    places = {HERE: case, "b": f"{case}-b"}
    labels = {
        label: places.get(value, value) if "namespace" in label else value
        for label, value in series.labels.items()
    }
    return Series(series.name, labels, series.samples)


@ON_EVERY_SERVER
@pytest.mark.parametrize("recipe", RECIPES)
async def test_a_recipe_gives_the_numbers_that_it_claims(
    prometheus: PrometheusServer, recipe: str
) -> None:
    now, cases = prometheus.now(), RECIPES[recipe]
    await prometheus.write(
        moved(part.series(now), case) for case, (parts, _) in cases.items() for part in parts
    )
    given = await numbers(prometheus, *(sent(recipe, case) for case in cases))
    claimed = {
        case: None if value is None else pytest.approx(value, abs=1e-6)
        for case, (_, value) in cases.items()
    }
    assert dict(zip(cases, given, strict=True)) == claimed


def test_every_query_on_the_page_is_accepted() -> None:
    queries = re.findall(r"```promql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert queries
    for query in queries:
        promql.number(query, Policy.NAMESPACED, HERE)
