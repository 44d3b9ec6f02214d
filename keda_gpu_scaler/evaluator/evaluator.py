"""Evaluates one trigger to one decision, from snapshots that all triggers share.

It knows sources only by their port, and nothing of gRPC, logs and metrics. An evaluation never
raises because of a source: the source's error is the reason of the decision.
"""

import asyncio
import contextlib
import math
import operator
import time
from collections.abc import Callable, Iterator, Mapping

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision import activation, memory, recommendation
from keda_gpu_scaler.decision.decision import Decision, unknown
from keda_gpu_scaler.evaluator.demand_cache import DemandCache
from keda_gpu_scaler.evaluator.gpu_decisions import GpuDecisions
from keda_gpu_scaler.evaluator.ports import SLOW_SECONDS, Alerting, NoAlerts, ScaleTargets, Source
from keda_gpu_scaler.evaluator.snapshot_cache import Reading, SharedSnapshot, SnapshotCache
from keda_gpu_scaler.evaluator.tracked_trigger import (
    Answer,
    GpuDecision,
    TrackedTrigger,
    TrackedTriggers,
)
from keda_gpu_scaler.record import build
from keda_gpu_scaler.record.record import Record, Summary
from keda_gpu_scaler.spec.demand import USUAL_PACE, Demand, Pace
from keda_gpu_scaler.spec.spec import OnUnknown, ScaledObject, TriggerSpec
from keda_gpu_scaler.spec.workload import ScaleTarget
from keda_gpu_scaler.telemetry import facts

ANSWER_SECONDS = SLOW_SECONDS
"""KEDA sets no deadline on its poll path; this limit keeps KEDA's loops and HPA workers going."""
MARGIN_SECONDS = 0.1
"""The part of the caller's deadline that is reserved for the response."""
LOOKED_AT = 20
"""Triggers of one ScaledObject that are explained; only one that is edited again and again has
more."""
LOOKS = 4
"""How many ScaledObjects are explained at a time; the others wait for their turn."""
SAME_POLL_SECONDS = 1.0
"""KEDA calls GetMetrics, then IsActive, within milliseconds: one poll gets one decision."""


