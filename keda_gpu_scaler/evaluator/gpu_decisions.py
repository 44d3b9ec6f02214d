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
    GONE_SECONDS,
    Context,
    Decision,
    State,
    decide,
    unknown,
)
from keda_gpu_scaler.decision.memory import Memory
from keda_gpu_scaler.evaluator.peer_decisions import PeerDecision, PeerDecisions
from keda_gpu_scaler.evaluator.snapshot_cache import SharedSnapshot, SnapshotCache
from keda_gpu_scaler.evaluator.tracked_trigger import GpuDecision, MadeDecision, TrackedTrigger
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery, snapshot_query_of
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot
from keda_gpu_scaler.spec.spec import OnUnknown, ScaledObject, TriggerSpec
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
        peers: PeerDecisions | None = None,
        *,
        is_observing: bool = False,
    ) -> None:
        """Take the snapshots to decide from.

        Args:
            snapshot_cache: the shared snapshots; the caller starts and closes them.
            give_up_seconds: how long a pod that disappeared with its exporter counts as missing.
            peers: the other replicas of the scaler; the caller closes them.
            is_observing: KEDA does not ask about these triggers.
        """
        self._snapshot_cache, self._give_up_seconds = snapshot_cache, give_up_seconds
        self._peers, self._is_observing = peers, is_observing

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
            shared, snapshot_query = self._shared(tracked.scaled_object, tracked.spec)
        except errors.SourceRefusedError as error:
            why = f"source {tracked.spec.source}: {error}"
            return GpuDecision(unknown(tracked.spec, why, None))
        await shared.refresh(snapshot_query, deadline, wait_for_fresh=wait_for_fresh)
        is_urgent = not is_hpa and _would_fail(tracked)
        if is_urgent and _is_cut_off(tracked.spec, shared, snapshot_query):
            await shared.retried(deadline)
        theirs = None
        if self._peers is not None and _is_cut_off(tracked.spec, shared, snapshot_query):
            step_seconds = self._snapshot_cache.step_seconds(tracked.spec.source)
            theirs = await self._peers.of(tracked.asked, step_seconds, deadline)
        # No `await` from here on, so that memories are updated in order.
        theirs = _believed(theirs, tracked, _present(shared))
        gpu = self._made(tracked, shared, snapshot_query)
        if theirs is None or not _is_cut_off(tracked.spec, shared, snapshot_query):
            return gpu
        decided = theirs.instead_of(gpu.decision, shared.trouble)
        # As active, so that it is not remembered as idle with pods: load may return unseen.
        heard, at = replace(decided, active=True), shared.now() - theirs.age_seconds
        tracked.memory = memory.remember(tracked.memory, heard, at)
        return replace(gpu, decision=decided, neighbour=None, is_of_peer=True)

    async def own(self, tracked: TrackedTrigger, deadline: float) -> GpuDecision | None:
        """Return what the GPUs say by samples of the last step; None: there are none.

        Args:
            tracked: the trigger, with its last decision.
            deadline: on the snapshots' clock.
        """
        try:
            shared, snapshot_query = self._shared(tracked.scaled_object, tracked.spec)
        except errors.SourceRefusedError:
            return None
        await shared.refresh(snapshot_query, deadline, wait_for_fresh=True)
        is_new = shared.is_new(snapshot_query)
        return self._made(tracked, shared, snapshot_query) if is_new else None

    async def unaimed(
        self, scaled_object: ScaledObject, spec: TriggerSpec, why: str, deadline: float
    ) -> GpuDecision:
        """Return the decision while the scale target is unknown: only the other workload counts.

        Args:
            scaled_object: the ScaledObject of the trigger.
            spec: the trigger.
            why: why the target is unknown, as a clause.
            deadline: on the snapshots' clock.
        """
        decided = unknown(spec, why, None)
        if spec.neighbour is None:
            return GpuDecision(decided)
        shared, snapshot_query = self._shared(scaled_object, spec)
        await shared.refresh(snapshot_query, deadline)
        theirs = self._neighbour(spec, decided, shared, snapshot_query)
        return GpuDecision(decided, theirs, source=shared.source_name)

    def made_of(self, tracked: TrackedTrigger, gpu: GpuDecision) -> MadeOf:
        """Return what a decision is made of, right after it was made.

        Args:
            tracked: the trigger.
            gpu: its decision.
        """
        spec, give_up_seconds = tracked.spec, self._give_up_seconds
        try:
            shared, snapshot_query = self._shared(tracked.scaled_object, spec)
        except errors.SourceRefusedError as error:
            return MadeOf(0.0, None, give_up_seconds, str(error), 0.0)
        taken = shared.snapshot if shared.covers(snapshot_query) else None
        view = None if taken is None or gpu.is_of_peer else taken.of(spec.pods.namespace)
        return MadeOf(_now(spec, shared), view, give_up_seconds, shared.trouble, shared.lag_seconds)

    def note_call(self, tracked: TrackedTrigger, *, is_hpa: bool) -> None:
        """Remember that a trigger is asked about: by the HPA, or by a poll."""
        with contextlib.suppress(errors.SourceRefusedError):
            shared, _ = self._shared(tracked.scaled_object, tracked.spec)
            tracked.hpa_calls.note(_present(shared), is_hpa=is_hpa)

    def keep_in_use(self, tracked: TrackedTrigger) -> None:
        """Remember that another signal said just now that the workload is active."""
        with contextlib.suppress(errors.SourceRefusedError):
            shared, _ = self._shared(tracked.scaled_object, tracked.spec)
            tracked.memory = memory.in_use(_present(shared))

    def _shared(
        self, scaled_object: ScaledObject, spec: TriggerSpec
    ) -> tuple[SharedSnapshot, SnapshotQuery]:
        snapshot_query = snapshot_query_of(spec, self._snapshot_cache.step_seconds(spec.source))
        shared = self._snapshot_cache.of(
            spec, snapshot_query, scaled_object.namespace, is_observed=self._is_observing
        )
        return shared, snapshot_query

    def _made(
        self, tracked: TrackedTrigger, shared: SharedSnapshot, snapshot_query: SnapshotQuery
    ) -> GpuDecision:
        made = tracked.made
        if made is None or not self._still_holds(made, tracked.spec, shared):
            made = tracked.made = self._anew(tracked, shared, snapshot_query)
        return made.gpu

    def _still_holds(self, made: MadeDecision, spec: TriggerSpec, shared: SharedSnapshot) -> bool:
        """Tell whether a new decision would be the same: all its inputs are the same.

        That is so if less than a step has passed and there is no trouble. The decision for an
        unknown load also depends on memories, which can change at any time.
        """
        taken, now = shared.snapshot, _now(spec, shared)
        is_known = made.gpu.decision.state is not State.UNKNOWN and shared.trouble is None
        if taken is None or not is_known or now - taken.at > spec.max_age_seconds:
            return False
        is_recent = 0 <= now - made.at < self._snapshot_cache.step_seconds(spec.source)
        return is_recent and made.snapshot is not None and made.snapshot() is taken

    def _anew(
        self, tracked: TrackedTrigger, shared: SharedSnapshot, snapshot_query: SnapshotQuery
    ) -> MadeDecision:
        spec, taken = tracked.spec, shared.snapshot
        decided, tracked.memory = self._decided(tracked, shared, snapshot_query)
        gpu = GpuDecision(
            decided,
            neighbour=self._neighbour(spec, decided, shared, snapshot_query),
            snapshot_age_seconds=None if taken is None else shared.now() - taken.at,
            source=shared.source_name,
        )
        return MadeDecision(gpu, None if taken is None else weakref.ref(taken), _now(spec, shared))

    def _decided(
        self, tracked: TrackedTrigger, shared: SharedSnapshot, snapshot_query: SnapshotQuery
    ) -> tuple[Decision, Memory | None]:
        """Decide now; if the load is unknown, use what was known before."""
        spec, before, calls = tracked.spec, tracked.memory, tracked.hpa_calls
        now, taken = _now(spec, shared), shared.snapshot
        has_stopped = calls.has_stopped(_present(shared))
        asking = calls.asking(_present(shared))
        if taken is None or not shared.covers(snapshot_query):
            why = shared.trouble or f"source {spec.source}: no answer yet"
            kept = before if asking is None else memory.asked(before, asking.at)
            recalled = self._recalled(spec, kept, shared.now(), has_stopped=has_stopped)
            has_pods = None if asking is None else reasons.ASKED
            decided = unknown(spec, why, recalled, hpa_has_stopped=has_stopped, has_pods=has_pods)
            return decided, memory.remember(kept, decided, shared.now())
        view = taken.of(spec.pods.namespace)
        context = Context(
            now,
            self._give_up_seconds,
            trouble=shared.trouble,
            asking=asking,
            hpa_has_stopped=has_stopped,
        )
        decided = decide(spec, view, context)
        if decided.state is not State.UNKNOWN:
            return decided, memory.remember(before, decided, taken.at)
        if before is not None and before.at > taken.at:  # another replica said it, or a signal
            kept = memory.remember(before, decided, shared.now())
        else:
            last = decide(spec, view, replace(context, now=taken.at))
            kept = memory.remember(before, last, taken.at)
        if asking is not None:
            kept = memory.asked(kept, asking.at)
        lost_at = shared.failure.since if shared.failure is not None else shared.now()
        recalled = self._recalled(spec, kept, lost_at, has_stopped=has_stopped)
        return decide(spec, view, replace(context, remembered=recalled)), kept

    def _recalled(
        self, spec: TriggerSpec, kept: Memory | None, lost_at: float, *, has_stopped: bool
    ) -> State | None:
        step_seconds = self._snapshot_cache.step_seconds(spec.source)
        return memory.recall(kept, lost_at, step_seconds, hpa_has_stopped=has_stopped)

    def _neighbour(
        self,
        spec: TriggerSpec,
        decided: Decision,
        shared: SharedSnapshot,
        snapshot_query: SnapshotQuery,
    ) -> Decision | None:
        """Decide about the other workload, unless this workload's own GPUs already say active."""
        if spec.neighbour is None or decided.activated:
            return None
        theirs = _of_neighbour(spec, spec.neighbour)
        if shared.snapshot is None or not shared.covers(snapshot_query):
            return unknown(theirs, decided.reason, None)
        context = Context(_now(spec, shared), self._give_up_seconds, trouble=shared.trouble)
        return decide(theirs, shared.snapshot.of(theirs.pods.namespace), context)


