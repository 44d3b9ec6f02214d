"""The rules that turn a scaler's answers into replicas: KEDA's and the HPA's.

Pure. Left out: `behavior` except its tolerances, fallback, scalingModifiers, pausing, idle replicas
and the initial cooldown. Sources: KEDA's `scale_scaledobjects.go`; Kubernetes' `horizontal.go` and
`replica_calculator.go`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class MetricType(StrEnum):
    """How the HPA reads a metric's target; a ScaledObject's default is AverageValue."""

    AVERAGE_VALUE = "AverageValue"
    VALUE = "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One external metric as the HPA sees it at one sync."""

    value: float | None
    """None: an error or an empty list; the HPA treats both alike."""
    target: float
    metric_type: MetricType = MetricType.AVERAGE_VALUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The scale target's replicas: desired, existing and Ready."""

    spec: int
    status: int
    ready: int

    @classmethod
    def steady(cls, replicas: int) -> "Scale":
        return cls(spec=replicas, status=replicas, ready=replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances:
    """How far from its target a metric may be before replicas change, as shares of the target.

    Each is the `tolerance` of one direction in `behavior`, without it the cluster's: 10 %.
    """

    up: float = 0.1
    down: float = 0.1

    def include(self, ratio: float) -> bool:
        """Tell whether nothing changes at this ratio; both ends are included (`isWithin`)."""
        return 1 - self.down <= ratio <= 1 + self.up


CLUSTERS = Tolerances()
"""What an HPA without tolerances of its own has, unless the controller manager is told another."""


class Step(NamedTuple):
    """How many replicas there should be now, and why."""

    replicas: int
    reason: str


@dataclass(slots=True, kw_only=True)
class Hpa:
    """The HPA that KEDA creates, with its memory of recommendations."""

    minimum: int = 0
    maximum: int = 100
    stabilization_seconds: float = 300
    tolerances: Tolerances = CLUSTERS
    _recommendations: list[tuple[float, int]] = field(default_factory=list, init=False)

    @property
    def floor(self) -> int:
        """The fewest replicas the HPA sets (`getHPAMinReplicas`); only KEDA goes to zero."""
        return max(1, self.minimum)

    def sync(self, now: float, scale: Scale, metrics: Sequence[Metric]) -> Step:
        """Return the replicas after one sync (`reconcileAutoscaler`)."""
        if not self._recommendations:
            self._recommendations.append((now, scale.spec))
        if scale.spec == 0:
            return Step(0, "the HPA rests at 0 replicas: waking is KEDA's part")
        bounded = min(max(scale.spec, self.floor), self.maximum)
        if scale.spec != bounded:
            return Step(bounded, f"{scale.spec} is outside {self.floor} to {self.maximum}")
        if (wanted := recommend(metrics, scale, self.tolerances)) is None:
            return Step(scale.spec, "held: a metric has no value")
        # The highest recommendation within the window (`stabilizeRecommendation`).
        since = now - self.stabilization_seconds
        kept = [known for known in self._recommendations if known[0] >= since]
        self._recommendations = [*kept, (now, wanted.replicas)]
        highest = max(replicas for _, replicas in self._recommendations)
        reason = wanted.reason
        if highest != wanted.replicas:
            reason += f"; stabilised at {highest}"
        # The limits (`normalizeDesiredReplicas`).
        limit = min(self.maximum, scale_up_limit(scale.spec))
        replicas = min(max(highest, self.floor), limit)
        if replicas != highest:
            reason += f"; limited to {self.floor} to {limit}"
        return Step(replicas, reason)


def scale_up_limit(replicas: int) -> int:
    """Return the most replicas one sync may set (`calculateScaleUpLimit`)."""
    return max(2 * replicas, 4)


def recommend(
    metrics: Sequence[Metric], scale: Scale, tolerances: Tolerances = CLUSTERS
) -> Step | None:
    """Return the largest proposal of the metrics; None holds (`computeReplicasForMetrics`).

    One metric without a value blocks every scale-in; with no value at all nothing changes.
    """
    proposals = [_proposal(metric, scale, tolerances) for metric in metrics]
    known = [proposal for proposal in proposals if proposal is not None]
    highest = max(known, key=lambda proposal: proposal.replicas, default=None)
    if highest is None or (len(known) < len(proposals) and highest.replicas < scale.spec):
        return None
    return highest


def _proposal(metric: Metric, scale: Scale, tolerances: Tolerances) -> Step | None:
    target = milli(metric.target)
    if metric.value is None or target == 0:  # Kubernetes refuses an HPA with a target of 0
        return None
    value = milli(metric.value)
    shown = f"{value / 1000:g} over a target of {target / 1000:g}"
    if metric.metric_type is MetricType.AVERAGE_VALUE:  # `GetExternalPerPodMetricReplicas`
        shown += " per replica"
        if scale.status and tolerances.include(value / (target * scale.status)):
            return Step(scale.status, f"{shown} is within tolerance of {scale.status}")
        replicas = math.ceil(value / target)
        return Step(replicas, f"{shown} asks for {replicas}")
    ratio = value / target  # `GetExternalMetricReplicas`
    if tolerances.include(ratio):
        return Step(scale.spec, f"{shown} is within tolerance")
    if scale.status == 0:
        return None
    replicas = math.ceil(ratio * scale.ready)
    return Step(replicas, f"{shown} with {scale.ready} ready pods asks for {replicas}")


def milli(value: float) -> int:
    """Return thousandths; NaN, infinite and negative are 0 (KEDA's `pkg/scalers/scaler.go`)."""
    if not math.isfinite(value) or value < 0:
        return 0
    return int(f"{value:.3f}".replace(".", ""))


@dataclass(slots=True, kw_only=True)
class Keda:
    """KEDA's scale loop for one ScaledObject that goes to zero (`RequestScale`)."""

    cooldown_seconds: float = 300
    last_active: float | None = None
    """LastActiveTime."""

    def poll(self, now: float, replicas: int, triggers: Sequence[bool | None]) -> Step:
        """Return the replicas after one poll; a trigger that failed is None."""
        failed = None in triggers
        if True in triggers:
            if replicas and failed:
                return Step(replicas, "active, but a trigger failed: the cooldown runs on")
            self.last_active = now
            reason = (
                "active: the rest is the HPA's part" if replicas else "a trigger is active: woken"
            )
            return Step(max(1, replicas), reason)
        if failed:
            return Step(replicas, "a trigger failed: nothing is changed")
        if replicas == 0:
            return Step(0, "inactive: nothing to do")
        # To zero after the cooldown (`scaleToZeroOrIdle`).
        if self.last_active is not None:
            waiting = self.last_active + self.cooldown_seconds - now
            if waiting >= 0:
                return Step(replicas, f"inactive: the cooldown ends in {waiting:.0f} s")
        return Step(0, "inactive for the whole cooldown: to 0")
