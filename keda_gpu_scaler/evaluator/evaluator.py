"""Evaluates one trigger to one decision, from snapshots that all triggers share.

It knows sources only by their port, and nothing of gRPC, logs and metrics. An evaluation never
raises because of a source: the source's error is the reason of the decision.
"""

import asyncio
import contextlib
import operator
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import Enum, auto
from functools import partial

from cachetools import TTLCache

from keda_gpu_scaler.decision import activation, scale_out
from keda_gpu_scaler.decision.decision import Decision, Memory
from keda_gpu_scaler.decision.summary import Summary, recommended_replicas, summarized
from keda_gpu_scaler.evaluator.demand_queries import Demands
from keda_gpu_scaler.evaluator.looks import Looks
from keda_gpu_scaler.evaluator.ports import Alerting, ScaleTargets, Source
from keda_gpu_scaler.evaluator.shared_snapshot import Reading, Snapshots
from keda_gpu_scaler.evaluator.shared_source import SourceDown
from keda_gpu_scaler.evaluator.tracked_trigger import (
    Answer,
    GpuDecision,
    TrackedTrigger,
    TrackedTriggers,
    decide_gpus,
)
from keda_gpu_scaler.record import build
from keda_gpu_scaler.record.causes import NO_PODS, Cause, cause, unread
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.spec.spec import USUAL_PACE, Demand, Pace, ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import (
    HPA_SECONDS,
    MARGIN_SECONDS,
    SAME_POLL_SECONDS,
    SLOW_SECONDS,
    SPREAD_SECONDS,
)

LOOKED_AT = 20
"""Triggers of one ScaledObject that are explained; hardly one has more."""
EXPLAINED_AT_ONCE = 4
"""How many ScaledObjects are explained at a time; the others wait for their turn."""


class Caller(Enum):
    """Who asks: it decides what is waited for. `evaluate` notes all but the HPA as a poll."""

    POLL = auto()
    """KEDA, which polls again."""
    HPA = auto()
    """It has few workers, and each that waits holds up others."""
    STREAM = auto()
    """A look once per step, in the background: of a stream, `observe` or `deletion-cost`."""
    PERSON = auto()
    """The reader of a record: the cause in words is waited for too."""


