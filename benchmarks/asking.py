"""A client that asks as KEDA does, and holds every answer against the right number."""

from typing import Any

import grpc

from benchmarks.processes import ServerError
from benchmarks.world import METRIC_NAME, Trigger
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from testbed.processes import until

CALL_SECONDS = 30.0
"""Bounds a benchmark whose server hangs; the slowest right answer takes a tenth of it."""


class Client:
    """Asks one scaler, or the echo server, whose answers are not checked."""

    def __init__(self, channel: grpc.aio.Channel, *, is_checked: bool = True) -> None:
        self._stub: Any = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        self._is_checked = is_checked

    async def first(self, trigger: Trigger) -> None:
        """Wait for an answer about this trigger, right or wrong.

        The first answer also reads the last hour, and on a busy machine that can take longer than
        the scaler lets KEDA wait: until then it says nothing, which holds the replicas.
        """

        async def answers() -> bool:
            found = await self._stub.GetMetrics(trigger.request(), timeout=CALL_SECONDS)
            return bool(found.metricValues)

        await until(answers, CALL_SECONDS, f"the scaler knows the load of {trigger.workload}")

    async def poll(self, trigger: Trigger) -> None:
        """Ask what KEDA asks in one poll, in its order.

        Raises:
            ServerError: an answer is not the right one.
        """
        reference = trigger.reference()
        await self.name(trigger)
        metrics = await self._stub.GetMetrics(trigger.request(), timeout=CALL_SECONDS)
        self._check(
            trigger, [value.metricValueFloat for value in metrics.metricValues], [trigger.value]
        )
        activity = await self._stub.IsActive(reference, timeout=CALL_SECONDS)
        self._check(trigger, activity.result, True)  # noqa: FBT003 - the right answer, not a flag

    async def name(self, trigger: Trigger) -> None:
        """Ask what KEDA asks where it does not poll for values.

        Raises:
            ServerError: an answer is not the right one.
        """
        specs = await self._stub.GetMetricSpec(trigger.reference(), timeout=CALL_SECONDS)
        self._check(trigger, [spec.metricName for spec in specs.metricSpecs], [METRIC_NAME])

    def _check(self, trigger: Trigger, answer: object, right: object) -> None:
        if self._is_checked and answer != right:
            raise ServerError(f"{trigger.workload}: answered {answer}, expected {right}")
