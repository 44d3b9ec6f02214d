"""A DNS server for one name, whose addresses a test can change: a headless Service.

    async with NameServer("scaler.test", {"127.0.0.1", "127.0.0.2"}).serving() as names:
        names.target(6000)          # dns://127.0.0.1:53053/scaler.test:6000

The target is gRPC's own syntax for a name that another server than the system's resolves.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

_LIFE_SECONDS = 0
"""Answers may not be cached."""


@dataclass(slots=True)
class NameServer(asyncio.DatagramProtocol):
    """Answers with the IPv4 addresses of its name; any other name does not exist."""

    name: str
    addresses: set[str]
    _transport: Any = None

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["NameServer"]:
        """Answer on a free port of 127.0.0.1 until the block ends."""
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        try:
            yield self
        finally:
            self._transport.close()

    def target(self, port: int) -> str:
        """Return the scalerAddress that makes gRPC ask here."""
        asked_at: int = self._transport.get_extra_info("sockname")[1]
        return f"dns://127.0.0.1:{asked_at}/{self.name}:{port}"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for the answers."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:  # noqa: ANN401 - a socket's address
        """Answer one question."""
        self._transport.sendto(self._answer(dns.message.from_wire(data)).to_wire(), addr)

    def _answer(self, query: dns.message.Message) -> dns.message.Message:
        answer = dns.message.make_response(query)
        question = query.question[0]
        if question.name.to_text(omit_final_dot=True) != self.name:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        elif question.rdtype == dns.rdatatype.A and self.addresses:
            found = (question.name, _LIFE_SECONDS, question.rdclass, question.rdtype)
            answer.answer.append(dns.rrset.from_text(*found, *sorted(self.addresses)))
        return answer
