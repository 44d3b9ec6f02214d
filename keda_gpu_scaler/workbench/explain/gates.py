"""What holds the replicas behind a value: KEDA's and the HPA's gates, in their order.

Pure. A gate holds when the cluster's own objects show that it keeps the replicas from what the
value asks for. What they do not show is not guessed: the HPA keeps its earlier recommendations, and
the cluster's own tolerance, to itself. Sources: KEDA's `scaledobject_controller.go`, `fallback.go`
and `scale_scaledobjects.go`; Kubernetes' `horizontal.go` and `replica_calculator.go`.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.autoscaling.api_objects import (
    ROUNDING,
    Behavior,
    Condition,
    Direction,
    HpaMetric,
    HpaObject,
    ScaledObject,
    ScaleObject,
    clock,
    quantity,
)
from keda_gpu_scaler.spec.durations import counted

_ANNOTATION = "autoscaling.keda.sh/"
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}
"""What Go's `ParseBool` takes for false; KEDA takes every other value of an annotation for true."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One thing that keeps the replicas from what the value asks for."""

    name: str
    reason: str
    """How it holds, with its numbers."""
    condition: str | None
    """The condition that says so, as type=status/reason; None: no condition does."""


@dataclass(frozen=True, slots=True)
class Gates:
    """What holds the replicas of a ScaledObject."""

    cluster: str
    """The context of the kubeconfig that was used."""
    at: float
    """When, as Unix seconds on the clock of the machine that asked."""
    replicas: int | None
    """The replicas that the workload is to have now; None: not known."""
    asked: int | None
    """The replicas that the triggers' values need now; None: none, or it is not known."""
    reason: str
    """The sentence of the first gate, or that none holds."""
    gates: tuple[Gate, ...]
    """Those that hold, in the order in which KEDA and the HPA apply them."""


class Facts(NamedTuple):
    """What the cluster and the records show at one instant."""

    cluster: str
    now: float
    scaled_object: ScaledObject
    hpa: HpaObject | None
    """None: there is none."""
    scale: ScaleObject | None = None
    """None: it could not be read; the HPA knows the replicas of its last sync."""
    active: bool | None = None
    """What the triggers of ours say now: True if one says active, None if one does not know."""
    asked: int | None = None
    """The replicas that their values ask for now; None: none, or it is not known."""

    @property
    def replicas(self) -> int | None:
        if self.scale is not None:
            return self.scale.spec.replicas
        return None if self.hpa is None else self.hpa.status.current_replicas

    @property
    def bottom(self) -> int | None:
        """What KEDA scales to when nothing is active; None: the HPA alone scales in."""
        spec = self.scaled_object.spec
        return spec.idle_replica_count if spec.min_replica_count else 0

    @property
    def has_formula(self) -> bool:
        """KEDA makes activity and replicas of a formula, and not of any trigger."""
        return bool(self.scaled_object.spec.advanced.scaling_modifiers.formula)

    @property
    def seen_hpa(self) -> HpaObject:
        """The HPA, or one that has never looked."""
        return self.hpa or HpaObject()

    def condition(self, kind: str) -> Condition:
        """Return a condition of the ScaledObject or the HPA, which have none of the same type."""
        if kind == "ScalingLimited" and self.condition("ScalingActive").status != "True":
            return Condition(kind)  # it is of an earlier sync
        for status in self.scaled_object.status, self.seen_hpa.status:
            for condition in status.conditions or ():
                if condition.type == kind:
                    return condition
        return Condition(kind)

    def annotation(self, name: str) -> str | None:
        return self.scaled_object.metadata.annotations.get(_ANNOTATION + name)

    def is_set(self, name: str) -> bool:
        """Tell whether an annotation of KEDA's is there and not false."""
        value = self.annotation(name)
        return value is not None and value not in _FALSE

    @property
    def is_paused(self) -> bool:
        """KEDA does nothing, and deletes the HPA."""
        return self.is_set("paused") or self.annotation("paused-replicas") is not None


def gates(facts: Facts) -> Gates:
    holding = []
    if facts.has_formula:
        facts = facts._replace(active=None, asked=None)
    for name, shown_by, rule in _RULES:
        condition = facts.condition(shown_by.partition("=")[0])
        shows = re.fullmatch(shown_by, str(condition)) is not None
        if shows and (reason := rule(facts, condition)) is not None:
            holding.append(Gate(name, reason, str(condition) if condition.reason else None))
    reason = holding[0].reason if holding else _nothing_holds(facts)
    return Gates(facts.cluster, facts.now, facts.replicas, facts.asked, reason, tuple(holding))


