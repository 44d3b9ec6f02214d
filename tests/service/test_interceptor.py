"""Whatever bytes arrive and whatever breaks, a call ends with the right status and one fact."""

import asyncio
import urllib.parse
from typing import Any

import grpc
import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from keda_gpu_scaler import errors
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.service import server
from keda_gpu_scaler.service.interceptor import (
    BUSY,
    DEADLINE_TEXT,
    INTERNAL_TEXT,
    status_message,
)
from tests.service.harness import (
    HANG_SECONDS,
    QUIET,
    Script,
    Served,
    reference,
    refusal,
    serving,
)

METHODS = ["IsActive", "StreamIsActive", "GetMetricSpec", "GetMetrics", "StreamMetricSpec"]
STREAMS = {"StreamIsActive", "StreamMetricSpec"}


def raw_call(served: Served, method: str, data: bytes) -> Any:
    """Send bytes as they are; the answer comes back as bytes."""
    make = served.channel.unary_stream if method in STREAMS else served.channel.unary_unary
    return make(f"/{server.SERVICE_NAME}/{method}", None, None)(data)


def field_bytes(number: int, data: bytes) -> bytes:
    """Encode one short length-delimited field."""
    return bytes([number << 3 | 2, len(data)]) + data


BROKEN = {
    "name is not UTF-8": field_bytes(1, b"\xff\xfe"),
    "namespace is not UTF-8": field_bytes(2, b"\xc3\x28"),
    "key is not UTF-8": field_bytes(3, field_bytes(1, b"\xff") + field_bytes(2, b"v")),
    "value is not UTF-8": field_bytes(3, field_bytes(1, b"k") + field_bytes(2, b"\xff")),
    "cut off": b"\x0a\x20abc",
    "no protobuf": b"\xff\xff\xff\xff",
}


@pytest.mark.parametrize("method", METHODS)
async def test_bytes_that_are_no_message(method: str, subtests: pytest.Subtests) -> None:
    async with serving(Script(QUIET)) as served:
        for what, broken in BROKEN.items():
            is_within = method == "GetMetrics" and what != "no protobuf"
            data = field_bytes(1, broken) if is_within else broken
            code, text = await refusal(raw_call(served, method, data))
            with subtests.test(what):
                assert code is grpc.StatusCode.INVALID_ARGUMENT
                assert "not a message of externalscaler.proto" in text
                assert await served.next_call() == (method, "INVALID_ARGUMENT")


@pytest.mark.parametrize("method", METHODS)
async def test_an_empty_request_is_refused(method: str) -> None:
    async with serving(Script(QUIET)) as served:
        code, text = await refusal(raw_call(served, method, b""))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "scaledObjectRef" in text


@pytest.mark.parametrize("method", METHODS)
async def test_a_wrong_trigger_is_refused_at_once(method: str) -> None:
    wrong = reference(threshold="many", windw="1m")
    if method == "GetMetrics":
        wrong = pb.GetMetricsRequest(scaledObjectRef=wrong, metricName="gpu-utilization")
    async with serving(Script(QUIET)) as served:
        code, text = await refusal(getattr(served.stub, method)(wrong))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "threshold" in text
        assert "windw" in text


async def test_a_request_beyond_a_mebibyte_is_too_much() -> None:
    async with serving(Script(QUIET)) as served:
        large = reference(workload="x" * server.MAX_REQUEST_BYTES)
        code, _ = await refusal(served.stub.IsActive(large))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_an_evaluation_out_of_time_is_a_passed_deadline() -> None:
    async with serving(Script(TimeoutError())) as served:
        refused = await refusal(served.stub.IsActive(reference()))
        assert refused == (grpc.StatusCode.DEADLINE_EXCEEDED, DEADLINE_TEXT)


def panic() -> BaseException:
    """Return what the PromQL parser raises where its own code fails."""
    with pytest.raises(BaseException, match="cannot convert float seconds") as caught:
        promql_parser.parse("m[1e400]")
    assert not isinstance(caught.value, Exception)
    return caught.value


