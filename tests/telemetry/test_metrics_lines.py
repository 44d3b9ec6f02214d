"""The lines of many triggers, next to what prometheus_client writes of the same samples."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from keda_gpu_scaler import web
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics.triggers import PART, Triggers
from tests.support import triggers
from tests.support.clocks import Clock

ACCEPTS = (
    "",
    "text/plain",
    *(
        f"{form};version=1.0.0;escaping={escaping}"
        for form in ("text/plain", "application/openmetrics-text")
        for escaping in ("allow-utf-8", "underscores", "dots", "values")
    ),
    "application/openmetrics-text;version=2.0.0",
)
NUMBERS = st.none() | st.floats() | st.integers(-9, 10**18)
DECISIONS = st.builds(
    Decision,
    state=st.sampled_from(State),
    reason=st.just("why"),
    value=NUMBERS,
    active=st.none() | st.booleans(),
    average=NUMBERS,
    expected=st.integers(0, 10**7),
    evidence=st.none() | st.sampled_from(EvidenceSource),
    unseen=st.lists(st.just("bert-0"), max_size=3).map(tuple),
)
TEXTS = st.text(max_size=5) | st.sampled_from(["bert", "\\", "\n", '"', "{}", "\0", "}", "ü"])
DECIDED = st.builds(
    lambda name, metric, decided, recommended: facts.Evaluated(
        ScaledObject("ml", name),
        replace(triggers.spec(), metric_name=metric),
        decided,
        2.0,
        recommended=recommended,
    ),
    TEXTS,
    TEXTS,
    DECISIONS,
    st.none() | st.integers(0, 1000),
)
DEMANDS = st.builds(
    lambda name, number: facts.DemandKnown(
        ScaledObject("ml", name), triggers.spec(), Demand(number)
    ),
    TEXTS,
    NUMBERS,
)


class Plain(Collector):
    """The same samples, in families that know nothing of lines, each in one piece."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterable[Metric]:
        """Return them."""
        whole: dict[str, Metric] = {}
        for part in self._collector.collect():
            family = Metric(part.name, part.documentation, part.type)
            whole.setdefault(part.name, family).samples.extend(part.samples)
        return whole.values()


def check(facts_known: Iterable[facts.Evaluated | facts.DemandKnown], accept: str) -> None:
    """Check that a client with this header gets what prometheus_client writes."""
    registry, collector = CollectorRegistry(), Triggers(Clock())
    registry.register(collector)
    for fact in facts_known:
        if isinstance(fact, facts.Evaluated):
            collector.evaluated(fact)
        else:
            collector.demand_known(fact)

    async def page() -> bytes:
        transport = httpx.ASGITransport(web.create_app(registry, lambda: True))
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            return (await client.get("/metrics", headers={"accept": accept})).content

    encode, _ = choose_encoder(accept)
    assert asyncio.run(page()) == encode(Plain(collector))


@given(st.lists(DECIDED | DEMANDS, max_size=5), st.sampled_from(ACCEPTS))
def test_they_are_the_same_whatever_is_decided_and_asked_for(
    known: list[facts.Evaluated | facts.DemandKnown], accept: str
) -> None:
    check(known, accept)


@pytest.mark.slow
@pytest.mark.parametrize("accept", ACCEPTS)
def test_they_are_the_same_where_families_come_in_parts(accept: str) -> None:
    names = [ScaledObject("ml", f"bert-{number}") for number in range(2 * PART + 1)]
    decided = Decision(state=State.MEASURED, reason="why", value=167.0, active=True)
    check((facts.Evaluated(name, triggers.spec(), decided, 2.0) for name in names), accept)
