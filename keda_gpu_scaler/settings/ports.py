"""The settings of the two ports, of the webhook for alerts, and of the other replicas.

Each mistake in a certificate is assigned to one file, so the message names the setting to change.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import tokens, values
from keda_gpu_scaler.settings.sources import CONFIG, conflict

if TYPE_CHECKING:
    from keda_gpu_scaler.transport.certificates import Server

_TOKEN_FILE = "the HTTP port's token file"  # noqa: S105 - what it is called


class TlsFiles(NamedTuple):
    """The files of a port that speaks TLS."""

    cert: Path
    key: Path | None
    client_ca: Path | None = None


def _with_certificates(path: Path) -> Path:
    from keda_gpu_scaler.transport import certificates  # noqa: PLC0415 - it loads cryptography, for TLS only

    certificates.chain(certificates.read_pem(path))
    return path


CertificateFile = Annotated[values.ReadableFile, AfterValidator(_with_certificates)]


class PortSettings(BaseModel):
    """The addresses of the ports, their certificates and the token of the HTTP port."""

    model_config = CONFIG

    grpc_address: values.ListenAddress = values.Address("", 6000)
    """Where KEDA finds the scaler; port 0 takes a free one."""
    grpc_cert_file: CertificateFile | None = None
    """PEM file with the certificate of the gRPC port, its own first, then those that lead to its
    CA; without one the port has no TLS. Read again when it changes, as are its key and the CAs."""
    grpc_key_file: values.ReadableFile | None = None
    """PEM file with its key, unless the certificate's file holds it."""
    grpc_client_ca_file: CertificateFile | None = None
    """PEM file with CAs: clients of the gRPC port have to show a certificate of one of them."""
    http_address: values.ListenAddress = values.Address("", 8080)
    """Where /metrics, /healthz, /readyz, /webhook and /alerts are."""
    http_cert_file: CertificateFile | None = None
    """PEM file with the certificate of the HTTP port, which then speaks HTTPS alone; read again
    when it changes, as is its key."""
    http_key_file: values.ReadableFile | None = None
    """PEM file with its key, unless the certificate's file holds it."""

    http_token: values.Token | None = None
    """Token that every page needs but /healthz, /readyz and those of the webhook, which has its
    own; without one, each client that reaches the port may read."""
    http_token_file: values.ReadableFile | None = None
    """File with the token; read again when it changes."""
    http_namespace_tokens: values.ReadableFolder | None = None
    """Folder with tokens that show one namespace alone: each file is named after the namespace and
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
        return tokens.of(self.http_token, self.http_token_file, _TOKEN_FILE)

    @property
    def http_namespace_secrets(self) -> tokens.OfNamespaces | None:
        """The tokens of the HTTP port that show one namespace alone; None: there are none."""
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

    @field_validator("http_token_file")
    @classmethod
    def _one_token(cls, file: Path | None, info: ValidationInfo) -> Path | None:
        if file is not None:
            if info.data.get("http_token") is not None:
                raise ValueError("no http_token beside it")
            try:
                tokens.held_by(file, _TOKEN_FILE)
            except errors.SettingsError as error:
                raise ValueError(tokens.EXPECTED) from error
        return file

    @field_validator("http_namespace_tokens")
    @classmethod
    def _beside_a_token(cls, folder: Path | None, info: ValidationInfo) -> Path | None:
        keys = ("http_token", "http_token_file")
        if folder is not None and all(info.data.get(key) is None for key in keys):
            raise ValueError("http_token_file or http_token with it, for everything else")
        return folder

    @field_validator("grpc_key_file", "http_key_file", "grpc_client_ca_file")
    @classmethod
    def _beside_a_certificate(cls, file: Path | None, info: ValidationInfo) -> Path | None:
        cert = _cert_setting(info)
        if file is not None and cert in info.data and info.data[cert] is None:
            raise ValueError(f"{cert} with it")
        return file

    @field_validator("grpc_key_file", "http_key_file")
    @classmethod
    def _key_of_the_certificate(cls, key: Path | None, info: ValidationInfo) -> Path | None:
        cert = info.data.get(_cert_setting(info))
        if cert is not None:
            from keda_gpu_scaler.transport import certificates  # noqa: PLC0415 - likewise

            own, *_ = certificates.chain(certificates.read_pem(cert))
            try:
                certificates.private_key(certificates.read_pem(key or cert), own)
            except ValueError:
                if key is None:
                    raise PydanticKnownError("missing") from None
                raise
        return key

    @field_validator("grpc_client_ca_file", "http_key_file")
    @classmethod
    def _served(cls, last: Path | None, info: ValidationInfo) -> Path | None:
        """Check after the last file of a port whether the server can use them all together."""
        setting = _cert_setting(info)
        cert, keys = info.data.get(setting), info.data | {info.field_name: last}
        key_setting = setting.replace("cert", "key")
        if cert is not None and key_setting in keys:
            from keda_gpu_scaler.transport import certificates  # noqa: PLC0415 - likewise

            server: Server = "http" if setting.startswith("http") else "grpc"
            files = (cert, keys[key_setting] or cert)
            certificate = certificates.judge(*map(certificates.read_pem, files))
            try:
                certificates.require_served(server, certificate)
            except ValueError as error:
                raise _of_another(setting, cert, str(error)) from None
        return last


def _of_another(setting: str, value: Path, expected: str) -> PydanticCustomError:
    """Return the mistake of an earlier setting that is found only when a later one is read."""
    context = {"setting": setting, "value": str(value), "expected": expected}
    return PydanticCustomError("of_another", "expected {expected}", context)


def _cert_setting(info: ValidationInfo) -> str:
    """Return the name of the certificate setting of the same port."""
    port, *_ = str(info.field_name).partition("_")
    return f"{port}_cert_file"


class WebhookSettings(BaseModel):
    """The token of the senders of alerts, the lifetime of alerts, and the other replicas."""

    model_config = CONFIG

    token: values.Token | None = None
    """Token that senders of alerts show to /webhook; without one there is no webhook."""
    token_file: values.ReadableFile | None = None
    """File with the token; read again when it changes."""
    lifetime_seconds: Annotated[float, BeforeValidator(values.seconds(60))] = 18_000.0
    """How long an alert fires that is not sent again; keep it above the sender's repeat interval,
    by default 4h in Alertmanager and Grafana."""
    peers: values.Peers = ()
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

        Raises:
            errors.SettingsError: there is no token, or its file cannot be read.
        """
        read = tokens.of(self.token, self.token_file, "the webhook's token file")
        if read is None:
            raise errors.SettingsError("the webhook has no token")
        return read()

    @model_validator(mode="after")
    def _one_token(self) -> Self:
        if self.token is not None and self.token_file is not None:
            raise conflict("only one of them", "token", "token_file")
        if self.peers and not self.is_on:
            raise conflict("a token or token_file with it", "peers")
        if self.token_file is not None:
            try:
                self.secret()
            except errors.SettingsError as error:
                raise conflict(tokens.EXPECTED, "token_file") from error
        return self
