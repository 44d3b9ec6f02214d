"""The facts that become log lines. The event is a dotted name, everything else is a key."""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import get_args

import structlog
from cachetools import LRUCache, TTLCache
from structlog.typing import FilteringBoundLogger

from keda_gpu_scaler.query.explain import explained_promql
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.retention import FORGET_SECONDS, TRIGGERS
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.spec.workload import ScaleTarget, Selected
from keda_gpu_scaler.telemetry import facts

REFUSED = 400
"""HTTP statuses from this one on mean that a message was not taken, or not all of it."""
REPEAT_SECONDS = 600.0
"""Senders repeat messages every few minutes; the same line is written once in this time."""
WORDS_REMEMBERED = 1_000

AlertFact = facts.AlertChanged | facts.Notified | facts.PeerChanged


class AlertLog:
    """Writes a line when an alert begins or ends, a message is refused, or a replica is lost."""

    def __init__(self, clock: Callable[[], float]) -> None:
        # Bound, because structlog builds an unbound logger again for each line.
        self._logger: FilteringBoundLogger = structlog.get_logger().bind()
        self._refused: TTLCache[facts.Notified, bool] = TTLCache(
            WORDS_REMEMBERED, REPEAT_SECONDS, timer=clock
        )

    def __call__(self, fact: AlertFact) -> None:
        """Write a line if the fact needs one."""
        match fact:
            case facts.AlertChanged():
                namespace, name = fact.scaled_object
                event = "alert.fires" if fact.fires else "alert.ended"
                self._logger.info(
                    event,
                    namespace=namespace,
                    scaled_object=name,
                    alert=fact.alert,
                    reason=fact.reason,
                )
            case facts.PeerChanged(peer, reachable=True):
                self._logger.info("peer.up", peer=peer, reason=fact.reason)
            case facts.PeerChanged(peer):
                self._logger.warning("peer.down", peer=peer, reason=fact.reason)
            case _:
                self._notified(fact)

    def _notified(self, fact: facts.Notified) -> None:
        said = {"sender": fact.sender, "status": fact.status, "answer": fact.text}
        if fact.status < REFUSED and not fact.truncated:
            self._logger.debug("webhook.taken", **said)
        elif fact not in self._refused:
            self._refused[fact] = True
            event = "webhook.refused" if fact.status >= REFUSED else "webhook.truncated"
            self._logger.warning(event, **said)


CertificateFact = facts.CertificateLoaded | facts.CertificateRefused | facts.CertificateLapsed


class CertificateLog:
    """Writes a line when a certificate is loaded, cannot be used, or is out of its dates."""

    def __init__(self) -> None:
        # Bound, because structlog builds an unbound logger again for each line.
        self._logger: FilteringBoundLogger = structlog.get_logger().bind()

    def __call__(self, fact: CertificateFact) -> None:
        """Write the line."""
        match fact:
            case facts.CertificateLoaded(server, expires_at):
                expires = datetime.fromtimestamp(expires_at, UTC).isoformat()
                self._logger.info("certificate.loaded", server=server, expires=expires)
            case facts.CertificateRefused(server, reason):
                self._logger.warning("certificate.refused", server=server, reason=reason)
            case _:
                self._logger.error("certificate.lapsed", server=fact.server, reason=fact.reason)


DECIMALS = 3


def trigger_fields(fact: facts.Evaluated) -> dict[str, object]:
    """Return the keys that name the trigger."""
    return {
        "namespace": fact.scaled_object.namespace,
        "scaled_object": fact.scaled_object.name,
        "metric": fact.spec.metric_name,
        "workload": fact.spec.workload,
    }


def decision_fields(fact: facts.Evaluated) -> dict[str, object]:
    """Return the keys of the decision and its reason."""
    decided = fact.decision
    return {
        **trigger_fields(fact),
        "state": str(decided.state),
        "active": decided.active,
        "value": _known(decided.value),
        "average": _known(decided.average),
        "evidence": None if decided.evidence is None else str(decided.evidence),
        "reason": decided.reason,
    }


def rounded(value: float) -> float:
    """Return the value with as many decimals as a line shows."""
    return round(value, DECIMALS)


