"""What stands between a value and the replicas: KEDA's and the HPA's gates, in their order.

Pure. A gate holds when the cluster's own objects show that it keeps the replicas from what the
value asks for. What they do not show is not guessed: the HPA keeps its earlier recommendations, and
the cluster's own tolerance, to itself. Sources: KEDA's `scaledobject_controller.go`, `fallback.go`
and `scale_scaledobjects.go`; Kubernetes' `horizontal.go` and `replica_calculator.go`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from keda_gpu_scaler.autoscaling import objects, rules
from keda_gpu_scaler.autoscaling.objects import (
    Condition,
    Hpa,
    HpaMetric,
    Rules,
    Scale,
    ScaledObject,
)

_ANNOTATION = "autoscaling.keda.sh/"
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}
"""What Go's `ParseBool` takes for false; KEDA takes every other value of an annotation for true."""
_MESSAGE_CHARACTERS = 300
_CLUSTERS_WINDOW = "the controller manager's, 300 s unless it is told another"
_ROUNDING = 0.001
"""The HPA shows an average rounded up to the next thousandth."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One thing that can keep the replicas from what the value asks for."""

    name: str
    holds: bool
    reason: str
    condition: str | None = None
    """The condition that says so, as type=status/reason; None: no condition does."""
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gates:
    """All gates of a ScaledObject, in the order in which KEDA and the HPA apply them."""

    cluster: str
    """The context of the kubeconfig that was used."""
    at: float
    """When, as Unix seconds on the clock of the machine that asked."""
    replicas: int | None
    """The replicas that the workload is to have now; None: not known."""
    asked: int | None
    """The replicas that the triggers' values ask for now; None: none, or it is not known."""
    first: str | None
    """The first gate that holds; None: none does."""
    reason: str
    """Its sentence, or that none holds."""
    gates: tuple[Gate, ...]


class Facts(NamedTuple):
    """What the cluster and the records show at one instant."""

    cluster: str
    now: float
    scaled_object: ScaledObject
    hpa: Hpa | None
    """None: there is none."""
    scale: Scale | None = None
    """None: it could not be read; the HPA knows the replicas of its last sync."""
    active: bool | None = None
    """What the triggers of ours say now: True if one says active, None if one does not know."""
    asked: int | None = None
    """The replicas that their values ask for now; None: none, or it is not known."""

    @property
    def replicas(self) -> int | None:
        """The replicas that the workload is to have; None: not known."""
        if self.scale is not None:
            return self.scale.spec.replicas
        return None if self.hpa is None else self.hpa.status.current_replicas

    @property
    def bottom(self) -> int | None:
        """What KEDA scales to when nothing is active; None: the HPA alone scales in."""
        spec = self.scaled_object.spec
        return spec.idle_replica_count if spec.min_replica_count else 0

    def keda(self, kind: str) -> Condition:
        """Return a condition of the ScaledObject."""
        return objects.condition(self.scaled_object.status.conditions, kind)

    def hpas(self, kind: str) -> Condition:
        """Return a condition of the HPA."""
        return objects.condition(None if self.hpa is None else self.hpa.status.conditions, kind)

    def is_set(self, annotation: str) -> bool:
        """Tell whether an annotation of KEDA's is there and not false."""
        annotations = self.scaled_object.metadata.annotations
        return annotations.get(_ANNOTATION + annotation, "false") not in _FALSE

    @property
    def is_paused(self) -> bool:
        """KEDA does nothing, and deletes the HPA."""
        annotations = self.scaled_object.metadata.annotations
        return self.is_set("paused") or f"{_ANNOTATION}paused-replicas" in annotations

    @property
    def limited(self) -> str:
        """The reason for which the HPA's last sync limited the replicas; empty: it did not."""
        found = self.hpas("ScalingLimited")
        is_new = self.hpas("ScalingActive").status == "True"
        return found.reason if is_new and found.status == "True" else ""


class _Found(NamedTuple):
    """What one gate is: a Gate without its name."""

    reason: str
    condition: Condition | None
    numbers: Mapping[str, float]
    holds: bool


def _held(
    reason: str, says: Condition | None = None, numbers: Mapping[str, float] | None = None
) -> _Found:
    return _Found(reason, says, numbers or {}, holds=True)


def _open(
    reason: str, says: Condition | None = None, numbers: Mapping[str, float] | None = None
) -> _Found:
    return _Found(reason, says, numbers or {}, holds=False)


def gates(facts: Facts) -> Gates:
    """Return every gate, and the first that holds."""
    found = tuple(_gates(facts))
    first = next((gate for gate in found if gate.holds), None)
    return Gates(
        cluster=facts.cluster,
        at=facts.now,
        replicas=facts.replicas,
        asked=facts.asked,
        first=None if first is None else first.name,
        reason=_nothing(facts) if first is None else first.reason,
        gates=found,
    )


