"""The fields of a ScaledObject, its HPA and a scale that stand between a value and the replicas.

As the API server writes them in JSON; fields that it leaves out have KEDA's or the HPA's defaults.
"""

import re
from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta, Struct, field

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
"""Replicas, or seconds; the API has int32."""
ROUNDING = 0.001
"""The HPA shows an average rounded up to the next thousandth."""
_QUANTITY = re.compile(r"(-?\d{1,18}(?:\.\d{0,9})?)([numkMGTPE]?)", re.ASCII)
_POWERS = dict(zip(("n", "u", "m", "", *"kMGTPE"), range(-3, 7), strict=True))


def quantity(text: str | None) -> float | None:
    """Return a decimal quantity such as 70, 52500m or 1k; None: there is none, or no such."""
    match = _QUANTITY.fullmatch(text or "")
    return float(match[1]) * 1000.0 ** _POWERS[match[2]] if match else None


def clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%SZ")


class Condition(Struct, frozen=True):
    """One condition of a status; one that is not there is Unknown."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""

    def __str__(self) -> str:
        """Return it in short: AbleToScale=True/ScaleDownStabilized."""
        return f"{self.type}={self.status}/{self.reason}"


class _Metadata(Struct, frozen=True, rename="camel"):
    creation_timestamp: datetime
    name: str = ""
    generation: int = 0
    """It grows with each change of the spec."""
    annotations: dict[str, str] = {}


class _Name(Struct, frozen=True):
    name: str = ""


class _Fallback(Struct, frozen=True, rename="camel"):
    failure_threshold: Count
    replicas: Count
    behavior: str = "static"


class _ScalingModifiers(Struct, frozen=True):
    formula: str = ""


class _Advanced(Struct, frozen=True, rename="camel"):
    scaling_modifiers: _ScalingModifiers = _ScalingModifiers()


class _ScaledObjectSpec(Struct, frozen=True, rename="camel"):
    scale_target_ref: _Name
    min_replica_count: Count = 0
    max_replica_count: Count = 100
    idle_replica_count: Count | None = None
    cooldown_period: Count = 300
    initial_cooldown_period: Count = 0
    fallback: _Fallback | None = None
    advanced: _Advanced = _Advanced()


class _Target(Struct, frozen=True):
    """The workload, as its URL is made."""

    resource: str
    version: str
    group: str = ""


class _Health(Struct, frozen=True, rename="camel"):
    number_of_failures: Count = 0


class _Activity(Struct, frozen=True, rename="camel"):
    is_active: bool = False


class _ScaledObjectStatus(Struct, frozen=True, rename="camel"):
    conditions: tuple[Condition, ...] | None = None
    health: dict[str, _Health] = {}
    hpa_name: str = ""
    last_active_time: datetime | None = None
    target: _Target | None = field(default=None, name="scaleTargetGVKR")
    triggers_activity: dict[str, _Activity] = {}
    """Of each metric; KEDA has it since 2.18."""


class ScaledObject(Struct, frozen=True):
    """One ScaledObject."""

    metadata: _Metadata
    spec: _ScaledObjectSpec
    status: _ScaledObjectStatus = _ScaledObjectStatus()


class _Amount(Struct, frozen=True, rename="camel"):
    """A target, or what there is: one number in either of two ways."""

    value: str | None = None
    average_value: str | None = None

    @property
    def number(self) -> float | None:
        return quantity(self.average_value or self.value)


class _External(Struct, frozen=True):
    metric: _Name = _Name()
    target: _Amount = _Amount()
    current: _Amount = _Amount()


class HpaMetric(Struct, frozen=True):
    """One metric of the spec, with its target, or of the status, with what there is."""

    external: _External = _External()
    resource: _Name = _Name()


class ScalingPolicy(Struct, frozen=True, rename="camel"):
    """How many pods, or percent of them, may change within a period."""

    type: str
    value: Count
    period_seconds: Count


class Direction(Struct, frozen=True, rename="camel"):
    """The behavior of scaling in one direction."""

    stabilization_window_seconds: Count | None = None
    select_policy: str = "Max"
    policies: tuple[ScalingPolicy, ...] | None = None
    tolerance: str | None = None


class Behavior(Struct, frozen=True, rename="camel"):
    """How an HPA scales, where it is not as usual."""

    scale_up: Direction = Direction()
    scale_down: Direction = Direction()


class _HpaSpec(Struct, frozen=True, rename="camel"):
    min_replicas: Count = 1
    max_replicas: Count = 100
    metrics: tuple[HpaMetric, ...] | None = None
    behavior: Behavior | None = None


class _HpaStatus(Struct, frozen=True, rename="camel"):
    current_replicas: Count = 0
    desired_replicas: Count = 0
    current_metrics: tuple[HpaMetric, ...] | None = None
    conditions: tuple[Condition, ...] | None = None


class HpaObject(Struct, frozen=True):
    """The HorizontalPodAutoscaler that KEDA created."""

    metadata: _Name = _Name()
    spec: _HpaSpec = _HpaSpec()
    status: _HpaStatus = _HpaStatus()
    """What it did at its last sync."""


class _Replicas(Struct, frozen=True):
    replicas: Count = 0


class ScaleObject(Struct, frozen=True):
    """The scale subresource of the workload."""

    spec: _Replicas = _Replicas()
    status: _Replicas = _Replicas()
