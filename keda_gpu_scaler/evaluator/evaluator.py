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
from dataclasses import replace

from cachetools import TTLCache

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision import activation, by_demand, memory, recommendation, scale_out
from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.evaluator.demand_cache import DemandCache
from keda_gpu_scaler.evaluator.ports import SLOW_SECONDS, Alerting, ScaleTargets, Source
from keda_gpu_scaler.evaluator.snapshot_cache import Reading, SnapshotCache
from keda_gpu_scaler.evaluator.tracked_trigger import (
    SILENT_SECONDS,
    Answer,
    GpuDecision,
    TrackedTrigger,
    TrackedTriggers,
    decide_gpus,
)
from keda_gpu_scaler.record import build
from keda_gpu_scaler.record.record import Record, Summary
from keda_gpu_scaler.spec.demand import USUAL_PACE, Demand, Pace
from keda_gpu_scaler.spec.spec import TRIGGERS, OnUnknown, ScaledObject, TriggerSpec
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
        slow_seconds: float = SLOW_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        is_observing: bool = False,
    ) -> None:
        """Take what the decisions are made of; the caller closes it after the evaluator.

        `sources` are by the name that triggers use. `slow_seconds` is how long a record waits for a
        source. `is_observing`: neither KEDA nor the HPA asks, so a workload that was never seen is
        unknown.
        """
        self._sources, self._targets = sources, targets
        self._observe, self._clock = observe, clock
        self._alerts = alerts
        self._slow_seconds, self._is_observing = slow_seconds, is_observing
        self._snapshot_cache = SnapshotCache(
            sources, observe, clock=clock, slow_seconds=slow_seconds
        )
        self._demands = DemandCache(
            sources, observe, pace=pace, clock=clock, slow_seconds=slow_seconds
        )
        self._triggers = TrackedTriggers(self._snapshot_cache, clock)
        self._hpa_asked: TTLCache[ScaledObject, bool] = TTLCache(TRIGGERS, SILENT_SECONDS, clock)
        """The ScaledObjects that the HPA asked about within a minute, by whichever trigger."""
        self._looks = asyncio.Semaphore(LOOKS)

    async def close(self) -> None:
        await self._demands.close()
        await self._snapshot_cache.close()

    def until_news_seconds(self, scaled_object: ScaledObject, spec: TriggerSpec) -> float:
        """Return how long after an evaluation the decision can change."""
        step_seconds = self._sources[spec.source].samples.step_seconds
        due_seconds = self._demands.due_seconds(scaled_object, spec)
        return max(SAME_POLL_SECONDS, min(step_seconds, due_seconds))

    def has_replicas(self, scaled_object: ScaledObject) -> bool:
        """Tell whether the HPA asked about a ScaledObject within a minute, so that it has some."""
        return scaled_object in self._hpa_asked

    def listen(
        self, scaled_object: ScaledObject, call: Callable[[], None]
    ) -> contextlib.AbstractContextManager[None]:
        if self._alerts is None:
            return contextlib.nullcontext()
        return self._alerts.listen(scaled_object, call)

    def _firing(self, scaled_object: ScaledObject) -> str | None:
        return None if self._alerts is None else self._alerts.firing(scaled_object)

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
        `wait_for_fresh` is for callers that look seldom, such as streams: they wait for a running
        fetch even if there is a usable snapshot. So does the HPA, which is known by its deadline.
        """
        allowed_seconds = _allowed_seconds(timeout_seconds)
        deadline = self._clock() + allowed_seconds
        is_hpa = timeout_seconds is not None and not wait_for_fresh  # a stream asks to wait
        tracked = await self._track(scaled_object, spec, allowed_seconds)
        now, previous, target_error = self._clock(), tracked.answer, tracked.target_error
        self._triggers.keep(tracked)
        tracked.hpa_calls.note(now, is_hpa=is_hpa)
        if is_hpa:
            self._hpa_asked[scaled_object] = True
        if (
            previous is not None
            and target_error is None
            and now - previous.at < SAME_POLL_SECONDS
            and previous.alert == self._firing(scaled_object)
        ):
            decision = previous.decision
        else:
            reading = await self._read(
                tracked,
                target_error,
                deadline,
                wait_for_fresh=wait_for_fresh or is_hpa,
                wait_for_recovery=not is_hpa,  # few HPA workers can wait
            )
            # The target's error is that of this call: another one may look it up meanwhile.
            gpu = decide_gpus(tracked, reading, target_error, is_observing=self._is_observing)
            is_poll = not is_hpa and target_error is None
            answer = await self._answer(tracked, gpu, reading, deadline, is_poll=is_poll)
            decision = answer.decision
        self._observe(facts.CallDecided(decision))
        return decision

    async def _track(
        self, scaled_object: ScaledObject, spec: TriggerSpec, allowed_seconds: float
    ) -> TrackedTrigger:
        """Return the trigger, with the pods of its scale target or why these are not known."""
        pods, target_error = None, None
        if isinstance(spec.pods, ScaleTarget):
            target_error = "the pods of its scale target are not known"
            if self._targets is not None:
                try:
                    pods = await self._targets.target(scaled_object, allowed_seconds)
                    target_error = None
                except errors.SourceError as error:
                    target_error = str(error)
        tracked = self._triggers.track(scaled_object, spec, pods)
        tracked.target_error = target_error
        return tracked

    async def _read(
        self,
        tracked: TrackedTrigger,
        target_error: str | None,
        deadline: float,
        *,
        wait_for_fresh: bool,
        wait_for_recovery: bool,
    ) -> Reading | str:
        """Return what is known of the trigger's snapshot, or why its query is refused."""
        spec, snapshot_query = tracked.spec, tracked.snapshot_query
        try:
            shared = self._snapshot_cache.of(tracked.key, spec, tracked.scaled_object.namespace)
        except errors.SourceRefusedError as error:
            return f"source {spec.source}: {error}"
        if target_error is None or spec.neighbour is not None:
            await shared.refresh(snapshot_query, deadline, wait_for_fresh=wait_for_fresh)
        reading = shared.read(snapshot_query)
        is_forgotten = spec.on_unknown is OnUnknown.HOLD and tracked.memory is None
        would_fail = is_forgotten or spec.on_unknown is OnUnknown.ERROR
        if wait_for_recovery and would_fail and reading.is_cut_off(spec):
            await shared.wait_for_recovery(deadline)
            reading = shared.read(snapshot_query)
        return reading

    async def _answer(
        self,
        tracked: TrackedTrigger,
        gpu: GpuDecision,
        reading: Reading | str,
        deadline: float,
        *,
        is_poll: bool,
    ) -> Answer:
        """Return the answer with all signals in it; keep it, and report it if it is new.

        A poll that would fail without the demand waits for it, as it does for samples.
        """
        scaled_object, spec, decided = tracked.scaled_object, tracked.spec, gpu.decision
        alert, demand = self._firing(scaled_object), None
        if gpu.neighbour is not None or alert is not None:
            decided = activation.before_demand(spec, decided, gpu.neighbour, alert)
        if spec.demand is not None and (spec.is_by_demand or not decided.activated):
            is_urgent = is_poll and activation.needs_demand(spec, decided)
            demand = await self._demands.ask(
                scaled_object, spec, spec.demand, deadline, is_urgent=is_urgent
            )
            decided = by_demand.answered(spec, decided, demand)
        known, now = demand or self._demands.known(scaled_object, spec), self._clock()
        if known is not None:
            moment = scale_out.moment_of(now, gpu.decision, known)
            decided = replace(decided, futile=tracked.scale_outs.judge(moment))
        if decided.active and not gpu.decision.active and isinstance(reading, Reading):
            # Another signal said just now that the workload is active.
            tracked.memory = memory.in_use(reading.present)
        previous = tracked.answer
        if previous is not None and previous.gpu is gpu and previous.decision == decided:
            tracked.answer = previous._replace(at=now, alert=alert, demand=demand)
            return tracked.answer
        if (
            previous is not None
            and spec.demand is None
            and _numbers(previous.decision) == _numbers(decided)  # mostly they are the same
        ):
            recommended = previous.recommended
        else:
            recommended = recommendation.recommended(spec, decided, known)
        tracked.answer = Answer(decided, now, gpu, alert, demand, recommended)
        self._observe(
            facts.Evaluated(
                scaled_object,
                spec,
                decided,
                gpu.snapshot_age_seconds,
                tracked.key.source,
                recommended,
                None if previous is None else previous.decision,
            )
        )
        return tracked.answer

    @property
    def step_seconds(self) -> float:
        """How often there can be new samples, by the source that has them most often."""
        return min(source.samples.step_seconds for source in self._sources.values())

    def summaries(self, namespace: str | None = None) -> Iterator[Summary]:
        """Yield what was answered within ten minutes, by the names of the ScaledObjects.

        It may be left for other work in between: each trigger is shown as it is at its turn.
        """
        for tracked in self._triggers.all():
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

        They are decided now, each within 3.5 s, the last 20 that were asked about. That is no call
        about them: what KEDA and the HPA ask is for them alone to say. Of several at once each
        waits for its turn.
        """
        newest_first = sorted(
            self._triggers.of(scaled_object),
            key=lambda tracked: tracked.answer.at if tracked.answer else -math.inf,
            reverse=True,
        )
        async with self._looks:
            return [await self._record(tracked) for tracked in newest_first[:LOOKED_AT]]

    async def record(self, scaled_object: ScaledObject, spec: TriggerSpec) -> Record:
        """Return the record of one trigger, tracked before or not; that is no call."""
        allowed_seconds = min(ANSWER_SECONDS, self._slow_seconds)
        return await self._record(await self._track(scaled_object, spec, allowed_seconds))

    async def _record(self, tracked: TrackedTrigger) -> Record:
        # A second more than a slow source may take: by then it is known that it is slow.
        deadline = self._clock() + self._slow_seconds + 1
        spec = tracked.spec
        target_error = tracked.target_error
        reading = await self._read(
            tracked, target_error, deadline, wait_for_fresh=False, wait_for_recovery=True
        )
        gpu = decide_gpus(tracked, reading, target_error, is_observing=self._is_observing)
        known = reading if isinstance(reading, Reading) else None
        covered = None if known is None else known.covered
        # As for a poll: one that comes just after it takes the same answer.
        answer = await self._answer(tracked, gpu, reading, deadline, is_poll=True)
        demand = answer.demand
        if demand is None and spec.demand is not None and spec.demand.threshold is not None:
            # The HPA asks for it, whatever else says active.
            demand = await self._demands.ask(tracked.scaled_object, spec, spec.demand, deadline)
        source = self._sources[spec.source]
        exporters = None if source.exporters is None else source.exporters()
        # In a thread: of 10,000 pods it takes a third of a second.
        return await asyncio.to_thread(
            build.record,
            build.Answered(
                scaled_object=tracked.scaled_object,
                spec=spec,
                decision=answer.decision,
                now=0.0 if known is None else known.now_for(spec),
                view=None if covered is None else covered.of(spec.pods.namespace),
                trouble=gpu.decision.reason if known is None else known.trouble,
                lag_seconds=0.0 if known is None else known.lag_seconds,
                source=tracked.key.source,
                step_seconds=source.samples.step_seconds,
                speaks_promql=exporters is not None,
                exporters=exporters or (),
                neighbour=gpu.neighbour,
                alert=answer.alert,
                takes_alerts=self._alerts is not None,
                demand=demand,
                active_by=answer.active_by,
            ),
        )

    async def demand(
        self, scaled_object: ScaledObject, spec: TriggerSpec, timeout_seconds: float | None
    ) -> Demand:
        """Return only the demand of a trigger that has one, within the same time as `evaluate`."""
        if spec.demand is None:
            raise ValueError("a trigger without demandQuery was asked for its demand")
        deadline = self._clock() + _allowed_seconds(timeout_seconds)
        return await self._demands.ask(scaled_object, spec, spec.demand, deadline)


_numbers = operator.attrgetter("value", "state", "active", "refused", "expected", "wanted")
"""What of a decision the replicas that it asks for depend on."""


def _allowed_seconds(timeout_seconds: float | None) -> float:
    if timeout_seconds is None:
        return ANSWER_SECONDS
    return max(0.0, min(ANSWER_SECONDS, timeout_seconds - MARGIN_SECONDS))
