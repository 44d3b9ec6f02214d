"""What the GPUs say about a trigger: its decision from the snapshot that it shares with others.

A fetch that fails does not raise here: what is wrong with a source is the reason of the decision.
"""

from dataclasses import dataclass, replace

from keda_gpu_scaler import condition, decision, memory
from keda_gpu_scaler.decision import Context, Decision, State
from keda_gpu_scaler.feed import Feed
from keda_gpu_scaler.feeds import Feeds
from keda_gpu_scaler.memory import Memory
from keda_gpu_scaler.observation import Need
from keda_gpu_scaler.snapshot import Snapshot
from keda_gpu_scaler.spec import OnUnknown, PodSelector, TriggerSpec


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the GPUs said."""

    decision: Decision
    memory: Memory | None = None
    """What to remember of it for the time when the load is unknown."""
    neighbour: Decision | None = None
    """About the workload that activationWorkload names, where that matters."""
    snapshot: Snapshot | None = None
    decided_at: float = 0.0
    """The time of the decision, on the source's clock."""
    snapshot_age_seconds: float | None = None
    source: str = ""
    """As the facts of the snapshot name it."""


class Loads:
    """Decides triggers by their GPUs alone."""

    def __init__(self, feeds: Feeds, give_up_seconds: float) -> None:
        """Take the feeds to decide from.

        Args:
            feeds: whoever made them starts and closes them.
            give_up_seconds: how long a pod that vanished with its exporter counts as missing.
        """
        self._feeds, self._give_up_seconds = feeds, give_up_seconds

    async def decide(
        self,
        spec: TriggerSpec,
        last: Loaded | None,
        before: Memory | None,
        deadline: float,
        *,
        patient: bool = False,
    ) -> Loaded:
        """Return what the GPUs say, as new as can be had before `deadline`.

        Args:
            spec: the trigger.
            last: what they said the last time; it is returned again while nothing is newer.
            before: what is remembered of the trigger.
            deadline: on the feeds' clock.
            patient: wait for what is on its way even where there is something usable.
        """
        need = _need(spec, self._feeds.step_seconds(spec.source))
        shared = self._feeds.of(spec, need)
        await shared.refresh(need, deadline, patient=patient)
        if last is not None and self._still_holds(last, spec, shared):
            return last
        decided, kept = self._decided(spec, shared, need, before)
        return Loaded(
            decided,
            kept,
            neighbour=self._neighbour(spec, decided, shared, need),
            snapshot=shared.snapshot,
            decided_at=shared.now(),
            snapshot_age_seconds=_age(shared),
            source=shared.source_name,
        )

    def _still_holds(self, last: Loaded, spec: TriggerSpec, shared: Feed) -> bool:
        """Tell whether a decision anew would say the same: all it is made of is the same."""
        if shared.trouble is not None or shared.snapshot is None:
            return False
        age_seconds = shared.now() - last.decided_at
        return last.snapshot is shared.snapshot and 0 <= age_seconds < self._feeds.step_seconds(
            spec.source
        )

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
        return memory.recall(kept, lost_at, self._feeds.step_seconds(spec.source))

    def _neighbour(
        self, spec: TriggerSpec, decided: Decision, shared: Feed, need: Need
    ) -> Decision | None:
        """Decide about the other workload, unless this one's own GPUs say active already."""
        if spec.neighbour is None or decided.signal:
            return None
        theirs = _of_neighbour(spec, spec.neighbour)
        if shared.snapshot is None or not shared.covers(need):
            return decision.unknown(theirs, decided.reason, None)
        context = Context(shared.now(), self._give_up_seconds, trouble=shared.trouble)
        return decision.decide(theirs, shared.snapshot, context)


def _of_neighbour(spec: TriggerSpec, pods: PodSelector) -> TriggerSpec:
    """Return the trigger as if it were about the other workload."""
    return replace(
        spec, pods=pods, workload=str(pods), on_unknown=OnUnknown.HOLD, neighbour=None, demand=None
    )


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
