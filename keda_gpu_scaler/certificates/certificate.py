"""A certificate that can be served, and the TLS context of an HTTP server that shows it."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate that was judged: it can be parsed, and the key is its own."""

    chain: bytes
    """PEM: the server's own certificate first, then those that lead to its CA."""
    key: bytes = field(repr=False)
    """PEM, unencrypted."""
    client_ca: bytes | None
    """PEM: whose certificates clients have to show; None where they need none."""
    begins_at: float
    """Unix seconds from which on the whole chain is valid."""
    expires_at: float
    """Unix seconds at which the first certificate of the chain expires."""
    client_ca_expires_at: float | None = None
    """Unix seconds at which the first of the CAs of clients expires. Only clients know which of
    them theirs is of, so the first one counts; one that is not needed can be taken out."""

    def context(self) -> ssl.SSLContext:
        """Return what an HTTP server needs to show it, over TLS 1.2 or newer."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        with _in_memory(self.chain) as chain, _in_memory(self.key) as key:
            context.load_cert_chain(chain, key)
        return context


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Lend a path to what OpenSSL reads from files only; the root file system is read-only."""
    with os.fdopen(os.memfd_create("pem"), "wb") as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"
