"""The certificate files of one server: their present content, or the last that could be used.

Certificates rotate. New files are written long before the old ones expire, often one after the
other, so for a moment the key does not match the certificate. The files are small, and Kubernetes
mounts them in memory: reading them costs less than a handshake. Their content is compared, because
modification times can be misleading.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from keda_gpu_scaler import errors
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.certificates import (
    Certificate,
    PemFile,
    Server,
    judge,
    named,
    read_pem,
    require_served,
)


class CertificateFiles:
    """The certificate files of one server, read again whenever the certificate is needed.

    Any thread may call it; observers are called in the same thread.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the files, their server and the observer
        self,
        server: Server,
        cert: Path,
        key: Path | None,
        client_ca: Path | None,
        observe: facts.Observer,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Read the files for the first time.

        Args:
            server: the server that shows the certificate.
            cert: PEM file with the certificate chain, the server's own certificate first.
            key: PEM file with its key; None: the certificate's file holds it.
            client_ca: PEM file with the CAs of clients; None: clients need no certificate.
            observe: gets each certificate, and each reason why one cannot be used.
            clock: Unix seconds.

        Raises:
            errors.SettingsError: the files hold no usable certificate.
        """
        self._server, self._observe, self._clock = server, observe, clock
        self._paths = tuple(path for path in (cert, key or cert, client_ca) if path is not None)
        self._lock = threading.Lock()
        self._lapses: set[str] = set()
        self._seen = self._read()
        try:
            self._latest = self._judged(self._seen)
        except ValueError as error:
            raise errors.SettingsError(f"no certificate to serve with: {error}") from error
        self._loaded()

    def current(self) -> Certificate:
        """Return the certificate in the files, or the last one that could be used."""
        with self._lock:
            found = self._read()
            if found != self._seen:
                self._seen = found
                try:
                    self._latest = self._judged(found)
                except ValueError as error:
                    self._observe(facts.CertificateRefused(self._server, str(error)))
                else:
                    self._lapses.clear()
                    self._loaded()
            self._notice_dates()
            return self._latest

    def expiries(self) -> Mapping[str, float]:
        """Return when the certificates in use expire, in Unix seconds.

        `server` is the certificate that clients see. `client_ca` is the first of the clients' CAs
        to expire, if clients need a certificate.
        """
        current = self.current()
        found = {"server": current.expires_at}
        if current.client_ca_expires_at is not None:
            found["client_ca"] = current.client_ca_expires_at
        return found

    def _read(self) -> tuple[PemFile, ...]:
        return tuple(read_pem(path) for path in self._paths)

    def _judged(self, found: tuple[PemFile, ...]) -> Certificate:
        certificate = judge(*found)
        with named(found[0]):
            require_served(self._server, certificate)
        return certificate

    def _loaded(self) -> None:
        self._observe(facts.CertificateLoaded(self._server, self._latest.expires_at))
        self._notice_dates()

    def _notice_dates(self) -> None:
        """Report once that connections fail because a certificate in use is out of its dates."""
        for reason in _lapses(self._latest, self._clock()):
            if reason not in self._lapses:
                self._lapses.add(reason)
                self._observe(facts.CertificateLapsed(self._server, reason))


def _lapses(certificate: Certificate, now: float) -> Iterator[str]:
    if now >= certificate.expires_at:
        yield f"expired at {_written(certificate.expires_at)}"
    elif now < certificate.begins_at:
        yield f"not valid before {_written(certificate.begins_at)}"
    authority_ends = certificate.client_ca_expires_at
    if authority_ends is not None and now >= authority_ends:
        yield f"a CA of its clients expired at {_written(authority_ends)}"


def _written(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
