"""Traces of calls and of queries to sources, made from facts and sent by OTLP.

A call's span is OpenTelemetry's current one from the call's first fact to its last. Tasks that a
call starts inherit it, so the queries become its children, also those that end after the answer.
Spans contain no trigger, because its metadata may come from a Secret, and no reason, because
sources quote the query in their errors. So OpenTelemetry's own instrumentation of grpc and httpx
does not fit: it writes messages of errors and URLs. It cannot call RPCs that write to their stream
either.

Spans go to the collector that the standard OTEL_… variables name, from a thread of the SDK that
drops those it cannot send. An unreachable collector delays neither answers nor the end of the
process.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk import resources
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from keda_gpu_scaler import __version__, errors
from keda_gpu_scaler.telemetry import facts

SERVICE = "externalscaler.ExternalScaler"
OWN = "keda_gpu_scaler."
FAULTS = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE"})
"""The codes of this server that are server errors in OpenTelemetry's conventions for gRPC. A
refused trigger is the user's error."""
_NANOSECONDS = 1_000_000_000

_propagator = TraceContextTextMapPropagator()


class SpanObserver(facts.Subscriber):
    """Makes spans from facts."""

    def __init__(self, tracer: trace.Tracer, clock: Callable[[], int] = time.time_ns) -> None:
        """Make spans; the clock returns nanoseconds since 1970, as facts contain no times."""
        self._tracer, self._clock = tracer, clock
        super().__init__(
            {
                facts.CallBegan: self._call_began,
                facts.CallDecided: _call_decided,
                facts.DemandKnown: _demand_known,
                facts.Called: self._called,
                facts.Queried: self._queried,
            }
        )

    def _call_began(self, fact: facts.CallBegan) -> None:
        namespace, name = fact.scaled_object
        metadata = fact.read_metadata() or ()
        parent = next((str(value) for key, value in metadata if key == "traceparent"), "")
        span = self._start_call_span(fact.method, self._clock(), parent)
        span.set_attribute("k8s.namespace.name", namespace)
        span.set_attribute(OWN + "scaled_object", name)
        context.attach(trace.set_span_in_context(span))

    def _called(self, fact: facts.Called) -> None:
        now, span = self._clock(), trace.get_current_span()
        if span is trace.INVALID_SPAN:  # refused before it was read
            start_time = now - round(fact.seconds * _NANOSECONDS)
            span = self._start_call_span(fact.method, start_time)
        context.attach(Context())
        span.set_attribute("rpc.response.status_code", fact.code)
        if fact.code in FAULTS:
            span.set_status(StatusCode.ERROR)
        span.end(now)

    def _start_call_span(self, method: str, start_time: int, traceparent: str = "") -> Span:
        return self._tracer.start_span(
            f"{SERVICE}/{method}",
            context=_propagator.extract({"traceparent": traceparent}, Context()),
            kind=SpanKind.SERVER,
            attributes={"rpc.system.name": "grpc", "rpc.method": f"{SERVICE}/{method}"},
            start_time=start_time,
        )

    def _queried(self, fact: facts.Queried) -> None:
        now = self._clock()
        span = self._tracer.start_span(
            f"query {fact.query}",
            kind=SpanKind.CLIENT,
            attributes={
                OWN + "source": fact.source,
                OWN + "query": fact.query,
                OWN + "outcome": "ok" if fact.error is None else "error",
            },
            start_time=now - round(fact.seconds * _NANOSECONDS),
        )
        if fact.error is not None:
            span.set_status(StatusCode.ERROR)
        span.end(now)


def _call_decided(fact: facts.CallDecided) -> None:
    """Describe the call's span; that of a stream keeps the last values."""
    span, decision = trace.get_current_span(), fact.decision
    span.set_attribute(OWN + "state", str(decision.state))
    if decision.active is not None:
        span.set_attribute(OWN + "active", decision.active)


def _demand_known(fact: facts.DemandKnown) -> None:
    if fact.demand.value is not None:
        trace.get_current_span().set_attribute(OWN + "demand", fact.demand.value)


NAME = "keda-gpu-scaler"
FLUSH_SECONDS = 2.0
"""Longest time for sending the last spans. It adds to the grace period for calls, usually 20 s, and
Kubernetes allows 30 s for everything."""
MOST_CHARACTERS = 1024
"""The limit of one attribute: the caller chooses the names in a request."""
_PROTOCOL = "grpc"
_PROTOCOL_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


class Export:
    """Sends spans to a collector."""

    def __init__(self) -> None:
        """Set up the exporter; SettingsError if the variables name another protocol than gRPC."""
        variable = next(filter(os.environ.get, _PROTOCOL_VARIABLES), "")
        protocol = os.environ.get(variable, _PROTOCOL)
        if protocol != _PROTOCOL:
            raise errors.SettingsError(f"{variable}: {protocol!r}; expected {_PROTOCOL}")
        own_names = {resources.SERVICE_NAME: NAME, resources.SERVICE_VERSION: __version__}
        environment = resources.OTELResourceDetector().detect()
        self._provider = TracerProvider(
            resource=resources.Resource(own_names).merge(environment),  # the environment wins
            span_limits=SpanLimits(max_attribute_length=MOST_CHARACTERS),
            shutdown_on_exit=False,  # `stop` does it, in order and within its time
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self.tracer = self._provider.get_tracer(NAME, __version__)

    async def stop(self, seconds: float) -> None:
        """Send the remaining spans within the seconds, at most `FLUSH_SECONDS`; lose the rest."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, FLUSH_SECONDS)):
                await asyncio.to_thread(self._provider.shutdown)
