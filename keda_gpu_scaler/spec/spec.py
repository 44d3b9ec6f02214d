"""What a trigger asks for, validated once, and what several ask for together. Values only.

`trigger/` makes a `TriggerSpec` from the user's strings; all other code reads it. Triggers that
share a snapshot have one `SnapshotQuery`. A `Demand` is what a source answers to a `DemandSpec`,
at the operator's `Pace`. Durations are in seconds, thresholds in the signal's unit.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Self

from keda_gpu_scaler.spec.workload import PodSelector, Workload

DEMAND_METRIC = "gpu-demand"
"""The metric's name in the HPA, beside the one of the load."""
TOO_LARGE = 2.0**53
"""Below this a float holds every integer, and the thousandths that KEDA counts fit an int64."""


class Origin(NamedTuple):
    """A selector in a query of the user's own, as PromQL."""

    selector: str
    lookback_seconds: float
    """How far back the query looks from it: the ranges around it, added up."""


@dataclass(frozen=True, slots=True)
class OwnQuery:
    """Custom PromQL, as it is sent: one element for each GPU or pod."""

    text: str
    origins: tuple[Origin, ...]
    """The selectors its numbers come from; the answer is as old as the oldest of them."""
    is_complete: bool
    """Every series it reads shows as an element: a missing one can mean that its pod is gone."""

    @property
    def name(self) -> str:
        return f"query-{hashlib.sha256(self.text.encode()).hexdigest()[:8]}"

    @property
    def lookback_seconds(self) -> float:
        """How far back the samples behind a new number can reach."""
        return max(origin.lookback_seconds for origin in self.origins)


class ScaledObject(NamedTuple):
    """The ScaledObject that KEDA asks for; it names the trigger in logs and metrics."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Signal(StrEnum):
    """What is measured of a GPU."""

    unit: str
    """The unit of every value, threshold and load of this signal."""

    UTILIZATION = "utilization"
    MEMORY = "memory"
    MEMORY_USED = "memory-used", "MiB"
    POWER = "power", "W"
    TEMPERATURE = "temperature", "°C"
    SM_ACTIVITY = "sm-activity"
    TENSOR_ACTIVITY = "tensor-activity"
    DRAM_ACTIVITY = "dram-activity"
    ENCODER = "encoder"
    DECODER = "decoder"
    NUMBER = "number", ""
    """The number that a user's own query gives."""

    def __new__(cls, value: str, unit: str = "%") -> Self:
        signal = str.__new__(cls, value)
        signal._value_ = value
        signal.unit = unit
        return signal

    @property
    def is_percentage(self) -> bool:
        return self.unit == "%"

    @property
    def follows_work(self) -> bool:
        """Whether it rises and falls with the work at once; these do so late, or not at all."""
        return self not in {self.MEMORY, self.MEMORY_USED, self.POWER, self.TEMPERATURE}


class Aggregation(StrEnum):
    """What GetMetrics returns over the workload's replicas."""

    SUM = "sum"
    AVERAGE = "average"
    MAX = "max"
    P95 = "p95"

    @property
    def is_for_all(self) -> bool:
        """Whether the number is for all replicas: the HPA divides it by them (AverageValue)."""
        return self is not Aggregation.AVERAGE


class GpuAggregation(StrEnum):
    """How the GPUs within one pod become the pod's load."""

    AVERAGE = "average"
    MAX = "max"
    SUM = "sum"


class OnUnknown(StrEnum):
    """The answer when the load is unknown (never 0, unless the trigger says `zero`)."""

    HOLD = "hold"
    ERROR = "error"
    ZERO = "zero"


class OnEmpty(StrEnum):
    """What an unknown demand means while the workload has no pods."""

    ERROR = "error"
    INACTIVE = "inactive"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandSpec:
    """What a trigger says of the demand: work outside the pods, such as requests at a router.

    It exists without pods, so it can wake a workload, and it says at once how many replicas are
    needed.
    """

    text: str
    """The expression as it is sent to the source; it gives one number."""
    activation_threshold: float
    """Active while the demand is above this."""
    threshold: float | None
    """The demand that one replica can serve; None: the demand wakes and does not scale."""
    on_empty: OnEmpty
    preset: str = ""
    """The demandPreset that the text was made from; empty: it is the user's own."""
    wakes: bool = True
    """It exists without pods of the workload, and says when there is work."""
    activates: bool = True
    """It says whether the workload is in use, and not only how many replicas it needs."""
    router: Workload | None = None
    """The router whose pods show it; None: it names none."""

    @property
    def name(self) -> str:
        return demand_name(self.text)


def demand_name(text: str) -> str:
    return f"demand-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class Demand:
    """The answer of a source to the expression of a demand."""

    value: float | None
    """A number that `is_countable`; None: unknown."""
    trouble: str = ""
    """Why it is unknown, as a clause."""
    is_least: bool = field(default=False, compare=False)
    """It is new after a gap, so servers that are not scraped again yet may be missing in it."""


