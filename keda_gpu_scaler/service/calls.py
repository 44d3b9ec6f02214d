"""Around every call of KEDA's contract: bytes → request, errors → status, one fact at its end.

Requests are decoded here and not by grpc, which answers a request it cannot decode with UNKNOWN and
the text of an internal error. Calls to other services (health, reflection) pass untouched: they
must answer when the scaler is at its limit, and nobody counts them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import grpc
import structlog
from google.protobuf.message import DecodeError

from keda_gpu_scaler import errors, facts
from keda_gpu_scaler.service import status
from keda_gpu_scaler.spec import ScaledObject

log = structlog.get_logger()

# A caller's deadline passes there before it passes here, by what the request spent on its way.
_LATENCY_SECONDS = 0.1

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Behaviour = Callable[[Any, Context], Awaitable[Any]]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"


class Calls(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in its types only
    """Carries each call to its RPC and its outcome to the caller and to the observer."""

    def __init__(self, service_name: str, *, observe: facts.Observer, max_concurrent: int) -> None:
        self._prefix = f"/{service_name}/"
        self._observe = observe
        self._max_concurrent = max_concurrent
        self._open = 0

    async def intercept_service(  # type: ignore[override]  # an unknown method has no handler
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """Replace the RPC's handler by one that takes bytes; grpc asks for every call."""
        handler = await continuation(handler_call_details)
        path = handler_call_details.method
        if handler is None or not path.startswith(self._prefix):
            return handler
        return self._guarded(handler, path.removeprefix(self._prefix))

    def _guarded(self, handler: Any, method: str) -> Handler:  # noqa: ANN401 - grpc types behaviours as synchronous
        behaviour: Behaviour = handler.unary_unary or handler.unary_stream
        make = (
            grpc.unary_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.unary_unary_rpc_method_handler
        )

        async def from_bytes(data: bytes, context: Context) -> object:
            request = _decoded(handler.request_deserializer, data)
            self._observe(_began(method, request, context))
            return await behaviour(request, context)

        async def call(data: bytes, context: Context) -> object:
            return await self._call(method, from_bytes, data, context)

        return make(call, None, handler.response_serializer)

    async def _call(
        self, method: str, behaviour: Behaviour, data: bytes, context: Context
    ) -> object:
        started = time.monotonic()
        outcome = status.Status(grpc.StatusCode.OK, "")
        self._open += 1
        try:
            if self._open <= self._max_concurrent:
                return await behaviour(data, context)
            outcome = status.BUSY
        except (asyncio.CancelledError, grpc.aio.InternalError):
            # The caller went away, be it while we were thinking or while we were writing.
            outcome = _abandoned(context)
            raise asyncio.CancelledError from None
        except Exception as error:  # noqa: BLE001 - whatever it was, the caller gets a status
            outcome = _failed(method, error)
        finally:
            self._open -= 1
            self._observe(facts.Called(method, outcome.code.name, time.monotonic() - started))
        return await context.abort(*outcome)


def _decoded(deserializer: Callable[[bytes], object], data: bytes) -> object:
    try:
        return deserializer(data)
    except DecodeError as error:
        raise errors.RequestError(
            "the request is not a message of externalscaler.proto: a field is cut off, "
            "of another type, or not UTF-8"
        ) from error


def _began(method: str, request: Any, context: Context) -> facts.CallBegan:  # noqa: ANN401 - one of two messages
    reference = getattr(request, "scaledObjectRef", request)
    sent = dict(context.invocation_metadata() or ())
    whose = ScaledObject(reference.namespace, reference.name)
    return facts.CallBegan(method, whose, str(sent.get("traceparent", "")))


def _abandoned(context: Context) -> status.Status:
    seconds_left: float | None = context.time_remaining()
    if seconds_left is not None and seconds_left < _LATENCY_SECONDS:
        return status.Status(grpc.StatusCode.DEADLINE_EXCEEDED, status.DEADLINE_TEXT)
    return status.Status(grpc.StatusCode.CANCELLED, "")


def _failed(method: str, error: Exception) -> status.Status:
    outcome = status.of(error)
    if outcome.code is grpc.StatusCode.INTERNAL:
        log.error("rpc.failed", method=method, exc_info=error)
    return outcome
