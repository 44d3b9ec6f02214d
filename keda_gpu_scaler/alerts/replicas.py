"""Shares alerts between the replicas of the scaler.

An alert reaches one replica, and KEDA calls any of them. So a replica sends what a sender tells it
to all others at once; what comes from a replica is not sent on. A replica that starts asks the
others for what they know. All ask each other again every half minute, for updates that did not
arrive. A replica may have another version: unknown fields are ignored.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Annotated, TypeVar

import msgspec

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts.forwarding import Replicas
from keda_gpu_scaler.alerts.store import LIMIT, AlertRecord, Alerts
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.telemetry import facts

EXCHANGE_SECONDS = 30.0
"""After this time a replica knows what it missed."""
LONGEST_BYTES = 16 * 2**20
"""Of an answer: several times the size of a full store."""
BROADCAST_BYTES = 4 * 2**20
"""Of what is sent at once: a full store of usual names. A replica that refuses more asks for it."""
STEPS = 100
"""How many alerts are taken at a time: a few milliseconds."""

T = TypeVar("T")


async def unhurried(steps: Iterable[T]) -> AsyncIterator[T]:
    """Yield the result of each step; calls and other requests are answered in between."""
    for number, result in enumerate(steps, 1):
        yield result
        if number % STEPS == 0:
            await asyncio.sleep(0)


class _Records(msgspec.Struct):
    alerts: Annotated[list[AlertRecord], msgspec.Meta(max_length=LIMIT)]


_DECODER = msgspec.json.Decoder(_Records)


def written_records(records: Sequence[AlertRecord]) -> bytes:
    """Return records as a replica sends them."""
    return msgspec.json.encode(_Records([*records]))


def read_records(body: bytes | bytearray) -> list[AlertRecord]:
    """Return the records that another replica sent, or raise RequestError if they are none."""
    try:
        records = _DECODER.decode(body).alerts
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"expected the alerts that another replica knows of: {error}"
        raise errors.RequestError(message) from error
    for record in records:
        namespace, name = record.key.scaled_object
        if not (workload.is_namespace(namespace) and workload.is_name(name)):
            raise errors.RequestError("expected the names of a namespace and of a ScaledObject")
        text = record.name + record.key.alert
        if text != errors.without_controls(text):
            raise errors.RequestError("expected the names of alerts without control characters")
    return records


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
        self._replicas, self._alerts, self._observe = replicas, alerts, observe
        self._exchange_seconds = exchange_seconds
        self._troubles: Mapping[str, str | None] = {}
        self._unsent: list[AlertRecord] = []
        self._sending = asyncio.Lock()

    async def broadcast(self, records: Sequence[AlertRecord]) -> None:
        """Tell all replicas what is known of these alerts; an unreachable one asks for it later.

        Records that come while a round runs are sent together in the next one: a hundred messages
        at once take two rounds.
        """
        self._unsent += records
        async with self._sending:
            batch, self._unsent = self._unsent, []
            if batch and self._replicas.targets:
                self._report(await self._replicas.ask(LONGEST_BYTES, written_records(batch)))

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._exchange_seconds)
            self._alerts.expire()
            await self.exchange()

    async def exchange(self) -> None:
        if not self._replicas.targets:
            return
        self._replicas.trust_anew()
        replies = await self._replicas.ask(LONGEST_BYTES)
        for peer, reply in replies.items():
            if not isinstance(reply, str):
                try:
                    records = await asyncio.to_thread(read_records, reply)
                    async for _ in unhurried(self._alerts.merge(records)):
                        pass
                except errors.RequestError as error:
                    replies[peer] = f"an answer of another kind: {error}"
        self._report(replies)

    def _report(self, replies: Mapping[str, bytes | bytearray | str]) -> None:
        """State which replicas were lost and found; a reply that is text is the reason for it."""
        troubles = {
            peer: reply if isinstance(reply, str) else None for peer, reply in replies.items()
        }
        # A name that is found again counts as back. An address that a name no longer has is not
        # reported.
        resolved_names = dict.fromkeys(set(self._replicas.targets) & self._troubles.keys())
        for peer, trouble in {**resolved_names, **troubles}.items():
            if (trouble is None) != (self._troubles.get(peer) is None):
                reason = "it is there" if trouble is None else trouble
                self._observe(facts.PeerChanged(peer, works=trouble is None, reason=reason))
        self._troubles = troubles
        unreachable = sum(trouble is not None for trouble in troubles.values())
        self._observe(facts.PeersAsked(len(troubles) - unreachable, unreachable))
