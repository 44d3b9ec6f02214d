"""The rules that turn a scaler's answers into replicas: KEDA's and the HPA's.

Pure. Left out: fallback, a formula's own text, pausing and the initial cooldown. Sources: KEDA's
`scale_scaledobjects.go`; Kubernetes' `horizontal.go` and `replica_calculator.go`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from keda_gpu_scaler.autoscaling.api_objects import Behavior, Direction, ScalingPolicy, quantity
from keda_gpu_scaler.spec.durations import counted


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

    @classmethod
    def of(cls, behavior: Behavior) -> "Tolerances":
        up, down = quantity(behavior.scale_up.tolerance), quantity(behavior.scale_down.tolerance)
        return cls(
            up=CLUSTERS.up if up is None else up, down=CLUSTERS.down if down is None else down
        )

    def include(self, ratio: float) -> bool:
        """Tell whether nothing changes at this ratio; both ends are included (`isWithin`)."""
        return 1 - self.down <= ratio <= 1 + self.up


CLUSTERS = Tolerances()
"""What an HPA without tolerances of its own has, unless the controller manager is told another."""


class Step(NamedTuple):
    """How many replicas a metric asks for, and why."""

    replicas: int
    reason: str


@dataclass(slots=True, kw_only=True)
class Hpa:
    """The HPA that KEDA creates, with its memory of recommendations."""

    minimum: int = 0
    maximum: int = 100
    stabilization_seconds: float = 300
    """Of scale-in, where `behavior` has none."""
    tolerances: Tolerances = CLUSTERS
    behavior: Behavior | None = None
    """None: the limits of an HPA without it, which are not those of an empty one."""
    _recommendations: list[tuple[float, int]] = field(default_factory=list, init=False)
    _added: list[tuple[float, int]] = field(default_factory=list, init=False)
    """When the HPA added how many replicas."""
    _removed: list[tuple[float, int]] = field(default_factory=list, init=False)
    """When it removed how many, as negative numbers."""

    @property
    def floor(self) -> int:
        """The fewest replicas the HPA sets (`getHPAMinReplicas`); only KEDA goes to zero."""
        return max(1, self.minimum)

    def sync(self, now: float, scale: Scale, metrics: Sequence[Metric]) -> int:
        """Return the replicas after one sync (`reconcileAutoscaler`)."""
        if not self._recommendations:
            self._recommendations.append((now, scale.spec))
        if scale.spec == 0:
            return 0  # waking is KEDA's part
        replicas = self._desired(now, scale, metrics)
        if self.behavior is not None and replicas != scale.spec:
            self._store(now, replicas - scale.spec, self.behavior)
        return replicas

    def follow(
        self, now: float, before: int, scale: Scale, metrics: Sequence[Metric], ahead_seconds: float
    ) -> int:
        """Return what an HPA elsewhere may set within some seconds, if the metrics stay so.

        `before` is what the replicas were when this was asked last: policies count its changes. As
        after a start of its controller, earlier recommendations are not known, and the replicas
        there are count as one.
        """
        if scale.spec == 0:
            return 0
        if not self._recommendations:
            self._recommendations.append((now, scale.spec))
        elif self.behavior is not None and before != scale.spec:
            self._store(now, scale.spec - before, self.behavior)
        self._desired(now, scale, metrics)
        remembered = self._recommendations
        ahead = self._desired(now + ahead_seconds, scale, metrics)
        self._recommendations = remembered
        return ahead

    def _desired(self, now: float, scale: Scale, metrics: Sequence[Metric]) -> int:
        bounded = min(max(scale.spec, self.floor), self.maximum)
        if scale.spec != bounded:
            return bounded
        if (wanted := recommend(metrics, scale, self.tolerances)) is None:
            return scale.spec
        stable = self._stabilized(now, scale.spec, wanted.replicas)
        most, least = self._limits(now, scale.spec)
        return max(min(max(stable, self.floor), self.maximum, most), least)

    def _store(self, now: float, change: int, behavior: Behavior) -> None:
        """Remember a change of the replicas (`storeScaleEvent`).

        It takes the place of one that is too old for its own direction's policies, although the
        other direction's may count that one as well.
        """
        changes, policies = self._added, behavior.scale_up.policies or _POLICIES_UP
        if change < 0:
            changes, policies = self._removed, behavior.scale_down.policies or _POLICIES_DOWN
        oldest = now - max(policy.period_seconds for policy in policies)
        outdated = [index for index, (at, _) in enumerate(changes) if at < oldest]
        if outdated:
            changes[outdated[-1]] = now, change
        else:
            changes.append((now, change))

    def _stabilized(self, now: float, replicas: int, wanted: int) -> int:
        """Return the replicas after the recommendations of the last minutes.

        `stabilizeRecommendation`: the highest within the window. With a `behavior`,
        `stabilizeRecommendationWithBehaviors`: a window for each direction.
        """
        before, behavior, down = self._recommendations, self.behavior, self.stabilization_seconds
        if behavior is None:
            before = [known for known in before if now - known[0] <= down]
            self._recommendations = [*before, (now, wanted)]
            return max(number for _, number in self._recommendations)
        up = behavior.scale_up.stabilization_window_seconds or 0
        if behavior.scale_down.stabilization_window_seconds is not None:
            down = behavior.scale_down.stabilization_window_seconds
        before = [known for known in before if now - known[0] < max(up, down)]
        self._recommendations = [*before, (now, wanted)]
        lowest = min([wanted, *(number for at, number in before if now - at < up)])
        highest = max([wanted, *(number for at, number in before if now - at < down)])
        return min(max(replicas, lowest), highest)

    def _limits(self, now: float, replicas: int) -> tuple[int, int]:
        """Return the most and the fewest replicas that this sync may set.

        `normalizeDesiredReplicas` and `convertDesiredReplicasWithBehaviorRate`.
        """
        if self.behavior is None:
            return scale_up_limit(replicas), 0
        up, down = self.behavior.scale_up, self.behavior.scale_down
        most = self._allowed(now, replicas, up, _POLICIES_UP, 1)
        least = self._allowed(now, replicas, down, _POLICIES_DOWN, -1)
        return max(most, replicas), min(least, replicas)

    def _allowed(
        self,
        now: float,
        replicas: int,
        direction: Direction,
        usual: Sequence[ScalingPolicy],
        sign: int,
    ) -> int:
        """Return how far a direction's policies let the replicas go (`calculateScale…Limit…`)."""
        if direction.select_policy == "Disabled":
            return replicas
        ends = []
        for policy in direction.policies or usual:
            since = now - policy.period_seconds
            changes = [*self._added, *self._removed]
            began = replicas - sum(change for at, change in changes if at > since)
            if policy.type == "Pods":
                ends.append(began + sign * policy.value)
            elif sign > 0:
                ends.append(math.ceil(began * (1 + policy.value / 100)))
            else:
                ends.append(int(began * (1 - policy.value / 100)))
        takes_highest = (direction.select_policy == "Max") == (sign > 0)
        return max(ends) if takes_highest else min(ends)


