"""The decision of a trigger by its GPUs alone, from a shared snapshot.

A failed fetch does not raise here: the source's error is the reason of the decision.
"""

import contextlib
import weakref
from dataclasses import replace
from typing import NamedTuple

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision import memory, reasons
from keda_gpu_scaler.decision.decision import (
    Context,
    Decision,
    State,
    decide,
    is_never_seen,
    unknown,
)
from keda_gpu_scaler.decision.memory import Memory
from keda_gpu_scaler.evaluator.snapshot_cache import Reading, SharedSnapshot, SnapshotCache
from keda_gpu_scaler.evaluator.tracked_trigger import GpuDecision, MadeDecision, TrackedTrigger
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot
from keda_gpu_scaler.spec.spec import OnUnknown, TriggerSpec
from keda_gpu_scaler.spec.workload import PodSelector


class MadeOf(NamedTuple):
    """What a decision is made of, beside the trigger."""

    now: float
    """The time of the answer, on the source's clock."""
    view: NamespaceSnapshot | None
    """The trigger's namespace in the snapshot; None: there is none."""
    give_up_seconds: float
    trouble: str | None
    lag_seconds: float


class GpuDecisions:
    """Decides triggers by their GPUs alone, and remembers each in case its load becomes unknown."""

    def __init__(
        self,
        snapshot_cache: SnapshotCache,
        give_up_seconds: float,
        *,
        is_observing: bool = False,
    ) -> None:
        """Take the snapshots to decide from.

        Args:
            snapshot_cache: the shared snapshots; the caller starts and closes them.
            give_up_seconds: how long a pod that disappeared with its exporter counts as missing.
            is_observing: no call of KEDA or the HPA tells that a workload exists: one that was
                never seen is unknown.
        """
        self._snapshot_cache, self._give_up_seconds = snapshot_cache, give_up_seconds
        self._is_observing = is_observing

    async def decide(
        self,
        tracked: TrackedTrigger,
        deadline: float,
        *,
        is_hpa: bool = False,
        wait_for_fresh: bool = False,
    ) -> GpuDecision:
        """Return what the GPUs say, as new as can be had before `deadline`.

        A poll that would fail while the source is down waits for the source's next answer: it may
        be back, and KEDA 2.21 closes a connection that nothing else uses after a poll that failed.

        Args:
            tracked: the trigger, with its last decision.
            deadline: on the snapshots' clock.
            is_hpa: the HPA asks, which few at a time can do: it waits for no source that is down.
            wait_for_fresh: wait for a running fetch even if there is a usable snapshot.
        """
        try:
            shared = self._shared(tracked)
        except errors.SourceRefusedError as error:
            why = f"source {tracked.spec.source}: {error}"
            return GpuDecision(unknown(tracked.spec, why, None))
        spec, snapshot_query = tracked.spec, tracked.snapshot_query
        await shared.refresh(snapshot_query, deadline, wait_for_fresh=wait_for_fresh)
        read = shared.read(snapshot_query)
        if read.is_cut_off(spec) and not is_hpa and _would_fail(tracked):
            await shared.retried(deadline)
            read = shared.read(snapshot_query)
        return self._made(tracked, read)

    async def unaimed(self, tracked: TrackedTrigger, why: str, deadline: float) -> GpuDecision:
        """Return the decision while the scale target is unknown: only the other workload counts.

        Args:
            tracked: the trigger.
            why: why the target is unknown, as a clause.
            deadline: on the snapshots' clock.
        """
        decided = unknown(tracked.spec, why, None)
        if tracked.spec.neighbour is None:
            return GpuDecision(decided)
        shared = self._shared(tracked)
        await shared.refresh(tracked.snapshot_query, deadline)
        theirs = self._neighbour(tracked.spec, decided, shared.read(tracked.snapshot_query))
        return GpuDecision(decided, theirs, source=tracked.key.source)

    def made_of(self, tracked: TrackedTrigger) -> MadeOf:
        """Return what the decision of a trigger is made of, right after it was made."""
        spec, give_up_seconds = tracked.spec, self._give_up_seconds
        try:
            read = self._shared(tracked).read(tracked.snapshot_query)
        except errors.SourceRefusedError as error:
            return MadeOf(0.0, None, give_up_seconds, str(error), 0.0)
        taken = read.covered
        view = None if taken is None else taken.of(spec.pods.namespace)
        return MadeOf(read.now_for(spec), view, give_up_seconds, read.trouble, read.lag_seconds)

    def keep_in_use(self, tracked: TrackedTrigger) -> None:
        """Remember that another signal said just now that the workload is active."""
        with contextlib.suppress(errors.SourceRefusedError):
            read = self._shared(tracked).read(tracked.snapshot_query)
            tracked.memory = memory.in_use(read.present)

    def _shared(self, tracked: TrackedTrigger) -> SharedSnapshot:
        return self._snapshot_cache.of(
            tracked.key,
            tracked.spec,
            tracked.scaled_object.namespace,
        )

    def _made(self, tracked: TrackedTrigger, read: Reading) -> GpuDecision:
        made = tracked.made
        if made is None or not self._still_holds(made, tracked.spec, read):
            made = tracked.made = self._anew(tracked, read)
        return made.gpu

    def _still_holds(self, made: MadeDecision, spec: TriggerSpec, read: Reading) -> bool:
        """Tell whether a new decision would be the same: all its inputs are the same.

        That is so if less than a step has passed and there is no trouble. The decision for an
        unknown load also depends on memories, which can change at any time.
        """
        taken = read.snapshot
        if taken is None or made.snapshot is None or made.snapshot() is not taken:
            return False
        if made.gpu.decision.state is State.UNKNOWN or read.trouble is not None:
            return False
        now = read.now_for(spec)
        is_recent = 0 <= now - made.at < self._snapshot_cache.step_seconds(spec.source)
        return is_recent and now - taken.at <= spec.max_age_seconds

    def _anew(self, tracked: TrackedTrigger, read: Reading) -> MadeDecision:
        spec, taken = tracked.spec, read.snapshot
        decided, tracked.memory = self._decided(tracked, read)
        gpu = GpuDecision(
            decided,
            neighbour=self._neighbour(spec, decided, read),
            snapshot_age_seconds=None if taken is None else read.now - taken.at,
            source=tracked.key.source,
        )
        seen = None if taken is None else weakref.ref(taken)
        return MadeDecision(gpu, seen, read.now_for(spec))

    def _decided(self, tracked: TrackedTrigger, read: Reading) -> tuple[Decision, Memory | None]:
        """Decide now; if the load is unknown, use what was known before."""
        spec, before, calls = tracked.spec, tracked.memory, tracked.hpa_calls
        has_stopped = calls.has_stopped(read.clock_seconds)
        asking = calls.asking(read.clock_seconds, read.present - read.clock_seconds)
        taken = read.covered
        if taken is None:
            why = read.trouble or f"source {spec.source}: no answer yet"
            kept = before if asking is None else memory.asked(before, asking.at)
            recalled = self._recalled(spec, kept, read.now, has_stopped=has_stopped)
            has_pods = None if asking is None else reasons.ASKED
            decided = unknown(spec, why, recalled, hpa_has_stopped=has_stopped, has_pods=has_pods)
            return decided, memory.remember(kept, decided, read.now)
        view = taken.of(spec.pods.namespace)
        context = Context(
            read.now_for(spec),
            self._give_up_seconds,
            trouble=read.trouble,
            asking=asking,
            hpa_has_stopped=has_stopped,
        )
        decided = decide(spec, view, context)
        if self._is_observing and before is None and is_never_seen(spec, view, decided):
            answer = unknown(spec, reasons.never_seen(spec), None)
            return replace(answer, evidence=decided.evidence), None
        if decided.state is not State.UNKNOWN:
            return decided, memory.remember(before, decided, taken.at)
        if before is not None and before.at > taken.at:  # another signal said it
            kept = memory.remember(before, decided, read.now)
        else:
            last = decide(spec, view, replace(context, now=taken.at))
            kept = memory.remember(before, last, taken.at)
        if asking is not None:
            kept = memory.asked(kept, asking.at)
        recalled = self._recalled(spec, kept, read.lost_at, has_stopped=has_stopped)
        return decide(spec, view, replace(context, remembered=recalled)), kept

    def _recalled(
        self, spec: TriggerSpec, kept: Memory | None, lost_at: float, *, has_stopped: bool
    ) -> State | None:
        step_seconds = self._snapshot_cache.step_seconds(spec.source)
        return memory.recall(kept, lost_at, step_seconds, hpa_has_stopped=has_stopped)

    def _neighbour(self, spec: TriggerSpec, decided: Decision, read: Reading) -> Decision | None:
        """Decide about the other workload, unless this workload's own GPUs already say active."""
        if spec.neighbour is None or decided.activated:
            return None
        theirs = _of_neighbour(spec, spec.neighbour)
        taken = read.covered
        if taken is None:
            return unknown(theirs, decided.reason, None)
        context = Context(read.now_for(spec), self._give_up_seconds, trouble=read.trouble)
        return decide(theirs, taken.of(theirs.pods.namespace), context)


def _would_fail(tracked: TrackedTrigger) -> bool:
    """Tell whether an unknown load, of which the cluster says nothing either, is an error."""
    policy = tracked.spec.on_unknown
    is_forgotten = policy is OnUnknown.HOLD and tracked.memory is None
    return is_forgotten or policy is OnUnknown.ERROR


def _of_neighbour(spec: TriggerSpec, pods: PodSelector) -> TriggerSpec:
    """Return the trigger as if it were about the other workload."""
    return replace(
        spec, pods=pods, workload=str(pods), on_unknown=OnUnknown.HOLD, neighbour=None, demand=None
    )
