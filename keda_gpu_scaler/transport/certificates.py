"""The certificate files of a server: their present content, or the last that could be used.

Certificates rotate. New files are written long before the old ones expire, often one after the
other, so for a moment the key does not match the certificate. The files are small, and Kubernetes
mounts them in memory: reading them costs less than a handshake. Their content is compared, because
modification times can be misleading.

A valid certificate may still be refused: OpenSSL requires a certain strength of every signature and
key of the chain, and its rules change with updates. So the certificate is loaded to see whether it
accepts it. gRPC's library supports fewer kinds of keys: it keeps the last certificate that it
accepted. No reason shows the content of a file.
"""

import contextlib
import functools
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from keda_gpu_scaler import errors
from keda_gpu_scaler.transport import files

Server = Literal["grpc", "http"]


@dataclass(frozen=True)
class Certificate:
    """The certificate that a server shows, with its key and the CAs of its clients."""

    chain: bytes
    """PEM: the server's own certificate first, then those that lead to its CA."""
    key: bytes = field(repr=False)
    """PEM, unencrypted; perhaps with certificates beside it."""
    client_ca: bytes | None
    """PEM: the CAs of the clients' certificates; None: clients need no certificate."""
    expiries: Mapping[str, float]
    """Unix seconds at which the first certificate of the chain expires, by the word `server`, and
    the first of the clients' CAs, by `client_ca`. The server does not know which CAs clients use; a
    CA that is not needed can be removed."""

    @functools.cached_property
    def context(self) -> ssl.SSLContext:
        """The context with which an HTTP server shows it, over TLS 1.2 or newer."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with _in_memory(self.chain) as chain, _in_memory(self.key) as key:
            # Without a password OpenSSL would ask for one at the terminal.
            context.load_cert_chain(chain, key, lambda: "")
        return context


@contextlib.contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Yield a path for OpenSSL, which reads only files; the root file system is read-only."""
    with os.fdopen(os.memfd_create("pem"), "wb") as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


class CertificateFiles:
    """The certificate files of one server, read again whenever the certificate is needed.

    Any thread may call it; observers are called in the same thread.
    """

    def __init__(
        self,
        cert: Path,
        key: Path | None,
        client_ca: Path | None,
        *,
        loaded: Callable[[float], None],
        refused: Callable[[str], None],
    ) -> None:
        """Read the files, or raise SettingsError if they hold no usable certificate.

        Without `key` the certificate's file holds it. `loaded` is called with the end of each new
        certificate in Unix seconds, `refused` with why new files hold none.
        """
        self._loaded, self._refused = loaded, refused
        self._cert, self._key, self._client_ca = cert, key or cert, client_ca
        self._lock = threading.Lock()
        self._contents = self._read()
        try:
            self._certificate = self._load()
        except ValueError as error:
            raise errors.SettingsError(f"no certificate to serve with: {error}") from error

    def current(self) -> Certificate:
        """Return the certificate in the files, or the last one that could be used."""
        with self._lock:
            contents = self._read()
            if contents != self._contents:
                self._contents = contents
                try:
                    self._certificate = self._load()
                except ValueError as error:
                    self._refused(str(error))
            return self._certificate

    def _read(self) -> dict[Path, bytes] | str:
        """Return the contents of the files, or why one of them cannot be read."""
        contents = {}
        for path in filter(None, (self._cert, self._key, self._client_ca)):
            try:
                contents[path] = files.read(path)
            except OSError as error:
                return f"{path} is not a file this process can read ({error.strerror or error})"
        return contents

    def _load(self) -> Certificate:
        """Return the certificate in the files; ValueError: why the server cannot show it."""
        if isinstance(self._contents, str):
            raise ValueError(self._contents)  # noqa: TRY004 - it is the reason, in words
        cert, client_ca = self._cert, self._client_ca
        certificates = _certificates(cert, self._contents[cert])
        authorities = _certificates(client_ca, self._contents[client_ca]) if client_ca else []
        expiries = {"server": _first_end(certificates)}
        if authorities:
            expiries["client_ca"] = _first_end(authorities)
        key = self._contents[self._key]
        certificate = Certificate(_pem(certificates), key, _pem(authorities) or None, expiries)
        try:
            _ = certificate.context
        except OSError as error:  # ssl.SSLError is one, often without a reason
            why = getattr(error, "reason", error.strerror) or "no unencrypted key in PEM"
            message = f"a certificate that OpenSSL takes with the key in {self._key} ({why})"
            raise ValueError(f"{cert} is not {message}") from None
        self._loaded(expiries["server"])
        return certificate


def _certificates(path: Path, content: bytes) -> list[x509.Certificate]:
    """Return the certificates in a file, or raise ValueError: none, or not all are whole."""
    try:
        certificates = x509.load_pem_x509_certificates(content)
    except (ValueError, x509.InvalidVersion):
        raise ValueError(f"{path} is not a PEM file with certificates") from None
    # The parser skips what it cannot read, such as a certificate that is cut off. Each one has a
    # first and a last line.
    if content.count(b"CERTIFICATE-----") != 2 * len(certificates):
        raise ValueError(f"{path} is not a PEM file with certificates, each of them whole")
    return certificates


def _first_end(certificates: list[x509.Certificate]) -> float:
    return min(certificate.not_valid_after_utc for certificate in certificates).timestamp()


def _pem(certificates: list[x509.Certificate]) -> bytes:
    return b"".join(
        certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates
    )
