"""The last changes of each trigger's decision, for people who ask what happened.

It begins with the process: what was decided before is not known here. It is bounded in changes of
one ScaledObject, in age, and in bytes of all together; those that were decided longest ago go
first.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from cachetools import LRUCache

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.decision.load import TOLERANCE
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts

CHANGES = 100
"""Of one ScaledObject: about an hour of one that changes at each step, and days of a usual one."""
AGE_SECONDS = 86_400.0
TOTAL_BYTES = 32 * 2**20
"""Room for the last hundred changes of five hundred ScaledObjects, or for ten of five thousand."""
_CHANGE_BYTES = 400
"""What one takes beside its reason."""


@dataclass(frozen=True, slots=True)
class Change:
    """A decision that differs from the one before; field names are those of its JSON."""

    at: float
    """Unix seconds, on this machine's clock."""
    metric_name: str
    state: str
    value: float | None
    active: bool | None
    average: float | None
    replicas: int
    """The replicas that should report."""
    recommended: int | None
    """The replicas that it asks for at those that there were; None: not known, or held."""
    reason: str

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
    last: dict[str, Change] = field(default_factory=dict)
    """By the metric's name."""

    @property
    def kept_bytes(self) -> int:
        return sum(_CHANGE_BYTES + 2 * len(change.reason) for change in self.kept)


class History:
    """Notes the changes among the decisions that it observes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with no changes.

        Args:
            clock: returns Unix seconds.
        """
        self._clock = clock
        self.since = clock()
        """When it began."""
        self._changes: LRUCache[ScaledObject, _Changes] = LRUCache(
            TOTAL_BYTES, lambda changes: changes.kept_bytes
        )

    def __call__(self, fact: facts.Fact) -> None:
        """Note a decision if it differs from the last one of its trigger."""
        if not isinstance(fact, facts.Evaluated):
            return
        changes = self._changes.get(fact.scaled_object) or _Changes()
        name, decided = fact.spec.metric_name, fact.decision
        last = changes.last.get(name)
        if last is not None and not last.differs(decided):
            return
        self._changes.pop(fact.scaled_object, None)  # its size is taken when it is put back
        change = changes.last[name] = Change(
            at=self._clock(),
            metric_name=name,
            state=decided.state,
            value=decided.value,
            active=decided.active,
            average=decided.average,
            replicas=decided.expected,
            recommended=fact.recommended,
            reason=decided.reason,
        )
        changes.kept.append(change)
        while changes.kept[0].at < change.at - AGE_SECONDS:
            changes.kept.popleft()
        self._changes[fact.scaled_object] = changes

    def of(self, scaled_object: ScaledObject) -> list[Change]:
        """Return the changes of a ScaledObject's triggers within a day, the oldest first."""
        changes = self._changes.get(scaled_object) or _Changes()
        oldest = self._clock() - AGE_SECONDS
        return [change for change in changes.kept if change.at >= oldest]
