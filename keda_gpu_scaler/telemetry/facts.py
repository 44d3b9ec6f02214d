"""What happened, as typed facts. Logs, metrics and traces are small subscribers to these.

The core never logs and never counts: it states a fact once, and each observer turns it into a log
line (`log_lines`), a metric (`metrics/`) or a span (`traces`). Each of these may be deleted without
touching the core.
"""

from collections.abc import Callable
from dataclasses import dataclass

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One trigger was decided."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    decision: Decision
    snapshot_age_seconds: float | None
    """Seconds since the newest usable snapshot's evaluation time; None without one."""
    source: str = ""
    """As the facts of its snapshot name the source; empty: as the trigger does."""


@dataclass(frozen=True, slots=True)
class DemandKnown:
    """A trigger's demand was asked for; it may have been answered from what was known."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    demand: Demand


@dataclass(frozen=True, slots=True)
class EvidenceChanged:
    """What decisions rest on from now on, beside the samples; stated once at each change."""

    source: str
    evidence_source: EvidenceSource
    reason: str


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A call was read and is about to be answered. What comes of it is stated in the same task."""

    method: str
    scaled_object: ScaledObject
    """As the caller names it; nobody has checked that yet."""
    traceparent: str
    """The caller's place in a trace, as W3C writes it; empty where it sent none."""


@dataclass(frozen=True, slots=True)
class CallDecided:
    """The call that this task answers is answered from this decision, new or not."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class Called:
    """One RPC ended."""

    method: str
    code: str
    """The gRPC status code's name, such as OK or UNAVAILABLE."""
    seconds: float


GIVEN_UP = "given up before it was answered"
"""The error of a query that took too long for what wanted it, or that a stop cut off."""


@dataclass(frozen=True, slots=True)
class Queried:
    """One request went to a source, and this came of it."""

    source: str
    query: str
    """Which query: snapshot, age, history, gpus, clock, evidence, jobs, exporters, own,
    own-targets, own-age, own-history, demand, scrape."""
    seconds: float
    error: str | None
    """The reason in words, or None when it was answered."""
    target: str = ""
    """The exporter that was scraped; empty for a query."""


@dataclass(frozen=True, slots=True)
class SnapshotTaken:
    """A new snapshot replaced the one before it."""

    source: str
    signal: str
    profile: str
    at: float
    pods: int
    refused_samples: int


@dataclass(frozen=True, slots=True)
class SourceChanged:
    """A source answers for the first time, went down or came back; stated once at each change."""

    source: str
    reachable: bool
    reason: str


@dataclass(frozen=True, slots=True)
class QueryChanged:
    """One query fails while its source answers, or works again; stated once at each change."""

    source: str
    query: str
    """The signal, or the short name of a query of a user's own or of a demandQuery."""
    works: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ExportersFound:
    """A source shows exporters beside dcgm-exporter that it did not show before."""

    source: str
    profiles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WatchChanged:
    """A resource of the Kubernetes API can no longer be followed, or can; once at each change."""

    resource: str
    """As kubectl writes it: pods, replicasets.apps; models.example.com/scale for selectors."""
    works: bool
    reason: str


@dataclass(frozen=True, slots=True)
class CertificateLoaded:
    """A server shows this certificate from now on; stated once for each."""

    server: str
    """grpc or http."""
    expires_at: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True)
class CertificateRefused:
    """New files hold no certificate that can be used; the one before goes on. Stated once."""

    server: str
    reason: str


@dataclass(frozen=True, slots=True)
class CertificateLapsed:
    """A certificate is shown although its dates make clients refuse it; stated once for each."""

    server: str
    reason: str


@dataclass(frozen=True, slots=True)
class AlertChanged:
    """An alert about a ScaledObject begins to fire, or no longer does; once at each change."""

    scaled_object: ScaledObject
    alert: str
    """Its name."""
    fires: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Notified:
    """Somebody sent a message to the webhook, and this came of it."""

    sender: str
    """alertmanager, grafana, grafana-dashboard; unknown where the message was not read."""
    status: int
    """The HTTP status of the answer."""
    text: str
    """What the sender was answered."""
    truncated: int = 0
    """Alerts that the sender left out."""


@dataclass(frozen=True, slots=True)
class PeerChanged:
    """Another replica can no longer be told of alerts, or can; once at each change."""

    peer: str
    """Its address, or the name that has none."""
    reachable: bool
    reason: str


@dataclass(frozen=True, slots=True)
class PeersAsked:
    """The other replicas were told of alerts, or asked for them."""

    reachable: int
    unreachable: int


Fact = (
    Evaluated
    | DemandKnown
    | Queried
    | SnapshotTaken
    | SourceChanged
    | QueryChanged
    | ExportersFound
    | EvidenceChanged
    | WatchChanged
    | AlertChanged
    | Notified
    | PeerChanged
    | PeersAsked
    | CertificateLoaded
    | CertificateRefused
    | CertificateLapsed
    | CallBegan
    | CallDecided
    | Called
)
Observer = Callable[[Fact], None]


def ignore(fact: Fact) -> None:
    """Observe nothing: the default where nobody listens."""
