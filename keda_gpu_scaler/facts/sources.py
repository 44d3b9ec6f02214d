"""What came of asking sources and the Kubernetes API."""

from dataclasses import dataclass

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
    """A source went down or came back; stated once at each change."""

    source: str
    reachable: bool
    reason: str


@dataclass(frozen=True, slots=True)
class OwnQueryChanged:
    """A user's own query, or demandQuery, failed or works again; stated once at each change."""

    source: str
    query: str
    """Its short name."""
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