def replicas_in_words(replicas: int | None) -> str:
    """Return `1 replica`, `2 replicas`, or `the replicas` if their number is not known."""
    return "the replicas" if replicas is None else counted(replicas, "replica")


def _nothing_holds(facts: Facts) -> str:
    if facts.has_formula:
        return (
            "nothing is holding the replicas: the formula of scalingModifiers decides whether the"
            " workload is active and how many replicas it gets, and not the value"
        )
    if facts.replicas == 0:
        if facts.active or facts.bottom is None:  # without zero, KEDA keeps the minimum
            return "nothing is holding the replicas: KEDA wakes the workload at its next poll"
        return "nothing is holding the replicas: the workload waits for an active trigger"
    running = "an unknown number" if facts.replicas is None else facts.replicas
    others = "".join(f"; {other}" for other in _others(facts))
    wanted = f"{facts.asked} wanted"
    if facts.asked is None:
        wanted = "the load is unknown, so no number is wanted"
    elif facts.asked != facts.replicas:
        others = f"; the HPA looks every 15 s{others}"
    return f"nothing is holding the replicas: {wanted}, {running} running{others}"


def _others(facts: Facts) -> Iterator[str]:
    """Yield which replicas triggers of other scalers need, where those of this one need fewer."""
    if facts.active is False and facts.condition("Active").status == "True":
        activity = facts.scaled_object.status.triggers_activity
        names = [name for name, trigger in activity.items() if trigger.is_active]
        yield f"another trigger is active: {', '.join(names[:8]) or 'KEDA does not show which'}"
    if facts.asked is None or facts.asked >= (facts.replicas or 0):
        return
    for name, metric in _seen(facts):
        number = None if metric is None else metric.asks(facts.seen_hpa.status.current_replicas)
        if number is None:
            yield f"the HPA has {name} too, and its number is not known here"
        elif number > facts.asked:
            yield f"the HPA takes the most: at its last sync {name} needed {number}"


def _not_ready(_facts: Facts, ready: Condition) -> str:
    return f"KEDA cannot work on the ScaledObject: {_message(ready)}"


def _paused(facts: Facts, _paused: Condition) -> str | None:
    if not facts.is_paused:
        return None
    count = facts.annotation("paused-replicas")
    name = "paused" if count is None else "paused-replicas"
    kept = "as they are" if count is None else f"at {count[:12]}"
    return (
        f"KEDA is paused by the annotation {_ANNOTATION}{name}: there is no HPA, and the replicas"
        f" stay {kept}"
    )


def _fallback(facts: Facts, _running: Condition) -> str | None:
    fallback = facts.scaled_object.spec.fallback
    if fallback is None:
        return None
    health = facts.scaled_object.status.health.values()
    failures = max((metric.number_of_failures for metric in health), default=0)
    uses_number = fallback.behavior != "currentReplicas"
    number = f"{counted(fallback.replicas, 'replica')}, " if uses_number else ""
    return (
        f"KEDA answers the HPA with its fallback in place of the value: {number}behavior"
        f" {fallback.behavior}; {failures} failures in a row, failureThreshold"
        f" {fallback.failure_threshold}"
    )


def _trigger_fails(facts: Facts, _ready: Condition) -> str | None:
    if facts.bottom is None:
        return None
    return "a trigger answers with an error: KEDA neither wakes nor goes to zero"


def _inactive(facts: Facts, _active: Condition) -> str | None:
    if facts.bottom is None or facts.replicas != 0 or facts.active:
        return None
    what = "the formula of scalingModifiers is not" if facts.has_formula else "no trigger is"
    return f"{what} active: KEDA leaves the workload at 0 replicas"


def _pause(facts: Facts, shown: Condition, direction: str, *, keda_would: bool) -> str | None:
    """Tell of a pause that holds the HPA, as its condition shows, or KEDA's own next step."""
    is_held = shown.type == "ScalingLimited" or keda_would
    if not is_held or not facts.is_set(f"paused-{direction}"):
        return None
    return f"no {direction} while the annotation {_ANNOTATION}paused-{direction} is there"