_POLICIES_UP = (
    ScalingPolicy(type="Pods", value=4, period_seconds=15),
    ScalingPolicy(type="Percent", value=100, period_seconds=15),
)
_POLICIES_DOWN = (ScalingPolicy(type="Percent", value=100, period_seconds=15),)
"""What the API server writes into a `behavior` without policies."""


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
    shown = f"{value / 1000:g} / {target / 1000:g}"
    if metric.metric_type is MetricType.AVERAGE_VALUE:  # `GetExternalPerPodMetricReplicas`
        shown += " per replica"
        if scale.status and tolerances.include(value / (target * scale.status)):
            return Step(scale.status, f"{shown} is within tolerance of {scale.status}")
        replicas = math.ceil(value / target)
        return Step(replicas, f"{shown} = {counted(replicas, 'replica')}")
    ratio = value / target  # `GetExternalMetricReplicas`
    if tolerances.include(ratio):
        return Step(scale.spec, f"{shown} is within tolerance")
    if scale.status == 0:
        return None
    replicas = math.ceil(ratio * scale.ready)
    words = counted(replicas, "replica")
    return Step(replicas, f"{shown} × {scale.ready} Ready pods = {words}")  # noqa: RUF001 - the sign


def milli(value: float) -> int:
    """Return thousandths; NaN, infinite and negative are 0 (KEDA's `pkg/scalers/scaler.go`)."""
    if not math.isfinite(value) or value < 0:
        return 0
    return int(f"{value:.3f}".replace(".", ""))


@dataclass(slots=True, kw_only=True)
class Keda:
    """KEDA's scale loop for one ScaledObject (`RequestScale`), as of 2.21."""

    cooldown_seconds: float = 300
    minimum: int = 0
    """minReplicaCount."""
    goes_to_zero: bool = True
    """minReplicaCount or idleReplicaCount is 0; otherwise KEDA leaves all to the HPA."""
    last_active: float | None = None
    """LastActiveTime."""

    def poll(self, now: float, replicas: int, triggers: Sequence[bool | None]) -> int:
        """Return the replicas after one poll; a trigger that failed is None."""
        failed = None in triggers
        if True in triggers:
            rests = replicas == 0 or (self.goes_to_zero and replicas < self.minimum)
            if failed and not rests:
                return replicas  # the cooldown runs on
            self.last_active = math.floor(now)  # a `metav1.Time` has no parts of a second
            return max(1, self.minimum) if rests else replicas  # the rest is the HPA's part
        if failed:
            return replicas
        if not self.goes_to_zero:
            return max(replicas, self.minimum)
        # To zero after the cooldown (`scaleToZeroOrIdle`).
        ends = None if self.last_active is None else self.last_active + self.cooldown_seconds
        return 0 if ends is None or ends - now < 0 else replicas