def _would_fail(tracked: TrackedTrigger) -> bool:
    """Tell whether an unknown load, of which the cluster says nothing either, is an error."""
    policy = tracked.spec.on_unknown
    is_forgotten = policy is OnUnknown.HOLD and tracked.memory is None
    return is_forgotten or policy is OnUnknown.ERROR


def _is_cut_off(spec: TriggerSpec, shared: SharedSnapshot, snapshot_query: SnapshotQuery) -> bool:
    """Tell whether the source does not answer, and its last samples are too old to be used."""
    if shared.trouble is None:
        return False
    if shared.snapshot is None or not shared.covers(snapshot_query):
        return True
    return _now(spec, shared) - shared.snapshot.at > spec.max_age_seconds


def _believed(
    theirs: PeerDecision | None, tracked: TrackedTrigger, now: float
) -> PeerDecision | None:
    """Return what another replica decided, unless the HPA asks about pods that it does not see.

    The HPA may ask for a minute about pods that have just gone.
    """
    if theirs is None or not theirs.told.state.is_gone:
        tracked.gone_since = None
        return theirs
    if tracked.gone_since is None:
        tracked.gone_since = now
    asking = tracked.hpa_calls.asking(now)
    if asking is None or asking.at - tracked.gone_since < GONE_SECONDS:
        return theirs
    tracked.memory = None
    return None


def _present(shared: SharedSnapshot) -> float:
    """Return the time that calls are made at, also where the samples are of an earlier one."""
    return shared.now() + shared.lag_seconds


def _now(spec: TriggerSpec, shared: SharedSnapshot) -> float:
    """Return the time up to which ages count: a lag beyond `maxAge` is an age like any other."""
    is_usable = shared.lag_seconds <= spec.max_age_seconds
    return shared.now() if is_usable else _present(shared)


def _of_neighbour(spec: TriggerSpec, pods: PodSelector) -> TriggerSpec:
    """Return the trigger as if it were about the other workload."""
    return replace(
        spec, pods=pods, workload=str(pods), on_unknown=OnUnknown.HOLD, neighbour=None, demand=None
    )
