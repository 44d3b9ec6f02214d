"""Which facts about alerts and their senders become lines of the log."""

from collections.abc import Callable

import structlog
from cachetools import TTLCache
from structlog.typing import FilteringBoundLogger

from keda_gpu_scaler import facts

REFUSED = 400
"""HTTP statuses from this one on say that a message was not taken, or not all of it."""
REPEAT_SECONDS = 600.0
"""Senders repeat themselves every few minutes; the same words are written once in this time."""
WORDS_REMEMBERED = 1_000

AlertFact = facts.AlertChanged | facts.Notified | facts.PeerChanged


class AlertLog:
    """Writes a line where an alert begins or ends, a message is refused, a replica is lost."""

    def __init__(self, clock: Callable[[], float]) -> None:
        # Bound, because a logger that is not yet builds itself anew for each line.
        self._logger: FilteringBoundLogger = structlog.get_logger().bind()
        self._refused: TTLCache[facts.Notified, bool] = TTLCache(
            WORDS_REMEMBERED, REPEAT_SECONDS, timer=clock
        )

    def __call__(self, fact: AlertFact) -> None:
        """Write what is worth a line."""
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