def suffices(tracked: TrackedTrigger, caller: Caller, reading: Reading) -> bool:
    """Tell whether a call is answered from this reading, or waits for the fetch under way.

    Every call waits without a usable snapshot; the HPA and streams wait for a newer one as well.
    Once the source is known to fail or to be slow, the HPA does not wait, nor does another caller
    unless it would get an error: KEDA 2.21 closes a connection that nothing else uses after a poll
    that failed.
    """
    if reading.trouble is None:
        is_newest = not reading.is_fetching
        return reading.is_usable and (is_newest or caller not in {Caller.HPA, Caller.STREAM})
    fails = tracked.fails_while_unknown and reading.is_cut_off(tracked.spec)
    return caller is Caller.HPA or not (fails and reading.is_fetching)


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
        self._sources, self._observe, self._clock = sources, observe, clock
        self._alerts = alerts
        self._slow_seconds, self._is_observing = slow_seconds, is_observing
        self._snapshots = Snapshots(sources, observe, clock, slow_seconds)
        self._demands = Demands(sources, observe, clock, slow_seconds, pace)
        self._at_sources = Looks(sources, clock)
        self._triggers = TrackedTriggers(self._snapshots, targets, clock)
        self._hpa_asked: TTLCache[ScaledObject, bool] = TTLCache(facts.TRIGGERS, HPA_SECONDS, clock)
        """The ScaledObjects that the HPA asked about within a minute, by whichever trigger."""
        self._turn = asyncio.Lock()
        """Of streams: thousands of them can wait for the same fetch."""
        self._explaining = asyncio.Semaphore(EXPLAINED_AT_ONCE)

    async def close(self) -> None:
        await self._at_sources.close()
        await self._demands.close()
        await self._snapshots.close()

    async def look_at_sources(self) -> None:
        """Ask each source while no trigger does, so that a wrong setting shows; never ends."""
        await self._snapshots.look()

    async def sources_down(self, wait_seconds: float = 0.0) -> list[SourceDown]:
        """Return the sources that do not answer, once it is known of each, or after this time."""
        return await self._snapshots.down(wait_seconds)

    def until_news_seconds(self, scaled_object: ScaledObject, spec: TriggerSpec) -> float:
        """Return when to look again after an evaluation: with the next snapshot or demand.

        Each ScaledObject has a moment of its own within the time over which they are spread.
        """
        tracked = self._triggers.last(scaled_object, spec)
        if tracked is None:  # its evaluation failed
            return self._sources[spec.source].samples.step_seconds
        shared = self._snapshots.of(tracked.key, spec, scaled_object.namespace)
        spread_seconds = SPREAD_SECONDS * (hash(scaled_object) % 100 + 1) / 100
        demand_seconds = self._demands.due_seconds(scaled_object, spec)
        due_seconds = min(shared.due_seconds + spread_seconds, demand_seconds)
        return due_seconds if due_seconds > 0 else SAME_POLL_SECONDS

    def has_replicas(self, scaled_object: ScaledObject) -> bool:
        """Tell whether the HPA asked about a ScaledObject within a minute, so that it has some."""
        return scaled_object in self._hpa_asked

    def listen(
        self, scaled_object: ScaledObject, call: Callable[[], None]
    ) -> contextlib.AbstractContextManager[None]:
        if self._alerts is None:
            return contextlib.nullcontext()
        return self._alerts.listen(scaled_object, call)

    async def evaluate(
        self,
        scaled_object: ScaledObject,
        spec: TriggerSpec,
        timeout_seconds: float | None,
        caller: Caller | None = None,
    ) -> Decision:
        """Return the decision for one trigger within the caller's time, and within 2.5 s.

        `timeout_seconds` is what is left of the caller's deadline; None: the caller set none. By
        that the HPA is known, and polls, unless the caller is another one.
        """
        if caller is None:
            caller = Caller.POLL if timeout_seconds is None else Caller.HPA
        allowed_seconds = _allowed_seconds(timeout_seconds)
        deadline = self._clock() + allowed_seconds
        tracked, target_trouble = await self._triggers.find(scaled_object, spec, allowed_seconds)
        answer, now = tracked.answer, self._clock()
        tracked.hpa_calls.note(now, is_hpa=caller is Caller.HPA)
        if caller is Caller.HPA:
            self._hpa_asked[scaled_object] = True
        if (
            answer is None
            or target_trouble is not None
            or caller is Caller.STREAM
            or now - answer.at >= SAME_POLL_SECONDS
            or answer.alert != self._firing(scaled_object)
        ):
            if answer is not None:  # a new one is kept already
                self._triggers.keep(tracked)
            _, answer = await self._answer(tracked, target_trouble, deadline, caller)
        self._observe(facts.CallDecided(answer.decision))
        return answer.decision

    async def _answer(
        self,
        tracked: TrackedTrigger,
        target_trouble: str | None,
        deadline: float,
        caller: Caller,
    ) -> tuple[Reading, Answer]:
        reading = await self._read(tracked, deadline, caller)
        if caller is Caller.STREAM:
            async with self._turn:  # one after the other, with other calls in between
                await asyncio.sleep(0)
        gpu = decide_gpus(tracked, reading, target_trouble, is_observing=self._is_observing)
        found = None
        if gpu.decision.is_unread and not tracked.spec.is_by_demand:
            # A call does not wait for words.
            until = deadline if caller is Caller.PERSON else self._clock()
            found = await self._cause(tracked, reading, until)
            is_at_rest = not (gpu.decision.expected or gpu.decision.active or tracked.spec.query)
            if is_at_rest and found is not None and found.rule == NO_PODS:
                found = None  # what exporters do not show there may not exist
            before = None if tracked.answer is None else tracked.answer.cause
            if found is not None and found != before:
                self._observe(facts.CauseFound(tracked.key.source, str(found), found.names))
        answer, known = await self._with_other_signals(tracked, gpu, found, deadline, caller)
        return reading, self._remember(tracked, reading, answer, known)

    async def _read(self, tracked: TrackedTrigger, deadline: float, caller: Caller) -> Reading:
        shared = self._snapshots.of(tracked.key, tracked.spec, tracked.scaled_object.namespace)
        wanted = partial(suffices, tracked, caller)
        return await shared.read(tracked.snapshot_query, deadline, wanted)

    async def _cause(
        self, tracked: TrackedTrigger, reading: Reading, deadline: float
    ) -> Cause | None:
        """Return why exporters do not show a trigger's pods, if its source answers."""
        spec, snapshot = tracked.spec, reading.snapshot
        if snapshot is None or reading.trouble is not None:
            return None
        try:
            look = await self._at_sources.of(spec.source, spec.pods.namespace, deadline)
            if look is None:
                return None
            return cause(unread(spec, snapshot.of(spec.pods.namespace)), look)
        except Exception as error:  # noqa: BLE001 - a fault of ours; words are not worth an answer
            why = f"the look for the cause failed ({type(error).__name__})"
            return Cause(NO_PODS, why, "please report this")

    async def _with_other_signals(
        self,
        tracked: TrackedTrigger,
        gpu: GpuDecision,
        found: Cause | None,
        deadline: float,
        caller: Caller,
    ) -> tuple[Answer, Demand | None]:
        """Return the answer with all signals in it, and the demand as far as it is known.

        A poll that would fail without the demand waits for it, as it does for samples.
        """
        scaled_object, spec, decided = tracked.scaled_object, tracked.spec, gpu.decision
        alert, demand = self._firing(scaled_object), None
        if found is not None:
            decided = activation.with_reason(decided, str(found))
        if gpu.neighbour is not None or alert is not None:
            decided = activation.apply_neighbour_and_alert(spec, decided, gpu.neighbour, alert)
        if spec.demand is not None and (spec.is_by_demand or not decided.activated):
            is_urgent = caller is not Caller.HPA and activation.needs_demand(spec, decided)
            demand = await self._demands.ask(scaled_object, spec, deadline, is_urgent=is_urgent)
            if demand.value is None and gpu.router_unlisted:
                demand = replace(demand, trouble=f"{demand.trouble}: {gpu.router_unlisted}")
            decided = activation.apply_demand(spec, decided, demand)
        known, now = demand, self._clock()
        if spec.demand is not None and known is None:
            known = self._demands.known(scaled_object, spec)
        if known is not None:
            moment = scale_out.moment_of(now, gpu.decision, known)
            decided = replace(decided, futile=tracked.scale_outs.judge(moment))
        return Answer(decided, now, gpu, alert, demand, cause=found), known

    def _remember(
        self, tracked: TrackedTrigger, reading: Reading, answer: Answer, known: Demand | None
    ) -> Answer:
        """Keep the answer, with the replicas that it asks for, and report it if it is new."""
        decided, spec, previous = answer.decision, tracked.spec, tracked.answer
        if decided.active and not answer.gpu.decision.active:
            # Another signal said just now that the workload is active.
            tracked.memory = Memory.in_use(reading.present)
        before = None if previous is None else previous.decision
        summary = None if previous is None else previous.summary
        if previous is None or previous.gpu is not answer.gpu or before != decided:
            recommended = recommended_replicas(spec, decided, known)
            by, source = answer.active_by, tracked.key.source
            summary = summarized(tracked.scaled_object, spec, decided, recommended, by, source)
            self._observe(
                facts.Evaluated(
                    tracked.scaled_object,
                    spec,
                    decided,
                    summary,
                    reading.age_seconds,
                    source,
                    before,
                )
            )
        tracked.answer = answer._replace(summary=summary)
        return tracked.answer

    def _firing(self, scaled_object: ScaledObject) -> str | None:
        return None if self._alerts is None else self._alerts.firing(scaled_object)

    @property
    def step_seconds(self) -> float:
        """How often there can be new samples, by the source that has them most often."""
        return min(source.samples.step_seconds for source in self._sources.values())

    def summaries(self, namespace: str | None = None) -> Iterator[Summary]:
        """Yield what was answered within ten minutes, by the names of the ScaledObjects.

        It may be left for other work in between: each trigger is shown as it is at its turn.
        """
        for tracked in self._triggers.current():
            answer, is_shown = tracked.answer, namespace in {None, tracked.scaled_object.namespace}
            if is_shown and answer is not None and answer.summary is not None:
                age_seconds = round(self._clock() - answer.at, 3)
                yield replace(answer.summary, answered_seconds_ago=age_seconds)

    async def records(self, scaled_object: ScaledObject) -> list[Record]:
        """Return a record of each trigger of a ScaledObject that was asked about in ten minutes.

        They are decided now, each within 3.5 s, the last 20 that were asked about, and no old
        version of one. Of several ScaledObjects at once each waits for its turn.
        """
        newest_first = sorted(
            self._triggers.current(scaled_object),
            key=operator.attrgetter("hpa_calls.last"),
            reverse=True,
        )
        async with self._explaining:
            return [
                await self.record(scaled_object, tracked.given)
                for tracked in newest_first[:LOOKED_AT]
            ]

    async def record(self, scaled_object: ScaledObject, spec: TriggerSpec) -> Record:
        """Return the record of one trigger, tracked before or not.

        That is no call about it: what KEDA and the HPA ask is for them alone to say.
        """
        deadline = self._record_deadline()
        allowed_seconds = min(SLOW_SECONDS, self._slow_seconds)
        tracked, target_trouble = await self._triggers.find(scaled_object, spec, allowed_seconds)
        # As for a poll: one that comes just after it takes the same answer.
        reading, answer = await self._answer(tracked, target_trouble, deadline, Caller.PERSON)
        demand = answer.demand
        if demand is None and spec.demand is not None and spec.demand.threshold is not None:
            # The HPA asks for it, whatever else says active.
            demand = await self._demands.ask(scaled_object, tracked.spec, deadline)
        source, snapshot = self._sources[spec.source], reading.snapshot
        exporters = None if source.exporters is None else source.exporters()
        # In a thread: of 10,000 pods it takes a third of a second.
        return await asyncio.to_thread(
            build.record,
            build.Answered(
                scaled_object=scaled_object,
                spec=tracked.spec,
                decision=answer.decision,
                now=reading.now_for(tracked.spec),
                view=None if snapshot is None else snapshot.of(tracked.spec.pods.namespace),
                trouble=reading.trouble,
                lag_seconds=reading.lag_seconds,
                source=tracked.key.source,
                step_seconds=source.samples.step_seconds,
                speaks_promql=exporters is not None,
                exporters=exporters or (),
                neighbour=answer.gpu.neighbour,
                alert=answer.alert,
                takes_alerts=self._alerts is not None,
                demand=demand,
                active_by=answer.active_by,
            ),
        )

    async def cause(self, scaled_object: ScaledObject, spec: TriggerSpec) -> Cause | None:
        """Return why exporters show no pod of a trigger, with the names that it is about."""
        deadline = self._record_deadline()
        tracked, _ = await self._triggers.find(scaled_object, spec, SLOW_SECONDS)
        reading = await self._read(tracked, deadline, Caller.PERSON)
        return await self._cause(tracked, reading, deadline)

    def _record_deadline(self) -> float:
        """Return when a record is due: a second after a source counts as slow, so it can say so."""
        return self._clock() + self._slow_seconds + 1

    async def demand(
        self, scaled_object: ScaledObject, spec: TriggerSpec, timeout_seconds: float | None
    ) -> Demand:
        """Return the demand as the HPA gets it, in the same time as `evaluate`."""
        deadline = self._clock() + _allowed_seconds(timeout_seconds)
        demand = await self._demands.ask(scaled_object, spec, deadline)
        tracked = self._triggers.last(scaled_object, spec)
        answer, decided = None if tracked is None else tracked.answer, None
        if answer is not None and self._clock() - answer.at < HPA_SECONDS:
            decided = answer.decision
        return activation.demand_for_hpa(spec, decided, demand)


def _allowed_seconds(timeout_seconds: float | None) -> float:
    if timeout_seconds is None:
        return SLOW_SECONDS
    return max(0.0, min(SLOW_SECONDS, timeout_seconds - MARGIN_SECONDS))
