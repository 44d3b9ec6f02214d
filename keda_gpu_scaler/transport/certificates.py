"""Files in PEM → a certificate that can be served, or the reason why not. Only this knows X.509.

Each reason says what was expected, so that it can follow "expected" and "is not" alike. No reason
shows what is in a file.

A certificate may be in order and yet be refused: OpenSSL wants a certain strength of every
signature and key of the chain, gRPC's BoringSSL knows fewer kinds of keys and looks at what they
may be used for. A list of these rules would be another one after the next update of either, so the
certificate is given to the library that is to show it, to see whether that takes it.
"""

import os
import re
import secrets
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeGuard

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


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


Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

# What both gRPC's library and OpenSSL serve with, and no less than either of them takes.
_KEYS = "RSA of 2048 bits or more, ECDSA on P-256, P-384 or P-521, or Ed25519"
_RSA_BITS = 2048
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)

# What parses a file leaves out what it cannot read, a certificate that is cut off among it.
_BEGINNINGS = re.compile(rb"-----BEGIN [A-Z0-9 ]*CERTIFICATE-----")
_BLOCKS = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----[^-]+-----END \1-----")
_CUT = re.compile(rb"-----BEGIN|-----END|^-{1,5}[A-Z ]*\Z", re.MULTILINE)


class PemFile(NamedTuple):
    """A file as it was read."""

    path: Path
    content: bytes
    problem: str = ""
    """Why it could not be read."""


def read_pem(path: Path) -> PemFile:
    """Return the content of a file, or why there is none."""
    try:
        return PemFile(path, path.read_bytes())
    except OSError as error:
        return PemFile(path, b"", error.strerror or str(error))


def judge(cert: PemFile, key: PemFile, client_ca: PemFile | None = None) -> Certificate:
    """Make a certificate out of its files.

    Raises:
        ValueError: it cannot be used; the message names the file and what it is not.
    """
    with named(cert):
        own = chain(cert)
    with named(key):
        private = private_key(key, own[0])
    if client_ca is not None:
        with named(client_ca):
            authorities = chain(client_ca)
    return Certificate(
        chain=_pem(own),
        key=private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        client_ca=None if client_ca is None else _pem(authorities),
        begins_at=max(each.not_valid_before_utc for each in own).timestamp(),
        expires_at=_first_end(own),
        client_ca_expires_at=None if client_ca is None else _first_end(authorities),
    )


def _first_end(certificates: list[x509.Certificate]) -> float:
    return min(each.not_valid_after_utc for each in certificates).timestamp()


@contextmanager
def named(file: PemFile) -> Iterator[None]:
    """Name the file in the reason why it cannot be used."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{file.path} is not {error}") from None


def chain(file: PemFile) -> list[x509.Certificate]:
    """Return the certificates in a file.

    Raises:
        ValueError: there is none; the message says what was expected.
    """
    content = _content(file)
    try:
        found = x509.load_pem_x509_certificates(content)
    except (ValueError, x509.InvalidVersion):
        raise ValueError("a PEM file with certificates") from None
    if len(found) != len(_BEGINNINGS.findall(content)) or _CUT.search(_BLOCKS.sub(b"", content)):
        raise ValueError("a PEM file with certificates, each of them whole")
    return found


def private_key(file: PemFile, certificate: x509.Certificate) -> Key:
    """Return the key in a file, which has to be that of the certificate.

    Raises:
        ValueError: it is not; the message says what was expected.
    """
    content = _content(file)
    try:
        found = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Not chained: causes may show what is in the file.
        raise ValueError("a PEM file with an unencrypted private key") from None
    if not _serves(found):
        raise ValueError(f"a PEM file with a key that can be served with: {_KEYS}")
    if not _belongs(found, certificate):
        raise ValueError("the key of the first certificate in the certificate's file")
    return found


def _serves(key: PrivateKeyTypes) -> TypeGuard[Key]:
    match key:
        case rsa.RSAPrivateKey():
            return key.key_size >= _RSA_BITS
        case ec.EllipticCurvePrivateKey():
            return isinstance(key.curve, _CURVES)
        case _:
            return isinstance(key, ed25519.Ed25519PrivateKey)


def _belongs(key: Key, certificate: x509.Certificate) -> bool:
    try:
        return key.public_key() == certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):  # the certificate is of a kind that nobody serves
        return False


def _content(file: PemFile) -> bytes:
    if file.problem:
        raise ValueError(f"a file this process can read ({file.problem})")
    return file.content


def _pem(certificates: list[x509.Certificate]) -> bytes:
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


Server = Literal["grpc", "http"]


def require_served(server: Server, certificate: Certificate) -> None:
    """Refuse a certificate that this server could not show.

    Raises:
        ValueError: the message says what was expected.
    """
    _TRIALS[server](certificate)


def _with_openssl(certificate: Certificate) -> None:
    try:
        certificate.context()
    except OSError as error:  # ssl.SSLError is one
        why = getattr(error, "reason", None) or error.strerror
        raise ValueError(f"a certificate that OpenSSL takes with its key ({why})") from None


def _with_grpc(certificate: Certificate) -> None:
    """Open a port as the server would, on a name in memory that nobody knows: half a millisecond.

    The library says why in a line of its own log.
    """
    import grpc  # noqa: PLC0415 - it loads much that those without TLS need not

    pair = (certificate.key, certificate.chain)
    shown = grpc.ssl_server_credentials(
        [pair], certificate.client_ca, require_client_auth=certificate.client_ca is not None
    )
    server = grpc.server(ThreadPoolExecutor(1))
    try:
        server.add_secure_port(f"unix-abstract:{secrets.token_hex(16)}", shown)
    except RuntimeError:
        raise ValueError("a certificate that gRPC's library takes with its key") from None
    finally:
        server.stop(None)


_TRIALS = {"grpc": _with_grpc, "http": _with_openssl}
