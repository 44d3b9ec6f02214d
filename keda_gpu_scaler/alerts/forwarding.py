"""Requests to the other replicas of the scaler, with the webhook's token, to all at once.

No replica needs to know which address is its own: it can ask itself.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import httpx

from keda_gpu_scaler import errors
from keda_gpu_scaler.transport import resolver
from keda_gpu_scaler.transport.http_client import Bearer, Client, printable

REQUEST_SECONDS = 2.0
LOOKUP_SECONDS = 1.0
"""Asking all others takes at most the sum of these two, even if some do not answer: the sender of
an alert is waiting."""
LONGEST_BYTES = 10 * 2**20
"""Of what a replica sends: a full store of the longest names."""
_STATUSES = {401: "it has another token", 404: "it has no webhook"}


class Replicas:
    """The other replicas, at the addresses that the operator wrote."""

    def __init__(
        self,
        targets: Sequence[str],
        token: Callable[[], str] | None,
        *,
        ca_file: Path | None = None,
        look_up: resolver.LookUp = resolver.look_up,
    ) -> None:
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
            timeout_seconds=REQUEST_SECONDS,
            max_response_bytes=LONGEST_BYTES,
            auth=None if token is None else Bearer(token),
            verify=self._trust,
        )

    async def ask(
        self, body: bytes | None = None, *, without: Collection[str] = ()
    ) -> dict[str, bytes | bytearray | str | None]:
        """Post the same JSON to all replicas, or get what they have.

        Return the answer of each one by its URL, or in text the reason why there is none, or why a
        target has no URL; None: it is `without` this one.
        """
        if self._ca_file is not None:
            # CAs rotate. Earlier ones stay trusted: other replicas may still use them.
            with contextlib.suppress(OSError):  # it may be half written; it is read again later
                self._trust.load_verify_locations(self._ca_file)
        lookups = (self._resolver.urls(target, LOOKUP_SECONDS) for target in self.targets)
        reasons, names = dict[str, str](), dict[str, str]()
        for target, addresses in zip(self.targets, await asyncio.gather(*lookups), strict=True):
            if isinstance(addresses, str):
                reasons[target] = addresses
            else:
                # Certificates are for the name, not for its addresses.
                name = httpx.URL(target.removeprefix(resolver.DNS_PREFIX)).host
                names |= dict.fromkeys(addresses, name)
        urls = sorted(names.keys() - set(without))
        requests = (self._request(url, names[url], body) for url in urls)
        answers = await asyncio.gather(*requests)
        return {**reasons, **dict.fromkeys(names), **dict(zip(urls, answers, strict=True))}

    async def close(self) -> None:
        await self._resolver.close()
        await self._client.close()

    async def _request(
        self, replica_url: str, server_name: str, body: bytes | None
    ) -> bytes | bytearray | str:
        url = replica_url + "/alerts"
        try:
            answer = await self._client.fetch(
                url,
                body,
                {} if body is None else {"content-type": "application/json"},
                server_name=server_name,
            )
        except errors.SourceError as error:
            return str(error)
        if httpx.codes.is_success(answer.status):
            return answer.body
        words = _STATUSES.get(answer.status) or printable(answer.body.decode(errors="replace"))
        return f"{answer.status}: {words}"