def _gates(facts: Facts) -> Iterator[Gate]:
    for name, rule in _ORDER.items():
        found = rule(facts)
        said = str(found.condition) if found.condition and found.condition.reason else None
        yield Gate(name, found.holds, found.reason, said, found.numbers)


def _nothing(facts: Facts) -> str:
    there = "unknown" if facts.replicas is None else str(facts.replicas)
    if facts.replicas == 0:
        return "nothing holds: KEDA wakes the workload at its next poll"
    if facts.asked == facts.replicas and facts.asked is not None:
        return f"nothing holds: the value asks for the {there} replicas that there are"
    asked = "no number of" if facts.asked is None else str(facts.asked)
    return (
        f"nothing that the cluster shows holds: now the value asks for {asked} replicas, there are"
        f" {there}, and the HPA looks every 15 s"
    )


def _ready(facts: Facts) -> _Found:
    ready = facts.keda("Ready")
    if ready.status == "False" and ready.reason != "TriggerError":
        return _held(f"KEDA cannot work on the ScaledObject: {_message(ready)}", ready)
    return _open("KEDA works on the ScaledObject", ready)


def _paused(facts: Facts) -> _Found:
    if not facts.is_paused:
        return _open("no annotation pauses KEDA")
    count = facts.scaled_object.metadata.annotations.get(f"{_ANNOTATION}paused-replicas")
    name = "paused" if count is None else "paused-replicas"
    kept = "as they are" if count is None else f"at {count[:12]}"
    return _held(
        f"KEDA is paused by the annotation {_ANNOTATION}{name}: there is no HPA, and the replicas"
        f" stay {kept}",
        facts.keda("Paused"),
    )


def _fallback(facts: Facts) -> _Found:
    wanted, says = facts.scaled_object.spec.fallback, facts.keda("Fallback")
    if wanted is None:
        return _open("the ScaledObject has no fallback", says)
    health = facts.scaled_object.status.health.values()
    failures = max((one.number_of_failures for one in health), default=0)
    numbers = {
        "failures": failures,
        "failureThreshold": wanted.failure_threshold,
        "replicas": wanted.replicas,
    }
    counted = f"{failures} failures in a row, failureThreshold {wanted.failure_threshold}"
    if says.status != "True":
        return _open(f"the fallback does not run: {counted}", says, numbers)
    return _held(
        f"KEDA answers the HPA with its fallback in place of the value: {wanted.replicas} replicas,"
        f" behavior {wanted.behavior}; {counted}",
        says,
        numbers,
    )


def _activation(facts: Facts) -> _Found:
    ready, active = facts.keda("Ready"), facts.keda("Active")
    if facts.bottom is None:
        least = facts.scaled_object.spec.min_replica_count
        return _open(f"minReplicaCount {least}: the HPA alone scales", active)
    if (ready.status, ready.reason) == ("False", "TriggerError"):
        return _held("a trigger answers with an error: KEDA neither wakes nor goes to zero", ready)
    if facts.replicas != 0:
        return _open("the workload has replicas", active)
    if facts.active:
        poll = facts.scaled_object.spec.polling_interval
        return _open(f"a trigger is active: KEDA wakes at its next poll, every {poll} s", active)
    if active.status != "False":
        return _open("KEDA has not said that no trigger is active", active)
    return _held("no trigger is active: KEDA leaves the workload at 0 replicas", active)


def _paused_out(facts: Facts) -> _Found:
    if not facts.is_set("paused-scale-out"):
        return _open("no annotation pauses scale-out")
    asleep = facts.replicas == 0 and facts.active is True
    return _pause_of(facts, "scale-out", holds=asleep or facts.limited == "ScaleUpLimit")


def _paused_in(facts: Facts) -> _Found:
    if not facts.is_set("paused-scale-in"):
        return _open("no annotation pauses scale-in")
    idle = facts.active is False and facts.keda("Active").status == "False"
    goes = idle and facts.bottom is not None and (facts.replicas or 0) > facts.bottom
    return _pause_of(facts, "scale-in", holds=goes or facts.limited == "ScaleDownLimit")


def _pause_of(facts: Facts, direction: str, *, holds: bool) -> _Found:
    annotation = f"{_ANNOTATION}paused-{direction}"
    # KEDA's own condition can be overwritten by a poll that began before the annotation came.
    says = facts.hpas("ScalingLimited") if facts.limited else facts.keda("Paused")
    if holds:
        return _held(f"no {direction} while the annotation {annotation} is there", says)
    return _open(f"{annotation} is there, and there is no {direction} to hold", says)


