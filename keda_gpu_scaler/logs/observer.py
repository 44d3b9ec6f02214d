"""Which facts become lines of the log.

An event is a dotted name, everything else is a key.
"""

import logging
import time
from collections.abc import Callable

import structlog
from cachetools import TTLCache
from structlog.typing import FilteringBoundLogger

from keda_gpu_scaler import explained, facts
from keda_gpu_scaler.decision import State
from keda_gpu_scaler.evidence import Basis
from keda_gpu_scaler.logs import described
from keda_gpu_scaler.logs.alerts import AlertLog
from keda_gpu_scaler.logs.certificates import CertificateLog
from keda_gpu_scaler.selection import Selected
from keda_gpu_scaler.spec import ScaledObject, ScaleTarget, TriggerSpec

REMEMBER_SECONDS = 600.0
"""KEDA asks every 30 s by default; what nobody asked for this long is gone, or as good as new."""
TRIGGERS_REMEMBERED = 20_000
PARTS = frozenset({"scrape", "history", "own-history", "evidence", "jobs", "exporters"})
"""Queries that can fail while their source is up; any other one takes the source down."""
EXPORTERS_ONLY = (
    "only exporters show which pods exist: minReplicaCount 0 is safe where the source has "
    "kube-state-metrics as well, or with KEDA_GPU_SCALER_KUBERNETES=true"
)
_STRENGTH = tuple(Basis)
_Key = tuple[ScaledObject, TriggerSpec]


