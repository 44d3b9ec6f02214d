"""Decisions of other replicas of the scaler, for a time in which this one cannot reach a source.

KEDA spreads its calls over all replicas, and they see the same samples: one that reaches the source
decides what this one would. It answers from samples of its own alone, so that nothing is passed on
from one replica to the next, and its answer counts for one step.
"""

import hashlib
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
import orjson
from cachetools import TTLCache

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.evaluator.single_flight import SingleFlight
from keda_gpu_scaler.spec.demand import TOO_LARGE
from keda_gpu_scaler.spec.retention import FORGET_SECONDS, TRIGGERS
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec

PATH = "/decisions"
LONGEST_BYTES = 2**18
"""The limit of a request and of its answer: room for as many triggers with the longest names that
Kubernetes has."""
ASKED_AT_ONCE = 400
SLOW_SECONDS = 1.0
_USABLE = frozenset({State.MEASURED, State.EMPTY, State.ENDED})

Ask: TypeAlias = Callable[[bytes], Awaitable[Mapping[str, bytes | bytearray]]]
"""Asks all other replicas, within a few seconds, and never fails; returns the answers of those that
gave one, by replica."""


class AskedTrigger(msgspec.Struct, frozen=True):
    """A trigger, as replicas name it to each other."""

    namespace: str
    scaled_object: str
    spec: str
    """A digest of all that it asks for: a replica with another spec of it knows nothing of this."""


class Told(msgspec.Struct, frozen=True):
    """What a replica decides of a trigger, by all signals that it knows of."""

    trigger: AskedTrigger
    state: State
    value: Annotated[float, msgspec.Meta(ge=0, lt=TOO_LARGE)] | None
    active: bool | None
    activated: bool


class _Request(msgspec.Struct, frozen=True):
    triggers: Annotated[list[AskedTrigger], msgspec.Meta(max_length=ASKED_AT_ONCE)]


class _Answer(msgspec.Struct, frozen=True):
    decisions: Annotated[list[Told], msgspec.Meta(max_length=ASKED_AT_ONCE)]


def asked_trigger(scaled_object: ScaledObject, spec: TriggerSpec) -> AskedTrigger:
    """Return what replicas call a trigger; neither its texts nor its secrets are in it."""
    return AskedTrigger(*scaled_object, hashlib.sha256(repr(spec).encode()).hexdigest())


def told(asked: AskedTrigger, decided: Decision) -> Told:
    """Return a decision as it is told to another replica."""
    return Told(asked, decided.state, decided.value, decided.active, decided.activated)


def read_request(payload: object) -> list[AskedTrigger]:
    """Return the triggers that another replica asks about.

    Raises:
        errors.RequestError: it is not what a replica asks.
    """
    try:
        return msgspec.convert(payload, _Request).triggers
    except msgspec.ValidationError as error:
        raise errors.RequestError(f"expected triggers to decide: {error}") from error


def written(decisions: Iterable[Told]) -> bytes:
    """Return the answer to another replica."""
    return msgspec.json.encode(_Answer(list(decisions)))


def read_answer(body: bytes | bytearray) -> list[Told]:
    """Return what another replica decides; nothing if any part of it is of another kind."""
    try:
        return msgspec.convert(orjson.loads(body), _Answer).decisions
    except (orjson.JSONDecodeError, msgspec.ValidationError):
        return []


def agreed(said: Mapping[str, Told]) -> tuple[str, Told] | None:
    """Return what the replicas decide of one trigger together, and which of them says the most.

    Where they differ, active counts before inactive, a hold before a number, and the higher number.
    If one of them is not sure, nothing is known.

    Args:
        said: what each decides, by replica.
    """
    decisions = said.values()
    if not decisions or any(one.active is None or one.state not in _USABLE for one in decisions):
        return None
    peer = max(said, key=lambda peer: _says(said[peer]))
    highest, is_activated = max(map(_number, decisions)), any(one.activated for one in decisions)
    value = None if highest == math.inf else highest
    return peer, msgspec.structs.replace(said[peer], value=value, activated=is_activated)


def _says(one: Told) -> tuple[bool, bool, float]:
    return one.active is True, not one.state.is_gone, _number(one)


def _number(one: Told) -> float:
    """Return the number, or more than any number: a hold removes no replica."""
    return math.inf if one.value is None else one.value


class PeerDecision(NamedTuple):
    """What the other replicas decide of a trigger."""

    peer: str
    told: Told
    age_seconds: float

    def instead_of(self, own: Decision, trouble: str | None) -> Decision:
        """Return it as a decision of this replica.

        Args:
            own: what this one decides: that the load is unknown, but a GPU may have been busy.
            trouble: why its source does not answer.
        """
        said = self.told
        number = "hold" if said.value is None else f"value {said.value:g}"
        active = "active" if said.active else "inactive"
        why = f"{said.state}, {number}, {active} by the replica {self.peer}"
        return replace(
            own,
            state=said.state,
            value=said.value,
            active=said.active or own.activated,
            activated=said.activated or own.activated,
            refused=False,
            remembered=None,
            reason=f"{why}, asked {self.age_seconds:.0f} s ago, because here: {trouble}",
        )


class PeerDecisions:
    """Asks the other replicas, once at a time about all triggers that wait for it."""

    def __init__(self, ask: Ask, clock: Callable[[], float]) -> None:
        """Take what asks.

        Args:
            ask: asks all other replicas.
            clock: seconds that never go back.
        """
        self._ask, self._clock = ask, clock
        self._flight = SingleFlight()
        self._waiting: dict[AskedTrigger, None] = {}
        self._known: TTLCache[AskedTrigger, tuple[float, tuple[str, Told] | None]] = TTLCache(
            TRIGGERS, FORGET_SECONDS, clock
        )
        """When each was asked about for the last time, and what they agreed on."""
        self._is_slow = False
        """The last time that no peer had an answer, slowly: after that no call waits for it."""

    async def of(
        self, asked: AskedTrigger, step_seconds: float, deadline: float
    ) -> PeerDecision | None:
        """Return what the other replicas decided within the last step; None: they do not know.

        Args:
            asked: the trigger.
            step_seconds: how long an answer counts.
            deadline: until when to wait for one, on the same clock.
        """
        while True:
            at, found = self._known.get(asked, (-math.inf, None))
            age_seconds = self._clock() - at
            if age_seconds <= step_seconds:
                return None if found is None else PeerDecision(*found, age_seconds)
            self._waiting[asked] = None
            self._flight.land()
            if self._flight.is_free:
                self._flight.launch(self._round(), name="ask replicas")
            left_seconds = max(0.0, deadline - self._clock())
            if self._is_slow or not await self._flight.wait(left_seconds):
                return None

    async def close(self) -> None:
        """Cancel a request that is under way."""
        await self._flight.close()

    async def _round(self) -> None:
        at, waiting = self._clock(), list(self._waiting)
        said: dict[AskedTrigger, dict[str, Told]] = {one: {} for one in waiting[:ASKED_AT_ONCE]}
        self._waiting = dict.fromkeys(waiting[ASKED_AT_ONCE:])
        answers = await self._ask(msgspec.json.encode(_Request(list(said))))
        for peer, body in answers.items():
            for one in read_answer(body):
                if one.trigger in said:
                    said[one.trigger][peer] = one
        self._known.update({asked: (at, agreed(decisions)) for asked, decisions in said.items()})
        self._is_slow = not any(said.values()) and self._clock() - at >= SLOW_SECONDS
