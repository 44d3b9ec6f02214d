"""The certificate files of one server: their present content, or the last that could be used.

Certificates rotate. New files are written long before the old ones expire, often one after the
other, so for a moment the key does not match the certificate. The files are small, and Kubernetes
mounts them in memory: reading them costs less than a handshake. Their content is compared, because
modification times can be misleading.
"""

import threading
from collections.abc import Mapping
from pathlib import Path

from keda_gpu_scaler import errors
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.certificates import Certificate, PemFile, Server, judge, read_pem


class CertificateFiles:
    """The certificate files of one server, read again whenever the certificate is needed.

    Any thread may call it; observers are called in the same thread.
    """

    def __init__(
        self,
        server: Server,
        cert: Path,
        key: Path | None,
        client_ca: Path | None,
        observe: facts.Observer,
    ) -> None:
        """Read the files, or raise SettingsError if they hold no usable certificate.

        Without `key` the certificate's file holds it.
        """
        self._server, self._observe = server, observe
        self._paths = tuple(path for path in (cert, key or cert, client_ca) if path is not None)
        self._lock = threading.Lock()
        self._files = self._read()
        try:
            self._certificate = judge(server, *self._files)
        except ValueError as error:
            setting = f"KEDA_GPU_SCALER_{server.upper()}_CERT_FILE"
            message = f"{setting}: no certificate to serve with: {error}"
            raise errors.SettingsError(message) from error
        self._observe(facts.CertificateLoaded(server, self._certificate.expires_at))

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
                    expires_at = self._certificate.expires_at
                    self._observe(facts.CertificateLoaded(self._server, expires_at))
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
