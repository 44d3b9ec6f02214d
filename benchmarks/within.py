"""The whole scaler but its HTTP pages in this process, for benchmarks that have to look inside."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from keda_gpu_scaler import service
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.evaluator.ports import Source
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.history import History
from keda_gpu_scaler.telemetry.log_lines import LogObserver, Observers
from keda_gpu_scaler.telemetry.metrics import Telemetry
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access

CONCURRENT = 1000
CONNECTION_SECONDS = 3600.0


@asynccontextmanager
async def served(
    source: Callable[[facts.Observer], Source],
    clock: Callable[[], float],
    benchmark: facts.Observer,
) -> AsyncIterator[int]:
    """Serve as `app` does, with every observer; yield the port.

    Args:
        source: returns the source, which states its facts to this observer.
        clock: seconds that never go back.
        benchmark: one more observer.
    """
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.ReturnLoggerFactory(),
    )
    async with AsyncExitStack() as stack:
        stack.callback(structlog.reset_defaults)
        telemetry = Telemetry(clock)
        observers: dict[str, facts.Subscriber] = {
            "metrics": telemetry,
            "log": LogObserver(),
            "benchmark": facts.Subscriber(dict.fromkeys(facts.Fact.__subclasses__(), benchmark)),
            "history": History(time.time),
        }
        observe = Observers(observers)
        evaluator = Evaluator({"default": source(observe)}, observe, clock=clock)
        stack.push_async_callback(evaluator.close)
        server = service.GrpcServer(
            evaluator,
            access=Access({"default": EVERY_NAMESPACE}),
            address="127.0.0.1:0",
            observe=observe,
            max_concurrent_rpcs=CONCURRENT,
            connection_max_age_seconds=CONNECTION_SECONDS,
        )
        port = await server.start()
        stack.push_async_callback(server.stop, 0)
        yield port
