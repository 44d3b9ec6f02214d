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
from keda_gpu_scaler.transport.certificates import Certificate, PemFile, Server, judge, read_pem


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
        """Read the files, or raise SettingsError if they hold no usable certificate.

        Args:
            server: the server that shows the certificate.
            cert: PEM file with the certificate chain, the server's own certificate first.
            key: PEM file with its key; None: the certificate's file holds it.
            client_ca: PEM file with the CAs of clients; None: clients need no certificate.
            observe: gets each certificate, and each reason why one cannot be used.
            clock: Unix seconds.
        """
        self._server, self._observe, self._clock = server, observe, clock
        self._paths = tuple(path for path in (cert, key or cert, client_ca) if path is not None)
        self._lock = threading.Lock()
        self._reported_problems: set[str] = set()
        self._files = self._read()
        try:
            self._certificate = judge(server, *self._files)
        except ValueError as error:
            setting = f"KEDA_GPU_SCALER_{server.upper()}_CERT_FILE"
            message = f"{setting}: no certificate to serve with: {error}"
            raise errors.SettingsError(message) from error
        self._observe(facts.CertificateLoaded(server, self._certificate.expires_at))
        self._report_dates()

    def current(self) -> Certificate:
        """Return the certificate in the files, or the last one that could be used."""
        with self._lock:
            files = self._read()
            if files != self._files:
                self._files = files
                try:
                    self._certificate = judge(self._server, *files)
                except ValueError as error:
                    self._observe(facts.CertificateRefused(self._server, str(error)))
                else:
                    self._reported_problems.clear()
                    expires_at = self._certificate.expires_at
                    self._observe(facts.CertificateLoaded(self._server, expires_at))
            self._report_dates()
            return self._certificate

    def expiries(self) -> Mapping[str, float]:
        """Return when the certificates in use expire, in Unix seconds.

        `server` is the certificate that clients see. `client_ca` is the first of the clients' CAs
        to expire, if clients need a certificate.
        """
        certificate = self.current()
        expiries = {"server": certificate.expires_at}
        if certificate.client_ca_expires_at is not None:
            expiries["client_ca"] = certificate.client_ca_expires_at
        return expiries

    def _read(self) -> tuple[PemFile, ...]:
        return tuple(read_pem(path) for path in self._paths)

    def _report_dates(self) -> None:
        """Report once that connections fail because a certificate in use is out of its dates."""
        for problem in _date_problems(self._certificate, self._clock()):
            if problem not in self._reported_problems:
                self._reported_problems.add(problem)
                self._observe(facts.CertificateLapsed(self._server, problem))


def _date_problems(certificate: Certificate, now: float) -> Iterator[str]:
    if now >= certificate.expires_at:
        yield f"expired at {_iso_time(certificate.expires_at)}"
    elif now < certificate.begins_at:
        yield f"not valid before {_iso_time(certificate.begins_at)}"
    ca_expires_at = certificate.client_ca_expires_at
    if ca_expires_at is not None and now >= ca_expires_at:
        yield f"a CA of its clients expired at {_iso_time(ca_expires_at)}"


def _iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
