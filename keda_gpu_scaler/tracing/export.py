"""Where spans go: to the collector that the standard OTEL_… variables name.

The batching, its bounds and the retries are the SDK's. What is added here is an end that nobody has
to wait for: a collector that cannot be reached must not keep a process alive.
"""

import asyncio
import contextlib
import os
import threading

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import (
    SERVICE_NAME,
    SERVICE_VERSION,
    OTELResourceDetector,
    Resource,
)
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from keda_gpu_scaler import __version__, errors

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
