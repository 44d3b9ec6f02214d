"""Around every call of KEDA's contract: bytes → request, errors → status, one fact at its end.

Requests are decoded here and not by grpc, which answers a request it cannot decode with UNKNOWN and
the text of an internal error. Calls to other services (health, reflection) pass unchanged: they
must be answered when the scaler is at its limit, and are not counted.

KEDA logs the message of a status. It is bounded, on one line, and never repeats the text of an
error that was not written for the caller.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import grpc
import structlog
from google.protobuf.message import DecodeError

from keda_gpu_scaler import errors
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.places import Places

# gRPC peers drop an answer if its trailers exceed 8 KiB; other trailers need part of that.
MAX_MESSAGE_BYTES = 4096
INTERNAL_TEXT = "internal error of the scaler; its log has the details"
DEADLINE_TEXT = "the caller's deadline passed before the load was known"
MAX_OPEN_REQUEST_BYTES = 16 * 2**20
"""Of all open calls together: a stream keeps its request for as long as it lasts."""
# The deadline passes at the caller earlier than here, by the time the request was on its way.
_LATENCY_SECONDS = 0.1
_ELLIPSIS = "…"

log = structlog.get_logger()


class Status(NamedTuple):
    """How a call without an answer ends."""

    code: grpc.StatusCode
    text: str


_OK = Status(grpc.StatusCode.OK, "")
_LATE = Status(grpc.StatusCode.DEADLINE_EXCEEDED, DEADLINE_TEXT)
BUSY = Status(
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    "too many calls at once, of this namespace or of all; try again later",
)


class _BusyError(Exception):
    """There is no place for a call."""


def status_message(text: str) -> str:
    """Return the text on one line, cut to the length of a status message."""
    line = "".join(char if char.isprintable() else " " for char in text)
    if _wire_bytes(line) <= MAX_MESSAGE_BYTES:
        return line
    room = MAX_MESSAGE_BYTES - _wire_bytes(_ELLIPSIS)
    sizes = accumulate(_wire_bytes(char) for char in line)
    return line[: sum(size <= room for size in sizes)] + _ELLIPSIS


def _wire_bytes(text: str) -> int:
    """Count the bytes of a message on the wire, where gRPC writes `%` and non-ASCII as %XX."""
    data = text.encode()
    return len(data) + 2 * sum(byte > ord("~") or byte == ord("%") for byte in data)


Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"


class CallInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in its types only
    """Passes each call to its RPC, and its outcome to the caller and to the observer.

    A wrapper around the RPCs when they are registered would cost less. But without an interceptor,
    grpc 1.85 cancels calls of others while a client opens streams and resets them at once.
    """

    def __init__(self, service_name: str, observe: facts.Observer, max_concurrent: int) -> None:
        self._prefix = f"/{service_name}/"
        self._observe = observe
        self._places = Places(max_concurrent)
        self._open_bytes = 0

    async def intercept_service(  # type: ignore[override]  # an unknown method has no handler
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """Replace the RPC's handler by one that takes bytes; grpc calls this for every call."""
        path, handler = handler_call_details.method, await continuation(handler_call_details)
        if handler is None or not path.startswith(self._prefix):
            return handler
        return self._rpc_handler(handler, path.removeprefix(self._prefix))

    def _rpc_handler(self, handler: Any, method: str) -> Handler:  # noqa: ANN401 - grpc types behaviours as synchronous
        rpc = handler.unary_unary or handler.unary_stream
        make = (
            grpc.unary_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.unary_unary_rpc_method_handler
        )

        # One coroutine for all of it: each further one is a frame more in every call.
        async def call(data: bytes, context: Context) -> object:
            started, outcome, reference = time.monotonic(), _OK, None
            self._open_bytes += len(data)
            try:
                request, reference = self._admit(handler.request_deserializer, data)
                scaled_object = ScaledObject(reference.namespace, reference.name)
                metadata = context.invocation_metadata
                self._observe(facts.CallBegan(method, scaled_object, metadata))
                return await rpc(request, context)
            except (KeyboardInterrupt, SystemExit, GeneratorExit):
                raise
            except BaseException as error:  # noqa: BLE001 - a panic too: grpc would leave the call open
                if _is_abandoned(error):
                    seconds_left: float | None = context.time_remaining()
                    is_late = seconds_left is not None and seconds_left < _LATENCY_SECONDS
                    outcome = _LATE if is_late else Status(grpc.StatusCode.CANCELLED, "")
                    raise asyncio.CancelledError from None
                outcome = _failure_status(method, error)
            finally:
                if reference is not None:
                    self._places.give_back(reference.namespace)
                self._open_bytes -= len(data)
                code = "OK" if outcome is _OK else outcome.code.name
                self._observe(facts.Called(method, code, time.monotonic() - started))
            return await context.abort(*outcome)

        return make(call, None, handler.response_serializer)

    def _admit(
        self, deserializer: Callable[[bytes], Any], data: bytes
    ) -> tuple[object, pb.ScaledObjectRef]:
        """Return the request of a call that has taken its place, and what it is about."""
        if self._open_bytes > MAX_OPEN_REQUEST_BYTES:
            raise _BusyError
        try:
            request = deserializer(data)
        except DecodeError as error:
            raise errors.RequestError(
                "the request is not a message of externalscaler.proto: a field is cut off, "
                "of another type, or not UTF-8"
            ) from error
        reference = request
        if isinstance(request, pb.GetMetricsRequest):
            if not request.HasField("scaledObjectRef"):
                raise errors.RequestError("scaledObjectRef is missing: it names the ScaledObject")
            reference = request.scaledObjectRef
        if not self._places.take(reference.namespace):
            raise _BusyError
        return request, reference


def _is_abandoned(error: BaseException) -> bool:
    """Return whether the caller went away, during the evaluation or while the answer was written.

    If not, something that the call waited for was cancelled. gRPC would leave the call open.
    """
    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, grpc.aio.InternalError)
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failure_status(method: str, error: BaseException) -> Status:
    """Choose the status for an error by its cause: the request, the source or the scaler."""
    match error:
        case _BusyError():
            return BUSY
        case TimeoutError():
            return _LATE
        case errors.SpecError() | errors.RequestError():
            return Status(grpc.StatusCode.INVALID_ARGUMENT, status_message(str(error)))
        case errors.UnknownLoadError():
            return Status(grpc.StatusCode.UNAVAILABLE, status_message(str(error)))
    log.error("rpc.failed", method=method, exc_info=error)
    return Status(grpc.StatusCode.INTERNAL, INTERNAL_TEXT)
