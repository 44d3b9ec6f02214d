"""The facts that become log lines, and what passes facts to all observers."""

import logging
import time
from collections.abc import Callable, Hashable, Mapping
from datetime import UTC, datetime

import structlog
from cachetools import LRUCache, TTLCache
from msgspec.structs import asdict
from structlog.typing import FilteringBoundLogger

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import FORGET_SECONDS

REFUSED = 400
"""HTTP statuses from this one on mean that a message was not taken, or not all of it."""
REPEAT_SECONDS = 600.0
"""KEDA and senders of alerts repeat what was refused; it is written once in this time."""
REMEMBERED = 1_000
DECIMALS = 3
PARTS = frozenset(
    {"scrape", "history", "own-history", "evidence", "jobs", "exporters", "breadth", "look"}
)
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
_LINES: Mapping[type[facts.Fact], tuple[int, str]] = {
    facts.AlertsChanged: (logging.INFO, "alerts.changed"),
    facts.CertificateRefused: (logging.WARNING, "certificate.refused"),
    facts.DeletionCosts: (logging.INFO, "costs.changed"),
    facts.ExportersFound: (logging.INFO, "source.exporters"),
    facts.ObserveRead: (logging.INFO, "observe.read"),
    facts.ObserveRefused: (logging.WARNING, "observe.refused"),
}
"""The facts that are written as they are: the level and the event."""
_CHANGES: Mapping[type[facts.Fact], tuple[str, str]] = {
    facts.SourceChanged: ("source.up", "source.down"),
    facts.QueryChanged: ("query.works", "query.failed"),
    facts.WatchChanged: ("kubernetes.watching", "kubernetes.lost"),
    facts.PeerChanged: ("peer.up", "peer.down"),
}
"""The events of what works, and of what does not."""


class Observers:
    """Passes each fact to all observers, in their order.

    Facts are stated in the middle of an answer: an observer that fails has lost a line, a number or
    a span, and the answer and the other observers have nothing to do with it.
    """

    def __init__(self, observers: Mapping[str, facts.Subscriber]) -> None:
        """Pass facts to these observers, which have names for the log."""
        self._observers = observers
        # By the kind of fact: most are for one observer, and a poll states eight of them.
        self._handlers: dict[type[facts.Fact], list[tuple[str, facts.Observer]]] = {}
        self._reported: set[tuple[str, str]] = set()

    def __call__(self, fact: facts.Fact) -> None:
        """Pass the fact on. An observer that fails at a kind of fact is a line once."""
        kind = type(fact)
        handlers = self._handlers.get(kind)
        if handlers is None:
            handlers = self._handlers[kind] = [
                (name, observer.handlers[kind])
                for name, observer in self._observers.items()
                if kind in observer.handlers
            ]
        for name, handle in handlers:
            try:
                handle(fact)
            except Exception as error:  # whatever it is, it is not the caller's
                if (name, kind.__name__) not in self._reported:
                    self._reported.add((name, kind.__name__))
                    logger = structlog.get_logger()
                    logger.exception(
                        "observer.failed", observer=name, fact=kind.__name__, exc_info=error
                    )


