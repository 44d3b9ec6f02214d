"""Events as typed facts. Logs, metrics and traces are small subscribers to them.

The core neither logs nor counts: it states a fact once, and each observer turns it into a log line
(`log_lines`), a metric (`metrics/`) or a span (`traces`). Each observer can be deleted without a
change of the core.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that happened, stated once."""


@dataclass(frozen=True, slots=True)
class Evaluated(Fact):
    """One trigger was decided."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    decision: Decision
    snapshot_age_seconds: float | None
    """Seconds since the newest usable snapshot's evaluation time; None without one."""
    source: str = ""
    """The source's name in the facts of its snapshot; empty: the name in the trigger."""
    recommended: int | None = None
    """The replicas that it asks for at those that there are; None: not known, or held."""
    before: Decision | None = None
    """What was decided before; None: it is new, or was not asked about for ten minutes."""


@dataclass(frozen=True, slots=True)
class DemandKnown(Fact):
    """A trigger's demand was requested; the answer may come from the cache."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    demand: Demand


@dataclass(frozen=True, slots=True)
class EvidenceChanged(Fact):
    """The evidence for decisions from now on, beside the samples; stated once at each change."""

    source: str
    evidence_source: EvidenceSource
    reason: str


@dataclass(frozen=True, slots=True)
class CallBegan(Fact):
    """A call was decoded and is about to be answered. Its result is stated in the same task."""

    method: str
    scaled_object: ScaledObject
    """The name the caller sent, not checked yet."""
    read_metadata: Callable[[], Iterable[tuple[str, str | bytes]] | None]
    """Return what the caller sent beside the request, such as the context of a trace."""


@dataclass(frozen=True, slots=True)
class CallDecided(Fact):
    """The call of this task is answered from this decision, new or not."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class Called(Fact):
    """One RPC ended."""

    method: str
    code: str
    """The gRPC status code's name, such as OK or UNAVAILABLE."""
    seconds: float


GIVEN_UP = "given up before it was answered"
"""The error of a query that took too long for the snapshot or call, or that a stop cut off."""


@dataclass(frozen=True, slots=True)
class Queried(Fact):
    """One request to a source ended."""

    source: str
    query: str
    """Which query: snapshot, age, history, gpus, clock, evidence, jobs, exporters, own,
    own-targets, own-age, own-history, demand, scrape, lag."""
    seconds: float
    error: str | None
    """The reason in words; None: it was answered."""
    target: str = ""
    """The exporter that was scraped; empty for a query."""


@dataclass(frozen=True, slots=True)
class SnapshotTaken(Fact):
    """A new snapshot replaced the one before."""

    source: str
    signal: str
    profile: str
    at: float
    pods: int
    refused_samples: int


@dataclass(frozen=True, slots=True)
class SourceChanged(Fact):
    """A source answered for the first time, went down or came back; stated once at each change."""

    source: str
    works: bool
    reason: str


@dataclass(frozen=True, slots=True)
class QueryChanged(Fact):
    """A query fails while its source answers, or works again; stated once at each change."""

    source: str
    query: str
    """The signal, or the short name of a user's own query or of a demandQuery."""
    works: bool
    reason: str


@dataclass(frozen=True, slots=True)
class LagChanged(Fact):
    """All samples of a source arrive so late, and ages count from then; stated at each change."""

    source: str
    seconds: float
    """0: they are on time again."""
    before: float = 0.0
    """The lag until now."""


@dataclass(frozen=True, slots=True)
class ExportersFound(Fact):
    """A source shows new exporters beside dcgm-exporter."""

    source: str
    found: tuple[str, ...]
    """The names of their profiles."""


@dataclass(frozen=True, slots=True)
class WatchChanged(Fact):
    """A resource of the Kubernetes API can no longer be watched, or can; once at each change."""

    resource: str
    """The name as in kubectl: pods, replicasets.apps; models.example.com/scale for selectors."""
    works: bool
    reason: str


@dataclass(frozen=True, slots=True)
class CertificateLoaded(Fact):
    """A server shows this certificate from now on; stated once for each certificate."""

    server: str
    """grpc or http."""
    expires_at: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True)
class CertificateRefused(Fact):
    """New files hold no usable certificate; the one before stays in use. Stated once."""

    server: str
    reason: str


@dataclass(frozen=True, slots=True)
class TriggerRefused(Fact):
    """A call's trigger is wrong; stated at each such call."""

    scaled_object: ScaledObject
    reason: str
    """Every mistake in it, on one line."""


@dataclass(frozen=True, slots=True)
class TriggerChanged(Fact):
    """A trigger that was not known before was read without a mistake."""

    scaled_object: ScaledObject
    rounded: tuple[str, ...] = ()
    """A sentence for each target that old versions of KEDA round."""


@dataclass(frozen=True, slots=True)
class AlertChanged(Fact):
    """An alert about a ScaledObject begins to fire or ends; stated once at each change."""

    scaled_object: ScaledObject
    alert: str
    """The name of the alert."""
    fires: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Notified(Fact):
    """A message to the webhook was answered."""

    sender: str
    """alertmanager, grafana, grafana-dashboard; unknown if the message was not read."""
    status: int
    """The HTTP status of the answer."""
    text: str
    """The text of the answer."""
    truncated: int = 0
    """Alerts that the sender left out."""


@dataclass(frozen=True, slots=True)
class PeerChanged(Fact):
    """Another replica can no longer be told of alerts, or can again; once at each change."""

    peer: str
    """The replica's address, or a name without an address."""
    works: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ObserveRead(Fact):
    """The files with ScaledObjects to observe were read, because they have changed."""

    files: int
    triggers: int
    refused: int
    """How much of them was refused."""


@dataclass(frozen=True, slots=True)
class ObserveRefused(Fact):
    """A part of a file with ScaledObjects to observe was refused; stated once for each reading."""

    file: str
    line: int
    """0: the whole file."""
    reason: str


@dataclass(frozen=True, slots=True)
class PeersAsked(Fact):
    """Alerts were sent to the other replicas, or requested from them."""

    reachable: int
    unreachable: int


Observer = Callable[[Fact], None]


class Subscriber:
    """An observer that has a function for each kind of fact that it is about."""

    def __init__(self, functions: Mapping[type[Fact], Callable[[Any], None]]) -> None:
        """Take the functions, by the kind that each is called with."""
        self._functions = functions

    def __call__(self, fact: Fact) -> None:
        """Call the function for this kind of fact, if there is one."""
        function = self._functions.get(type(fact))
        if function is not None:
            function(fact)


def ignore(fact: Fact) -> None:
    """Ignore the fact: the default observer."""