def _cooldown(facts: Facts) -> _Found:
    spec, says = facts.scaled_object.spec, facts.keda("Active")
    if facts.bottom is None:
        return _open("KEDA scales nothing to zero here", says)
    if says.reason != "ScalerCooldown":
        return _open("no cooldown runs", says)
    if facts.active:
        return _open("a trigger is active again: the next poll ends the cooldown", says)
    since = facts.scaled_object.status.last_active_time
    key, seconds, event = "cooldownPeriod", spec.cooldown_period, "a trigger was active last"
    if since is None:
        since = facts.scaled_object.metadata.creation_timestamp
        key, seconds = "initialCooldownPeriod", spec.initial_cooldown_period
        event = "the ScaledObject was created"
    begins = since.timestamp()
    ends = begins + seconds
    return _held(
        f"KEDA waits to scale to {facts.bottom}: {key} {seconds} s from when {event} at"
        f" {objects.clock(begins)}, so until {objects.clock(ends)} and the poll after it",
        says,
        {key: seconds, "until": ends},
    )


def _hpa(facts: Facts) -> _Found:
    if facts.is_paused:
        return _open("KEDA deletes the HPA while it is paused")
    if facts.hpa is None:
        return _held("KEDA has created no HPA")
    able = facts.hpas("AbleToScale")
    if able.status == "True":
        return _open("the HPA reads and sets the replicas", able)
    if not able.reason:
        return _held("the HPA has not looked yet")
    return _held(f"the HPA cannot scale the workload: {_message(able)}", able)


def _hold(facts: Facts) -> _Found:
    active = facts.hpas("ScalingActive")
    if active.reason == "ScalingDisabled":
        return _open("the HPA rests at 0 replicas", active)
    if active.status != "False":
        return _open("the HPA has a value", active)
    return _held(f"the HPA keeps {_number(facts.replicas)} replicas: {_message(active)}", active)


class _Seen(NamedTuple):
    """One metric as the HPA saw it at its last sync."""

    value: float
    target: float

    def asks(self, replicas: int) -> int:
        """Return the replicas that it asks for with so many of them, without any tolerance."""
        # The average is rounded up: the sum may be less by this much for each replica.
        return math.ceil(max(self.value - _ROUNDING, 0) * replicas / self.target)


def _highest(hpa: Hpa) -> _Seen | None:
    """Return the metric that asks for the most; None: one of them is not known."""
    if objects.condition(hpa.status.conditions, "ScalingActive").status != "True":
        return None
    wanted, found = hpa.spec.metrics or (), hpa.status.current_metrics or ()
    seen = [_compared(one, now) for one, now in zip(wanted, found, strict=False)]
    known = [one for one in seen if one is not None]
    if len(known) < len(wanted):
        return None
    return max(known, key=lambda one: one.value / one.target, default=None)


def _compared(wanted: HpaMetric, found: HpaMetric) -> _Seen | None:
    if wanted.external is None or found.external is None:
        return None
    target, now = wanted.external.target, found.external.current
    aim = objects.quantity(target.average_value or target.value)
    value = objects.quantity(now.average_value or now.value)
    return _Seen(value, aim) if value is not None and aim is not None and aim > 0 else None


def _asked(facts: Facts, hpa: Hpa) -> tuple[str, dict[str, float]]:
    """Return what the metrics of the HPA's last sync ask for, in words and as a number."""
    seen = _highest(hpa)
    if seen is None:
        return "another number of replicas is asked for", {}
    existing = hpa.status.current_replicas
    if facts.scale is not None and facts.scale.spec.replicas == existing:
        existing = facts.scale.status.replicas  # no rescale since that sync
    asks = seen.asks(existing)
    return f"{asks} replica{' is' if asks == 1 else 's are'} asked for", {"asks": asks}


def _tolerance(facts: Facts) -> _Found:
    able = facts.hpas("AbleToScale")
    if facts.hpa is None or (seen := _highest(facts.hpa)) is None:
        return _open("the HPA's last sync shows no value to compare")
    there = facts.hpa.status.current_replicas
    ratio, asks = seen.value / seen.target, seen.asks(there)
    own = objects.quantity(_rules(facts.hpa, up=ratio > 1).tolerance)
    allowed = rules.CLUSTERS.up if own is None else own
    numbers = {
        "value": seen.value,
        "target": seen.target,
        "ratio": ratio,
        "tolerance": allowed,
        "replicas": there,
        "asks": asks,
    }
    shown = f"{seen.value:g} over a target of {seen.target:g}, a ratio of {ratio:.3f}"
    # The HPA wanted no other number, though the ratio asks for one: it is within the tolerance.
    unchanged = able.reason == "ReadyForNewScale" and not facts.limited
    is_near = abs(ratio - 1) <= allowed + _ROUNDING / seen.target
    if not (unchanged and is_near and asks != there):
        return _open(f"{shown}: tolerance changes nothing", able, numbers)
    whose = "the cluster's, 0.1 unless set otherwise" if own is None else f"{own:g}"
    return _held(
        f"the HPA keeps {there} replicas: {shown}, is within its tolerance ({whose}); without it"
        f" {asks} would be asked for",
        able,
        numbers,
    )


