"""The use case: one trigger in, one decision out, from what is shared by all triggers.

It knows sources only by their port, and gRPC, logs and metrics not at all. An evaluation never
raises because of a source: what is wrong with one is the reason of the decision.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from cachetools import TTLCache

from keda_gpu_scaler import condition, decision, errors, facts, feed, memory
from keda_gpu_scaler.cluster import Cluster
from keda_gpu_scaler.decision import Context, Decision, State
from keda_gpu_scaler.feed import Feed
from keda_gpu_scaler.feeds import Feeds
from keda_gpu_scaler.memory import Memory
from keda_gpu_scaler.observation import Need
from keda_gpu_scaler.source import Source
from keda_gpu_scaler.spec import ScaledObject, ScaleTarget, TriggerSpec

ANSWER_SECONDS = feed.SLOW_SECONDS
"""KEDA sets no deadline on its poll path: this one keeps its loops and the HPA's workers moving."""
MARGIN_SECONDS = 0.1
"""Left of the caller's own deadline for the way back."""
SAME_POLL_SECONDS = 1.0
"""KEDA asks GetMetrics, then IsActive, within milliseconds: one poll gets one decision."""
REMEMBER_SECONDS = 600.0
TRIGGERS_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class _Record:
    """The last decision about one trigger, and what to remember of it."""

    decision: Decision
    decided_at: float
    memory: Memory | None


class Evaluator:
    """Decides triggers. They share one snapshot per (source, signal, profile) or own query."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        observe: facts.Observer = facts.ignore,
        *,
        cluster: Cluster | None = None,
        give_up_seconds: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the sources and the cluster over; `close` closes them.

        Args:
            sources: by the name that triggers call them.
            observe: is told of every decision, snapshot and change of a source.
            cluster: the Kubernetes API, where it is asked.
            give_up_seconds: how long a pod that vanished with its exporter counts as missing.
            clock: seconds that never go back.
        """
        self._cluster, self._observe, self._clock = cluster, observe, clock
        self._give_up_seconds = give_up_seconds
        self._feeds = Feeds(
            sources, observe, cluster=cluster, give_up_seconds=give_up_seconds, clock=clock
        )
        self._records: TTLCache[tuple[ScaledObject, TriggerSpec], _Record] = TTLCache(
            TRIGGERS_REMEMBERED, REMEMBER_SECONDS, timer=clock
        )

    async def start(self) -> None:
        """Start every source, and to follow the cluster."""
        await self._feeds.start()
        if self._cluster is not None:
            await self._cluster.start()

    async def close(self) -> None:
        """End what is on its way and close every source."""
        if self._cluster is not None:
            await self._cluster.close()
        await self._feeds.close()

    def step_seconds(self, source: str) -> float:
        """Return how often a source can have something new."""
        return self._feeds.step_seconds(source)

    async def evaluate(
        self, scaled_object: ScaledObject, spec: TriggerSpec, timeout_seconds: float | None
    ) -> Decision:
        """Return the decision for one trigger within the caller's time, and within 2.5 s.

        Args:
            scaled_object: whose trigger it is.
            spec: the trigger.
            timeout_seconds: what is left of the caller's deadline; None: he set none.
        """
        asked_at = self._clock()
        if self._cluster is not None and isinstance(spec.pods, ScaleTarget):
            try:
                pods = await self._cluster.target(scaled_object, _patience(timeout_seconds))
            except errors.SourceError as error:
                return self._without_target(scaled_object, spec, str(error))
            spec = replace(spec, pods=pods, workload=str(pods))
        record = self._records.get((scaled_object, spec))
        if record is not None and asked_at - record.decided_at < SAME_POLL_SECONDS:
            return record.decision
        need = _need(spec, self.step_seconds(spec.source))
        shared = self._feeds.of(spec, need)
        await shared.refresh(need, asked_at + _patience(timeout_seconds))
        decided, kept = self._decided(spec, shared, need, record.memory if record else None)
        self._records[scaled_object, spec] = _Record(decided, self._clock(), kept)
        self._observe(
            facts.Evaluated(scaled_object, spec, decided, _age(shared), shared.source_name)
        )
        return decided

    def _without_target(self, scaled_object: ScaledObject, spec: TriggerSpec, why: str) -> Decision:
        """Nobody knows whose load it would be: nothing is known of it, nor remembered."""
        decided = decision.unknown(spec, why, None)
        self._observe(facts.Evaluated(scaled_object, spec, decided, None))
        return decided

    def _decided(
        self, spec: TriggerSpec, shared: Feed, need: Need, before: Memory | None
    ) -> tuple[Decision, Memory | None]:
        """Decide now; where the load is unknown now, with what was known before."""
        now = shared.now()
        taken = shared.snapshot
        if taken is None or not shared.covers(need):
            why = shared.trouble or f"source {spec.source}: no answer yet"
            return decision.unknown(spec, why, self._recalled(spec, before, now)), before
        context = Context(now, self._give_up_seconds, trouble=shared.trouble)
        decided = decision.decide(spec, taken, context)
        if decided.state is not State.UNKNOWN:
            return decided, memory.remember(before, decided, taken.at)
        last = decision.decide(spec, taken, replace(context, now=taken.at))
        kept = memory.remember(before, last, taken.at)
        lost_at = shared.failure.since if shared.failure is not None else now
        recalled = self._recalled(spec, kept, lost_at)
        return decision.decide(spec, taken, replace(context, remembered=recalled)), kept

    def _recalled(self, spec: TriggerSpec, kept: Memory | None, lost_at: float) -> State | None:
        return memory.recall(kept, lost_at, self.step_seconds(spec.source))


def _age(shared: Feed) -> float | None:
    return None if shared.snapshot is None else shared.now() - shared.snapshot.at


def _need(spec: TriggerSpec, step_seconds: float) -> Need:
    window = spec.window_seconds if spec.window_seconds is not None else condition.WINDOW_SECONDS
    reach = max(window + spec.warmup_seconds, spec.activation_window_seconds, spec.max_age_seconds)
    return Need(
        spec.shared_signal,
        spec.profile,
        frozenset({spec.pods.namespace}),
        span_seconds=reach + step_seconds,
        window_seconds=max(window, spec.activation_window_seconds),
        query=spec.query,
    )


def _patience(timeout_seconds: float | None) -> float:
    if timeout_seconds is None:
        return ANSWER_SECONDS
    return max(0.0, min(ANSWER_SECONDS, timeout_seconds - MARGIN_SECONDS))
