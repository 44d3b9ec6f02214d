"""The settings of the two ports, of the webhook for alerts, and of the other replicas."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ValidationInfo

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import tokens, values
from keda_gpu_scaler.settings.sources import CONFIG
from keda_gpu_scaler.settings.values import needs, without

if TYPE_CHECKING:
    from keda_gpu_scaler.transport.certificates import Server


class TlsFiles(NamedTuple):
    """The files of a port that speaks TLS."""

    cert: Path
    key: Path | None
    client_ca: Path | None = None


def _check_certificates(path: Path) -> Path:
    from keda_gpu_scaler.transport import certificates  # noqa: PLC0415 - it loads cryptography, for TLS only

    certificates.chain(certificates.read_pem(path))
    return path


def _check_key(key: Path | None, info: ValidationInfo) -> Path | None:
    """Check a key, which may be in the certificate's file, and that the port can show both."""
    server: Server = "http" if str(info.field_name).startswith("http") else "grpc"
    setting = f"{server}_cert_file"
    cert = info.data.get(setting)
    if cert is not None:
        from keda_gpu_scaler.transport import certificates  # noqa: PLC0415 - likewise

        cert_pem, key_pem = certificates.read_pem(cert), certificates.read_pem(key or cert)
        own_certificate, *_ = certificates.chain(cert_pem)
        certificates.private_key(key_pem, own_certificate)
        try:
            certificates.require_served(server, certificates.judge(cert_pem, key_pem))
        except ValueError as error:
            raise ValueError(f"{setting} to hold {error}") from error
    return key


CertificateFile = Annotated[values.ReadableFile, AfterValidator(_check_certificates)]
_KeyOfTheCertificate = AfterValidator(_check_key)


class PortSettings(BaseModel):
    """The addresses of the ports, their certificates and the token of the HTTP port."""

    model_config = CONFIG

    grpc_address: values.ListenAddress = values.Address("", 6000)
    """Where KEDA finds the scaler; port 0 takes a free one."""
    grpc_cert_file: CertificateFile | None = None
    """PEM file with the certificate of the gRPC port, its own first, then those that lead to its
    CA; without one the port has no TLS. Read again when it changes, as are its key and the CAs."""
    grpc_key_file: Annotated[
        values.ReadableFile | None, needs("grpc_cert_file"), _KeyOfTheCertificate
    ] = None
    """PEM file with its key, unless the certificate's file holds it."""
    grpc_client_ca_file: Annotated[CertificateFile | None, needs("grpc_cert_file")] = None
    """PEM file with CAs: clients of the gRPC port have to show a certificate of one of them."""
    http_address: values.ListenAddress = values.Address("", 8080)
    """Where /metrics, /healthz, /readyz, /webhook and /alerts are."""
    http_cert_file: CertificateFile | None = None
    """PEM file with the certificate of the HTTP port, which then accepts only HTTPS; read again
    when it changes, as is its key."""
    http_key_file: Annotated[
        values.ReadableFile | None, needs("http_cert_file"), _KeyOfTheCertificate
    ] = None
    """PEM file with its key, unless the certificate's file holds it."""

    http_token: values.Token | None = None
    """Token that every page needs but /healthz, /readyz and those of the webhook, which has its
    own; without one, each client that reaches the port may read."""
    http_token_file: Annotated[tokens.TokenFile | None, without("http_token")] = None
    """File with the token; read again when it changes."""
    http_namespace_tokens: Annotated[
        values.ReadableFolder | None, needs("http_token_file", "http_token")
    ] = None
    """Folder with tokens that show only one namespace: each file is named after the namespace and
    holds its token; read again when they change. It goes with a token for everything else."""

    @property
    def grpc_tls(self) -> TlsFiles | None:
        """The files of the gRPC port; None: no TLS."""
        if self.grpc_cert_file is None:
            return None
        return TlsFiles(self.grpc_cert_file, self.grpc_key_file, self.grpc_client_ca_file)

    @property
    def http_tls(self) -> TlsFiles | None:
        """The files of the HTTP port; None: no TLS."""
        if self.http_cert_file is None:
            return None
        return TlsFiles(self.http_cert_file, self.http_key_file)

    @property
    def http_secret(self) -> Callable[[], str] | None:
        """A function that returns the current token of the HTTP port; None: no token."""
        return tokens.of(self.http_token, self.http_token_file, "the HTTP port's token file")

    @property
    def http_namespace_secrets(self) -> tokens.OfNamespaces | None:
        """The tokens of the HTTP port that show only one namespace; None: there are none."""
        folder = self.http_namespace_tokens
        return None if folder is None else tokens.OfNamespaces(folder)

    @property
    def protection(self) -> dict[str, bool]:
        """Which protections of the ports are on; a variable that is empty shows as False."""
        return {
            "grpc_tls": self.grpc_tls is not None,
            "grpc_client_ca": self.grpc_client_ca_file is not None,
            "http_tls": self.http_tls is not None,
            "http_token": self.http_secret is not None,
        }


class WebhookSettings(BaseModel):
    """The token of the senders of alerts, the lifetime of alerts, and the other replicas."""

    model_config = CONFIG

    token: values.Token | None = None
    """Token that senders of alerts show to /webhook; without one there is no webhook."""
    token_file: Annotated[tokens.TokenFile | None, without("token")] = None
    """File with the token; read again when it changes."""
    lifetime_seconds: Annotated[float, BeforeValidator(values.seconds(60))] = 18_000.0
    """How long an alert fires that is not sent again; keep it above the sender's repeat interval,
    by default 4h in Alertmanager and Grafana."""
    peers: Annotated[values.Peers, needs("token", "token_file")] = ()
    """The other replicas of the scaler, separated by commas: http://host:port, or
    dns+http://name:port for every address of a headless Service; https and dns+https for those
    whose HTTP port has a certificate."""
    ca_file: CertificateFile | None = None
    """PEM file with the CAs of those certificates instead of the system's; read again when it
    changes."""

    @property
    def is_on(self) -> bool:
        """Whether there is a webhook."""
        return self.token is not None or self.token_file is not None

    def secret(self) -> str:
        """Return the current token; a token file is read each time, because tokens rotate.

        Raises SettingsError if there is no token, or its file cannot be read.
        """
        current_token = tokens.of(self.token, self.token_file, "the webhook's token file")
        if current_token is None:
            raise errors.SettingsError("the webhook has no token")
        return current_token()
