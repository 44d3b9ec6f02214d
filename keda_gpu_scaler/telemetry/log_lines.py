"""The facts that become log lines. The event is a dotted name, everything else is a key."""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime

import structlog
from cachetools import LRUCache, TTLCache
from structlog.typing import FilteringBoundLogger

from keda_gpu_scaler.query.explain import Explained
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.retention import FORGET_SECONDS, TRIGGERS
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.spec.workload import ScaleTarget, Selected
from keda_gpu_scaler.telemetry import facts

REFUSED = 400
"""HTTP statuses from this one on mean that a message was not taken, or not all of it."""
REPEAT_SECONDS = 600.0
"""Senders repeat messages every few minutes; the same line is written once in this time."""
MESSAGES_REMEMBERED = 1_000
DECIMALS = 3
PARTS = frozenset({"scrape", "history", "own-history", "evidence", "jobs", "exporters"})
"""Queries that can fail without a snapshot failing; of any other one, the snapshot tells."""
EXPORTERS_ONLY = (
    "only exporters show which pods exist: minReplicaCount 0 is safe where the source has "
    "kube-state-metrics as well, or with KEDA_GPU_SCALER_KUBERNETES=true"
)
LATE = (
    "all samples arrive so late: decisions are about the load that long ago; cooldownPeriod should "
    "be longer than this and a start-up"
)
_STRENGTH = tuple(EvidenceSource)


