"""The files of one server's certificate, followed: what they hold now, or last held in order.

The files are small, and in memory where Kubernetes mounts them: reading them costs less than a
handshake, and unlike their times, their content cannot be mistaken.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from keda_gpu_scaler import errors, facts
from keda_gpu_scaler.certificates import pem, trial
from keda_gpu_scaler.certificates.certificate import Certificate


class CertificateFiles:
    """The files of one server's certificate, followed for as long as the process lives.

    Any thread may ask; observers are told in the thread that asked.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the files, whose they are, and whom to tell
        self,
        server: trial.Server,
        cert: Path,
        key: Path | None,
        client_ca: Path | None,
        observe: facts.Observer,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Read the files for the first time.

        Args:
            server: whose certificate it is.
            cert: PEM file with the certificate, its own first.
            key: PEM file with its key; None: the certificate's file holds it.
            client_ca: PEM file with the CAs of clients; None: clients need no certificate.
            observe: is told of each certificate, and of each reason why one cannot be used.
            clock: Unix seconds.

        Raises:
            errors.SettingsError: there is no certificate that could be used.
        """
        self._server, self._observe, self._clock = server, observe, clock
        self._paths = tuple(path for path in (cert, key or cert, client_ca) if path is not None)
        self._lock = threading.Lock()
        self._lapsed: tuple[Certificate, str] | None = None
        self._seen = self._read()
        try:
            self._latest = self._judged(self._seen)
        except ValueError as error:
            raise errors.SettingsError(f"no certificate to serve with: {error}") from error
        self._loaded()

    def current(self) -> Certificate:
        """Return the certificate of this moment: what the files hold, or last held in order."""
        with self._lock:
            found = self._read()
            if found != self._seen:
                self._seen = found
                self._changed(found)
            self._notice_dates()
            return self._latest

    def expires_at(self) -> float:
        """Return the Unix seconds at which the certificate of this moment expires."""
        return self.current().expires_at

    def _read(self) -> tuple[pem.PemFile, ...]:
        return tuple(pem.read(path) for path in self._paths)

    def _changed(self, found: tuple[pem.PemFile, ...]) -> None:
        try:
            self._latest = self._judged(found)
        except ValueError as error:
            self._observe(facts.CertificateRefused(self._server, str(error)))
        else:
            self._loaded()

    def _judged(self, found: tuple[pem.PemFile, ...]) -> Certificate:
        certificate = pem.judge(*found)
        with pem.named(found[0]):
            trial.require_served(self._server, certificate)
        return certificate

    def _loaded(self) -> None:
        self._observe(facts.CertificateLoaded(self._server, self._latest.expires_at))
        self._notice_dates()

    def _notice_dates(self) -> None:
        """State once that clients refuse the certificate for its dates: it is all there is."""
        reason = _lapse(self._latest, self._clock())
        if reason and self._lapsed != (self._latest, reason):
            self._lapsed = (self._latest, reason)
            self._observe(facts.CertificateLapsed(self._server, reason))


def _lapse(certificate: Certificate, now: float) -> str:
    if now >= certificate.expires_at:
        return f"expired at {_written(certificate.expires_at)}"
    if now < certificate.begins_at:
        return f"not valid before {_written(certificate.begins_at)}"
    return ""


def _written(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
