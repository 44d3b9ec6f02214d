"""The settings of each kind of source, as frozen values that are checked when they are made.

Field names include the unit; operators write the short name (`step`, `timeout`). Secrets are never
shown: they are SecretStr, and so is the content of every header, since a header may hold one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasGenerator, BaseModel, Field, ValidationInfo
from pydantic_settings import SettingsConfigDict

from keda_gpu_scaler.query.influxql import METRIC, Schema
from keda_gpu_scaler.settings import tokens, values
from keda_gpu_scaler.settings.values import key_of, needs, without
from keda_gpu_scaler.transport.client import LIMIT_BYTES
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE

CONFIG = SettingsConfigDict(
    frozen=True,
    extra="forbid",
    validate_by_name=True,
    validate_by_alias=True,
    validate_default=True,
    alias_generator=AliasGenerator(validation_alias=lambda name: name.removesuffix("_seconds")),
    use_attribute_docstrings=True,
)
_MIB = 2**20


class ApiSettings(BaseModel):
    """A server with an HTTP API: its URL, the credentials, and the namespaces that may use it."""

    model_config = CONFIG

    url: values.Url
    """Base URL of the HTTP API, without /api/v1 or /query."""
    step_seconds: values.PositiveSeconds = 15.0
    """How often new samples are asked for; use the interval at which they are scraped or
    written."""
    collection_seconds: values.Seconds = 30.0
    """How often exporters read their GPUs, as dcgm-exporter's `-c` says; a scrape can be as old."""
    timeout_seconds: values.PositiveSeconds = 10.0
    """Longest time for one query; RPCs do not wait for it."""
    max_response_bytes: values.Bytes = LIMIT_BYTES
    """An answer larger than this is refused; reading one may take ten times as much memory."""
    bearer_token: values.Token | None = None
    """Token to authenticate with."""
    bearer_token_file: Annotated[tokens.TokenFile | None, without("bearer_token")] = None
    """File with the token; read again when it changes."""
    username: Annotated[
        Annotated[str, Field(pattern="^[^:]*$")] | None,
        without("bearer_token", "bearer_token_file"),
    ] = None
    """User for basic authentication."""
    password: Annotated[values.Secret | None, needs("username")] = None
    """Password for basic authentication."""
    ca_file: values.CertificateFile | None = None
    """PEM file with the CAs to trust instead of the system's."""
    cert_file: values.CertificateFile | None = None
    """PEM file with the client certificate for mTLS."""
    key_file: Annotated[Path | None, needs("cert_file"), key_of("cert_file")] = None
    """PEM file with its key, unless the certificate's file holds it."""
    headers: values.Headers = {}
    """Headers of each request, such as a tenant: name=value,name=value or JSON."""
    namespaces: values.Namespaces = EVERY_NAMESPACE
    """Whose ScaledObjects may use it: namespaces separated by commas, or * for all."""


def _check_namespace_header(header: str, info: ValidationInfo) -> str:
    # Another value in its place would make a tenant's query one about all namespaces.
    if header.lower() in {"authorization", *map(str.lower, info.data.get("headers", ()))}:
        raise ValueError("a header that nothing else sets")
    return header


class PrometheusSettings(ApiSettings):
    """Anything that speaks Prometheus' HTTP API."""

    type: Literal["prometheus"] = "prometheus"
    sigv4_region: Annotated[
        values.Region | None, without("bearer_token", "bearer_token_file", "username")
    ] = None
    """AWS region of an Amazon Managed Service for Prometheus: requests are signed for it, with the
    credentials of the AWS environment; it needs the extra aws."""
    matchers: values.Matchers = ()
    """What every series has to match, such as cluster="eu-1": one of several clusters."""
    namespace_parameter: values.Parameter | None = None
    """URL parameter with the namespace; each request is then about one namespace."""
    namespace_header: (
        Annotated[values.HeaderName, AfterValidator(_check_namespace_header)] | None
    ) = None
    """Header with the namespace; each request is then about one namespace."""

    @property
    def is_per_namespace(self) -> bool:
        """Whether each request is about one namespace, and names it."""
        return self.namespace_parameter is not None or self.namespace_header is not None


def _check_scrape_timeout(timeout: float, info: ValidationInfo) -> float:
    if timeout > info.data.get("interval_seconds", timeout):
        raise ValueError("a timeout of at most the interval")
    return timeout


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
    timeout_seconds: Annotated[values.PositiveSeconds, AfterValidator(_check_scrape_timeout)] = (
        Field(default_factory=lambda data: data["interval_seconds"])
    )
    """Longest time for one scrape, at most the interval; by default the interval."""
    max_response_bytes: values.Bytes = 16 * _MIB
    """An exporter's answer larger than this is refused."""
    namespaces: values.Namespaces = EVERY_NAMESPACE
    """Whose ScaledObjects may use it: namespaces separated by commas, or * for all."""


def _check_field(field: str, info: ValidationInfo) -> str:
    if field == info.data.get("measurement") == METRIC:
        raise ValueError(f"{METRIC} in measurement or field, not in both")
    return field


class InfluxdbSettings(ApiSettings):
    """An InfluxDB 1.x, queried in InfluxQL."""

    type: Literal["influxdb"] = "influxdb"
    database: values.Name
    """The database with the samples of GPUs."""
    retention_policy: values.Name | None = None
    """The retention policy with them, where it is not the database's default."""
    measurement: values.Name = METRIC
    """The measurement with the samples; {metric} where each metric has one of its own."""
    field: Annotated[values.Name, AfterValidator(_check_field)] = "gauge"
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

    @property
    def layout(self) -> Schema:
        return Schema(self.measurement, self.field, self.namespace_tag, self.pod_tag, self.gpu_tag)


KINDS: Mapping[str, type[BaseModel]] = {
    "prometheus": PrometheusSettings,
    "scrape": ScrapeSettings,
    "influxdb": InfluxdbSettings,
}
Source = Annotated[
    PrometheusSettings | ScrapeSettings | InfluxdbSettings, Field(discriminator="type")
]
