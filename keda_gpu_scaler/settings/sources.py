"""The settings of each kind of source, as frozen values that are checked when they are made.

Field names include the unit; operators write the short name (`step`, `timeout`). Secrets are never
shown: they are SecretStr, and so is the content of every header, since a header may hold one.
"""

import ssl
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AliasGenerator, BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import SettingsConfigDict

from keda_gpu_scaler.query.influxql import METRIC, Schema
from keda_gpu_scaler.settings import values
from keda_gpu_scaler.transport.client import LIMIT_BYTES
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE

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
    """Return the error for settings that are valid one by one, but not together."""
    return PydanticCustomError("conflict", "{expected}", {"expected": expected, "fields": fields})


class ApiSettings(BaseModel):
    """A server with an HTTP API: its URL, the credentials, and the namespaces that may use it."""

    model_config = CONFIG

    url: values.Url
    """Base URL of the HTTP API."""
    step_seconds: values.PositiveSeconds = 15.0
    """How often new samples are asked for; use the scrape interval."""
    collection_seconds: values.Seconds = 30.0
    """How often exporters read their GPUs, as dcgm-exporter's `-c` says; a scrape can be as old."""
    timeout_seconds: values.PositiveSeconds = 10.0
    """Longest time for one query; RPCs do not wait for it."""
    max_response_bytes: values.Bytes = LIMIT_BYTES
    """An answer larger than this is refused; reading one may take ten times as much memory."""
    bearer_token: values.Token | None = None
    """Token to authenticate with."""
    bearer_token_file: values.ReadableFile | None = None
    """File with the token; read again when it changes."""
    username: str | None = None
    """User for basic authentication."""
    password: values.Secret | None = None
    """Password for basic authentication."""
    ca_file: values.ReadableFile | None = None
    """PEM file with the CAs to trust instead of the system's."""
    cert_file: values.ReadableFile | None = None
    """PEM file with the client certificate for mTLS."""
    key_file: values.ReadableFile | None = None
    """PEM file with its key, unless the certificate's file holds it."""
    headers: values.Headers = {}
    """Headers of each request, such as a tenant: name=value,name=value or JSON."""
    namespaces: values.Namespaces = EVERY_NAMESPACE
    """Whose ScaledObjects may use it: namespaces separated by commas, or * for all."""

    @model_validator(mode="after")
    def _authenticate_in_one_way(self) -> Self:
        ways = ("bearer_token", "bearer_token_file", "username", "sigv4_region")
        given = [way for way in ways if getattr(self, way, None) is not None]
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


class PrometheusSettings(ApiSettings):
    """Anything that speaks Prometheus' HTTP API."""

    type: Literal["prometheus"] = "prometheus"
    url: values.Url
    """Base URL of the HTTP API, without /api/v1."""
    sigv4_region: values.Region | None = None
    """AWS region of an Amazon Managed Service for Prometheus: requests are signed for it, with the
    credentials of the AWS environment; it needs the extra aws."""
    matchers: values.Matchers = ()
    """What every series has to match, such as cluster="eu-1": one of several clusters."""
    namespace_parameter: values.Parameter | None = None
    """URL parameter with the namespace; each request is then about one namespace."""
    namespace_header: values.HeaderName | None = None
    """Header with the namespace; each request is then about one namespace."""

    @model_validator(mode="after")
    def _name_the_namespace_once(self) -> Self:
        named = (self.namespace_header or "").lower()
        if named in {"authorization", *map(str.lower, self.headers)}:
            raise conflict("a header that nothing else sets", "namespace_header")
        return self

    @property
    def is_per_namespace(self) -> bool:
        """Whether each request is about one namespace, and names it."""
        return self.namespace_parameter is not None or self.namespace_header is not None


def _interval(validated: dict[str, Any]) -> float:
    return float(validated.get("interval_seconds", 5.0))


class ScrapeSettings(BaseModel):
    """Exporters asked directly, without a Prometheus."""

    model_config = CONFIG

    type: Literal["scrape"] = "scrape"
    targets: values.Targets
    """Exporters to ask, separated by commas: http(s)://host:port/path, or
    dns+http(s)://name:port/path for every address of the name."""
    interval_seconds: values.PositiveSeconds = 5.0
    """How often each exporter is asked."""
    collection_seconds: values.Seconds = 30.0
    """How often exporters read their GPUs, as dcgm-exporter's `-c` says; a scrape can be as old."""
    timeout_seconds: values.PositiveSeconds = Field(default_factory=_interval)
    """Longest time for one scrape, at most the interval; by default the interval."""
    max_response_bytes: values.Bytes = 16 * MIB
    """An exporter's answer larger than this is refused."""
    namespaces: values.Namespaces = EVERY_NAMESPACE
    """Whose ScaledObjects may use it: namespaces separated by commas, or * for all."""

    @model_validator(mode="after")
    def _scrapes_do_not_overlap(self) -> Self:
        if self.timeout_seconds > self.interval_seconds:
            raise conflict("a timeout of at most the interval", "timeout", "interval")
        return self


class InfluxdbSettings(ApiSettings):
    """An InfluxDB 1.x, queried in InfluxQL."""

    type: Literal["influxdb"] = "influxdb"
    url: values.Url
    """Base URL of the HTTP API, without /query."""
    step_seconds: values.PositiveSeconds = 15.0
    """How often new points are asked for; use the interval at which they are written."""
    database: values.Name
    """The database with the samples of GPUs."""
    retention_policy: values.Name | None = None
    """The retention policy with them, where it is not the database's default."""
    measurement: values.Name = METRIC
    """The measurement with the samples; {metric} where each metric has one of its own."""
    field: values.Name = "gauge"
    """The field with the number; {metric} where each metric has one of its own."""
    namespace_tag: values.Name = "namespace"
    """The tag that names the namespace of the pod that has the GPU."""
    pod_tag: values.Name = "pod"
    """The tag that names the pod that has the GPU."""
    gpu_tag: values.Name = "UUID"
    """The tag that names the GPU."""
    delay_seconds: values.Seconds = 10.0
    """How late points are written, as Telegraf's `flush_interval` says; none younger are asked
    for."""

    @model_validator(mode="after")
    def _metrics_have_one_place(self) -> Self:
        if self.measurement == self.field == METRIC:
            raise conflict(f"{METRIC} in one of them at most", "measurement", "field")
        return self

    @property
    def layout(self) -> Schema:
        """Which measurement, field and tags hold what."""
        return Schema(self.measurement, self.field, self.namespace_tag, self.pod_tag, self.gpu_tag)


KINDS: Mapping[str, type[BaseModel]] = {
    "prometheus": PrometheusSettings,
    "scrape": ScrapeSettings,
    "influxdb": InfluxdbSettings,
}
Source = Annotated[
    PrometheusSettings | ScrapeSettings | InfluxdbSettings, Field(discriminator="type")
]
