"""TLS of the gRPC port: which certificate each handshake shows, and whose it asks for.

gRPC's library takes TLS 1.2 and 1.3 and nothing older. It asks for a certificate anew in each
handshake and keeps the connections that there are, and their streams, as they are.
"""

import grpc

from keda_gpu_scaler.certificates import Certificate, CertificateFiles


def following(files: CertificateFiles) -> grpc.ServerCredentials:
    """Return credentials that change with the files, from the next handshake on."""
    shown = files.current()
    return grpc.dynamic_ssl_server_credentials(
        _configuration(shown),
        Rotation(files, shown),  # type: ignore[arg-type] # None is allowed, and keeps what there is
        require_client_authentication=shown.client_ca is not None,
    )


class Rotation:
    """Answers each handshake; the library asks in a thread of its own, one handshake at a time."""

    def __init__(self, files: CertificateFiles, shown: Certificate) -> None:
        """Begin with what is shown already."""
        self._files, self._shown = files, shown

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        """Return what to show from now on; None: the same as before."""
        current = self._files.current()
        if current == self._shown:
            return None
        self._shown = current
        return _configuration(current)


def _configuration(certificate: Certificate) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(certificate.key, certificate.chain)], certificate.client_ca
    )