def _no_scale_out(facts: Facts, shown: Condition) -> str | None:
    wakes = facts.replicas == 0 and facts.active is True
    return _pause(facts, shown, "scale-out", keda_would=wakes)


def _no_scale_in(facts: Facts, shown: Condition) -> str | None:
    is_idle = facts.active is False and facts.condition("Active").status == "False"
    ends = is_idle and facts.bottom is not None and (facts.replicas or 0) > facts.bottom
    return _pause(facts, shown, "scale-in", keda_would=ends)


def _cooldown(facts: Facts, _active: Condition) -> str | None:
    if facts.bottom is None or facts.active:
        return None
    spec, since = facts.scaled_object.spec, facts.scaled_object.status.last_active_time
    key, seconds, event = "cooldownPeriod", spec.cooldown_period, "a trigger was active last"
    if since is None:
        since = facts.scaled_object.metadata.creation_timestamp
        key, seconds = "initialCooldownPeriod", spec.initial_cooldown_period
        event = "the ScaledObject was created"
    begins = since.timestamp()
    return (
        f"KEDA waits to scale to {facts.bottom}: {key} {seconds} s from when {event} at"
        f" {clock(begins)}, so until {clock(begins + seconds)} and the poll after it"
    )


def _no_hpa(facts: Facts, able: Condition) -> str | None:
    if facts.is_paused:
        return None
    if facts.hpa is None:
        return "KEDA has created no HPA"
    if not able.reason:
        return "the HPA has not looked yet"
    return f"the HPA cannot scale the workload: {_message(able)}"


def _no_value(facts: Facts, active: Condition) -> str:
    return f"the HPA keeps {replicas_in_words(facts.replicas)}: {_message(active)}"


def _tolerance(facts: Facts, _able: Condition) -> str | None:
    metric, current = _highest(facts), facts.seen_hpa.status.current_replicas
    is_limited = facts.condition("ScalingLimited").status == "True"
    if metric is None or is_limited or metric.asks(current) == current:
        return None
    ratio = metric.value / metric.target
    own = quantity(_direction(facts, up=ratio > 1).tolerance)
    allowed = rules.CLUSTERS.up if own is None else own
    if abs(ratio - 1) > allowed + ROUNDING / metric.target:
        return None
    whose = "the cluster's, 0.1 unless set otherwise" if own is None else f"{own:g}"
    return (
        f"the HPA keeps {counted(current, 'replica')}: {metric.value:g} / {metric.target:g} ="
        f" {ratio:.3f} is within its tolerance ({whose}); without it"
        f" {metric.asks(current)} would be needed"
    )


def _stabilization(facts: Facts, able: Condition) -> str:
    up = able.reason == "ScaleUpStabilized"
    seconds = _direction(facts, up=up).stabilization_window_seconds
    if seconds is None:
        window = "the controller manager's, 300 s unless it is told another"
        ends = "the HPA does not show until when"
    else:
        window = f"{seconds} s"
        ends = f"until {clock(facts.now + seconds)} at the latest, if that stays so"
    extreme, bound = ("lowest", "most") if up else ("highest", "least")
    kept = counted(facts.seen_hpa.status.desired_replicas, "replica")
    return (
        f"the HPA waits: stabilizationWindowSeconds {window}, the {extreme} recommendation in it"
        f" was at {bound} {kept}; now {_asked(facts)}, {ends}"
    )


def _policy(facts: Facts, limited: Condition) -> str:
    up = limited.reason == "ScaleUpLimit"
    which, done = ("scaleUp", "added") if up else ("scaleDown", "removed")
    direction = _direction(facts, up=up)
    policies = [
        f"{policy.value} {policy.type} in {policy.period_seconds} s"
        for policy in (direction.policies or ())[:8]
    ]
    limits = "no more than twice the replicas, or 4, at once"
    if policies or direction.select_policy == "Disabled":
        limits = ", ".join([*policies, f"selectPolicy {direction.select_policy}"])
    return (
        f"the HPA's {which} policy limits how many replicas are {done}: {limits}; it set"
        f" {facts.seen_hpa.status.desired_replicas}, and {_asked(facts)}"
    )


def _maximum(facts: Facts, _limited: Condition) -> str:
    most = facts.scaled_object.spec.max_replica_count
    return f"maxReplicaCount {most} is reached, and {_asked(facts)}"


