"""Certificates for tests: made by trustme, written as they lie in a Secret's volume."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TypeAlias

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed448, ed25519
from cryptography.hazmat.primitives.asymmetric.types import (
    CertificateIssuerPrivateKeyTypes,
    PrivateKeyTypes,
)
from cryptography.x509.oid import NameOID

Key: TypeAlias = CertificateIssuerPrivateKeyTypes
HOST = "localhost"
DAY = timedelta(days=1)


class Pair(NamedTuple):
    """The files of a certificate."""

    cert: Path
    key: Path


def write(directory: Path, issued: trustme.LeafCert, name: str = "tls") -> Pair:
    """Write a certificate and its key into a directory, over what was there."""
    pair = Pair(directory / f"{name}.crt", directory / f"{name}.key")
    pair.cert.write_bytes(chain(issued))
    pair.key.write_bytes(issued.private_key_pem.bytes())
    return pair


def chain(issued: trustme.LeafCert) -> bytes:
    """Return the certificate and those that lead to its CA."""
    return b"".join(each.bytes() for each in issued.cert_chain_pems)


def expired(authority: trustme.CA, *names: str) -> trustme.LeafCert:
    now = datetime.now(UTC)
    return authority.issue_cert(*names or (HOST,), not_before=now - 9 * DAY, not_after=now - DAY)


def key_of(issued: trustme.LeafCert) -> bytes:
    return issued.private_key_pem.bytes()


def self_signed(key: Key) -> bytes:
    """Return a certificate of this key, signed by itself."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - DAY, now + DAY)
    has_own_digest = isinstance(key, ed448.Ed448PrivateKey | ed25519.Ed25519PrivateKey)
    digest = None if has_own_digest else hashes.SHA256()
    return made.sign(key, digest).public_bytes(serialization.Encoding.PEM)


def pem(key: PrivateKeyTypes, password: bytes = b"") -> bytes:
    """Return a key as files hold it, encrypted where there is a password."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption(),
    )
