"""Shares alerts between the replicas of the scaler.

An alert reaches one replica, and KEDA calls any of them. So a replica sends what a sender tells it
to all others at once; what comes from a replica is not sent on. A replica that starts asks the
others for what they know. All ask each other again every half minute, for updates that did not
arrive. A replica may have another version: unknown fields are ignored.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts.store import NEVER, AlertRecord, Alerts, Key
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.replicas import Replicas

LONGEST_BYTES = 16 * 2**20
"""Several times the size of a full store."""
LONGEST_TEXT = 256
"""The limit of an alert's mark and name, in characters; senders' texts are cut to less."""
FARTHEST_SECONDS = 253_402_300_800.0
"""The end of the year 9999, the latest time that a sender can write."""
_TIMES = ("began_at", "heard_at", "ended_at", "told_at")


def written_records(records: Iterable[AlertRecord]) -> dict[str, list[dict[str, object]]]:
    """Return records as a replica sends them."""
    return {"alerts": [_written(record) for record in records]}


def _written(record: AlertRecord) -> dict[str, object]:
    (namespace, name), alert = record.key
    whose = {"namespace": namespace, "scaled_object": name, "alert": alert, "name": record.name}
    times = {field: getattr(record, field) for field in _TIMES}
    return whose | {field: None if at == NEVER else at for field, at in times.items()}


def read_records(payload: object) -> list[AlertRecord]:
    """Return the records that another replica sent.

    Raises:
        errors.RequestError: they are not what a replica sends.
    """
    alerts = payload.get("alerts") if isinstance(payload, dict) else None
    if not isinstance(alerts, list):
        raise errors.RequestError("expected the alerts that another replica knows of")
    return [_read(alert) for alert in alerts]


def _read(alert: object) -> AlertRecord:
    if not isinstance(alert, dict):
        raise errors.RequestError("expected each alert to be an object")
    texts = [alert.get(field) for field in ("namespace", "scaled_object", "alert", "name")]
    if not all(isinstance(text, str) for text in texts):
        raise errors.RequestError("expected texts: namespace, scaled_object, alert, name")
    namespace, name, mark, shown = (str(text) for text in texts)
    if max(len(mark), len(shown)) > LONGEST_TEXT:
        raise errors.RequestError(f"expected alert and name of at most {LONGEST_TEXT} characters")
    if not (workload.is_namespace(namespace) and workload.is_name(name)):
        raise errors.RequestError("expected the names of a namespace and of a ScaledObject")
    times = {field: _time(alert, field) for field in _TIMES}
    if times["heard_at"] == times["told_at"] == NEVER:
        raise errors.RequestError("expected heard_at or told_at")
    return AlertRecord(Key(ScaledObject(namespace, name), mark), shown, **times)


def _time(alert: Mapping[str, Any], field: str) -> float:
    at = alert.get(field)
    if at is None:
        return NEVER
    if not isinstance(at, int | float) or not abs(at) <= FARTHEST_SECONDS:
        raise errors.RequestError(f"expected {field} to be a number of seconds")
    return float(at)


PATH = "/alerts"
EXCHANGE_SECONDS = 30.0
"""After this time a replica knows what it missed."""


class Peers:
    """The other replicas of the scaler; keeps the alerts of all replicas the same."""

    def __init__(
        self,
        replicas: Replicas,
        alerts: Alerts,
        observe: facts.Observer = facts.ignore,
        *,
        exchange_seconds: float = EXCHANGE_SECONDS,
    ) -> None:
        """Take the replicas; `start` asks them for the first time.

        Args:
            replicas: the other replicas; the caller closes them after the exchange.
            alerts: the store to share.
            observe: is called when a replica becomes reachable or unreachable.
            exchange_seconds: how often the others are asked.
        """
        self._replicas, self._alerts, self._observe = replicas, alerts, observe
        self._exchange_seconds = exchange_seconds
        self._troubles: Mapping[str, str | None] = {}
        self._untold: list[AlertRecord] = []
        self._telling = asyncio.Lock()
        self._upkeep: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Ask all replicas once, within a time limit, and then again at each interval."""
        await self._exchange()
        self._upkeep = asyncio.create_task(self._keep(), name="alerts")

    async def ended(self) -> BaseException | None:
        """Wait until the exchange has ended, and return the error that ended it, if any."""
        if self._upkeep is None:
            return None
        await asyncio.wait({self._upkeep})
        return None if self._upkeep.cancelled() else self._upkeep.exception()

    async def close(self) -> None:
        """Stop the exchange."""
        if self._upkeep is not None:
            self._upkeep.cancel()
            await self.ended()

    async def broadcast(self, records: Sequence[AlertRecord]) -> None:
        """Tell all replicas what is known of these alerts; an unreachable one asks for it later.

        Records that come while a round runs are sent together in the next one: a hundred messages
        at once take two rounds.
        """
        self._untold += records
        async with self._telling:
            told, self._untold = self._untold, []
            if told and self._replicas.targets:
                body = orjson.dumps(written_records(told))
                self._note((await self._replicas.ask(PATH, LONGEST_BYTES, body)).troubles)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._exchange_seconds)
            self._alerts.expire()
            await self._exchange()

    async def _exchange(self) -> None:
        if not self._replicas.targets:
            return
        self._replicas.trust_anew()
        replies = await self._replicas.ask(PATH, LONGEST_BYTES)
        self._note({**replies.troubles, **dict(self._learnt(replies.bodies))})

    def _learnt(self, bodies: Mapping[str, bytes | bytearray]) -> Iterator[tuple[str, str]]:
        """Take what replicas know; yield those whose answer is of another kind."""
        for peer, body in bodies.items():
            try:
                self._alerts.merge(read_records(orjson.loads(body)))
            except (orjson.JSONDecodeError, errors.RequestError) as error:
                yield peer, f"an answer of another kind: {error}"

    def _note(self, troubles: Mapping[str, str | None]) -> None:
        # A name that is found again counts as back. An address that a name no longer has is not
        # reported.
        found = dict.fromkeys(set(self._replicas.targets) & self._troubles.keys())
        for peer, trouble in {**found, **troubles}.items():
            if (trouble is None) != (self._troubles.get(peer) is None):
                reason = "it is there" if trouble is None else trouble
                self._observe(facts.PeerChanged(peer, reachable=trouble is None, reason=reason))
        self._troubles = troubles
        unreachable = sum(trouble is not None for trouble in troubles.values())
        self._observe(facts.PeersAsked(len(troubles) - unreachable, unreachable))