class LogObserver(facts.Subscriber):
    """Writes a line at each change; at level debug, also for each evaluation and query."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Bind the logger; `logs.configure` has to be called before."""
        # Bound, because structlog builds an unbound logger again for each line.
        self._logger: FilteringBoundLogger = structlog.get_logger().bind()
        self._writes_all = self._logger.is_enabled_for(logging.DEBUG)
        self._evidence: dict[str, EvidenceSource] = {}
        self._failing: TTLCache[tuple[str, str, str], bool] = TTLCache(
            facts.TRIGGERS, FORGET_SECONDS, clock
        )
        self._written: TTLCache[Hashable, bool] = TTLCache(REMEMBERED, REPEAT_SECONDS, clock)
        self._overruled: LRUCache[tuple[str, str], bool] = LRUCache(REMEMBERED)
        super().__init__(
            {
                **dict.fromkeys(_LINES, self._line),
                **dict.fromkeys(_CHANGES, self._changed),
                facts.Evaluated: self._evaluated,
                facts.TriggerRefused: self._trigger_refused,
                facts.TriggerChanged: self._trigger_changed,
                facts.JobsLeftOut: self._jobs_left_out,
                facts.JobOverruled: self._job_overruled,
                facts.CauseFound: self._cause_found,
                facts.LagChanged: self._lag_changed,
                facts.EvidenceChanged: self._evidence_changed,
                facts.Queried: self._queried,
                facts.AlertChanged: self._alert_changed,
                facts.Notified: self._notified,
                facts.CertificateLoaded: self._certificate_loaded,
            }
        )

    def _line(self, fact: facts.Fact) -> None:
        level, event = _LINES[type(fact)]
        self._logger.log(level, event, **asdict(fact))

    def _changed(self, fact: facts.Fact) -> None:
        good_event, bad_event = _CHANGES[type(fact)]
        keys = asdict(fact)
        if keys.pop("works"):
            self._logger.info(good_event, **keys)
        else:
            self._logger.warning(bad_event, **keys)

    def _is_repeated(self, key: Hashable) -> bool:
        """Tell whether this was written within `REPEAT_SECONDS`; it is written now if not."""
        if key in self._written:
            return True
        self._written[key] = True
        return False

    def _evaluated(self, fact: facts.Evaluated) -> None:
        spec, now, before = fact.spec, fact.decision, fact.before
        if before is None:
            for warning in spec.warnings:
                self._logger.warning("trigger.warning", **_trigger_keys(fact), warning=warning)
            if spec.demand is not None:
                self._logger.debug("trigger.demand", **_trigger_keys(fact), query=spec.demand.name)
        # If other evidence is lost later, the line about the source is for all triggers.
        was_known = before is not None and before.evidence is not None
        is_alone = now.evidence is EvidenceSource.EXPORTERS and not was_known
        if is_alone and not self._is_repeated(fact.scaled_object):
            keys = _trigger_keys(fact)
            self._logger.warning("trigger.exporters_only", **keys, warning=EXPORTERS_ONLY)
        if now.ignored and now.ignored != (before.ignored if before else ()):
            pods = list(now.ignored)
            self._logger.warning("trigger.pods_ignored", **_trigger_keys(fact), pods=pods)
        if now.unseen and now.unseen != (before.unseen if before else ()):
            pods = list(now.unseen)
            self._logger.warning("trigger.pods_unseen", **_trigger_keys(fact), pods=pods)
        if now.unlisted and now.unlisted != (before.unlisted if before else ""):
            keys = _trigger_keys(fact)
            self._logger.warning("trigger.workload_unlisted", **keys, reason=now.unlisted)
        if before is None or (now.state, now.active) != (before.state, before.active):
            self._logger.info("decision.changed", **_decision_keys(fact))
        if self._writes_all:
            self._logger.debug("decision.made", **_decision_keys(fact))

    def _trigger_refused(self, fact: facts.TriggerRefused) -> None:
        if not self._is_repeated(fact):
            keys = _scaled_object_keys(fact.scaled_object)
            self._logger.warning("trigger.refused", **keys, reason=fact.reason)

    def _trigger_changed(self, fact: facts.TriggerChanged) -> None:
        if fact.rounded and not self._is_repeated(fact):
            keys = _scaled_object_keys(fact.scaled_object)
            for reason in fact.rounded:
                self._logger.warning("trigger.target_rounded", **keys, reason=reason)

    def _jobs_left_out(self, fact: facts.JobsLeftOut) -> None:
        if not self._is_repeated((facts.JobsLeftOut, fact.source)):
            self._logger.warning("source.jobs_left_out", **asdict(fact))

    def _job_overruled(self, fact: facts.JobOverruled) -> None:
        if (fact.source, fact.job) not in self._overruled:
            self._overruled[fact.source, fact.job] = True
            self._logger.warning("source.job_overruled", **asdict(fact))

    def _cause_found(self, fact: facts.CauseFound) -> None:
        if not self._is_repeated(fact):
            self._logger.warning("source.not_read", **asdict(fact))

    def _lag_changed(self, fact: facts.LagChanged) -> None:
        if not fact.seconds:
            self._logger.info("source.on_time", source=fact.source)
        elif not fact.before:
            self._logger.warning(
                "source.late", source=fact.source, lag_seconds=fact.seconds, warning=LATE
            )

    def _evidence_changed(self, fact: facts.EvidenceChanged) -> None:
        before = self._evidence.get(fact.source, EvidenceSource.KUBE_STATE_METRICS)
        self._evidence[fact.source] = now = fact.evidence_source
        is_weaker = _STRENGTH.index(now) > _STRENGTH.index(before)
        level = logging.WARNING if is_weaker else logging.INFO
        keys = {"source": fact.source, "evidence": str(now), "reason": fact.reason}
        self._logger.log(level, "source.evidence", **keys)

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
        if fact.is_one_of_many:
            return
        event = "alert.fires" if fact.fires else "alert.ended"
        keys = _scaled_object_keys(fact.scaled_object)
        self._logger.info(event, **keys, alert=fact.alert, reason=fact.reason)

    def _notified(self, fact: facts.Notified) -> None:
        keys = {"sender": fact.sender, "status": fact.status, "answer": fact.text}
        if fact.status < REFUSED and not fact.truncated:
            self._logger.debug("webhook.taken", **keys)
        elif not self._is_repeated(fact):
            event = "webhook.refused" if fact.status >= REFUSED else "webhook.truncated"
            self._logger.warning(event, **keys)

    def _certificate_loaded(self, fact: facts.CertificateLoaded) -> None:
        expires = datetime.fromtimestamp(fact.expires_at, UTC).isoformat()
        self._logger.info("certificate.loaded", server=fact.server, expires=expires)


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
