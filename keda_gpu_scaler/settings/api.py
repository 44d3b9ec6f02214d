"""The settings that every source behind an HTTP API has, and what all settings of sources share.

Field names carry the unit; people write the short name (`step`, `timeout`). Secrets never show:
they are SecretStr, and so is every header's content, since a header may carry one.
"""

import ssl
from typing import Self

from pydantic import AliasGenerator, BaseModel, SecretStr, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import SettingsConfigDict

from keda_gpu_scaler.access import EVERY_NAMESPACE
from keda_gpu_scaler.settings import endpoints, values

CONFIG = SettingsConfigDict(
    frozen=True,
    extra="forbid",
    validate_by_name=True,
    validate_by_alias=True,
    alias_generator=AliasGenerator(validation_alias=lambda name: name.removesuffix("_seconds")),
    use_attribute_docstrings=True,
)
MIB = 2**20


def conflict(expected: str, *fields: str) -> PydanticCustomError:
    """Make the error of settings that are right one by one and wrong together."""
    return PydanticCustomError("conflict", "{expected}", {"expected": expected, "fields": fields})


class ApiSettings(BaseModel):
    """A server that is asked over HTTP: where it is, how to be let in, and whose it is."""

    model_config = CONFIG

    url: endpoints.Url
    """Base URL of the HTTP API."""
    step_seconds: values.PositiveSeconds = 15.0
    """How often new samples are asked for; use the scrape interval."""
    collection_seconds: values.Seconds = 30.0
    """How often exporters read their GPUs, as dcgm-exporter's `-c` says; a scrape can be as old."""
    timeout_seconds: values.PositiveSeconds = 10.0
    """Longest time for one query; RPCs do not wait for it."""
    max_response_bytes: values.Bytes = 64 * MIB
    """An answer larger than this is refused."""
    bearer_token: endpoints.Token | None = None
    """Token to authenticate with."""
    bearer_token_file: values.ReadableFile | None = None
    """File with the token; read again when it changes."""
    username: str | None = None
    """User for basic authentication."""
    password: SecretStr | None = None
    """Password for basic authentication."""
    ca_file: values.ReadableFile | None = None
    """PEM file with the CAs to trust instead of the system's."""
    cert_file: values.ReadableFile | None = None
    """PEM file with the client certificate for mTLS."""
    key_file: values.ReadableFile | None = None
    """PEM file with its key, unless the certificate's file holds it."""
    headers: endpoints.Headers = {}
    """Headers of each request, such as a tenant: name=value,name=value or JSON."""
    namespaces: values.Namespaces = EVERY_NAMESPACE
    """Whose ScaledObjects may use it: namespaces separated by commas, or * for all."""

    @model_validator(mode="after")
    def _authenticate_in_one_way(self) -> Self:
        ways = ("bearer_token", "bearer_token_file", "username")
        given = [way for way in ways if getattr(self, way) is not None]
        if len(given) > 1:
            raise conflict("only one of them", *given)
        if (self.username is None) != (self.password is None):
            raise conflict("both or none", "username", "password")
        if self.username is not None and ":" in self.username:
            raise conflict("a user without a colon, as basic authentication wants it", "username")
        return self

    @model_validator(mode="after")
    def _certificates_can_be_used(self) -> Self:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.ca_file is not None:
            try:
                context.load_verify_locations(self.ca_file)
            except ssl.SSLError as error:
                raise conflict("a PEM file with certificates", "ca_file") from error
        if self.key_file is not None and self.cert_file is None:
            raise conflict("a cert_file with it", "key_file")
        if self.cert_file is not None:
            try:
                # Without a password OpenSSL would ask for one at the terminal.
                context.load_cert_chain(self.cert_file, self.key_file, password=lambda: "")
            except ssl.SSLError as error:
                fields = ("cert_file", "key_file") if self.key_file else ("cert_file",)
                expected = "PEM files with a certificate and its unencrypted key"
                raise conflict(expected, *fields) from error
        return self