def _stabilization(facts: Facts) -> _Found:
    able = facts.hpas("AbleToScale")
    if facts.hpa is None or able.reason not in {"ScaleDownStabilized", "ScaleUpStabilized"}:
        return _open("no earlier recommendation counts", able)
    up = able.reason == "ScaleUpStabilized"
    seconds = _rules(facts.hpa, up=up).stabilization_window_seconds
    window = f"{seconds} s" if seconds is not None else _CLUSTERS_WINDOW
    asked, numbers = _asked(facts, facts.hpa)
    numbers["replicas"] = facts.hpa.status.desired_replicas
    if seconds is None:
        ends = "the HPA does not show until when"
    else:
        numbers |= {"stabilizationWindowSeconds": seconds, "until": facts.now + seconds}
        ends = f"until {objects.clock(facts.now + seconds)} at the latest, if that stays so"
    extreme, bound = ("lowest", "most") if up else ("highest", "least")
    return _held(
        f"the HPA waits: stabilizationWindowSeconds {window}, the {extreme} recommendation in it"
        f" was at {bound} {facts.hpa.status.desired_replicas} replicas; now {asked}, {ends}",
        able,
        numbers,
    )


def _policy(facts: Facts) -> _Found:
    says = facts.hpas("ScalingLimited")
    if facts.hpa is None or facts.limited not in {"ScaleUpLimit", "ScaleDownLimit"}:
        return _open("no policy limits the change", says)
    asked, numbers = _asked(facts, facts.hpa)
    up = facts.limited == "ScaleUpLimit"
    which, done = ("scaleUp", "added") if up else ("scaleDown", "removed")
    found = _rules(facts.hpa, up=up)
    if found.select_policy == "Disabled":
        limits = "selectPolicy Disabled"
    elif found.policies:
        each = ", ".join(
            f"{one.value} {one.type} in {one.period_seconds} s" for one in found.policies[:8]
        )
        limits = f"{each} (selectPolicy {found.select_policy})" if len(found.policies) > 1 else each
    else:
        limits = "no more than twice the replicas, or 4, at once"
    return _held(
        f"the HPA's {which} policy limits how many replicas are {done}: {limits}; it set"
        f" {facts.hpa.status.desired_replicas}, and {asked}",
        says,
        numbers | {"replicas": facts.hpa.status.desired_replicas},
    )


def _most(facts: Facts) -> _Found:
    says, most = facts.hpas("ScalingLimited"), facts.scaled_object.spec.max_replica_count
    numbers: dict[str, float] = {"maxReplicaCount": most}
    if facts.hpa is None or facts.limited != "TooManyReplicas":
        return _open(f"maxReplicaCount {most} does not limit", says, numbers)
    asked, more = _asked(facts, facts.hpa)
    return _held(f"maxReplicaCount {most} is reached, and {asked}", says, numbers | more)


def _least(facts: Facts) -> _Found:
    says, least = facts.hpas("ScalingLimited"), facts.scaled_object.spec.min_replica_count
    numbers: dict[str, float] = {"minReplicaCount": least}
    if facts.hpa is None or facts.limited != "TooFewReplicas":
        return _open(f"minReplicaCount {least} does not limit", says, numbers)
    floor = f"minReplicaCount {least}" if least else "1 replica, the least that an HPA sets,"
    asked, more = _asked(facts, facts.hpa)
    return _held(f"{floor} is reached, and {asked}", says, numbers | more)


_ORDER = {
    "ready": _ready,
    "paused": _paused,
    "fallback": _fallback,
    "activation": _activation,
    "paused-scale-out": _paused_out,
    "paused-scale-in": _paused_in,
    "cooldown": _cooldown,
    "hpa": _hpa,
    "hold": _hold,
    "tolerance": _tolerance,
    "stabilization": _stabilization,
    "policy": _policy,
    "max": _most,
    "min": _least,
}
NAMES = tuple(_ORDER)
"""The gates' names, in the order in which KEDA and the HPA apply them."""


def _rules(hpa: Hpa, *, up: bool) -> Rules:
    behavior = hpa.spec.behavior or objects.Behavior()
    return behavior.scale_up if up else behavior.scale_down


def _number(value: int | None) -> str:
    return "the" if value is None else f"the {value}"


def _message(said: Condition) -> str:
    """Return the end of a condition's message, where the cause stands."""
    message = said.message or said.reason
    cut = message[-_MESSAGE_CHARACTERS:]
    return cut if cut == message else f"…{cut}"
