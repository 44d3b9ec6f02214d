"""The values of a record. Plain data: strings, numbers, booleans, and tuples of them.

The field names are those of its JSON. Times are Unix seconds on the source's own clock. `version`
grows when a field changes its meaning or goes; new fields may come at any time.
"""

from dataclasses import dataclass
from enum import StrEnum

from keda_gpu_scaler.decision.summary import Summary


class SettingOrigin(StrEnum):
    """Where a value of the trigger comes from."""

    TRIGGER = "trigger"
    ENVIRONMENT = "environment"
    """A key that ends in FromEnv; its value may be a secret."""
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of the trigger with the value that is used."""

    key: str
    value: str
    origin: SettingOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRecord:
    """One GPU, or one slice of a GPU, while the pod had it."""

    gpu: str
    value: float | None
    """Its newest number, in the signal's unit; None: none that can be believed."""
    sampled_at: float
    busiest: float | None
    """Its largest number within activationWindow; None: no sample in it."""
    active_at: float | None
    """When it was above activationThreshold last, within activationWindow; None: it was not."""
    refused: int
    """How many numbers no such GPU can show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRecord:
    """One pod of the workload, and what became of it."""

    name: str
    replica: str
    """The replica that it counts for: itself, or its group."""
    state: str
    counts: bool
    """Its load is in the value."""
    reason: str
    load: float | None
    """Its mean over the window; None: not known, or it does not count."""
    gpus: tuple[GpuRecord, ...]
    """The first 64 of them."""
    gpus_left_out: int
    shown_by: tuple[str, ...]
    """The metrics that its samples come from, with the labels that name it."""
    targets: tuple[str, ...]
    """job/instance of the exporters that showed it last."""
    counts_since: float | None
    """From here on its samples count; None: all of them do."""
    first_seen: float | None
    last_seen: float | None
    """When an exporter showed it; None: never."""
    readiness: str
    """never, ever or unknown: whether it has been Ready."""
    ready_since: float | None
    created_at: float | None


@dataclass(frozen=True, slots=True)
class PodCount:
    """How many pods of the workload are in a state, those that are not listed included."""

    state: str
    pods: int


class Says(StrEnum):
    """What one activation signal says."""

    ACTIVE = "active"
    IDLE = "idle"
    UNKNOWN = "unknown"
    NOT_ASKED = "not evaluated"
    """An earlier input is already active."""
    NOT_SET = "not set"
    """The trigger has no such signal."""


@dataclass(frozen=True, slots=True)
class Activation:
    """One activation signal, in the order in which they are looked at."""

    signal: str
    says: Says
    reason: str
    value: float | None = None
    threshold: float | None = None
    """Active is what is above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRecord:
    """What the HPA makes of one metric."""

    name: str
    metric_type: str
    """What the trigger's aggregation is for: Value for an average, else AverageValue."""
    value: float | None
    """None: no value, the HPA holds."""
    target: float
    replicas: int
    """The replicas that there are, as far as it is known here."""
    tolerance: float
    """How far from its target the HPA ignores a value; an HPA may have its own."""
    desired: int | None
    """The replicas that this metric asks for, before minimum, maximum, stabilization and
    policies; None: none, the HPA holds."""
    reason: str


@dataclass(frozen=True, slots=True)
class Query:
    """A query for one number of the record, to paste into the source."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """What the decision was made from."""

    name: str
    profile: str
    evidence: str | None
    """What says which pods there are: kubernetes, kube-state-metrics or exporters; None: nothing
    is known of them."""
    snapshot_at: float | None
    """The instant of the samples; None: there are none."""
    age_seconds: float | None
    trouble: str | None
    """Why there is no newer snapshot; None: no trouble."""
    lag_seconds: float
    """How late all samples of the source are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Summary):
    """One decision with everything it was made of."""

    version: int = 1
    at: float
    refused: bool
    """GetMetrics and IsActive answer with an error, by `onUnknown: error`."""
    remembered: str | None
    """The last known state, if the load is unknown now."""
    gpu_unit: str
    """Of the numbers of pods and GPUs."""
    settings: tuple[Setting, ...]
    source: SourceRecord
    pods: tuple[PodRecord, ...]
    """The least busy first, and last those whose load is not known. At most 500: of more, those
    whose load should be known and is not, up to half of them, and the least busy ones."""
    pods_left_out: int
    pod_counts: tuple[PodCount, ...]
    activation: tuple[Activation, ...]
    metrics: tuple[MetricRecord, ...]
    queries: tuple[Query, ...]
    warnings: tuple[str, ...]