@pytest.mark.parametrize(
    "error",
    [RuntimeError("hunter2"), errors.SourceError("hunter2"), asyncio.CancelledError(), panic()],
)
async def test_our_own_fault_has_a_fixed_text_and_a_trace_in_the_log(error: BaseException) -> None:
    async with serving(Script(error)) as served:
        with capture_logs() as logs:
            refused = await refusal(served.stub.IsActive(reference(), timeout=HANG_SECONDS))
        assert refused == (grpc.StatusCode.INTERNAL, INTERNAL_TEXT)
        assert await served.next_call() == ("IsActive", "INTERNAL")
        (line,) = logs
        assert (line["event"], line["log_level"]) == ("rpc.failed", "error")
        assert (line["method"], line["exc_info"]) == ("IsActive", error)


def test_the_end_of_the_process_is_no_answer() -> None:
    async def ask() -> None:
        async with serving(Script(SystemExit(3))) as served:
            await served.stub.IsActive(reference())

    with pytest.raises(SystemExit):
        asyncio.run(ask())


async def test_a_call_that_outlives_its_deadline_is_a_fact() -> None:
    script = Script(QUIET)
    script.gate.clear()
    ended: list[tuple[str, str]] = []
    async with serving(script) as served:
        # More than once where it ends before it arrives: the whole test is bounded in time.
        while ("IsActive", "DEADLINE_EXCEEDED") not in ended:
            code, _ = await refusal(served.stub.IsActive(reference(), timeout=0.3))
            assert code is grpc.StatusCode.DEADLINE_EXCEEDED
            while not served.calls.empty():
                ended.append(await served.next_call())


async def test_a_caller_who_leaves_with_time_left_has_cancelled() -> None:
    script = Script(QUIET)
    script.gate.clear()
    async with serving(script) as served:
        call = served.stub.IsActive(reference(), timeout=3600)
        await script.asked_at_least(1)
        call.cancel()
        assert await served.next_call() == ("IsActive", "CANCELLED")


async def test_calls_beyond_the_limit_are_refused_and_one_tenant_leaves_room_for_another() -> None:
    script = Script(QUIET)
    script.gate.clear()
    async with serving(script, max_concurrent_rpcs=4) as served:
        calls = [served.stub.IsActive(reference()) for _ in range(3)]
        await script.asked_at_least(3)
        assert await refusal(served.stub.IsActive(reference())) == BUSY
        assert await served.next_call() == ("IsActive", "RESOURCE_EXHAUSTED")
        theirs = reference()
        theirs.namespace = "web"
        calls.append(served.stub.IsActive(theirs))
        await script.asked_at_least(4)
        assert await refusal(served.stub.IsActive(theirs)) == BUSY
        script.gate.set()
        assert [(await call).result for call in calls] == [False] * 4
        assert (await served.stub.IsActive(reference())).result is False


async def test_the_requests_of_all_open_calls_are_bounded_together() -> None:
    script = Script(QUIET)
    script.gate.clear()
    large = {f"key-{number}": "x" * 90_000 for number in range(11)}
    async with serving(script) as served:
        calls = [served.stub.IsActive(reference()) for _ in range(3)]
        await script.asked_at_least(3)
        streams = [
            served.stub.StreamIsActive(reference(scalerAddress="x" * 1_000_000)) for _ in range(16)
        ]
        await script.asked_at_least(19)
        assert await refusal(served.stub.IsActive(reference(**large))) == BUSY
        script.gate.set()
        for stream in streams:
            stream.cancel()
        assert [(await call).result for call in calls] == [False] * 3


@given(st.text(st.characters(exclude_categories=()), max_size=200), st.integers(1, 200))
def test_a_message_is_one_bounded_line_whatever_the_text(text: str, times: int) -> None:
    message = status_message(text * times)
    assert message.isprintable()
    assert len(urllib.parse.quote(message, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")) <= 4096


def test_a_long_message_keeps_its_beginning_and_shows_that_it_was_cut() -> None:
    message = status_message("a" * 5000)
    assert message == "a" * (4096 - 9) + "…"