def _minimum(facts: Facts, _limited: Condition) -> str:
    least = facts.scaled_object.spec.min_replica_count
    floor = f"minReplicaCount {least}" if least else "1 replica, the least that an HPA sets,"
    return f"{floor} is reached, and {_asked(facts)}"


_RULES: tuple[tuple[str, str, Callable[[Facts, Condition], str | None]], ...] = (
    ("ready", "Ready=False/(?!TriggerError$).*", _not_ready),
    ("paused", "Paused=.*", _paused),
    ("fallback", "Fallback=True/.*", _fallback),
    ("activation", "Ready=False/TriggerError", _trigger_fails),
    ("activation", "Active=False/.*", _inactive),
    # KEDA's own condition can be overwritten by a poll that began before the annotation came.
    ("paused-scale-out", "ScalingLimited=True/ScaleUpLimit", _no_scale_out),
    ("paused-scale-out", "Paused=.*", _no_scale_out),
    ("paused-scale-in", "ScalingLimited=True/ScaleDownLimit", _no_scale_in),
    ("paused-scale-in", "Paused=.*", _no_scale_in),
    ("cooldown", "Active=.*/ScalerCooldown", _cooldown),
    ("hpa", "AbleToScale=(?!True).*", _no_hpa),
    ("hold", "ScalingActive=False/(?!ScalingDisabled$).*", _no_value),
    # Only then the HPA wanted no other number.
    ("tolerance", "AbleToScale=.*/ReadyForNewScale", _tolerance),
    ("stabilization", "AbleToScale=.*/Scale(Down|Up)Stabilized", _stabilization),
    ("policy", "ScalingLimited=True/Scale(Up|Down)Limit", _policy),
    ("max", "ScalingLimited=True/TooManyReplicas", _maximum),
    ("min", "ScalingLimited=True/TooFewReplicas", _minimum),
)
"""A gate, the condition that shows it, and its sentence, or None where it does not hold."""
NAMES = tuple(dict.fromkeys(name for name, _, _ in _RULES))
"""The gates' names, in the order in which KEDA and the HPA apply them."""


class _SeenMetric(NamedTuple):
    """One metric as the HPA saw it at its last sync."""

    value: float
    target: float

    def asks(self, replicas: int) -> int:
        """Return the replicas that it asks for with so many of them, without any tolerance."""
        # The average is rounded up: the sum may be less by this much for each replica.
        return math.ceil(max(self.value - ROUNDING, 0) * replicas / self.target)


def _highest(facts: Facts) -> _SeenMetric | None:
    """Return the metric that needs the most; None: one of them is not known."""
    if facts.condition("ScalingActive").status != "True":
        return None
    seen = [metric for _, metric in _seen(facts)]
    known = [metric for metric in seen if metric is not None]
    if len(known) < len(seen):
        return None
    return max(known, key=lambda metric: metric.value / metric.target, default=None)


def _seen(facts: Facts) -> Iterator[tuple[str, _SeenMetric | None]]:
    """Yield each metric of the HPA by its name; None: its numbers are not known."""
    shown = chain(facts.seen_hpa.status.current_metrics or (), repeat(HpaMetric()))
    for metric, current in zip(facts.seen_hpa.spec.metrics or (), shown, strict=False):
        target, value = metric.external.target.number, current.external.current.number
        name = metric.external.metric.name or metric.resource.name
        if value is None or target is None or target <= 0:
            yield name, None
        else:
            yield name, _SeenMetric(value, target)


def _asked(facts: Facts) -> str:
    """Return in words how many replicas the metrics of the HPA's last sync need."""
    metric = _highest(facts)
    if metric is None:
        return "the metrics need another number of replicas"
    existing = facts.seen_hpa.status.current_replicas
    if facts.scale is not None and facts.scale.spec.replicas == existing:
        existing = facts.scale.status.replicas  # no rescale since that sync
    return f"the metrics need {counted(metric.asks(existing), 'replica')}"


def _direction(facts: Facts, *, up: bool) -> Direction:
    behavior = facts.seen_hpa.spec.behavior or Behavior()
    return behavior.scale_up if up else behavior.scale_down


def _message(condition: Condition) -> str:
    """Return the end of a condition's message, where the cause stands."""
    message = condition.message or condition.reason
    cut = message[-160:]
    return cut if cut == message else f"…{cut}"
