"""A real server on a free port, a real channel to it, and evaluations that follow a script."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from keda_gpu_scaler import service
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.evaluator.evaluator import Caller, Evaluator
from keda_gpu_scaler.evaluator.shared_source import SourceDown
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.certificates import CertificateFiles
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access

TRIGGER = {"workload": "bert", "threshold": "70"}
OBJECT = ScaledObject("ml", "bert-scaler")
# Bounds a test that hangs; far above anything a test takes.
HANG_SECONDS = 30


def decided(**values: Any) -> Decision:
    """Make a decision about a workload, by default one that is measured and active."""
    known: dict[str, Any] = {
        "state": State.MEASURED,
        "reason": "mean utilization 45 % over 2 pods",
        "value": 90.0,
        "active": True,
        "reporting_pods": 2,
    }
    return Decision(**(known | values))


SIGNAL = decided(activated=True)
QUIET = decided(activated=False, active=False)


def reference(**metadata: str | None) -> Any:
    """Make the reference KEDA sends for a trigger, here with these keys changed or added.

    None: the key is not given.
    """
    given = {key: text for key, text in (TRIGGER | metadata).items() if text is not None}
    return pb.ScaledObjectRef(name=OBJECT.name, namespace=OBJECT.namespace, scalerMetadata=given)


def metrics_request(metric_name: str = "gpu-utilization", **metadata: str) -> Any:
    """Make the request KEDA sends for a metric's value."""
    return pb.GetMetricsRequest(scaledObjectRef=reference(**metadata), metricName=metric_name)


class Script(Evaluator):
    """Evaluations that answer what a script says, line by line; the last line goes on for ever.

    An exception in the script is raised. While `gate` is closed, no evaluation ends.
    """

    def __init__(self, *lines: Decision | BaseException, seconds_per_step: float = 0.001) -> None:
        self._lines = list(lines)
        self._seconds_per_step = seconds_per_step
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: list[tuple[ScaledObject, TriggerSpec, float | None]] = []
        self.callers: list[Caller | None] = []
        self.down: list[SourceDown] = []
        self.listeners: list[Callable[[], None]] = []
        self._news = asyncio.Condition()

    async def evaluate(
        self,
        scaled_object: ScaledObject,
        trigger_spec: TriggerSpec,
        timeout_seconds: float | None,
        caller: Caller | None = None,
    ) -> Decision:
        """Write down what is asked, wait for the gate, and answer the next line."""
        self.asked.append((scaled_object, trigger_spec, timeout_seconds))
        self.callers.append(caller)
        async with self._news:
            self._news.notify_all()
        await self.gate.wait()
        line = self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]
        if isinstance(line, BaseException):
            raise line
        return line

    async def sources_down(self, wait_seconds: float = 0.0) -> list[SourceDown]:
        assert 0 < wait_seconds < HANG_SECONDS
        return self.down

    def has_replicas(self, scaled_object: ScaledObject) -> bool:
        """Tell whether a call was the HPA's, which has a deadline."""
        return any(
            asked == scaled_object and timeout_seconds is not None
            for asked, _, timeout_seconds in self.asked
        )

    def until_news_seconds(self, scaled_object: ScaledObject, trigger_spec: TriggerSpec) -> float:
        """Return how long a line of the script lasts."""
        assert (scaled_object, trigger_spec.source) == (OBJECT, "default")
        return self._seconds_per_step

    @contextmanager
    def listen(self, scaled_object: ScaledObject, call: Callable[[], None]) -> Iterator[None]:
        """Keep the callback for news."""
        assert scaled_object == OBJECT
        self.listeners.append(call)
        try:
            yield
        finally:
            self.listeners.remove(call)

    async def asked_at_least(self, times: int) -> None:
        """Wait until so many evaluations have been asked for."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.asked) >= times)


@dataclass
class Served:
    """A running server and a client of it."""

    server: service.GrpcServer
    port: int
    channel: grpc.aio.Channel
    stub: Any
    draining: asyncio.Event
    calls: asyncio.Queue[facts.Called]

    async def next_call(self) -> tuple[str, str]:
        """Wait for a call to end; return its method and its code."""
        called = await self.calls.get()
        assert called.seconds >= 0
        return called.method, called.code


@asynccontextmanager
async def serving(
    evaluator: Evaluator,
    *,
    max_concurrent_rpcs: int = 1000,
    connection_max_age_seconds: float = 3600,
    hang_seconds: float = HANG_SECONDS,
    certificate: CertificateFiles | None = None,
    access: Access | None = None,
) -> AsyncIterator[Served]:
    """Serve these evaluations on a free port; the whole test is bounded in time.

    At the end every task of the server ends by itself, or the test fails on its bound.
    """
    before = asyncio.all_tasks()
    calls: asyncio.Queue[facts.Called] = asyncio.Queue()

    def observe(fact: facts.Fact) -> None:
        if isinstance(fact, facts.Called):
            calls.put_nowait(fact)

    server = service.GrpcServer(
        evaluator,
        access=access or Access({"default": EVERY_NAMESPACE}),
        address="127.0.0.1:0",
        observe=observe,
        max_concurrent_rpcs=max_concurrent_rpcs,
        connection_max_age_seconds=connection_max_age_seconds,
        certificate=certificate,
    )
    async with asyncio.timeout(hang_seconds):
        port = await server.start()
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
                yield Served(server, port, channel, stub, server.draining, calls)
        finally:
            await server.stop(0)
            await asyncio.gather(*(asyncio.all_tasks() - before), return_exceptions=True)


async def first(stream: Any) -> Any:
    """Return the next message of a stream."""
    return await anext(aiter(stream))


async def rest(stream: Any) -> list[Any]:
    """Return the messages until the stream ends, which it must do with OK."""
    messages = [message async for message in stream]
    assert await stream.code() is grpc.StatusCode.OK
    return messages


async def refusal(call: Any) -> tuple[grpc.StatusCode, str]:
    """Return how a call fails."""
    return await call.code(), await call.details()
