"""The last changes of each trigger's decision, and why triggers were refused recently.

Both are for people who ask what happened to a ScaledObject, with a decision or without one. They
begin with the process. The changes are bounded for one trigger and for all together; beyond that,
the ScaledObject that was decided longest ago goes first.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from cachetools import TTLCache

from keda_gpu_scaler.decision.load import TOLERANCE
from keda_gpu_scaler.decision.summary import Summary
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts

CHANGES = 100
"""Of one trigger: about an hour of one that changes at each step, and days of a usual one."""
TOTAL_CHANGES = 20_000
"""Of all triggers, such as the last four of 5,000: 20 MiB, and 94 MiB with the longest reasons."""
REASON_CHARACTERS = 1000
"""Of one change; most reasons are shorter."""
REFUSAL_SECONDS = 1200.0
"""KEDA tries a ScaledObject that is wrong again after 17 minutes at the latest."""
REFUSALS = 1_000
"""One for each ScaledObject, of 4 KiB at most."""


class Change(NamedTuple):
    """A decision that differs from the one before."""

    at: float
    """Unix seconds, on this machine's clock."""
    summary: Summary

    def differs(self, later: Summary) -> bool:
        """Tell whether a later decision is another one: the HPA sees no change below 10 %."""
        if (self.summary.state, self.summary.active) != (later.state, later.active):
            return True
        before, now = self.summary.value, later.value
        if before is None or now is None:
            return before is not now
        return abs(now - before) > TOLERANCE * max(abs(before), abs(now))


class History(facts.Subscriber):
    """Notes the changes among the decisions that it observes, and the newest refusals."""

    def __init__(self, clock: Callable[[], float], total_changes: int = TOTAL_CHANGES) -> None:
        super().__init__(
            {
                facts.Evaluated: self._evaluated,
                facts.TriggerRefused: self._trigger_refused,
                facts.TriggerChanged: self._trigger_changed,
            }
        )
        self._clock, self._total_changes = clock, total_changes
        self.since = clock()
        """When it began."""
        self._changes: OrderedDict[ScaledObject, dict[tuple[str, str], deque[Change]]]
        self._changes = OrderedDict()
        """By trigger; the ScaledObject that was decided longest ago first."""
        self._count = 0
        self._refusals: TTLCache[ScaledObject, tuple[float, str]] = TTLCache(
            REFUSALS, REFUSAL_SECONDS, clock
        )

    def _evaluated(self, fact: facts.Evaluated) -> None:
        summary = fact.summary
        triggers = self._changes.setdefault(fact.scaled_object, {})
        self._changes.move_to_end(fact.scaled_object)
        changes = triggers.setdefault(summary.trigger, deque(maxlen=CHANGES))
        if changes and not changes[-1].differs(summary):
            return
        self._count += len(changes) < CHANGES
        shown = replace(summary, reason=summary.reason[:REASON_CHARACTERS])
        changes.append(Change(self._clock(), shown))
        while self._count > self._total_changes:
            _, dropped_triggers = self._changes.popitem(last=False)
            self._count -= sum(len(dropped) for dropped in dropped_triggers.values())

    def of(self, scaled_object: ScaledObject) -> list[Change]:
        triggers = self._changes.get(scaled_object, {})
        return sorted(
            (change for changes in triggers.values() for change in changes),
            key=lambda change: change.at,
        )

    def _trigger_refused(self, fact: facts.TriggerRefused) -> None:
        self._refusals[fact.scaled_object] = (self._clock(), fact.reason)

    def _trigger_changed(self, fact: facts.TriggerChanged) -> None:
        self._refusals.pop(fact.scaled_object, None)

    def refusal(self, scaled_object: ScaledObject) -> str | None:
        """Return when and why a trigger of a ScaledObject was refused, in one sentence."""
        refusal = self._refusals.get(scaled_object)
        if refusal is None:
            return None
        refused_at, reason = refusal
        return f"{self._clock() - refused_at:.0f} s ago KEDA was refused: {reason}"
