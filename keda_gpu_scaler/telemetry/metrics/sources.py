"""The metrics of sources and of their snapshots.

The age keeps growing while a source is down and KEDA keeps asking: alert on that.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics.recent import Recent, gauge, one_of

LIMIT = 1_000
"""Combinations of source, signal and profile: a handful, unless a source is per namespace."""

_SOURCE = ("source",)
_SNAPSHOT = ("source", "signal", "profile")


@dataclass(slots=True)
class _Source:
    is_up: bool | None = None
    lag_seconds: float | None = None
    evidence: EvidenceSource | None = None


@dataclass(slots=True)
class _Snapshot:
    pods: int | None = None
    refused_samples: int | None = None
    at: float | None = None
    """The snapshot's evaluation time, on this process's clock."""


class Sources(Collector):
    """The state of each source and of its snapshots, while triggers ask for them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sources: Recent[str, _Source] = Recent(LIMIT, clock)
        self._snapshots: Recent[tuple[str, str, str], _Snapshot] = Recent(LIMIT, clock)

    def snapshot_taken(self, fact: facts.SnapshotTaken) -> None:
        """Show the counts of this snapshot from now on."""
        snapshot = self._snapshots.renewed((fact.source, fact.signal, fact.profile), _Snapshot)
        snapshot.pods, snapshot.refused_samples = fact.pods, fact.refused_samples
        self._sources.renewed(fact.source, _Source).is_up = True

    def evaluated(self, fact: facts.Evaluated) -> None:
        """Take the snapshot's age from the fact: only the source has its own clock."""
        source, age = fact.source or fact.spec.source, fact.snapshot_age_seconds
        key = source, str(fact.spec.shared_signal), fact.spec.profile
        snapshot = self._snapshots.renewed(key, _Snapshot)
        snapshot.at = None if age is None else self._clock() - age
        self._sources.renewed(source, _Source)

    def source_changed(self, fact: facts.SourceChanged) -> None:
        """Show whether the source answers."""
        self._sources.renewed(fact.source, _Source).is_up = fact.reachable

    def lag_changed(self, fact: facts.LagChanged) -> None:
        """Show how late the source's samples arrive."""
        self._sources.renewed(fact.source, _Source).lag_seconds = fact.seconds

    def evidence_changed(self, fact: facts.EvidenceChanged) -> None:
        """Show the evidence about pods."""
        self._sources.renewed(fact.source, _Source).evidence = fact.evidence_source

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield one family per metric."""
        now, snapshots = self._clock(), self._snapshots.items()
        sources = [((name,), source) for name, source in self._sources.items()]
        yield gauge(
            "keda_gpu_scaler_source_up",
            "1 while a source answers, 0 while not.",
            _SOURCE,
            ((name, source.is_up) for name, source in sources),
        )
        yield gauge(
            "keda_gpu_scaler_source_lag_seconds",
            "How late all samples of a source arrive, where that is more than a minute; absent "
            "where they never were.",
            _SOURCE,
            ((name, source.lag_seconds) for name, source in sources),
        )
        yield gauge(
            "keda_gpu_scaler_source_evidence",
            "1 for what says which pods there are, 0 for what does not: kubernetes, "
            "kube-state-metrics or exporters.",
            (*_SOURCE, "evidence"),
            one_of(EvidenceSource, ((name, source.evidence) for name, source in sources)),
        )
        yield gauge(
            "keda_gpu_scaler_snapshot_age_seconds",
            "Age of the data that triggers are decided from.",
            _SNAPSHOT,
            ((key, now - snapshot.at) for key, snapshot in snapshots if snapshot.at is not None),
        )
        yield gauge(
            "keda_gpu_scaler_snapshot_pods",
            "Pods with a GPU in the newest snapshot.",
            _SNAPSHOT,
            ((key, snapshot.pods) for key, snapshot in snapshots),
        )
        yield gauge(
            "keda_gpu_scaler_snapshot_refused_samples",
            "Samples that the newest snapshot left out because no GPU can have such a load.",
            _SNAPSHOT,
            ((key, snapshot.refused_samples) for key, snapshot in snapshots),
        )