class LogObserver:
    """Writes one line where something changed; at debug, one for each evaluation and query."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Remember nothing yet; logs are configured before.

        Args:
            clock: seconds that never go back.
        """
        # Bound, because a logger that is not yet builds itself anew for each line.
        self._logger: FilteringBoundLogger = structlog.get_logger().bind()
        self._tells_all = self._logger.is_enabled_for(logging.DEBUG)
        self._decided: TTLCache[_Key, tuple[State, bool | None]] = TTLCache(
            TRIGGERS_REMEMBERED, REMEMBER_SECONDS, timer=clock
        )
        self._ignored: TTLCache[_Key, tuple[str, ...]] = TTLCache(
            TRIGGERS_REMEMBERED, REMEMBER_SECONDS, timer=clock
        )
        self._judged: TTLCache[ScaledObject, bool] = TTLCache(
            TRIGGERS_REMEMBERED, REMEMBER_SECONDS, timer=clock
        )
        self._alerts, self._certificates = AlertLog(clock), CertificateLog()
        self._found: dict[str, frozenset[str]] = {}
        self._bases: dict[str, Basis] = {}
        self._reachable: dict[str, bool] = {}
        self._failing: TTLCache[tuple[str, str, str], bool] = TTLCache(
            TRIGGERS_REMEMBERED, REMEMBER_SECONDS, timer=clock
        )

    def __call__(self, fact: facts.Fact) -> None:
        """Write what is worth a line."""
        match fact:
            case facts.Evaluated():
                self._evaluated(fact)
            case facts.SourceChanged():
                self._source_changed(fact)
            case facts.OwnQueryChanged():
                write = self._logger.info if fact.works else self._logger.warning
                event = "query.works" if fact.works else "query.failed"
                write(event, source=fact.source, query=fact.query, reason=fact.reason)
            case facts.ExportersFound():
                self._found[fact.source] = self._found_in(fact.source).union(fact.profiles)
                self._logger.info("source.exporters", source=fact.source, found=fact.profiles)
            case facts.EvidenceChanged():
                self._evidence_changed(fact)
            case facts.WatchChanged():
                self._watch_changed(fact)
            case facts.AlertChanged() | facts.Notified() | facts.PeerChanged():
                self._alerts(fact)
            case facts.CertificateLoaded() | facts.CertificateRefused() | facts.CertificateLapsed():
                self._certificates(fact)
            case facts.Queried():
                self._queried(fact)
            case _:
                pass

    def _evaluated(self, fact: facts.Evaluated) -> None:
        key, now = (fact.scaled_object, fact.spec), (fact.decision.state, fact.decision.active)
        before = self._decided.get(key)
        self._decided[key] = now
        if before is None:
            self._warn(fact)
            if self._tells_all:
                self._explain(fact)
        self._notice(fact)
        self._pods_ignored(fact)
        if before != now:
            self._logger.info("decision.changed", **described.decision(fact))
        if self._tells_all:
            self._logger.debug("decision.made", **described.decision(fact))

    def _warn(self, fact: facts.Evaluated) -> None:
        for warning in fact.spec.warnings:
            self._logger.warning("trigger.warning", **described.whose(fact), warning=warning)

    def _explain(self, fact: facts.Evaluated) -> None:
        """Write what to ask a Prometheus by hand, which knows names and owners alone.

        A query of the user's own is known to whoever wrote it, and may have come out of a Secret.
        """
        demand = fact.spec.demand
        if demand is not None:
            self._logger.debug("trigger.demand", **described.whose(fact), query=demand.name)
        if fact.spec.query is not None or isinstance(fact.spec.pods, Selected | ScaleTarget):
            return
        owned = fact.decision.evidence is Basis.KUBE_STATE_METRICS
        text = explained.promql(fact.spec, self._found_in(fact.spec.source), owned=owned)
        self._logger.debug("trigger.explained", **described.whose(fact), promql=text)

    def _found_in(self, source: str) -> frozenset[str]:
        return self._found.get(source, frozenset())

    def _notice(self, fact: facts.Evaluated) -> None:
        """Say once per object that its pods are known by exporters only.

        Where the cluster is silent only later, the line about the source says so for all of them.
        """
        basis, name = fact.decision.evidence, fact.scaled_object
        if basis is Basis.EXPORTERS and name not in self._judged:
            self._logger.warning(
                "trigger.exporters_only", **described.whose(fact), warning=EXPORTERS_ONLY
            )
        if basis is not None:
            self._judged[name] = True

    def _pods_ignored(self, fact: facts.Evaluated) -> None:
        """Write when other pods than before are taken for pods without a GPU."""
        key, ignored = (fact.scaled_object, fact.spec), fact.decision.ignored
        if ignored and ignored != self._ignored.get(key):
            self._logger.warning(
                "trigger.pods_ignored", **described.whose(fact), pods=list(ignored)
            )
        self._ignored[key] = ignored

    def _evidence_changed(self, fact: facts.EvidenceChanged) -> None:
        before = self._bases.get(fact.source, Basis.KUBE_STATE_METRICS)
        self._bases[fact.source] = fact.basis
        is_weaker = _STRENGTH.index(fact.basis) > _STRENGTH.index(before)
        write = self._logger.warning if is_weaker else self._logger.info
        write("source.evidence", source=fact.source, evidence=str(fact.basis), reason=fact.reason)

    def _watch_changed(self, fact: facts.WatchChanged) -> None:
        if fact.works:
            self._logger.info("kubernetes.watching", resource=fact.resource, reason=fact.reason)
        else:
            self._logger.warning("kubernetes.lost", resource=fact.resource, reason=fact.reason)

    def _queried(self, fact: facts.Queried) -> None:
        seconds = described.rounded(fact.seconds)
        self._logger.debug(
            "source.queried",
            source=fact.source,
            query=fact.query,
            seconds=seconds,
            error=fact.error,
        )
        # What gives a query up says so itself, and says why.
        if fact.query in PARTS and fact.error != facts.GIVEN_UP:
            self._part_changed(fact)

    def _part_changed(self, fact: facts.Queried) -> None:
        """Write when a part of what is known gets lost or comes back, while the source is up."""
        key, failing = (fact.source, fact.query, fact.target), fact.error is not None
        before = self._failing.get(key, False)
        self._failing[key] = failing
        named = {"source": fact.source, "query": fact.query, "target": fact.target}
        if failing and not before:
            self._logger.warning("source.part_lost", **named, reason=fact.error)
        elif before and not failing:
            self._logger.info("source.part_back", **named)

    def _source_changed(self, fact: facts.SourceChanged) -> None:
        """Write the first of several: each signal of a source notices its outage by itself."""
        if self._reachable.get(fact.source, True) == fact.reachable:
            return
        self._reachable[fact.source] = fact.reachable
        if fact.reachable:
            self._logger.info("source.up", source=fact.source, reason=fact.reason)
        else:
            self._logger.warning("source.down", source=fact.source, reason=fact.reason)
