"""What a trigger asks for, parsed once and trusted from then on.

Only values live here: `trigger/` makes them from the strings a user wrote, everything behind it
reads them. Durations are seconds, thresholds are in the signal's own unit.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from keda_gpu_scaler.demand import DemandSpec
from keda_gpu_scaler.own_query import OwnQuery


class ScaledObject(NamedTuple):
    """The ScaledObject that KEDA asks for: whose trigger this is, for logs and metrics."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the form `kubectl` users write: namespace/name."""
        return f"{self.namespace}/{self.name}"


class Owner(NamedTuple):
    """What controls a pod, in Kubernetes' words: the kind and the name."""

    kind: str
    name: str


class Signal(StrEnum):
    """What is measured of a GPU."""

    UTILIZATION = "utilization"
    MEMORY = "memory"
    MEMORY_USED = "memory-used"
    POWER = "power"
    TEMPERATURE = "temperature"
    SM_ACTIVITY = "sm-activity"
    TENSOR_ACTIVITY = "tensor-activity"
    DRAM_ACTIVITY = "dram-activity"
    ENCODER = "encoder"
    DECODER = "decoder"
    NUMBER = "number"
    """Whatever a query of the user's own gives."""

    @property
    def unit(self) -> str:
        """The unit of every value, threshold and load of this signal."""
        return _UNITS.get(self, "%")

    @property
    def is_percentage(self) -> bool:
        """Whether a single GPU's value runs from 0 to 100."""
        return self.unit == "%"


_UNITS = {
    Signal.MEMORY_USED: "MiB",
    Signal.POWER: "W",
    Signal.TEMPERATURE: "°C",
    Signal.NUMBER: "",
}


class Aggregation(StrEnum):
    """What GetMetrics returns over the workload's replicas."""

    SUM = "sum"
    AVERAGE = "average"


class GpuAggregation(StrEnum):
    """How the GPUs within one pod become the pod's load."""

    AVERAGE = "average"
    MAX = "max"
    SUM = "sum"


class OnUnknown(StrEnum):
    """What an unknown load means for the answer (never 0, unless somebody chose `zero`)."""

    HOLD = "hold"
    ERROR = "error"
    ZERO = "zero"


class PodSelector(Protocol):
    """Exactly the pods of one workload, as a PromQL text and as the same test in this process."""

    @property
    def namespace(self) -> str:
        """The one namespace the pods live in."""

    @property
    def prefix(self) -> str:
        """What every matching pod name starts with; empty when nothing is known of it."""

    @property
    def regex(self) -> str:
        """RE2 text that matches the whole pod name, as Prometheus anchors it."""

    def matches(self, pod: str) -> bool:
        """Tell whether the pod of this name belongs to the workload."""

    def replica_of(self, pod: str) -> str:
        """Name the replica this pod is part of: itself, or its group in a LeaderWorkerSet."""

    @property
    def owner(self) -> Owner | None:
        """Whose replica count is the workload's; None where no such count is known."""

    def owns(self, above: frozenset[Owner]) -> bool | None:
        """Tell whether a pod with these owners is the workload's; None: only its name can tell."""


NO_NAME = "[^[:ascii:][:^ascii:]]"
"""RE2 text that matches nothing."""


@dataclass(frozen=True, slots=True)
class ScaleTarget:
    """Stands for the pods of whatever the ScaledObject scales, until that is known; it has none.

    A trigger without `workload` has it. Nothing is decided about it: the Kubernetes API says first
    which workload it is.
    """

    namespace: str
    prefix: str = ""
    regex: str = NO_NAME
    owner: Owner | None = None

    def __str__(self) -> str:
        """Return how people name it."""
        return "the scale target"

    def matches(self, _pod: str) -> bool:
        """Match no pod."""
        return False

    def replica_of(self, pod: str) -> str:
        """Return the pod."""
        return pod

    def owns(self, _above: frozenset[Owner]) -> bool | None:
        """Own no pod."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerSpec:
    """One trigger, validated: what to measure, of which pods, and what the answer is made of."""

    pods: PodSelector
    workload: str
    """How people name the workload: `deployment/bert`, or the podPattern."""
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
    """The user's own PromQL in place of the profile's metric."""
    only_shown: bool = False
    """Nobody said which pods: those that the samples show, and no others."""
    neighbour: PodSelector | None = None
    """The pods of activationWorkload, in the same namespace: active while their GPUs are."""
    demand: DemandSpec | None = None
    warnings: tuple[str, ...] = ()
    """What is legal and still likely to disappoint, in one sentence each."""

    @property
    def shared_signal(self) -> Signal:
        """The signal of the snapshot: a query's numbers are the same, whatever they are called."""
        return self.signal if self.query is None else Signal.NUMBER