class Pace(NamedTuple):
    """How often sources are asked about demand."""

    interval_seconds: float = 5.0
    """The shortest time between two queries of one expression."""
    queries_per_second: float = 10.0
    """How many queries a source gets on average, for all its expressions together."""


USUAL_PACE = Pace()


def is_countable(number: float) -> bool:
    """Tell whether KEDA and the HPA can count with a number: from 0 to below 2^53."""
    return 0 <= number < TOO_LARGE


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerSpec:
    """One trigger, validated: what to measure, of which pods, and how to compute the answer."""

    pods: PodSelector
    workload: str
    """The workload's name for logs and errors: `deployment/bert`, or the podPattern."""
    signal: Signal
    profile: str
    threshold: float
    aggregation: Aggregation
    gpu_aggregation: GpuAggregation
    window_seconds: float | None
    """None: 2 minutes, or 1 minute where the exporter's number is itself an average."""
    activation_threshold: float
    activation_window_seconds: float
    warmup_seconds: float
    start_timeout_seconds: float
    on_unknown: OnUnknown
    max_age_seconds: float
    source: str
    metric_name: str
    query: OwnQuery | None = None
    """Custom PromQL in place of the profile's metric."""
    only_shown: bool = False
    """The trigger names no pods: only those that the samples show count."""
    neighbour: PodSelector | None = None
    """The pods of activationWorkload, in the same namespace: active while their GPUs are active."""
    demand: DemandSpec | None = None
    is_by_demand: bool = False
    """The demand alone says how many replicas, and the GPUs only whether they work: the threshold
    and the metric's name are those of the demand."""
    for_formula: bool = False
    """A formula of scalingModifiers uses it: KEDA's polls get a number that says whether it is
    active, as KEDA ignores the activity of the triggers of a formula."""
    warnings: tuple[str, ...] = ()
    """What is valid but likely a mistake, in one sentence each."""
    given: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """Keys and values as the user wrote them; two triggers that mean the same are the same. The
    value of a key that ends in FromEnv may be a secret."""
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Compute the hash: each call finds what is kept of its trigger by it, several times."""
        compared = (getattr(self, part.name) for part in fields(self) if part.compare)
        object.__setattr__(self, "_hash", hash(tuple(compared)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def unit(self) -> str:
        """The unit of the number that GetMetrics returns, and of its threshold."""
        return "" if self.is_by_demand else self.signal.unit

    @property
    def shared_signal(self) -> Signal:
        """The signal of the snapshot; with a query NUMBER, as `signal` then only names the unit."""
        return self.signal if self.query is None else Signal.NUMBER

    @property
    def reach_seconds(self) -> float:
        """How far back from now its samples matter."""
        window = WINDOW_SECONDS if self.window_seconds is None else self.window_seconds
        return max(
            window + self.warmup_seconds, self.activation_window_seconds, self.max_age_seconds
        )


WINDOW_SECONDS = 120.0
AVERAGED_WINDOW_SECONDS = 60.0
"""The exporter's number is an average already: it needs less smoothing."""


@dataclass(frozen=True, slots=True)
class SnapshotQuery:
    """The data that a set of triggers shares."""

    signal: Signal
    profile: str
    namespaces: frozenset[str]
    span_seconds: float
    """How far back the samples must reach."""
    window_seconds: float
    """The longest window of the triggers; idleness and absence need one that samples cover."""
    query: OwnQuery | None = None
    """Custom PromQL, in place of the metrics of the profile and the signal."""


def merged(snapshot_queries: Collection[SnapshotQuery]) -> SnapshotQuery:
    """Return the query that covers them all; they share one signal, profile and own query."""
    first = next(iter(snapshot_queries))
    return SnapshotQuery(
        first.signal,
        first.profile,
        frozenset().union(*(snapshot_query.namespaces for snapshot_query in snapshot_queries)),
        max(snapshot_query.span_seconds for snapshot_query in snapshot_queries),
        max(snapshot_query.window_seconds for snapshot_query in snapshot_queries),
        query=first.query,
    )


def snapshot_query_of(spec: TriggerSpec, step_seconds: float) -> SnapshotQuery:
    """Return what one trigger asks of its source, which has new samples once per step."""
    window = spec.window_seconds if spec.window_seconds is not None else WINDOW_SECONDS
    shared = _one_for_all(
        spec.shared_signal,
        spec.profile,
        frozenset({spec.pods.namespace}),
        span_seconds=spec.reach_seconds + step_seconds,
        window_seconds=max(window, spec.activation_window_seconds),
    )
    return shared if spec.query is None else replace(shared, query=spec.query)


_one_for_all = lru_cache(maxsize=1024)(SnapshotQuery)
"""Triggers that ask the same share one object: each call finds it in a dictionary."""
