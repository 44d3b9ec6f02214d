"""Events as typed facts, each stated once by the core, which neither logs nor counts.

Observers make log lines (`log_lines`), metrics (`metrics`), spans (`traces`) and the
history (`history`) of them. Each can be deleted without a change of the core.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.decision.summary import Summary
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.spec import Demand, ScaledObject, TriggerSpec

TRIGGERS = 20_000
"""Of so many something is remembered, more than one KEDA can poll."""


class Fact(msgspec.Struct, frozen=True):
    """Something that happened."""


class Evaluated(Fact, frozen=True):
    """One trigger was decided."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    decision: Decision
    summary: Summary
    snapshot_age_seconds: float | None
    """Seconds since the newest usable snapshot's evaluation time; None without one."""
    source: str
    """The source's name in the facts of its snapshot."""
    before: Decision | None = None
    """What was decided before; None: it is new, or was not asked about for ten minutes."""


class DemandKnown(Fact, frozen=True):
    """A trigger's demand was requested; the answer may come from the cache."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    demand: Demand


class EvidenceChanged(Fact, frozen=True):
    """The evidence for decisions from now on, beside the samples; stated once at each change."""

    source: str
    evidence_source: EvidenceSource
    reason: str


class CallBegan(Fact, frozen=True):
    """A call was decoded and is about to be answered. Its result is stated in the same task."""

    method: str
    scaled_object: ScaledObject
    """The name the caller sent, not checked yet."""
    read_metadata: Callable[[], Iterable[tuple[str, str | bytes]] | None]
    """Return what the caller sent beside the request, such as the context of a trace."""


class CallDecided(Fact, frozen=True):
    """The call of this task is answered from this decision, new or not."""

    decision: Decision


class Called(Fact, frozen=True):
    """One RPC ended."""

    method: str
    code: str
    """The gRPC status code's name, such as OK or UNAVAILABLE."""
    seconds: float


GIVEN_UP = "given up before it was answered"
"""The error of a query that took too long for the snapshot or call, or that a stop cut off."""


class Queried(Fact, frozen=True):
    """One request to a source ended."""

    source: str
    query: str
    """Which query: snapshot, age, history, gpus, clock, evidence, jobs, exporters, breadth, look,
    own, own-targets, own-age, own-history, demand, scrape, lag."""
    seconds: float
    error: str | None
    """The reason in words; None: it was answered."""
    target: str = ""
    """The exporter that was scraped; empty for a query."""


class SnapshotTaken(Fact, frozen=True):
    """A new snapshot replaced the one before."""

    source: str
    signal: str
    profile: str
    at: float
    pods: int
    refused_samples: int
    stuck_gpus: int = 0


class SourceChanged(Fact, frozen=True):
    """A source answered for the first time, went down or came back; stated once at each change."""

    source: str
    works: bool
    reason: str
    url: str = ""
    """Where it is, without secrets."""


class QueryChanged(Fact, frozen=True):
    """A query fails while its source answers, or works again; stated once at each change."""

    source: str
    query: str
    """The signal, or the short name of a user's own query or of a demandQuery."""
    works: bool
    reason: str


class LagChanged(Fact, frozen=True):
    """All samples of a source arrive so late, and ages count from then; stated at each change."""

    source: str
    seconds: float
    """0: they are on time again."""
    before: float = 0.0
    """The lag until now."""


class ExportersFound(Fact, frozen=True):
    """A source shows new exporters beside dcgm-exporter."""

    source: str
    found: tuple[str, ...]


class CauseFound(Fact, frozen=True):
    """It was found why exporters do not show a workload; stated at each change of one."""

    source: str
    reason: str
    names: tuple[str, ...]
    """The namespaces, pods or jobs that it is about."""


class JobsLeftOut(Fact, frozen=True):
    """A source shows more scrape jobs than queries name; stated at each answer that names one."""

    source: str
    jobs: int
    first: str
    """The name of one of them."""


class JobOverruled(Fact, frozen=True):
    """A job's series of pods do not count; stated at each answer with those of a wider job."""

    source: str
    job: str
    wider: str
    """The job that counts instead."""


class WatchChanged(Fact, frozen=True):
    """A resource of the Kubernetes API can no longer be watched, or can; once at each change."""

    resource: str
    """The name as in kubectl: pods, replicasets.apps; models.example.com/scale for selectors."""
    works: bool
    reason: str


class CertificateLoaded(Fact, frozen=True):
    """A server shows this certificate from now on; stated once for each certificate."""

    server: str
    """grpc or http."""
    expires_at: float
    """Unix seconds."""


class CertificateRefused(Fact, frozen=True):
    """New files hold no usable certificate; the one before stays in use. Stated once."""

    server: str
    reason: str


class TriggerRefused(Fact, frozen=True):
    """A call's trigger is wrong; stated at each such call."""

    scaled_object: ScaledObject
    reason: str
    """Every mistake in it, on one line."""


class TriggerChanged(Fact, frozen=True):
    """A trigger that was not known before was read without a mistake."""

    scaled_object: ScaledObject
    rounded: tuple[str, ...] = ()
    """A sentence for each target that old versions of KEDA round."""


class AlertChanged(Fact, frozen=True):
    """An alert about a ScaledObject begins to fire or ends; stated once at each change."""

    scaled_object: ScaledObject
    alert: str
    fires: bool
    reason: str
    is_one_of_many: bool = False
    """`AlertsChanged` stands for it and the others in the log."""


class AlertsChanged(Fact, frozen=True):
    """Many alerts began to fire or ended together; each of them is an `AlertChanged` as well."""

    firing: int
    ended: int
    reason: str


class Notified(Fact, frozen=True):
    """A message to the webhook was answered."""

    sender: str
    """alertmanager, grafana, grafana-dashboard; unknown if the message was not read."""
    status: int
    text: str
    truncated: int = 0
    """Alerts that the sender left out."""


class PeerChanged(Fact, frozen=True):
    """Another replica can no longer be told of alerts, or can again; once at each change."""

    peer: str
    """The replica's address, or a name without an address."""
    works: bool
    reason: str


class ObserveRead(Fact, frozen=True):
    """The files with ScaledObjects to observe were read, because they have changed."""

    files: int
    triggers: int
    refused: int


class ObserveRefused(Fact, frozen=True):
    """A part of a file with ScaledObjects to observe was refused; stated once for each reading."""

    file: str
    line: int
    """0: the whole file."""
    reason: str


class DeletionCosts(Fact, frozen=True):
    """Which pods of a Deployment go first if the HPA scales in; stated at each change."""

    namespace: str
    scaled_object: str
    replicas: int
    ahead: int
    """How many the HPA may set soon."""
    pods: tuple[str, ...]
    """Those that go, the least busy first; empty: none has a cost of this program's any more."""
    dry_run: bool


class PeersAsked(Fact, frozen=True):
    """How many addresses of replicas answered when they were last told of alerts or asked."""

    reachable: int
    unreachable: int


Observer = Callable[[Fact], None]


def ignore(fact: Fact) -> None:
    """Ignore the fact: the default observer."""


class Subscriber:
    """An observer of some kinds of facts only."""

    def __init__(self, handlers: Mapping[type[Fact], Callable[[Any], None]]) -> None:
        self.handlers = handlers
        """What takes the facts, by their kind; `Observers` looks a kind up once."""

    def __call__(self, fact: Fact) -> None:
        self.handlers.get(type(fact), ignore)(fact)
