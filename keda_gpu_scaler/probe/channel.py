"""A channel to a scaler: plaintext, TLS, or TLS with a certificate of the caller's own."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc


@dataclass(frozen=True, slots=True)
class Tls:
    """What a TLS connection is made with, as PEM files."""

    ca_file: Path
    """The server's certificate has to be of one of these CAs."""
    cert_file: Path | None = None
    key_file: Path | None = None
    server_name: str | None = None
    """The name that the certificate has to have, where it is not the target's."""


def opened(target: str, tls: Tls | None) -> grpc.Channel:
    """Return a channel; nothing is connected before the first call.

    A proxy that the environment names is used, as gRPC does by itself.

    Raises:
        ValueError: a file does not hold what it is named for.
    """
    if tls is None:
        return grpc.insecure_channel(target)
    options = [("grpc.ssl_target_name_override", tls.server_name)] if tls.server_name else []
    return grpc.secure_channel(target, _credentials(tls), options)


def _credentials(tls: Tls) -> grpc.ChannelCredentials:
    # gRPC would say no more than that a handshaker could not be made.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _require_certificates(context, tls.ca_file)
    if tls.cert_file is None or tls.key_file is None:
        return grpc.ssl_channel_credentials(tls.ca_file.read_bytes())
    _require_pair(context, tls.cert_file, tls.key_file)
    return grpc.ssl_channel_credentials(
        tls.ca_file.read_bytes(), tls.key_file.read_bytes(), tls.cert_file.read_bytes()
    )


def _require_certificates(context: ssl.SSLContext, file: Path) -> None:
    try:
        context.load_verify_locations(file)
    except ssl.SSLError as error:
        raise ValueError(f"{file} holds no certificate in PEM") from error


def _require_pair(context: ssl.SSLContext, cert_file: Path, key_file: Path) -> None:
    try:
        # With an empty password, nobody is asked for one.
        context.load_cert_chain(cert_file, key_file, password="")
    except ssl.SSLError as error:
        raise ValueError(
            f"{cert_file} and {key_file} are no certificate in PEM with its key, without a password"
        ) from error
