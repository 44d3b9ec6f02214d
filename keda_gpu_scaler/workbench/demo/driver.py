"""KEDA's poll loop and the HPA's sync, played in turn against the real scaler.

One tick is one sync of the HPA; KEDA polls at every second tick. Two more workloads get the same
load, and are scaled by queries that people write. The rules are in `autoscaling`, the phases in
`scenario`; this module decides only the order of the calls.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import mean

import grpc
import httpx

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.workbench.demo import scenario
from keda_gpu_scaler.workbench.world import cluster

_CALL_SECONDS = 5
"""KEDA sets no deadline when it polls, but the demo must end."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one round of calls returned about the trigger."""

    metrics: tuple[rules.Metric, ...] = ()
    active: bool | None = None
    state: str = ""
    reason: str = ""
    """The error of a call, or else the reason that the scaler gives."""

    @property
    def value(self) -> float | None:
        return self.metrics[0].value if self.metrics else None


class ScalerClient:
    """The external scaler, as KEDA calls it for one trigger.

    Errors are answers here, as for KEDA: a failed call shows nothing about load or activity.
    """

    def __init__(self, channel: grpc.aio.Channel, client: httpx.AsyncClient) -> None:
        self._stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        self._client = client
        self._trigger = pb.ScaledObjectRef(
            name=scenario.SCALED_OBJECT.name,
            namespace=scenario.SCALED_OBJECT.namespace,
            scalerMetadata=scenario.TRIGGER,
        )

    async def ask(self) -> Reply:
        """Get the specs, then each value, then the activity; one error discards them all."""
        try:
            specs = await self._stub.GetMetricSpec(self._trigger, timeout=_CALL_SECONDS)
            # The scaler takes a call with a deadline for one of the HPA; it limits its own time.
            metrics = [await self._metric(spec) for spec in specs.metricSpecs]
            active = await self._stub.IsActive(self._trigger)
        except grpc.aio.AioRpcError as error:
            state, _ = await self._decision()
            return Reply(state=state, reason=f"{error.code().name}: {error.details()}")
        return Reply(tuple(metrics), active.result, *await self._decision())

    async def _metric(self, spec: pb.MetricSpec) -> rules.Metric:
        request = pb.GetMetricsRequest(scaledObjectRef=self._trigger, metricName=spec.metricName)
        answer = await self._stub.GetMetrics(request)
        values = [
            _exact_or_rounded(value.metricValueFloat, value.metricValue)
            for value in answer.metricValues
        ]
        return rules.Metric(
            value=sum(values) if values else None,
            target=_exact_or_rounded(spec.targetSizeFloat, spec.targetSize),
        )

    async def _decision(self) -> tuple[str, str]:
        """Return the state and the reason of the answers just given; empty if there is none yet."""
        with contextlib.suppress(httpx.HTTPError):
            page = await self._client.get(f"/api/v1/triggers/{scenario.SCALED_OBJECT.namespace}")
            for trigger in page.json()["triggers"]:
                return trigger["state"], trigger["reason"]
        return "", ""


def _exact_or_rounded(exact: float, rounded: int) -> float:
    """Read a pair of fields as KEDA does: the float wins when it is above 0."""
    return exact if exact > 0 else rounded


@dataclass(frozen=True, slots=True)
class Side:
    """One workload at one tick."""

    offered: float = 0
    utilization: float | None = None
    """The mean over the GPUs of its pods; None: no pod has one."""
    replicas: int = 0
    sentence: str = ""