class Evaluator:
    """Evaluates triggers. They share one snapshot per (source, signal, profile) or own query."""

    def __init__(  # noqa: PLR0913 - the composition root's values, all by name
        self,
        sources: Mapping[str, Source],
        observe: facts.Observer = facts.ignore,
        *,
        targets: ScaleTargets | None = None,
        alerts: Alerting | None = None,
        pace: Pace = USUAL_PACE,
        give_up_seconds: float = 3600.0,
        slow_seconds: float = SLOW_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        is_observing: bool = False,
    ) -> None:
        """Take what the decisions are made of; the caller closes it after the evaluator.

        `sources` are by the name that triggers use. `give_up_seconds` is how long a pod that
        disappeared with its exporter counts as missing, `slow_seconds` how long a record waits for
        a source. `is_observing`: neither KEDA nor the HPA asks, so a workload that was never seen
        is unknown.
        """
        self._targets, self._observe, self._clock = targets, observe, clock
        self._alerts = alerts or NoAlerts()
        self._slow_seconds, self._give_up_seconds = slow_seconds, give_up_seconds
        self._snapshot_cache = SnapshotCache(
            sources,
            observe,
            give_up_seconds=give_up_seconds,
            clock=clock,
            slow_seconds=slow_seconds,
        )
        self._gpu_decisions = GpuDecisions(
            self._snapshot_cache.step_seconds, give_up_seconds, is_observing=is_observing
        )
        self._demands = DemandCache(
            sources, observe, pace=pace, clock=clock, slow_seconds=slow_seconds
        )
        self._triggers = TrackedTriggers(self._snapshot_cache)
        self._looks = asyncio.Semaphore(LOOKS)

    async def close(self) -> None:
        """Cancel running queries and fetches."""
        await self._demands.close()
        await self._snapshot_cache.close()

    def until_news_seconds(self, scaled_object: ScaledObject, spec: TriggerSpec) -> float:
        """Return how long after an evaluation the decision can change."""
        due_seconds = self._demands.due_seconds(scaled_object, spec)
        return max(
            SAME_POLL_SECONDS, min(self._snapshot_cache.step_seconds(spec.source), due_seconds)
        )

    def listen(
        self, scaled_object: ScaledObject, call: Callable[[], None]
    ) -> contextlib.AbstractContextManager[None]:
        """Call `call` whenever an alert for it begins or ends, while the context lasts."""
        return self._alerts.listen(scaled_object, call)

    async def evaluate(
        self,
        scaled_object: ScaledObject,
        spec: TriggerSpec,
        timeout_seconds: float | None,
        *,
        wait_for_fresh: bool = False,
    ) -> Decision:
        """Return the decision for one trigger within the caller's time, and within 2.5 s.

        `timeout_seconds` is what is left of the caller's deadline; None: the caller set none.
        `wait_for_fresh` waits for a running fetch even if there is a usable snapshot, as for the
        HPA, whose next call comes only a step later.
        """
        allowed_seconds = _allowed_seconds(timeout_seconds)
        deadline = self._clock() + allowed_seconds
        is_hpa = timeout_seconds is not None and not wait_for_fresh  # a stream asks to wait
        tracked, target_error = await self._track(scaled_object, spec, allowed_seconds)
        if target_error is not None:
            gpu = await self._decide_without_target(tracked, target_error, deadline)
        else:
            now, previous = self._clock(), tracked.answer
            tracked.hpa_calls.note(now, is_hpa=is_hpa)
            if (
                previous is not None
                and now - previous.at < SAME_POLL_SECONDS
                and previous.alert == self._alerts.firing(scaled_object)
            ):
                return previous.decision
            try:
                reading = await self._read(
                    tracked,
                    deadline,
                    wait_for_fresh=wait_for_fresh or is_hpa,
                    wait_for_recovery=not is_hpa,  # few HPA workers can wait
                )
                gpu = self._gpu_decisions.decide(tracked, reading)
            except errors.SourceRefusedError as error:
                gpu = _refused(tracked.spec, error)
        is_poll = not is_hpa and target_error is None
        decided, alert, demand = await self._activate(tracked, gpu, deadline, is_poll=is_poll)
        self._remember(tracked, gpu, decided, alert, demand)
        return decided

    async def _track(
        self, scaled_object: ScaledObject, spec: TriggerSpec, allowed_seconds: float
    ) -> tuple[TrackedTrigger, str | None]:
        """Return the trigger with the pods of its scale target, or why these are not known."""
        pods, target_error = None, None
        if isinstance(spec.pods, ScaleTarget) and self._targets is not None:
            try:
                pods = await self._targets.target(scaled_object, allowed_seconds)
            except errors.SourceError as error:
                target_error = str(error)
        return self._triggers.track(scaled_object, spec, self._clock(), pods), target_error

    async def _read(
        self,
        tracked: TrackedTrigger,
        deadline: float,
        *,
        wait_for_fresh: bool = False,
        wait_for_recovery: bool = False,
    ) -> Reading:
        """Return what is known of the trigger's snapshot, as new as can be had before `deadline`.

        A poll that would fail while the source is down waits for the source's next answer: it may
        be back, and KEDA 2.21 closes a connection that nothing else uses after a poll that failed.
        """
        shared, spec = self._shared(tracked), tracked.spec
        await shared.refresh(tracked.snapshot_query, deadline, wait_for_fresh=wait_for_fresh)
        reading = shared.read(tracked.snapshot_query)
        is_forgotten = spec.on_unknown is OnUnknown.HOLD and tracked.memory is None
        would_fail = is_forgotten or spec.on_unknown is OnUnknown.ERROR
        if wait_for_recovery and would_fail and reading.is_cut_off(spec):
            await shared.wait_for_recovery(deadline)
            reading = shared.read(tracked.snapshot_query)
        return reading

    def _shared(self, tracked: TrackedTrigger) -> SharedSnapshot:
        namespace = tracked.scaled_object.namespace
        return self._snapshot_cache.of(tracked.key, tracked.spec, namespace)

    async def _decide_without_target(
        self, tracked: TrackedTrigger, why: str, deadline: float
    ) -> GpuDecision:
        """Return the decision while the scale target is unknown: only the other workload counts."""
        decided = unknown(tracked.spec, why, None)
        if tracked.spec.neighbour is None:
            return GpuDecision(decided)
        reading = await self._read(tracked, deadline)
        neighbour = self._gpu_decisions.decide_neighbour(tracked.spec, decided, reading)
        return GpuDecision(decided, neighbour, source=tracked.key.source)

    async def _activate(
        self, tracked: TrackedTrigger, gpu: GpuDecision, deadline: float, *, is_poll: bool
    ) -> tuple[Decision, str | None, Demand | None]:
        """Return the decision with all activation in it, the alert that fires, and the demand.

        A poll that would fail without the demand waits for it, as it does for samples.
        """
        scaled_object, spec, decided = tracked.scaled_object, tracked.spec, gpu.decision
        alert, demand = self._alerts.firing(scaled_object), None
        if gpu.neighbour is not None or alert is not None:
            name = str(spec.neighbour)
            decided = activation.before_demand(decided, name, gpu.neighbour, alert)
        if not decided.activated and spec.demand is not None:
            is_urgent = is_poll and activation.needs_demand(decided, spec.demand)
            demand = await self._demands.ask(
                scaled_object, spec, spec.demand, deadline, is_urgent=is_urgent
            )
            decided = activation.with_demand(decided, spec.demand, demand)
        return decided, alert, demand

    def _remember(
        self,
        tracked: TrackedTrigger,
        gpu: GpuDecision,
        decided: Decision,
        alert: str | None,
        demand: Demand | None,
    ) -> None:
        """Keep the answer, and report it if it is new."""
        scaled_object, spec = tracked.scaled_object, tracked.spec
        if decided.active and not gpu.decision.active:
            # Another signal said just now that the workload is active.
            with contextlib.suppress(errors.SourceRefusedError):
                reading = self._shared(tracked).read(tracked.snapshot_query)
                tracked.memory = memory.in_use(reading.present)
        previous, now = tracked.answer, self._clock()
        if previous is not None and previous.gpu is gpu and previous.decision == decided:
            tracked.answer = previous._replace(at=now, alert=alert, demand=demand)
            return
        if (
            previous is not None
            and spec.demand is None
            and _numbers(previous.decision) == _numbers(decided)  # mostly they are the same
        ):
            recommended = previous.recommended
        else:
            known = demand or self._demands.known(scaled_object, spec)
            recommended = recommendation.recommended(spec, decided, known)
        tracked.answer = Answer(decided, now, gpu, alert, demand, recommended)
        self._observe(
            facts.Evaluated(
                scaled_object,
                spec,
                decided,
                gpu.snapshot_age_seconds,
                gpu.source,
                recommended,
                None if previous is None else previous.decision,
            )
        )

    @property
    def step_seconds(self) -> float:
        """How often there can be new samples, by the source that has them most often."""
        return self._snapshot_cache.shortest_step_seconds

    def summaries(self, namespace: str | None = None) -> Iterator[Summary]:
        """Yield what was answered within ten minutes, by the names of the ScaledObjects.

        It may be left for other work in between: each trigger is shown as it is at its turn.
        """
        for tracked in self._triggers.all(self._clock()):
            answer, scaled_object = tracked.answer, tracked.scaled_object
            if answer is not None and namespace in {None, scaled_object.namespace}:
                yield build.summary(
                    scaled_object,
                    tracked.spec,
                    answer.decision,
                    self._clock() - answer.at,
                    recommended=answer.recommended,
                    active_by=answer.active_by,
                )

    async def records(self, scaled_object: ScaledObject) -> list[Record]:
        """Return a record of each trigger of a ScaledObject that was asked about in ten minutes.

        They are decided now, each within 2.5 s, the last 20 that were asked about. That is no call
        about them: what KEDA and the HPA ask is for them alone to say. Of several at once each
        waits for its turn.
        """
        newest_first = sorted(
            self._triggers.of(scaled_object, self._clock()),
            key=lambda tracked: tracked.answer.at if tracked.answer else -math.inf,
            reverse=True,
        )
        async with self._looks:
            return [await self._record(tracked) for tracked in newest_first[:LOOKED_AT]]

    async def record(self, scaled_object: ScaledObject, spec: TriggerSpec) -> Record:
        """Return the record of one trigger, tracked before or not; that is no call."""
        allowed_seconds = min(ANSWER_SECONDS, self._slow_seconds)
        tracked, target_error = await self._track(scaled_object, spec, allowed_seconds)
        return await self._record(tracked, target_error)

    async def _record(self, tracked: TrackedTrigger, target_error: str | None = None) -> Record:
        deadline = self._clock() + self._slow_seconds
        spec, source = tracked.spec, tracked.spec.source
        if isinstance(spec.pods, ScaleTarget):
            why = target_error or "the pods of its scale target are not known"
            gpu = await self._decide_without_target(tracked, why, deadline)
        else:
            try:
                reading = await self._read(tracked, deadline, wait_for_recovery=True)
                gpu = self._gpu_decisions.decide(tracked, reading)
            except errors.SourceRefusedError as error:
                gpu = _refused(spec, error)
        now, view, trouble, lag_seconds = 0.0, None, None, 0.0
        try:
            reading = self._shared(tracked).read(tracked.snapshot_query)
        except errors.SourceRefusedError as error:
            trouble = str(error)
        else:
            if reading.covered is not None:
                view = reading.covered.of(spec.pods.namespace)
            now, trouble = reading.now_for(spec), reading.trouble
            lag_seconds = reading.lag_seconds
        # As for a poll: one that comes just after it takes the same answer.
        decided, alert, demand = await self._activate(tracked, gpu, deadline, is_poll=True)
        self._remember(tracked, gpu, decided, alert, demand)
        if demand is None and spec.demand is not None and spec.demand.threshold is not None:
            # The HPA asks for it, whatever else says active.
            demand = await self._demands.ask(tracked.scaled_object, spec, spec.demand, deadline)
        exporters = self._snapshot_cache.exporters(source)
        # In a thread: of 10,000 pods it takes a third of a second.
        return await asyncio.to_thread(
            build.record,
            build.Answered(
                scaled_object=tracked.scaled_object,
                spec=tracked.spec,
                decision=decided,
                now=now,
                view=view,
                give_up_seconds=self._give_up_seconds,
                trouble=trouble,
                lag_seconds=lag_seconds,
                source=gpu.source,
                step_seconds=self._snapshot_cache.step_seconds(source),
                speaks_promql=exporters is not None,
                exporters=exporters or (),
                neighbour=gpu.neighbour,
                alert=self._alerts.firing(tracked.scaled_object),
                takes_alerts=not isinstance(self._alerts, NoAlerts),
                demand=demand,
                active_by=None if tracked.answer is None else tracked.answer.active_by,
            ),
        )

    async def demand(
        self, scaled_object: ScaledObject, spec: TriggerSpec, timeout_seconds: float | None
    ) -> Demand:
        """Return only the demand of a trigger that has one, within the same time as `evaluate`.

        It needs no known GPU.
        """
        if spec.demand is None:
            raise ValueError("a trigger without demandQuery was asked for its demand")
        deadline = self._clock() + _allowed_seconds(timeout_seconds)
        return await self._demands.ask(scaled_object, spec, spec.demand, deadline)


def _refused(spec: TriggerSpec, error: errors.SourceRefusedError) -> GpuDecision:
    return GpuDecision(unknown(spec, f"source {spec.source}: {error}", None))


_numbers = operator.attrgetter("value", "state", "active", "refused", "expected", "wanted")
"""What of a decision the replicas that it asks for depend on."""


def _allowed_seconds(timeout_seconds: float | None) -> float:
    if timeout_seconds is None:
        return ANSWER_SECONDS
    return max(0.0, min(ANSWER_SECONDS, timeout_seconds - MARGIN_SECONDS))
