"""Everybody is told at once, and asked now and then."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from keda_gpu_scaler import errors, facts
from keda_gpu_scaler.alerts import Alerts, Entry
from keda_gpu_scaler.peers.line import Line
from keda_gpu_scaler.sources import addresses

REQUEST_SECONDS = 2.0
LOOKUP_SECONDS = 1.0
"""Telling all others takes no longer than these two, also where some of them do not answer: the
sender of the alert is waiting."""
EXCHANGE_SECONDS = 30.0
"""A replica that missed something knows it after this time."""

_Call: TypeAlias = Callable[[str, str | None], Awaitable[None]]
"""What is done with one replica: its URL, and the name of its certificate if that is another."""


class Peers:
    """The other replicas of the scaler, and the care of what all of them know."""

    def __init__(  # noqa: PLR0913 - the last two have defaults that only tests change
        self,
        targets: Sequence[str],
        alerts: Alerts,
        token: Callable[[], str],
        observe: facts.Observer = facts.ignore,
        *,
        ca_file: Path | None = None,
        exchange_seconds: float = EXCHANGE_SECONDS,
        look_up: addresses.LookUp = addresses.look_up,
    ) -> None:
        """Ask nobody yet.

        Args:
            targets: where they are, as the operator wrote it; none: there is only this replica.
            alerts: the book that they tell each other of.
            token: returns the token of this moment, or raises SettingsError.
            observe: is told of replicas that come and go.
            ca_file: PEM file with the CAs to trust instead of the system's, for `https`.
            exchange_seconds: how often the others are asked.
            look_up: finds the addresses of one name.
        """
        self._targets, self._alerts, self._observe = targets, alerts, observe
        self._exchange_seconds = exchange_seconds
        self._resolver = addresses.Resolver(look_up)
        self._line = Line(token, REQUEST_SECONDS, ca_file)
        self._troubles: dict[str, str | None] = {}
        self._untold: list[Entry] = []
        self._telling = asyncio.Lock()
        self._upkeep: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Ask everybody once, within a bound, and go on asking."""
        await self._exchange()
        self._upkeep = asyncio.create_task(self._keep(), name="alerts")

    async def ended(self) -> BaseException | None:
        """Wait until nobody is asked any more, and return the error that ended it, if one did."""
        if self._upkeep is None:
            return None
        await asyncio.wait({self._upkeep})
        return None if self._upkeep.cancelled() else self._upkeep.exception()

    async def close(self) -> None:
        """Ask no more."""
        if self._upkeep is not None:
            self._upkeep.cancel()
            await self.ended()
        await self._resolver.close()
        await self._line.close()

    async def hand_on(self, entries: Sequence[Entry]) -> None:
        """Tell everybody what is known of these alerts; who cannot be told asks for it later.

        What comes while somebody is being told goes out together after that: a hundred messages at
        once are two rounds.
        """
        self._untold += entries
        async with self._telling:
            told, self._untold = self._untold, []
            if told:
                await self._everybody(lambda peer, name: self._line.tell(peer, name, told))

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._exchange_seconds)
            self._alerts.expire()
            await self._exchange()

    async def _exchange(self) -> None:
        async def ask(peer: str, name: str | None) -> None:
            self._alerts.merge(await self._line.ask(peer, name))

        self._line.trust_anew()
        await self._everybody(ask)

    async def _everybody(self, call: _Call) -> None:
        """Call every replica at the same time, and note who cannot be reached."""
        if not self._targets:
            return
        found = await self._resolver.resolve(self._targets, LOOKUP_SECONDS)
        # Where names cannot be looked up, the replicas are where they were.
        peers = sorted(found.urls | found.before)
        came = await asyncio.gather(
            *(_trouble(call(peer, found.names.get(peer))) for peer in peers)
        )
        self._note({**found.troubles, **dict(zip(peers, came, strict=True))})

    def _note(self, troubles: dict[str, str | None]) -> None:
        # A name that could not be found and can be now is one that is back; an address that is no
        # longer one of a name's is nobody's loss.
        found = dict.fromkeys(set(self._targets) & self._troubles.keys())
        for peer, trouble in {**found, **troubles}.items():
            if (trouble is None) != (self._troubles.get(peer) is None):
                reason = "it is there" if trouble is None else trouble
                self._observe(facts.PeerChanged(peer, reachable=trouble is None, reason=reason))
        self._troubles = troubles
        unreachable = sum(trouble is not None for trouble in troubles.values())
        self._observe(facts.PeersAsked(len(troubles) - unreachable, unreachable))


async def _trouble(call: Awaitable[None]) -> str | None:
    """Return in words why a replica could not be reached; None: it was."""
    try:
        await call
    except errors.SourceError as error:
        return str(error)
    return None