class Scaled:
    """One workload under its KEDA and its HPA, and what it was at each tick."""

    def __init__(self, key: cluster.WorkloadKey) -> None:
        self.key = key
        self._keda = rules.Keda(cooldown_seconds=scenario.COOLDOWN_SECONDS)
        self._hpa = rules.Hpa(maximum=20, stabilization_seconds=scenario.STABILIZATION_SECONDS)
        self.replicas = 0
        self.past: list[Side] = []
        self._sentence = ""

    @property
    def peak(self) -> int:
        return max((side.replicas for side in self.past), default=0)

    def poll(self, now: float, load: float, active: bool | None) -> None:  # noqa: FBT001 - as IsActive returns it
        """Let KEDA act on its trigger and on the router's, which is active above 0."""
        self._set_replicas("KEDA", self._keda.poll(now, self.replicas, [active, load > 0]))

    def sync(self, now: float, load: float, metrics: Sequence[rules.Metric]) -> None:
        router = rules.Metric(value=load, target=scenario.ROUTER_TARGET)
        gpu = metrics or (rules.Metric(value=None, target=scenario.THRESHOLD),)
        scale = rules.Scale.steady(self.replicas)
        self._set_replicas("HPA", self._hpa.sync(now, scale, [*gpu, router]))

    def _set_replicas(self, who: str, step: rules.Step) -> None:
        self.replicas, self._sentence = step.replicas, f"{who}: {step.reason}"

    def add(self, load: float, utilization: float | None) -> None:
        self.past.append(Side(load, utilization, self.replicas, self._sentence))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Everything to show after one tick."""

    seconds: float
    progress: scenario.Progress
    answer: Reply
    ours: Sequence[Side]
    """The workload at each tick, the newest last."""
    corrected: Sequence[Side]
    usual: Sequence[Side]


class Driver:
    """The controllers of all workloads, and their current state."""

    def __init__(
        self,
        simulated: cluster.MadeUp,
        ask: Callable[[], Awaitable[Reply]],
        show: Callable[[Frame], None],
        patience_seconds: float = 40.0,
    ) -> None:
        """Take how long the scaler may take to know what runs, before the first phase."""
        self._simulated, self._ask, self._show = simulated, ask, show
        self._patience_seconds = patience_seconds
        self._ours = Scaled(scenario.OURS)
        self._corrected, self._usual = Scaled(scenario.CORRECTED), Scaled(scenario.USUAL)
        self._progress, self._answer = scenario.Progress(), Reply()

    async def prepare(self) -> None:
        """Let the scaler see an idle replica come and go, as in a cluster that has run for a while.

        A scaler that has just started takes no absence of pods for a fact: for the first minute it
        answers that it does not know. DemoError if it does not get there in time.
        """
        clock = asyncio.get_running_loop().time
        ends = clock() + self._patience_seconds
        for replicas in (1, 0):
            self._apply(self._ours.key, 0, replicas)
            answer = await self._ask()
            # About no replica there is no value.
            while answer.active is not False or (answer.value is not None) != (replicas > 0):
                if clock() >= ends:
                    raise scenario.DemoError(f"the scaler does not answer: {answer.reason}")
                await asyncio.sleep(scenario.SYNC_SECONDS)
                answer = await self._ask()

    async def run(self) -> str:
        """Play all phases and return the summary; DemoError if one fails."""
        clock = asyncio.get_running_loop().time
        begin, tick, finished = clock(), 0, False
        while not finished:
            for scaled in (self._ours, self._corrected, self._usual):
                self._apply(scaled.key, self._progress.phase.load, scaled.replicas)
            await asyncio.sleep(max(0, begin + tick * scenario.SYNC_SECONDS - clock()))
            await self._tick(clock() - begin, polls=tick % scenario.POLL_TICKS == 0)
            finished = self._progress.advance(clock() - begin, self._ours.replicas)
            tick += 1
        return scenario.summary(
            self._ours.peak, self._corrected.peak, self._usual.peak, clock() - begin
        )

    async def _tick(self, now: float, *, polls: bool) -> None:
        load = self._progress.phase.load
        # A recipe is KEDA's prometheus trigger with a query: an empty answer is 0, its default
        # (`ignoreNullValues`), and anything above 0 is active.
        shown = {
            scaled.key: self._percents(scaled.key)
            for scaled in (self._ours, self._corrected, self._usual)
        }
        recipes = (
            (self._corrected, sum(shown[scenario.CORRECTED])),
            (self._usual, _mean(shown[scenario.USUAL]) or 0.0),
        )
        if polls:
            self._answer = await self._ask()
            self._ours.poll(now, load, self._answer.active)
            for scaled, value in recipes:
                scaled.poll(now, load, value > 0)
        if self._ours.replicas:
            self._answer = await self._ask()
            self._ours.sync(now, load, self._answer.metrics)
        for scaled, value in recipes:
            if scaled.replicas:
                metric = rules.Metric(value=value, target=scenario.THRESHOLD)
                scaled.sync(now, load, [metric])
        for scaled in (self._ours, self._corrected, self._usual):
            scaled.add(load, _mean(shown[scaled.key]))
        self._show(
            Frame(
                seconds=now,
                progress=self._progress,
                answer=self._answer,
                ours=self._ours.past,
                corrected=self._corrected.past,
                usual=self._usual.past,
            )
        )

    def _apply(self, key: cluster.WorkloadKey, load: float, replicas: int) -> None:
        wanted = cluster.Wanted(
            load=load, replicas=replicas, startup_seconds=scenario.STARTUP_SECONDS
        )
        self._simulated.put(key, wanted, asyncio.get_running_loop().time())

    def _percents(self, key: cluster.WorkloadKey) -> list[int]:
        """Return the whole numbers that the exporter shows of a workload's pods."""
        gpus = self._simulated.gpus(asyncio.get_running_loop().time())
        return [round(gpu.percent) for gpu in gpus if gpu.pod and gpu.pod.workload == key]


def _mean(percents: Sequence[int]) -> float | None:
    return mean(percents) if percents else None
