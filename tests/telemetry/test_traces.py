"""Facts become spans of the right shape, with the right parents and times."""

import asyncio
from dataclasses import dataclass, field

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.spec.spec import Demand
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.traces import SpanObserver
from testbed.triggers import BERT, demanding
from tests.service.harness import decided

SECOND = 1_000_000_000
CALL = "externalscaler.ExternalScaler/GetMetrics"
OK = facts.Called("GetMetrics", "OK", 2.0)
QUOTED = 'sum(queue{token="s3cret"})'


def began(traceparent: str = "") -> facts.CallBegan:
    return facts.CallBegan("GetMetrics", BERT, lambda: [("traceparent", traceparent)])


@dataclass
class Recorded:
    """An observer on the real SDK, with a clock to set and the spans that ended."""

    seconds: float = 100.0
    spans: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    observe: SpanObserver = field(init=False)

    def __post_init__(self) -> None:
        """Put the parts together."""
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        self.observe = SpanObserver(
            provider.get_tracer("test"), lambda: round(self.seconds * SECOND)
        )

    def state(self, *stated: facts.Fact) -> None:
        """Observe one fact after the other, a second apart."""
        for fact in stated:
            self.observe(fact)
            self.seconds += 1

    def span(self, name: str = CALL) -> ReadableSpan:
        """Return the one span of this name."""
        (span,) = (span for span in self.spans.get_finished_spans() if span.name == name)
        return span


def attributes_of(span: ReadableSpan) -> dict[str, object]:
    return {key.removeprefix("keda_gpu_scaler."): it for key, it in (span.attributes or {}).items()}


async def test_a_call_is_one_span_from_its_beginning_to_its_end() -> None:
    recorded = Recorded()
    recorded.state(began(), facts.CallDecided(decided(reason="45 % over 2 pods")), OK)
    span = recorded.span()
    assert (span.start_time, span.end_time) == (100 * SECOND, 102 * SECOND)
    assert span.kind is SpanKind.SERVER
    assert span.parent is None
    assert span.status.status_code is StatusCode.UNSET
    assert attributes_of(span) == {
        "rpc.system.name": "grpc",
        "rpc.method": CALL,
        "rpc.response.status_code": "OK",
        "k8s.namespace.name": "ml",
        "scaled_object": "bert",
        "state": "measured",
        "active": True,
    }


@pytest.mark.parametrize(
    ("stated", "shown"),
    [
        (facts.CallDecided(decided(state=State.UNKNOWN, active=None)), {"state": "unknown"}),
        (facts.DemandKnown(BERT, demanding(QUOTED), Demand(12.0)), {"demand": 12}),
        (facts.DemandKnown(BERT, demanding("vector(1)"), Demand(None, QUOTED)), {}),
        (facts.PeersAsked(1, 0), {}),
    ],
    ids=["an unknown load", "a demand", "an unknown demand", "something else"],
)
async def test_a_span_has_what_is_known_and_no_query(
    stated: facts.Fact, shown: dict[str, object]
) -> None:
    recorded = Recorded()
    recorded.state(stated)
    assert not recorded.spans.get_finished_spans()
    recorded.state(began(), stated, OK)
    found = attributes_of(recorded.span())
    known = {key: found[key] for key in ("state", "active", "demand") if key in found}
    assert known == shown
    assert "s3cret" not in recorded.span().to_json()


@pytest.mark.parametrize("code", ["UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED"])
async def test_a_fault_of_ours_is_an_error(code: str) -> None:
    recorded = Recorded()
    recorded.state(began(), facts.Called("GetMetrics", code, 1.0))
    assert recorded.span().status.status_code is StatusCode.ERROR


async def test_a_call_that_was_never_read_has_a_span_too() -> None:
    recorded = Recorded()
    recorded.state(facts.Called("GetMetrics", "RESOURCE_EXHAUSTED", 0.5))
    span = recorded.span()
    assert (span.start_time, span.end_time) == (99.5 * SECOND, 100 * SECOND)


async def test_a_query_that_a_call_set_off_is_its_child_even_when_it_ends_later() -> None:
    recorded, answered = Recorded(), asyncio.Event()

    async def fetch() -> None:
        await answered.wait()
        recorded.state(facts.Queried("default", "snapshot", 3.0, None))

    recorded.state(began())
    fetching = asyncio.create_task(fetch())
    recorded.state(OK)
    answered.set()
    await fetching
    call, query = recorded.span(), recorded.span("query snapshot")
    assert query.parent == call.context
    assert (query.start_time, query.end_time) == (99 * SECOND, 102 * SECOND)
    assert query.kind is SpanKind.CLIENT
    assert attributes_of(query) == {"source": "default", "query": "snapshot", "outcome": "ok"}


async def test_a_query_of_nobodys_call_begins_a_trace_and_shows_that_it_failed() -> None:
    recorded = Recorded()
    recorded.state(facts.Queried("default", "scrape", 1.0, "connection refused", "http://a"))
    span = recorded.span("query scrape")
    assert span.parent is None
    assert attributes_of(span)["outcome"] == "error"
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