class LogObserver(facts.Subscriber):
    """Writes a line at each change; at level debug, also for each evaluation and query."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Bind the logger; `logs.configure` has to be called before."""
        # Bound, because structlog builds an unbound logger again for each line.
        self._logger: FilteringBoundLogger = structlog.get_logger().bind()
        self._writes_all = self._logger.is_enabled_for(logging.DEBUG)
        self._evidence_seen: LRUCache[ScaledObject, bool] = LRUCache(TRIGGERS)
        self._exporters: dict[str, frozenset[str]] = {}
        self._late: set[str] = set()
        self._evidence: dict[str, EvidenceSource] = {}
        self._failing: TTLCache[tuple[str, str, str], bool] = TTLCache(
            TRIGGERS, FORGET_SECONDS, clock
        )
        self._refused: TTLCache[facts.Notified, bool] = TTLCache(
            MESSAGES_REMEMBERED, REPEAT_SECONDS, clock
        )
        super().__init__(
            {
                facts.Evaluated: self._evaluated,
                facts.SourceChanged: self._source_changed,
                facts.LagChanged: self._lag_changed,
                facts.QueryChanged: self._query_changed,
                facts.ExportersFound: self._exporters_found,
                facts.EvidenceChanged: self._evidence_changed,
                facts.WatchChanged: self._watch_changed,
                facts.Queried: self._queried,
                facts.AlertChanged: self._alert_changed,
                facts.Notified: self._notified,
                facts.PeerChanged: self._peer_changed,
                facts.CertificateLoaded: self._certificate_loaded,
                facts.CertificateRefused: self._certificate_refused,
                facts.CertificateLapsed: self._certificate_lapsed,
                facts.ObserveRead: self._observe_read,
                facts.ObserveRefused: self._observe_refused,
            }
        )

    def _log_change(self, event: str, *, is_good: bool, **keys: object) -> None:
        """Write a change: a warning, if it is for the worse."""
        write = self._logger.info if is_good else self._logger.warning
        write(event, **keys)

    def _evaluated(self, fact: facts.Evaluated) -> None:
        now, before = fact.decision, fact.before
        if before is None:
            for warning in fact.spec.warnings:
                self._logger.warning("trigger.warning", **_trigger_keys(fact), warning=warning)
            if self._writes_all:
                self._explain(fact)
        if before is None or before.evidence is None:
            self._warn_of_exporters_only(fact)
        # A changed set of pods that never showed a GPU.
        if now.ignored and (before is None or now.ignored != before.ignored):
            pods = list(now.ignored)
            self._logger.warning("trigger.pods_ignored", **_trigger_keys(fact), pods=pods)
        if now.unseen and (before is None or now.unseen != before.unseen):
            pods = list(now.unseen)
            self._logger.warning("trigger.pods_unseen", **_trigger_keys(fact), pods=pods)
        if before is None or (now.state, now.active) != (before.state, before.active):
            self._logger.info("decision.changed", **_decision_keys(fact))
        if self._writes_all:
            self._logger.debug("decision.made", **_decision_keys(fact))

    def _explain(self, fact: facts.Evaluated) -> None:
        """Write the PromQL for a manual check; Prometheus knows only names and owners of pods.

        A user's own query is not written: its author knows it, and it may come from a Secret.
        """
        spec = fact.spec
        if spec.demand is not None:
            self._logger.debug("trigger.demand", **_trigger_keys(fact), query=spec.demand.name)
        if spec.query is not None or isinstance(spec.pods, Selected | ScaleTarget):
            return
        exporters = self._exporters.get(spec.source, frozenset[str]())
        owned = fact.decision.evidence is EvidenceSource.KUBE_STATE_METRICS
        promql = Explained(spec=spec, found=exporters, owned=owned).value
        self._logger.debug("trigger.explained", **_trigger_keys(fact), promql=promql)

    def _warn_of_exporters_only(self, fact: facts.Evaluated) -> None:
        """Warn once per ScaledObject if only exporters show its pods.

        If other evidence is lost later, the line about the source covers all ScaledObjects.
        """
        evidence, scaled_object = fact.decision.evidence, fact.scaled_object
        is_first = scaled_object not in self._evidence_seen
        if evidence is EvidenceSource.EXPORTERS and is_first:
            keys = _trigger_keys(fact)
            self._logger.warning("trigger.exporters_only", **keys, warning=EXPORTERS_ONLY)
        if evidence is not None:
            self._evidence_seen[scaled_object] = True

    def _source_changed(self, fact: facts.SourceChanged) -> None:
        event = "source.up" if fact.reachable else "source.down"
        self._log_change(event, is_good=fact.reachable, source=fact.source, reason=fact.reason)

    def _lag_changed(self, fact: facts.LagChanged) -> None:
        """Write a line when samples begin to be late, and when they are on time again."""
        if not fact.seconds:
            self._late.discard(fact.source)
            self._logger.info("source.on_time", source=fact.source)
        elif fact.source not in self._late:
            self._late.add(fact.source)
            self._logger.warning(
                "source.late", source=fact.source, lag_seconds=fact.seconds, warning=LATE
            )

    def _query_changed(self, fact: facts.QueryChanged) -> None:
        event = "query.works" if fact.works else "query.failed"
        keys = {"source": fact.source, "query": fact.query, "reason": fact.reason}
        self._log_change(event, is_good=fact.works, **keys)

    def _exporters_found(self, fact: facts.ExportersFound) -> None:
        before = self._exporters.get(fact.source, frozenset())
        self._exporters[fact.source] = before.union(fact.profiles)
        self._logger.info("source.exporters", source=fact.source, found=fact.profiles)

    def _evidence_changed(self, fact: facts.EvidenceChanged) -> None:
        before = self._evidence.get(fact.source, EvidenceSource.KUBE_STATE_METRICS)
        self._evidence[fact.source] = now = fact.evidence_source
        self._log_change(
            "source.evidence",
            is_good=_STRENGTH.index(now) <= _STRENGTH.index(before),
            source=fact.source,
            evidence=str(now),
            reason=fact.reason,
        )

    def _watch_changed(self, fact: facts.WatchChanged) -> None:
        event = "kubernetes.watching" if fact.works else "kubernetes.lost"
        self._log_change(event, is_good=fact.works, resource=fact.resource, reason=fact.reason)

    def _queried(self, fact: facts.Queried) -> None:
        self._logger.debug(
            "source.queried",
            source=fact.source,
            query=fact.query,
            seconds=round(fact.seconds, DECIMALS),
            error=fact.error,
        )
        # The code that gives up a query reports that itself, with the reason.
        if fact.query not in PARTS or fact.error == facts.GIVEN_UP:
            return
        # A part of the data is lost or comes back while the source is up.
        part, fails = (fact.source, fact.query, fact.target), fact.error is not None
        failed_before = self._failing.get(part, False)
        self._failing[part] = fails
        keys = {"source": fact.source, "query": fact.query, "target": fact.target}
        if fails and not failed_before:
            self._logger.warning("source.part_lost", **keys, reason=fact.error)
        elif failed_before and not fails:
            self._logger.info("source.part_back", **keys)

    def _alert_changed(self, fact: facts.AlertChanged) -> None:
        event = "alert.fires" if fact.fires else "alert.ended"
        keys = _scaled_object_keys(fact.scaled_object)
        self._logger.info(event, **keys, alert=fact.alert, reason=fact.reason)

    def _notified(self, fact: facts.Notified) -> None:
        keys = {"sender": fact.sender, "status": fact.status, "answer": fact.text}
        if fact.status < REFUSED and not fact.truncated:
            self._logger.debug("webhook.taken", **keys)
        elif fact not in self._refused:
            self._refused[fact] = True
            event = "webhook.refused" if fact.status >= REFUSED else "webhook.truncated"
            self._logger.warning(event, **keys)

    def _peer_changed(self, fact: facts.PeerChanged) -> None:
        event = "peer.up" if fact.reachable else "peer.down"
        self._log_change(event, is_good=fact.reachable, peer=fact.peer, reason=fact.reason)

    def _certificate_loaded(self, fact: facts.CertificateLoaded) -> None:
        expires = datetime.fromtimestamp(fact.expires_at, UTC).isoformat()
        self._logger.info("certificate.loaded", server=fact.server, expires=expires)

    def _certificate_refused(self, fact: facts.CertificateRefused) -> None:
        self._logger.warning("certificate.refused", **asdict(fact))

    def _certificate_lapsed(self, fact: facts.CertificateLapsed) -> None:
        self._logger.error("certificate.lapsed", **asdict(fact))

    def _observe_read(self, fact: facts.ObserveRead) -> None:
        self._logger.info("observe.read", **asdict(fact))

    def _observe_refused(self, fact: facts.ObserveRefused) -> None:
        self._logger.warning("observe.refused", **asdict(fact))


def _scaled_object_keys(scaled_object: ScaledObject) -> dict[str, object]:
    return {"namespace": scaled_object.namespace, "scaled_object": scaled_object.name}


def _trigger_keys(fact: facts.Evaluated) -> dict[str, object]:
    return {
        **_scaled_object_keys(fact.scaled_object),
        "metric": fact.spec.metric_name,
        "workload": fact.spec.workload,
    }


def _decision_keys(fact: facts.Evaluated) -> dict[str, object]:
    decision = fact.decision
    return {
        **_trigger_keys(fact),
        "state": str(decision.state),
        "active": decision.active,
        "value": None if decision.value is None else round(decision.value, DECIMALS),
        "average": None if decision.average is None else round(decision.average, DECIMALS),
        "evidence": None if decision.evidence is None else str(decision.evidence),
        "reason": decision.reason,
    }
