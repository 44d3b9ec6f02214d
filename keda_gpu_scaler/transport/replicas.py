"""Requests to the other replicas of the scaler: to all of them at once.

They carry the webhook's token and are bounded in size and time. No replica needs to know which
address is its own: it can ask itself.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx

from keda_gpu_scaler import errors
from keda_gpu_scaler.transport import resolver
from keda_gpu_scaler.transport.client import Bearer, Client, printable

_PATH = "/alerts"
REQUEST_SECONDS = 2.0
LOOKUP_SECONDS = 1.0
"""Asking all others takes at most the sum of these two, even if some do not answer: the sender of
an alert is waiting."""
_STATUSES = {401: "it has another token", 404: "it has no webhook"}


class Replies(NamedTuple):
    """What all replicas answered, by their URLs."""

    bodies: Mapping[str, bytes | bytearray]
    troubles: Mapping[str, str | None]
    """Why a replica could not be reached, or a name has none; None: it was reached."""


class Replicas:
    """The other replicas of the scaler, as far as the operator named them."""

    def __init__(
        self,
        targets: Sequence[str],
        token: Callable[[], str],
        *,
        ca_file: Path | None = None,
        look_up: resolver.LookUp = resolver.look_up,
    ) -> None:
        """Create the HTTP client; it connects with the first request.

        Args:
            targets: the addresses, as the operator wrote them; empty: there is only this replica.
            token: returns the current token, or raises SettingsError.
            ca_file: PEM file with the CAs to trust instead of the system's, for `https`.
            look_up: finds the addresses of one name.
        """
        self.targets = targets
        self._resolver = resolver.Resolver(look_up)
        self._ca_file = ca_file
        # Without targets there are no requests, and the system's CAs take a MiB.
        self._trust = (
            ssl.create_default_context(cafile=ca_file)
            if targets
            else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        )
        self._client = Client(
            timeout_seconds=REQUEST_SECONDS, auth=Bearer(token), verify=self._trust
        )

    def trust_anew(self) -> None:
        """Trust the CAs that the file holds now as well: CAs rotate, but rarely.

        Earlier CAs stay trusted until the process ends: other replicas may still use them.
        """
        if self._ca_file is not None:
            with contextlib.suppress(OSError):  # it may be half written; it is read again later
                self._trust.load_verify_locations(self._ca_file)

    async def ask(self, limit_bytes: int, body: bytes | None = None) -> Replies:
        """Send all replicas the same request at the same time: post JSON, or get what they have.

        `limit_bytes` is the limit of each answer.
        """
        lookups = (self._resolver.urls(target, LOOKUP_SECONDS) for target in self.targets)
        troubles, names = dict[str, str | None](), dict[str, str]()
        for target, result in zip(self.targets, await asyncio.gather(*lookups), strict=True):
            urls = result
            if isinstance(urls, str):
                troubles[target] = urls
                urls = self._resolver.last_known(target)
            # Certificates are for the name, not for its addresses.
            name = httpx.URL(target.removeprefix(resolver.DNS_PREFIX)).host
            names |= dict.fromkeys(urls, name)
        replicas = sorted(names)
        requests = (self._request(url, names[url], limit_bytes, body) for url in replicas)
        bodies = dict[str, bytes | bytearray]()
        for url, reply in zip(replicas, await asyncio.gather(*requests), strict=True):
            if isinstance(reply, str):
                troubles[url] = reply
            else:
                troubles[url], bodies[url] = None, reply
        return Replies(bodies, troubles)

    async def close(self) -> None:
        """Close every connection."""
        await self._resolver.close()
        await self._client.close()

    async def _request(
        self, replica_url: str, server_name: str, limit_bytes: int, body: bytes | None
    ) -> bytes | bytearray | str:
        """Return what a replica answers, or why it could not be reached."""
        url = replica_url + _PATH
        try:
            if body is None:
                answer = await self._client.get(url, server_name, limit_bytes)
            else:
                headers = {"content-type": "application/json"}
                answer = await self._client.post(url, body, headers, server_name, limit_bytes)
        except errors.SourceError as error:
            return str(error)
        if httpx.codes.is_success(answer.status):
            return answer.body
        words = _STATUSES.get(answer.status) or printable(answer.body.decode(errors="replace"))
        return f"{answer.status}: {words}"
