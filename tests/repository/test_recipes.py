"""The recipes' queries give the documented numbers, on series as real exporters show them.

Names and labels are those of ingress-nginx and of dcgm-exporter, with the labels that a Prometheus
adds to them at a scrape without `honor_labels`. The other recipes use presets, which
`tests/demand/test_presets.py` is about.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from testbed.gpus import Gpu
from testbed.prometheus import PrometheusServer
from testbed.series import Series
from tests.repository.test_examples import EXAMPLES, ours, parsed, read
from tests.support.each_prometheus import ON_EVERY_SERVER
from tests.support.prometheus_source import connected

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
    missed: int = 1
    """When a scrape of it was missed, in seconds relative to now."""

    def series(self, now: float) -> Series:
        """Return it, ending at `now`."""
        return Series(
            self.name,
            self.labels,
            [
                (
                    now + second,
                    None
                    if second == self.missed
                    else self.value + self.per_minute * (second - self.since) / 60,
                )
                for second in range(self.since, 1, 15)
            ],
        )


Case = tuple[Sequence[Scraped | Gpu], float | None]
"""What is stored, and the result of the query."""


def requests(
    value: float, per_minute: float = 0, *, status: str = "200", of: str = "bert"
) -> Scraped:
    rest = {"status": status, "method": "POST", "path": "/", "host": "bert.example.com"}
    labels = {**_ingress(of), "exported_service": of, **rest}
    return Scraped("nginx_ingress_controller_requests", labels, value, per_minute)


def known(of: str = "bert") -> list[Scraped]:
    name = "nginx_ingress_controller_orphan_ingress"
    return [
        Scraped(name, _ingress(of) | {"type": kind}, 1) for kind in ("no-endpoint", "no-service")
    ]


def _ingress(of: str) -> dict[str, str]:
    return {
        "namespace": "ingress-nginx",
        "pod": "ingress-nginx-controller-0",
        "controller_namespace": "ingress-nginx",
        "controller_class": "k8s.io/ingress-nginx",
        "exported_namespace": HERE,
        "ingress": of,
    }


def gpus(**loads: Sequence[float]) -> list[Gpu]:
    """Return the GPUs of these Deployments' pods, one for each load."""
    return [
        Gpu(f"{name.replace('_', '-')}-7b6667bd9-bcdf{number}", load, namespace=HERE)
        for name, numbers in loads.items()
        for number, load in enumerate(numbers)
    ]


FULL = (95, 95, 95, 95)
RECIPES: Mapping[str, Mapping[str, Case]] = {
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
    },
    "overflow": {
        "full": (gpus(llama_reserved=FULL), 60),
        "flows-over": (gpus(llama_reserved=FULL, llama_spot=(90, 90)), 240),
        "spread-evenly": (gpus(llama_reserved=(50, 50, 50, 50), llama_spot=(50, 50, 50)), 30),
        "at-its-own-threshold": (gpus(llama_reserved=(77, 77, 77, 77)), 0),
        "others-are-busy": (gpus(llama_reserved=(70,), llama=(99, 99), llama_test=(99,)), 0),
        "no-first-pool": (gpus(llama_spot=(90,)), None),
    },
}


def moved(series: Series, namespace: str) -> Series:
    """Return a series about a namespace of its own."""
    labels = {
        label: namespace if value == HERE else value for label, value in series.labels.items()
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
    async with connected(prometheus.url) as source:
        # All at the same time: the series do not go on.
        texts = (sent(recipe, case) for case in cases)
        given = await asyncio.gather(*(source.number(text) for text in texts))
    claimed = {
        case: None if value is None else pytest.approx(value, abs=1e-6)
        for case, (_, value) in cases.items()
    }
    assert dict(zip(cases, given, strict=True)) == claimed
