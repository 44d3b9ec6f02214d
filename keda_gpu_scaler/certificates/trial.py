"""Whether the library that is to show a certificate takes it, found out by giving it to it.

A certificate may be in order and yet be refused: OpenSSL wants a certain strength of every
signature and key of the chain, gRPC's BoringSSL knows fewer kinds of keys and looks at what they
may be used for. A list of these rules would be another one after the next update of either.
"""

import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from keda_gpu_scaler.certificates.certificate import Certificate

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
