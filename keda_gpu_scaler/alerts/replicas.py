"""Shares alerts between the replicas of the scaler.

An alert reaches one replica, and KEDA calls any of them. So a replica sends what a sender tells it
to all others at once; what comes from a replica is not sent on. A replica that starts asks the
others for what they know. All ask each other again every half minute, for updates that did not
arrive. No replica needs to know which address is its own: it already knows what it sends itself.

Requests carry the webhook's token and are bounded in size and time. A replica may have another
version: unknown fields are ignored.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import orjson

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts.store import NEVER, AlertRecord, Alerts, Key
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport import resolver
from keda_gpu_scaler.transport.client import USER_AGENT, Answer, Bearer, Client, printable

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
_STATUSES = {401: "it has another token", 404: "it has no webhook"}


class ReplicaClient:
    """Requests to other replicas."""

    def __init__(
        self, token: Callable[[], str], timeout_seconds: float, ca_file: Path | None = None
    ) -> None:
        """Create the HTTP client; it connects with the first request.

        Args:
            token: returns the current token, or raises SettingsError.
            timeout_seconds: limits a request from its start to the last byte of its answer.
            ca_file: PEM file with the CAs to trust instead of the system's.
        """
        self._ca_file, self._trust = ca_file, ssl.create_default_context(cafile=ca_file)
        # Ignore proxies in the environment: replicas are not behind one.
        requests = httpx.AsyncClient(
            auth=Bearer(token),
            headers={"User-Agent": USER_AGENT},
            timeout=timeout_seconds,
            trust_env=False,
            verify=self._trust,
        )
        self._client = Client(
            requests, timeout_seconds=timeout_seconds, max_response_bytes=LONGEST_BYTES
        )

    def trust_anew(self) -> None:
        """Trust the CAs that the file holds now as well: CAs rotate, but rarely.

        Earlier CAs stay trusted until the process ends: other replicas may still use them.
        """
        if self._ca_file is not None:
            with contextlib.suppress(OSError):  # it may be half written; it is read again later
                self._trust.load_verify_locations(self._ca_file)

    async def tell(self, peer: str, name: str | None, records: Sequence[AlertRecord]) -> None:
        """Send a replica what is known of these alerts.

        Args:
            peer: its URL.
            name: the host name of its certificate; None: the URL's host.
            records: what is known.

        Raises:
            errors.SourceError: sending failed.
        """
        body = orjson.dumps(written_records(records))
        headers = {"content-type": "application/json"}
        _require_ok(await self._client.post(peer + PATH, body, headers, name))

    async def ask(self, peer: str, name: str | None) -> list[AlertRecord]:
        """Return all that a replica knows of alerts.

        Args:
            peer: its URL.
            name: the host name of its certificate; None: the URL's host.

        Raises:
            errors.SourceError: it gave no usable answer.
        """
        answer = await self._client.get(peer + PATH, name)
        _require_ok(answer)
        try:
            return read_records(orjson.loads(answer.body))
        except (orjson.JSONDecodeError, errors.RequestError) as error:
            raise errors.SourceMalformedError(f"an answer of another kind: {error}") from error

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()


def _require_ok(answer: Answer) -> None:
    if not httpx.codes.is_success(answer.status):
        words = _STATUSES.get(answer.status) or printable(answer.body.decode(errors="replace"))
        raise errors.SourceRefusedError(f"{answer.status}: {words}")


REQUEST_SECONDS = 2.0
LOOKUP_SECONDS = 1.0
"""Telling all others takes at most the sum of these two, even if some do not answer: the sender of
the alert is waiting."""
EXCHANGE_SECONDS = 30.0
"""After this time a replica knows what it missed."""

_Call: TypeAlias = Callable[[str, str | None], Awaitable[None]]
"""A call to one replica: its URL, and the name of its certificate if that differs."""


class Peers:
    """The other replicas of the scaler; keeps the alerts of all replicas the same."""

    def __init__(  # noqa: PLR0913 - the last two have defaults that only tests change
        self,
        targets: Sequence[str],
        alerts: Alerts,
        token: Callable[[], str],
        observe: facts.Observer = facts.ignore,
        *,
        ca_file: Path | None = None,
        exchange_seconds: float = EXCHANGE_SECONDS,
        look_up: resolver.LookUp = resolver.look_up,
    ) -> None:
        """Take the addresses of the replicas; `start` asks them for the first time.

        Args:
            targets: the addresses, as the operator wrote them; empty: there is only this replica.
            alerts: the store to share.
            token: returns the current token, or raises SettingsError.
            observe: is called when a replica becomes reachable or unreachable.
            ca_file: PEM file with the CAs to trust instead of the system's, for `https`.
            exchange_seconds: how often the others are asked.
            look_up: finds the addresses of one name.
        """
        self._targets, self._alerts, self._observe = targets, alerts, observe
        self._exchange_seconds = exchange_seconds
        self._resolver = resolver.Resolver(look_up)
        self._client = ReplicaClient(token, REQUEST_SECONDS, ca_file)
        self._troubles: dict[str, str | None] = {}
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
        """Stop the exchange and close every connection."""
        if self._upkeep is not None:
            self._upkeep.cancel()
            await self.ended()
        await self._resolver.close()
        await self._client.close()

    async def broadcast(self, records: Sequence[AlertRecord]) -> None:
        """Tell all replicas what is known of these alerts; an unreachable one asks for it later.

        Records that come while a round runs are sent together in the next one: a hundred messages
        at once take two rounds.
        """
        self._untold += records
        async with self._telling:
            told, self._untold = self._untold, []
            if told:
                await self._all_replicas(lambda peer, name: self._client.tell(peer, name, told))

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._exchange_seconds)
            self._alerts.expire()
            await self._exchange()

    async def _exchange(self) -> None:
        async def ask(peer: str, name: str | None) -> None:
            self._alerts.merge(await self._client.ask(peer, name))

        self._client.trust_anew()
        await self._all_replicas(ask)

    async def _all_replicas(self, call: _Call) -> None:
        """Call all replicas at the same time, and note which cannot be reached."""
        if not self._targets:
            return
        found = await self._resolver.resolve(self._targets, LOOKUP_SECONDS)
        # Where a name cannot be looked up, use its last known addresses.
        peers = sorted(found.urls | found.before)
        came = await asyncio.gather(
            *(_trouble(call(peer, found.names.get(peer))) for peer in peers)
        )
        self._note({**found.troubles, **dict(zip(peers, came, strict=True))})

    def _note(self, troubles: dict[str, str | None]) -> None:
        # A name that is found again counts as back. An address that a name no longer has is not
        # reported.
        found = dict.fromkeys(set(self._targets) & self._troubles.keys())
        for peer, trouble in {**found, **troubles}.items():
            if (trouble is None) != (self._troubles.get(peer) is None):
                reason = "it is there" if trouble is None else trouble
                self._observe(facts.PeerChanged(peer, reachable=trouble is None, reason=reason))
        self._troubles = troubles
        unreachable = sum(trouble is not None for trouble in troubles.values())
        self._observe(facts.PeersAsked(len(troubles) - unreachable, unreachable))


async def _trouble(call: Awaitable[None]) -> str | None:
    """Return why a replica could not be reached; None: it was reached."""
    try:
        await call
    except errors.SourceError as error:
        return str(error)
    return None
