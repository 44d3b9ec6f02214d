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
from keda_gpu_scaler.transport.http_client import LIMIT_BYTES
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE

CONFIG = SettingsConfigDict(
    frozen=True,
    extra="forbid",
    validate_by_name=True,
    validate_by_alias=True,
    validate_default=True,
    alias_generator=AliasGenerator(validation_alias=lambda name: name.removesuffix("_seconds")),
    use_attribute_docstrings=True,
    defer_build=True,  # a process needs them only as parts of `Settings`
)


class ApiSettings(BaseModel):
    """A server with an HTTP API: its URL, the credentials, and the namespaces that may use it."""

    model_config = CONFIG

    url: values.Url
    """Base URL of the HTTP API, without /api/v1 or /query."""
    step_seconds: values.PositiveSeconds = 15.0
    """Time between two queries for samples; use the interval at which they are scraped or
    written."""
    collection_seconds: values.Seconds = 30.0
    """Interval at which exporters read their GPUs (dcgm-exporter's `-c`)."""
    timeout_seconds: values.PositiveSeconds = 10.0
    """Longest time for one query; KEDA's calls wait for 2.5 s of it at most."""
    max_response_bytes: values.Bytes = LIMIT_BYTES
    """Largest answer; reading it may take ten times as much memory."""
    bearer_token: values.Token | None = None
    """Bearer token."""
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
    """PEM file with the CAs to trust, instead of the system's."""
    cert_file: values.CertificateFile | None = None
    """PEM file with the client certificate for mTLS."""
    key_file: Annotated[Path | None, needs("cert_file"), key_of("cert_file")] = None
    """PEM file with its key, unless the certificate file has it."""
    headers: values.Headers = {}
    """Headers of each request: name=value,name=value or JSON."""
    namespaces: values.Namespaces = EVERY_NAMESPACE
    """Namespaces whose ScaledObjects may use it, separated by commas, or * for all."""


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
    """AWS region of an Amazon Managed Service for Prometheus; signs requests with the AWS
    environment's credentials, and needs the extra aws."""
    matchers: values.Matchers = ()
    """Matchers for every series, such as cluster="eu-1"."""
    exporter_jobs: values.Jobs = frozenset()
    """Scrape jobs of the GPU exporters, separated by commas: the series of no other job count."""
    namespace_parameter: values.Parameter | None = None
    """URL parameter that names the one namespace of a request."""
    namespace_header: (
        Annotated[values.HeaderName, AfterValidator(_check_namespace_header)] | None
    ) = None
    """Header that names the one namespace of a request."""

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
    """Exporters to scrape, separated by commas: http(s)://host:port/path, or
    dns+http(s)://name:port/path for every address of the name."""
    interval_seconds: values.PositiveSeconds = 5.0
    """Time between two scrapes of an exporter."""
    collection_seconds: values.Seconds = 30.0
    """Interval at which exporters read their GPUs (dcgm-exporter's `-c`)."""
    timeout_seconds: Annotated[values.PositiveSeconds, AfterValidator(_check_scrape_timeout)] = (
        Field(default_factory=lambda data: data["interval_seconds"])
    )
    """Longest time for one scrape; by default, and at most, the interval."""
    max_response_bytes: values.Bytes = 16 * 2**20
    """Largest answer of an exporter."""
    namespaces: values.Namespaces = EVERY_NAMESPACE
    """Namespaces whose ScaledObjects may use it, separated by commas, or * for all."""


def _check_field(field: str, info: ValidationInfo) -> str:
    if field == info.data.get("measurement") == METRIC:
        raise ValueError(f"{METRIC} in measurement or field, not in both")
    return field


class InfluxdbSettings(ApiSettings):
    """An InfluxDB 1.x, queried in InfluxQL."""

    type: Literal["influxdb"] = "influxdb"
    database: values.Name
    """Database with the GPU samples."""
    retention_policy: values.Name | None = None
    """Retention policy, unless the database's default."""
    measurement: values.Name = METRIC
    """Measurement with the samples; {metric} if each metric has its own."""
    field: Annotated[values.Name, AfterValidator(_check_field)] = "gauge"
    """Field with the number; {metric} if each metric has its own."""
    namespace_tag: values.Name = "namespace"
    """Tag with the namespace of the GPU's pod."""
    pod_tag: values.Name = "pod"
    """Tag with the GPU's pod."""
    gpu_tag: values.Name = "UUID"
    """Tag with the identifier of the GPU."""
    delay_seconds: values.Seconds = 10.0
    """Delay with which points are written (Telegraf's `flush_interval`)."""

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
