"""What happened, as typed facts. Logs, metrics and traces are small subscribers to these.

    decisions     what a trigger was answered, and what the answer rests on
    sources       what came of asking sources and the Kubernetes API
    calls         a call of KEDA's
    alerts        alerts, and the replicas that tell each other of them
    certificates  the certificates that this process shows

The core never logs and never counts: it states a fact once, and whoever observes turns it into a
log line (`logs/`), a metric (`telemetry/`) or a span (`tracing/`). Each may be deleted without
touching the core.
"""

from collections.abc import Callable

from keda_gpu_scaler.facts.alerts import AlertChanged, Notified, PeerChanged, PeersAsked
from keda_gpu_scaler.facts.calls import CallBegan, CallDecided, Called
from keda_gpu_scaler.facts.certificates import (
    CertificateLapsed,
    CertificateLoaded,
    CertificateRefused,
)
from keda_gpu_scaler.facts.decisions import DemandKnown, Evaluated, EvidenceChanged
from keda_gpu_scaler.facts.sources import (
    GIVEN_UP,
    ExportersFound,
    OwnQueryChanged,
    Queried,
    SnapshotTaken,
    SourceChanged,
    WatchChanged,
)

__all__ = [
    "GIVEN_UP",
    "AlertChanged",
    "CallBegan",
    "CallDecided",
    "Called",
    "CertificateLapsed",
    "CertificateLoaded",
    "CertificateRefused",
    "DemandKnown",
    "Evaluated",
    "EvidenceChanged",
    "ExportersFound",
    "Fact",
    "Notified",
    "Observer",
    "OwnQueryChanged",
    "PeerChanged",
    "PeersAsked",
    "Queried",
    "SnapshotTaken",
    "SourceChanged",
    "WatchChanged",
    "ignore",
]

Fact = (
    Evaluated
    | DemandKnown
    | Queried
    | SnapshotTaken
    | SourceChanged
    | OwnQueryChanged
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
