"""The last changes of each trigger's decision, for people who ask what happened.

It begins with the process: what was decided before is not known here. It is bounded in changes of
one ScaledObject, in age, and in bytes of all together; those that were decided longest ago go
first.
"""

import sys
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.decision.load import TOLERANCE
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts

CHANGES = 100
"""Of one ScaledObject: about an hour of one that changes at each step, and days of a usual one."""
AGE_SECONDS = 86_400.0
TOTAL_BYTES = 32 * 2**20
"""Room for the last hundred changes of four hundred ScaledObjects, or a few of five thousand."""
METRICS = 100
"""Of one ScaledObject: of more, those that were decided longest ago are taken for new again."""
REASON_CHARACTERS = 4000
"""Of one change; no usual reason has more than a few hundred."""
_CHANGE_BYTES = 400
"""What one takes beside its texts."""
_OBJECT_BYTES = 2048
"""What a ScaledObject takes beside its changes."""


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
    """The replicas that should report."""
    recommended: int | None
    """The replicas that it asks for at those that there were; None: not known, or held."""
    reason: str

    @property
    def trigger(self) -> tuple[str, str]:
        """Which of the ScaledObject's triggers it is about: the metric's name and the workload."""
        return self.metric_name, self.workload

    def differs(self, decided: Decision) -> bool:
        """Tell whether a later decision is another one: the HPA sees no change below 10 %."""
        if (self.state, self.active) != (decided.state, decided.active):
            return True
        before, now = self.value, decided.value
        if before is None or now is None:
            return before is not now
        return abs(now - before) > TOLERANCE * max(abs(before), abs(now))


@dataclass(slots=True)
class _Changes:
    """The changes of one ScaledObject's triggers, the oldest first."""

    kept: deque[Change] = field(default_factory=lambda: deque(maxlen=CHANGES))
    last: dict[tuple[str, str], Change] = field(default_factory=dict)
    """By the trigger's metric and workload, the one that changed longest ago first."""
    kept_bytes: int = 0
    """What it takes at most; a change that is kept and the last one counts twice."""

    def add(self, change: Change) -> None:
        """Add a change, in place of those that are too many or too old."""
        self.kept.append(change)
        while self.kept[0].at < change.at - AGE_SECONDS:
            self.kept.popleft()
        self.last.pop(change.trigger, None)
        self.last[change.trigger] = change
        if len(self.last) > METRICS:
            del self.last[next(iter(self.last))]
        changes = (*self.kept, *self.last.values())
        texts = sum(
            sys.getsizeof(text)
            for one in changes
            for text in (one.reason, one.metric_name, one.workload)
        )
        self.kept_bytes = _OBJECT_BYTES + _CHANGE_BYTES * len(changes) + texts


class History(facts.Subscriber):
    """Notes the changes among the decisions that it observes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with no changes.

        Args:
            clock: returns Unix seconds.
        """
        super().__init__({facts.Evaluated: self._evaluated})
        self._clock = clock
        self.since = clock()
        """When it began."""
        self._changes: OrderedDict[ScaledObject, _Changes] = OrderedDict()
        """The ScaledObject that was decided longest ago first."""
        self._kept_bytes = 0

    def _evaluated(self, fact: facts.Evaluated) -> None:
        """Note a decision if it differs from the last one of its trigger."""
        changes = self._changes.get(fact.scaled_object)
        if changes is None:
            changes = self._changes[fact.scaled_object] = _Changes()
        self._changes.move_to_end(fact.scaled_object)
        name, workload, decided = fact.spec.metric_name, fact.spec.workload, fact.decision
        last = changes.last.get((name, workload))
        if last is not None and not last.differs(decided):
            return
        change = Change(
            at=self._clock(),
            metric_name=name,
            workload=workload,
            state=decided.state,
            value=decided.value,
            active=decided.active,
            average=decided.average,
            replicas=decided.expected,
            recommended=fact.recommended,
            reason=decided.reason[:REASON_CHARACTERS],
        )
        self._kept_bytes -= changes.kept_bytes
        changes.add(change)
        self._kept_bytes += changes.kept_bytes
        while self._kept_bytes > TOTAL_BYTES:
            _, oldest = self._changes.popitem(last=False)
            self._kept_bytes -= oldest.kept_bytes

    def of(self, scaled_object: ScaledObject) -> list[Change]:
        """Return the changes of a ScaledObject's triggers within a day, the oldest first."""
        changes = self._changes.get(scaled_object) or _Changes()
        oldest = self._clock() - AGE_SECONDS
        return [change for change in changes.kept if change.at >= oldest]
