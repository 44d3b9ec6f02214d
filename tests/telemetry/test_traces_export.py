"""`serve` with traces on: what a real collector receives, and that a dead one delays nothing."""

import signal
from pathlib import Path

import grpc
import pytest

from keda_gpu_scaler import __version__
from testbed.prometheus import PrometheusServer
from tests.service.harness import metrics_request
from tests.support import serving as serve
from tests.telemetry.collector import collecting, words

pytestmark = pytest.mark.slow

PARENT = "00f067aa0ba902b7"
TRACES = {"bert-scaler": "4bf92f3577b34da6a3ce929d0e0e4736", "other": "b" * 32}
REQUESTS = (metrics_request(), metrics_request())
REQUESTS[1].scaledObjectRef.name = "other"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
NEVER = str(3_600_000)
"""Milliseconds: no batch is due earlier, so spans are sent when the process ends."""


def environment(port: int, **settings: str) -> dict[str, str]:
    return serve.environment(TRACES="true", **settings) | {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_BSP_SCHEDULE_DELAY": NEVER,
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=lab",
    }


def parent(trace: str) -> str:
    return f"00-{trace}-{PARENT}-01"


async def test_a_collector_receives_calls_and_their_queries(prometheus: PrometheusServer) -> None:
    with collecting() as collector:
        environ = environment(collector.port, PROMETHEUS_URL=prometheus.url, SCRAPE_TARGETS="")
        with serve.serving(serve.COMMAND, environ | {PROTOCOL: "grpc"}) as scaler:
            at_the_same_time = [
                scaler.stub.GetMetrics.future(request, metadata=[("traceparent", parent(trace))])
                for request, trace in zip(REQUESTS, TRACES.values(), strict=True)
            ]
            assert all(call.code() is grpc.StatusCode.OK for call in at_the_same_time)
            assert scaler.end() == 0
    assert collector.resource == {
        "service.name": "keda-gpu-scaler",
        "service.version": __version__,
        "deployment.environment.name": "lab",
    }
    calls = {
        words(span)["keda_gpu_scaler.scaled_object"]: span
        for span in collector.spans
        if span.name.endswith("/GetMetrics")
    }
    assert {name: span.trace_id.hex() for name, span in calls.items()} == TRACES
    assert {call.parent_span_id.hex() for call in calls.values()} == {PARENT}
    queries = [span for span in collector.spans if span.name.startswith("query ")]
    assert {"query clock", "query snapshot"} <= {span.name for span in queries}
    by_id = {span.span_id: span for span in calls.values()}
    assert all(
        query.trace_id == by_id[query.parent_span_id].trace_id
        for query in queries
        if query.parent_span_id
    )


def test_a_collector_that_never_answers_holds_up_neither_answers_nor_the_end() -> None:
    with collecting(answers=False) as collector:
        # The SDK would wait for half a minute, and so would this process.
        environ = environment(collector.port) | {"OTEL_EXPORTER_OTLP_TIMEOUT": "600"}
        with serve.serving(serve.COMMAND, environ) as scaler:
            assert scaler.specify() == 70
            scaler.process.send_signal(signal.SIGTERM)
            assert collector.asked.wait(serve.PATIENCE_SECONDS)
            assert scaler.process.wait(serve.PATIENCE_SECONDS / 2) == 0


def test_a_protocol_that_is_not_spoken_here_ends_with_1_and_a_message() -> None:
    wrong = {PROTOCOL: "http/protobuf"}
    done = serve.ended(environment(1) | wrong)
    assert done.returncode == 1
    assert "OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf'; expected grpc" in done.stderr


def test_traces_without_the_extra_are_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "opentelemetry.py").touch()  # stands in front of the libraries, and is none of them
    done = serve.ended(serve.environment(TRACES="true") | {"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "")
    expected = "false, or the extra otel: pip install '.[otel]' in a checkout"
    assert f'KEDA_GPU_SCALER_TRACES: "true"; expected {expected}' in done.stderr
