"""The last changes of each trigger's decision, and why triggers were refused recently.

Both are for people who ask what happened to a ScaledObject, with a decision or without one. They
begin with the process. The changes are bounded for one trigger and for all together; beyond that,
the ScaledObject that was decided longest ago goes first.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import TTLCache

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.decision.load import TOLERANCE
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts

CHANGES = 100
"""Of one trigger: about an hour of one that changes at each step, and days of a usual one."""
TOTAL_CHANGES = 20_000
"""Of all triggers, such as the last four of 5,000: 16 MiB, and 90 MiB with the longest reasons."""
REASON_CHARACTERS = 1000
"""Of one change; most reasons are shorter."""
REFUSAL_SECONDS = 1200.0
"""KEDA tries a ScaledObject that is wrong again after 17 minutes at the latest."""
REFUSALS = 1_000
"""One for each ScaledObject, of 4 KiB at most."""


@dataclass(frozen=True, slots=True)
class Change:
    """A decision that differs from the one before; field names are those of its JSON."""

    at: float
    """Unix seconds, on this machine's clock."""
    metric_name: str
    workload: str
    """Whose pods are measured; triggers of several workloads mostly have the same metric's name."""
    state: str
    value: float | None
    active: bool | None
    average: float | None
    replicas: int
    recommended: int | None
    """The replicas that it asks for at those that there were; None: not known, or held."""
    reason: str

    @property
    def trigger(self) -> tuple[str, str]:
        """Which of the ScaledObject's triggers it is about: the metric's name and the workload."""
        return self.metric_name, self.workload

    def differs(self, decision: Decision) -> bool:
        """Tell whether a later decision is another one: the HPA sees no change below 10 %."""
        if (self.state, self.active) != (decision.state, decision.active):
            return True
        before, now = self.value, decision.value
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
        spec, decision = fact.spec, fact.decision
        triggers = self._changes.setdefault(fact.scaled_object, {})
        self._changes.move_to_end(fact.scaled_object)
        changes = triggers.setdefault((spec.metric_name, spec.workload), deque(maxlen=CHANGES))
        if changes and not changes[-1].differs(decision):
            return
        self._count += len(changes) < CHANGES
        changes.append(
            Change(
                at=self._clock(),
                metric_name=spec.metric_name,
                workload=spec.workload,
                state=decision.state,
                value=decision.value,
                active=decision.active,
                average=decision.average,
                replicas=decision.expected,
                recommended=fact.recommended,
                reason=decision.reason[:REASON_CHARACTERS],
            )
        )
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
