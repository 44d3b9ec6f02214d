"""Shares alerts between the replicas of the scaler.

An alert reaches one replica, and KEDA calls any of them. So a replica sends what a sender tells it
to all others at once; what comes from a replica is not sent on. An address that is new, or did not
answer, is asked for what it knows and told everything, again and again until it answers: so a
replica that starts learns from the others, and they learn from it. A replica may have another
version: unknown fields are ignored.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Annotated, TypeVar

import msgspec

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts.forwarding import Replicas
from keda_gpu_scaler.alerts.store import LIMIT, AlertRecord, Alerts, Key
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.telemetry import facts

REPEAT_SECONDS = 5.0
"""Between two rounds, in which names are looked up and lost replicas are asked again."""
LOST_SECONDS = 30.0
"""The wait grows to this while a replica is lost."""
STEPS = 100
"""How many alerts are taken at a time: a few milliseconds."""

T = TypeVar("T")


async def unhurried(steps: Iterable[T]) -> list[T]:
    """Return the result of each step; calls and other requests are answered in between."""
    results = list[T]()
    for result in steps:
        results.append(result)
        if len(results) % STEPS == 0:
            await asyncio.sleep(0)
    return results


class _Records(msgspec.Struct):
    alerts: Annotated[list[AlertRecord], msgspec.Meta(max_length=LIMIT)]


def written_records(records: Sequence[AlertRecord]) -> bytes:
    """Return records as a replica sends them."""
    return msgspec.json.encode(_Records([*records]))


def read_records(body: bytes | bytearray) -> list[AlertRecord]:
    """Return the records that another replica sent, or raise RequestError if they are none."""
    try:
        records = msgspec.json.decode(body, type=_Records).alerts
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
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._replicas, self._alerts = replicas, alerts
        self._observe, self._sleep = observe, sleep
        self._met = set[str]()  # the addresses that know all that is known here
        self._troubles: Mapping[str, str] = {}
        self._unsent: dict[Key, AlertRecord] = {}
        self._sending = asyncio.Lock()

    async def broadcast(self, records: Iterable[AlertRecord]) -> None:
        """Tell all replicas what is known of these alerts; `run` tells those that do not answer.

        Records that come while a round runs are sent together in the next one: a hundred messages
        at once take two rounds.
        """
        self._unsent |= {record.key: record for record in records}
        async with self._sending:
            batch, self._unsent = list(self._unsent.values()), {}
            if batch:
                self._report(await self._replicas.ask(written_records(batch)))

    async def run(self) -> None:
        wait_seconds = REPEAT_SECONDS
        while True:
            await self._sleep(wait_seconds)
            self._alerts.expire()
            await self.meet()
            is_one_lost = any(self._troubles.values())
            wait_seconds = min(2 * wait_seconds, LOST_SECONDS) if is_one_lost else REPEAT_SECONDS

    async def meet(self) -> None:
        """Ask each address that is new, or was lost, for what it knows, and then tell all of it."""
        async with self._sending:
            replies, met = await self._replicas.ask(without=self._met), set[str]()
            for peer, reply in replies.items():
                if isinstance(reply, bytes | bytearray):
                    try:
                        records = await asyncio.to_thread(read_records, reply)
                        await unhurried(self._alerts.merge(records))
                        met.add(peer)
                    except errors.RequestError as error:
                        replies[peer] = f"an answer of another kind: {error}"
            if met:
                self._met |= met
                self._unsent |= {record.key: record for record in self._alerts.records()}
            self._report(replies)
        await self.broadcast(())

    def _report(self, replies: Mapping[str, bytes | bytearray | str | None]) -> None:
        """State which replicas were lost and found; a reply that is text is the reason for it."""
        troubles = {peer: text if isinstance(text, str) else "" for peer, text in replies.items()}
        # A name that is found again counts as back. An address that a name no longer has is not
        # reported.
        resolved_names = dict.fromkeys(set(self._replicas.targets) & self._troubles.keys(), "")
        for peer, trouble in {**resolved_names, **troubles}.items():
            if bool(trouble) != bool(self._troubles.get(peer)):
                reason = trouble or "it is there"
                self._observe(facts.PeerChanged(peer, works=not trouble, reason=reason))
        self._troubles = troubles
        self._met &= {peer for peer, trouble in troubles.items() if not trouble}
        if troubles:
            unreachable = sum(map(bool, troubles.values()))
            self._observe(facts.PeersAsked(len(troubles) - unreachable, unreachable))
