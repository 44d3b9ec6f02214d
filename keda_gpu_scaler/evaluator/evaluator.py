"""Evaluates one trigger to one decision, from snapshots that all triggers share.

It knows sources only by their port, and nothing of gRPC, logs and metrics. An evaluation never
raises because of a source: the source's error is the reason of the decision.
"""

import asyncio
import contextlib
import math
import operator
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision import activation, recommendation
from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.evaluator.demand_cache import DemandCache
from keda_gpu_scaler.evaluator.gpu_decisions import GpuDecisions
from keda_gpu_scaler.evaluator.ports import SLOW_SECONDS, Alerting, NoAlerts, ScaleTargets, Source
from keda_gpu_scaler.evaluator.snapshot_cache import SnapshotCache
from keda_gpu_scaler.evaluator.tracked_trigger import (
    Answer,
    GpuDecision,
    TrackedTrigger,
    TrackedTriggers,
)
from keda_gpu_scaler.record import build
from keda_gpu_scaler.record.record import Record, Summary
from keda_gpu_scaler.spec.demand import USUAL_PACE, Demand, Pace
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
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

        Args:
            sources: the sources, by the name that triggers use.
            observe: is called with every decision, snapshot and change of a source.
            targets: the scale targets of ScaledObjects, if the Kubernetes API is used.
            alerts: the store of alerts, if there is one.
            pace: how often demand is queried.
            give_up_seconds: how long a pod that disappeared with its exporter counts as missing.
            slow_seconds: how long a record waits for a source.
            clock: seconds that never go back.
            is_observing: neither KEDA nor the HPA asks: a workload that was never seen is unknown.
        """
        self._targets, self._observe, self._clock = targets, observe, clock
        self._alerts = alerts or NoAlerts()
        self._slow_seconds = slow_seconds
        self._snapshot_cache = SnapshotCache(
            sources,
            observe,
            give_up_seconds=give_up_seconds,
            clock=clock,
            slow_seconds=slow_seconds,
        )
        self._gpu_decisions = GpuDecisions(
            self._snapshot_cache, give_up_seconds, is_observing=is_observing
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

        Args:
            scaled_object: the ScaledObject of the trigger.
            spec: the trigger.
            timeout_seconds: what is left of the caller's deadline; None: the caller set none.
            wait_for_fresh: wait for a running fetch even if there is a usable snapshot, as for the
                HPA, whose next call comes only a step later.
        """
        now, allowed_seconds = self._clock(), _allowed_seconds(timeout_seconds)
        deadline, pods = now + allowed_seconds, None
        if isinstance(spec.pods, ScaleTarget) and self._targets is not None:
            try:
                pods = await self._targets.target(scaled_object, allowed_seconds)
            except errors.SourceError as error:
                tracked = self._triggers.track(scaled_object, spec, now)
                gpu = await self._gpu_decisions.unaimed(tracked, str(error), deadline)
                return await self._concluded(tracked, gpu, deadline)
            now = self._clock()
        tracked = self._triggers.track(scaled_object, spec, now, pods)
        is_hpa = timeout_seconds is not None and not wait_for_fresh  # a stream asks to wait
        tracked.hpa_calls.note(now, is_hpa=is_hpa)
        before = tracked.answer
        if (
            before is not None
            and now - before.at < SAME_POLL_SECONDS
            and before.alert == self._alerts.firing(scaled_object)
        ):
            return before.decision
        gpu = await self._gpu_decisions.decide(
            tracked, deadline, is_hpa=is_hpa, wait_for_fresh=wait_for_fresh or is_hpa
        )
        return await self._concluded(tracked, gpu, deadline, is_poll=not is_hpa)

    @property
    def step_seconds(self) -> float:
        """How often there can be new samples, by the source that has them most often."""
        return self._snapshot_cache.shortest_step_seconds

    def summaries(self, namespace: str | None = None) -> Iterator[Summary]:
        """Yield what was answered within ten minutes, by the names of the ScaledObjects.

        It may be left for other work in between: each trigger is shown as it is at its turn.

        Args:
            namespace: only of the ScaledObjects in this one; None: of all.
        """
        for one in _aimed(self._triggers.all(self._clock())):
            if one.answer is None or namespace not in {None, one.scaled_object.namespace}:
                continue
            yield build.summary(
                one.scaled_object,
                one.spec,
                one.answer.decision,
                self._clock() - one.answer.at,
                recommended=one.answer.recommended,
                active_by=one.answer.active_by,
            )

    async def records(self, scaled_object: ScaledObject) -> list[Record]:
        """Return a record of each trigger of a ScaledObject that was asked about in ten minutes.

        They are decided now, each within 2.5 s, the last 20 that were asked about. That is no call
        about them: what KEDA and the HPA ask is for them alone to say. Of several at once each
        waits for its turn.
        """
        tracked = _aimed(self._triggers.of(scaled_object, self._clock()))
        tracked.sort(key=lambda one: one.answer.at if one.answer else -math.inf, reverse=True)
        async with self._looks:
            return [await self._record(one) for one in tracked[:LOOKED_AT]]

    async def record(self, scaled_object: ScaledObject, spec: TriggerSpec) -> Record:
        """Return the record of one trigger, which need not have been asked about; that is no call.

        Args:
            scaled_object: the ScaledObject of the trigger.
            spec: the trigger.
        """
        why, pods = "", None
        if isinstance(spec.pods, ScaleTarget) and self._targets is not None:
            try:
                allowed_seconds = min(ANSWER_SECONDS, self._slow_seconds)
                pods = await self._targets.target(scaled_object, allowed_seconds)
            except errors.SourceError as error:
                why = str(error)
        tracked = self._triggers.track(scaled_object, spec, self._clock(), pods)
        return await self._record(tracked, why)

    async def _record(self, tracked: TrackedTrigger, why: str = "") -> Record:
        deadline = self._clock() + self._slow_seconds
        if isinstance(tracked.spec.pods, ScaleTarget):
            why = why or "the pods of its scale target are not known"
            gpu = await self._gpu_decisions.unaimed(tracked, why, deadline)
        else:
            gpu = await self._gpu_decisions.decide(tracked, deadline)
        made_of = self._gpu_decisions.made_of(tracked)
        # As for a poll: one that comes just after it takes the same answer.
        decided = await self._concluded(tracked, gpu, deadline, is_poll=True)
        spec, source = tracked.spec, tracked.spec.source
        demand = None if tracked.answer is None else tracked.answer.demand
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
                **made_of._asdict(),
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
        """Return only the demand, within the same time; it needs no known GPU.

        Args:
            scaled_object: the ScaledObject of the trigger.
            spec: a trigger with a demand.
            timeout_seconds: what is left of the caller's deadline; None: the caller set none.
        """
        if spec.demand is None:
            raise ValueError("a trigger without demandQuery was asked for its demand")
        deadline = self._clock() + _allowed_seconds(timeout_seconds)
        return await self._demands.ask(scaled_object, spec, spec.demand, deadline)

    async def _concluded(
        self, tracked: TrackedTrigger, gpu: GpuDecision, deadline: float, *, is_poll: bool = False
    ) -> Decision:
        """Return the decision with all activation in it; report it if it is new.

        A poll that would fail without the demand waits for it, as it does for samples.
        """
        scaled_object, spec = tracked.scaled_object, tracked.spec
        alert, demand, decided = self._alerts.firing(scaled_object), None, gpu.decision
        if gpu.neighbour is not None or alert is not None:
            name = str(spec.neighbour)
            decided = activation.before_demand(decided, name, gpu.neighbour, alert)
        if not decided.activated and spec.demand is not None:
            is_urgent = is_poll and activation.needs_demand(decided, spec.demand)
            demand = await self._demands.ask(
                scaled_object, spec, spec.demand, deadline, is_urgent=is_urgent
            )
            decided = activation.with_demand(decided, spec.demand, demand)
        if decided.active and not gpu.decision.active:
            self._gpu_decisions.keep_in_use(tracked)
        before, now = tracked.answer, self._clock()
        if before is not None and before.gpu is gpu and before.decision == decided:
            tracked.answer = before._replace(at=now, alert=alert, demand=demand)
            return decided
        if before is not None and spec.demand is None and _asks_alike(before.decision, decided):
            recommended = before.recommended
        else:
            known = demand or self._demands.known(scaled_object, spec)
            recommended = recommendation.recommended(spec, decided, known)
        tracked.answer = Answer(decided, now, gpu, alert, demand, recommended)
        age_seconds, source = gpu.snapshot_age_seconds, gpu.source
        self._observe(
            facts.Evaluated(
                scaled_object,
                spec,
                decided,
                age_seconds,
                source,
                recommended,
                None if before is None else before.decision,
            )
        )
        return decided


def _aimed(tracked: Sequence[TrackedTrigger]) -> list[TrackedTrigger]:
    """Return each trigger once.

    One without `workload` is tracked again as soon as it is known what the ScaledObject scales.
    """
    aimed = {
        (one.scaled_object, one.spec.given)
        for one in tracked
        if not isinstance(one.spec.pods, ScaleTarget)
    }
    return [
        one
        for one in tracked
        if not isinstance(one.spec.pods, ScaleTarget)
        or (one.scaled_object, one.spec.given) not in aimed
    ]


def _asks_alike(one: Decision, other: Decision) -> bool:
    """Tell whether two decisions of a trigger ask for the same replicas: mostly they do."""
    return _numbers(one) == _numbers(other)


_numbers = operator.attrgetter("value", "state", "active", "refused", "expected", "wanted")


def _allowed_seconds(timeout_seconds: float | None) -> float:
    if timeout_seconds is None:
        return ANSWER_SECONDS
    return max(0.0, min(ANSWER_SECONDS, timeout_seconds - MARGIN_SECONDS))
