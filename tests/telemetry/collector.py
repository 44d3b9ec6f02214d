"""A collector that speaks OTLP over gRPC, as far as traces go, and keeps what it receives."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Answers every export, unless it was set to keep silent."""

    def __init__(self, *, answers: bool = True) -> None:
        self.requests: list[Any] = []
        self.port = 0
        self.asked = threading.Event()
        """Set when a client has sent spans."""
        self.over = threading.Event()
        """Set when the test ends; a silent collector waits for it."""
        self._answers = answers

    def Export(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ARG002 - OTLP's name and messages
        """Keep the spans."""
        self.requests.append(request)
        self.asked.set()
        if not self._answers:
            self.over.wait()
        return trace_service_pb2.ExportTraceServiceResponse()

    @property
    def spans(self) -> list[Any]:
        """Every span received so far."""
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def resource(self) -> dict[str, str]:
        """The resource that sent the first spans."""
        return words(self.requests[0].resource_spans[0].resource)


@contextmanager
def collecting(*, answers: bool = True) -> Iterator[Collector]:
    """Run a collector on a free port."""
    collector = Collector(answers=answers)
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    add: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
    add(collector, server)
    collector.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield collector
    finally:
        collector.over.set()
        server.stop(grace=None).wait()


def words(described: Any) -> dict[str, str]:
    """Return the attributes that are text."""
    return {attribute.key: attribute.value.string_value for attribute in described.attributes}
