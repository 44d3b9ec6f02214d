"""The settings of the webhook for alerts, and of the replicas that tell each other of them."""

from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, model_validator

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import endpoints, tokens, values
from keda_gpu_scaler.settings.api import CONFIG, conflict
from keda_gpu_scaler.settings.ports import CertificateFile


class WebhookSettings(BaseModel):
    """Who may say that alerts fire, for how long that holds, and who else is told."""

    model_config = CONFIG

    token: endpoints.Token | None = None
    """Token of whoever sends alerts to /webhook; without one there is no webhook."""
    token_file: values.ReadableFile | None = None
    """File with the token; read again when it changes."""
    lifetime_seconds: Annotated[float, BeforeValidator(values.seconds(60))] = 18_000.0
    """How long an alert fires that is not sent again; keep it above the sender's repeat interval,
    by default 4h in Alertmanager and Grafana."""
    peers: endpoints.Peers = ()
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
        """Return the token of this moment: tokens rotate, and so do files that hold one.

        Raises:
            errors.SettingsError: there is none, or its file cannot be read.
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