def _known(value: float | None) -> float | None:
    return None if value is None else rounded(value)


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
        """Bind the logger; `logs.configure` has to be called before.

        Args:
            clock: seconds that never go back.
        """
        # Bound, because structlog builds an unbound logger again for each line.
        self._logger: FilteringBoundLogger = structlog.get_logger().bind()
        self._tells_all = self._logger.is_enabled_for(logging.DEBUG)
        self._judged: LRUCache[ScaledObject, bool] = LRUCache(TRIGGERS)
        alerts, certificates = AlertLog(clock), CertificateLog()
        super().__init__(
            {
                facts.Evaluated: self._evaluated,
                facts.SourceChanged: self._source_changed,
                facts.LagChanged: self._source_changed,
                facts.QueryChanged: self._source_changed,
                facts.ExportersFound: self._exporters_found,
                facts.EvidenceChanged: self._evidence_changed,
                facts.WatchChanged: self._watch_changed,
                facts.ObserveRead: self._observed,
                facts.ObserveRefused: self._observed,
                facts.Queried: self._queried,
                **dict.fromkeys(get_args(AlertFact), alerts),
                **dict.fromkeys(get_args(CertificateFact), certificates),
            }
        )
        self._found: dict[str, frozenset[str]] = {}
        self._late: set[str] = set()
        self._bases: dict[str, EvidenceSource] = {}
        self._failing: TTLCache[tuple[str, str, str], bool] = TTLCache(
            TRIGGERS, FORGET_SECONDS, clock
        )

    def _exporters_found(self, fact: facts.ExportersFound) -> None:
        self._found[fact.source] = self._found_in(fact.source).union(fact.profiles)
        self._logger.info("source.exporters", source=fact.source, found=fact.profiles)

    def _evaluated(self, fact: facts.Evaluated) -> None:
        now, before = fact.decision, fact.before
        if before is None:
            self._warn(fact)
            if self._tells_all:
                self._explain(fact)
        if before is None or before.evidence is None:
            self._notice(fact)
        # A changed set of pods that never showed a GPU.
        if now.ignored and (before is None or now.ignored != before.ignored):
            pods = list(now.ignored)
            self._logger.warning("trigger.pods_ignored", **trigger_fields(fact), pods=pods)
        if now.unseen and (before is None or now.unseen != before.unseen):
            pods = list(now.unseen)
            self._logger.warning("trigger.pods_unseen", **trigger_fields(fact), pods=pods)
        if before is None or (now.state, now.active) != (before.state, before.active):
            self._logger.info("decision.changed", **decision_fields(fact))
        if self._tells_all:
            self._logger.debug("decision.made", **decision_fields(fact))

    def _warn(self, fact: facts.Evaluated) -> None:
        for warning in fact.spec.warnings:
            self._logger.warning("trigger.warning", **trigger_fields(fact), warning=warning)

    def _explain(self, fact: facts.Evaluated) -> None:
        """Write the PromQL for a manual check; Prometheus knows only names and owners of pods.

        A user's own query is not written: its author knows it, and it may come from a Secret.
        """
        demand = fact.spec.demand
        if demand is not None:
            self._logger.debug("trigger.demand", **trigger_fields(fact), query=demand.name)
        if fact.spec.query is not None or isinstance(fact.spec.pods, Selected | ScaleTarget):
            return
        owned = fact.decision.evidence is EvidenceSource.KUBE_STATE_METRICS
        text = explained_promql(fact.spec, self._found_in(fact.spec.source), owned=owned)
        self._logger.debug("trigger.explained", **trigger_fields(fact), promql=text)

    def _found_in(self, source: str) -> frozenset[str]:
        return self._found.get(source, frozenset())

    def _notice(self, fact: facts.Evaluated) -> None:
        """Warn once per ScaledObject if only exporters show its pods.

        If other evidence is lost later, the line about the source covers all ScaledObjects.
        """
        evidence_source, name = fact.decision.evidence, fact.scaled_object
        if evidence_source is EvidenceSource.EXPORTERS and name not in self._judged:
            self._logger.warning(
                "trigger.exporters_only", **trigger_fields(fact), warning=EXPORTERS_ONLY
            )
        if evidence_source is not None:
            self._judged[name] = True

    def _evidence_changed(self, fact: facts.EvidenceChanged) -> None:
        before = self._bases.get(fact.source, EvidenceSource.KUBE_STATE_METRICS)
        self._bases[fact.source] = fact.evidence_source
        is_weaker = _STRENGTH.index(fact.evidence_source) > _STRENGTH.index(before)
        write = self._logger.warning if is_weaker else self._logger.info
        write(
            "source.evidence",
            source=fact.source,
            evidence=str(fact.evidence_source),
            reason=fact.reason,
        )

    def _query_changed(self, fact: facts.QueryChanged) -> None:
        write = self._logger.info if fact.works else self._logger.warning
        event = "query.works" if fact.works else "query.failed"
        write(event, source=fact.source, query=fact.query, reason=fact.reason)

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

    def _watch_changed(self, fact: facts.WatchChanged) -> None:
        if fact.works:
            self._logger.info("kubernetes.watching", resource=fact.resource, reason=fact.reason)
        else:
            self._logger.warning("kubernetes.lost", resource=fact.resource, reason=fact.reason)

    def _observed(self, fact: facts.ObserveRead | facts.ObserveRefused) -> None:
        match fact:
            case facts.ObserveRead():
                self._logger.info("observe.read", **asdict(fact))
            case facts.ObserveRefused():
                self._logger.warning("observe.refused", **asdict(fact))

    def _queried(self, fact: facts.Queried) -> None:
        seconds = rounded(fact.seconds)
        self._logger.debug(
            "source.queried",
            source=fact.source,
            query=fact.query,
            seconds=seconds,
            error=fact.error,
        )
        # The code that gives up a query reports that itself, with the reason.
        if fact.query in PARTS and fact.error != facts.GIVEN_UP:
            self._part_changed(fact)

    def _part_changed(self, fact: facts.Queried) -> None:
        """Write a line if a part of the data is lost or comes back while the source is up."""
        key, failing = (fact.source, fact.query, fact.target), fact.error is not None
        before = self._failing.get(key, False)
        self._failing[key] = failing
        named = {"source": fact.source, "query": fact.query, "target": fact.target}
        if failing and not before:
            self._logger.warning("source.part_lost", **named, reason=fact.error)
        elif before and not failing:
            self._logger.info("source.part_back", **named)

    def _source_changed(
        self, fact: facts.SourceChanged | facts.LagChanged | facts.QueryChanged
    ) -> None:
        if isinstance(fact, facts.QueryChanged):
            self._query_changed(fact)
        elif isinstance(fact, facts.LagChanged):
            self._lag_changed(fact)
        elif fact.reachable:
            self._logger.info("source.up", source=fact.source, reason=fact.reason)
        else:
            self._logger.warning("source.down", source=fact.source, reason=fact.reason)
