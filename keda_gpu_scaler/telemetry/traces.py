"""Traces of calls and of queries to sources, made from facts and sent by OTLP.

A call's span is kept in a context variable from its first fact to its last one. What a call sets
off runs in tasks that inherit the variable, so its queries become its children, also those that go
on after it was answered. Names of attributes for calls are OpenTelemetry's own where it has one. No
trigger is in a span: its metadata may have come out of a Secret. Neither is a reason: sources quote
in their errors the query that they were asked.

Spans go to the collector that the standard OTEL_… variables name. The batching, its bounds and the
retries are the SDK's, in a thread that drops what it cannot send; a collector that cannot be
reached keeps neither an answer nor the end of the process waiting. `app` imports this only where
the settings ask for traces, because it loads the libraries of the extra `otel`.
"""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import (
    SERVICE_NAME,
    SERVICE_VERSION,
    OTELResourceDetector,
    Resource,
)
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from keda_gpu_scaler import __version__, errors
from keda_gpu_scaler.telemetry import facts

SERVICE = "externalscaler.ExternalScaler"
OWN = "keda_gpu_scaler."
FAULTS = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE"})
"""Codes that are errors of a server, as OpenTelemetry's conventions for gRPC list them, of those
that this one answers with. A refused trigger is an error of whoever wrote it."""
_NANOSECONDS = 1_000_000_000

_call: ContextVar[Span | None] = ContextVar("keda_gpu_scaler_call", default=None)
_propagator = TraceContextTextMapPropagator()


class SpanObserver:
    """Makes spans of facts."""

    def __init__(self, tracer: trace.Tracer, clock: Callable[[], int] = time.time_ns) -> None:
        """Begin with no span.

        Args:
            tracer: begins spans.
            clock: nanoseconds since 1970; facts say how long something took, not when.
        """
        self._tracer, self._clock = tracer, clock

    def __call__(self, fact: facts.Fact) -> None:
        """Begin, describe or end a span."""
        match fact:
            case facts.CallBegan():
                self._began(fact)
            case facts.CallDecided():
                _decided(fact)
            case facts.DemandKnown():
                _demanded(fact)
            case facts.Called():
                self._called(fact)
            case facts.Queried():
                self._queried(fact)
            case _:
                pass

    def _began(self, fact: facts.CallBegan) -> None:
        namespace, name = fact.scaled_object
        span = self._call_span(fact.method, self._clock(), fact.traceparent)
        span.set_attribute("k8s.namespace.name", namespace)
        span.set_attribute(OWN + "scaled_object", name)
        _call.set(span)

    def _called(self, fact: facts.Called) -> None:
        now, span = self._clock(), _call.get()
        if span is None:  # refused before it was read
            span = self._call_span(fact.method, _start(now, fact.seconds))
        _call.set(None)
        span.set_attribute("rpc.response.status_code", fact.code)
        if fact.code in FAULTS:
            span.set_status(StatusCode.ERROR)
        span.end(now)

    def _call_span(self, method: str, began: int, traceparent: str = "") -> Span:
        return self._tracer.start_span(
            f"{SERVICE}/{method}",
            context=_propagator.extract({"traceparent": traceparent}, Context()),
            kind=SpanKind.SERVER,
            attributes={"rpc.system.name": "grpc", "rpc.method": f"{SERVICE}/{method}"},
            start_time=began,
        )

    def _queried(self, fact: facts.Queried) -> None:
        now, call = self._clock(), _call.get()
        attributes: dict[str, AttributeValue] = {
            OWN + "source": fact.source,
            OWN + "query": fact.query,
            OWN + "outcome": "ok" if fact.error is None else "error",
        }
        span = self._tracer.start_span(
            f"query {fact.query}",
            context=Context() if call is None else trace.set_span_in_context(call, Context()),
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=_start(now, fact.seconds),
        )
        if fact.error is not None:
            span.set_status(StatusCode.ERROR)
        span.end(now)


def _decided(fact: facts.CallDecided) -> None:
    decided = fact.decision
    _describe(state=str(decided.state))
    if decided.active is not None:
        _describe(active=decided.active)


def _demanded(fact: facts.DemandKnown) -> None:
    if fact.demand.value is not None:
        _describe(demand=fact.demand.value)


def _describe(**said: AttributeValue) -> None:
    """Add to the span of the call that this belongs to; a stream keeps what was said last."""
    span = _call.get()
    if span is not None:
        span.set_attributes({OWN + key: value for key, value in said.items()})


def _start(end: int, seconds: float) -> int:
    return end - round(seconds * _NANOSECONDS)


NAME = "keda-gpu-scaler"
FLUSH_SECONDS = 2.0
"""Longest time for the last spans. It comes on top of the grace for calls, usually 20 s, and
Kubernetes gives 30 s for everything."""
MOST_CHARACTERS = 1024
"""Of one attribute: names in a request are the caller's, and a reason is one sentence."""
_PROTOCOL = "grpc"
_PROTOCOL_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


class Export:
    """Spans on their way to a collector, from the first one to the last."""

    def __init__(self) -> None:
        """Begin to send; nobody has to listen yet.

        Raises:
            errors.SettingsError: the variables name a protocol that is not spoken here.
        """
        _check_protocol()
        self._exporter = OTLPSpanExporter()
        self._provider = TracerProvider(
            resource=_resource(),
            span_limits=SpanLimits(max_attribute_length=MOST_CHARACTERS),
            shutdown_on_exit=False,  # `stop` does it, in its place and within its time
        )
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))

    @property
    def tracer(self) -> trace.Tracer:
        """What spans are begun with."""
        return self._provider.get_tracer(NAME, __version__)

    async def stop(self, seconds: float) -> None:
        """Send what is left and end; what cannot be sent in time is lost.

        Args:
            seconds: the longest time for it; never more than `FLUSH_SECONDS`.
        """
        sent = asyncio.Event()
        loop = asyncio.get_running_loop()

        def send() -> None:
            self._provider.shutdown()
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(sent.set)

        # A thread of the loop's own would be waited for when the loop ends, a daemon is not.
        threading.Thread(target=send, name="last spans", daemon=True).start()
        try:
            async with asyncio.timeout(min(seconds, FLUSH_SECONDS)):
                await sent.wait()
        except TimeoutError:
            self._exporter.shutdown()


def _check_protocol() -> None:
    given = [(name, os.environ[name]) for name in _PROTOCOL_VARIABLES if os.environ.get(name)]
    for name, protocol in given[:1]:
        if protocol != _PROTOCOL:
            raise errors.SettingsError(f"{name}: {protocol!r}; expected {_PROTOCOL}")


def _resource() -> Resource:
    """Return who sends; what the environment says wins."""
    ours = Resource({SERVICE_NAME: NAME, SERVICE_VERSION: __version__})
    return ours.merge(OTELResourceDetector().detect())
