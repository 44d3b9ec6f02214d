"""The settings of each kind of source, each a frozen value that is right once it exists."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from keda_gpu_scaler.access import EVERY_NAMESPACE
from keda_gpu_scaler.influxql import METRIC, Schema
from keda_gpu_scaler.settings import endpoints, values
from keda_gpu_scaler.settings.api import CONFIG, MIB, ApiSettings, conflict


class PrometheusSettings(ApiSettings):
    """Anything that speaks Prometheus' HTTP API."""

    type: Literal["prometheus"] = "prometheus"
    url: endpoints.Url
    """Base URL of the HTTP API, without /api/v1."""
    matchers: endpoints.Matchers = ()
    """What every series has to match, such as cluster="eu-1": one of several clusters."""
    namespace_parameter: endpoints.Parameter | None = None
    """URL parameter with the namespace; each request is then about one namespace."""
    namespace_header: endpoints.HeaderName | None = None
    """Header with the namespace; each request is then about one namespace."""

    @model_validator(mode="after")
    def _name_the_namespace_once(self) -> Self:
        named = (self.namespace_header or "").lower()
        if named in {"authorization", *map(str.lower, self.headers)}:
            raise conflict("a header that nothing else sets", "namespace_header")
        return self

    @property
    def is_per_namespace(self) -> bool:
        """Whether each request is about one namespace, and says about which."""
        return self.namespace_parameter is not None or self.namespace_header is not None


def _interval(validated: dict[str, Any]) -> float:
    return float(validated.get("interval_seconds", 5.0))


class ScrapeSettings(BaseModel):
    """Exporters asked directly, without a Prometheus."""

    model_config = CONFIG

    type: Literal["scrape"] = "scrape"
    targets: endpoints.Targets
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
    """An InfluxDB 1.x that is asked in InfluxQL."""

    type: Literal["influxdb"] = "influxdb"
    url: endpoints.Url
    """Base URL of the HTTP API, without /query."""
    step_seconds: values.PositiveSeconds = 15.0
    """How often new points are asked for; use the interval of whoever writes them."""
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
        """Which measurement, field and tags say what."""
        return Schema(self.measurement, self.field, self.namespace_tag, self.pod_tag, self.gpu_tag)


KINDS: Mapping[str, type[BaseModel]] = {
    "prometheus": PrometheusSettings,
    "scrape": ScrapeSettings,
    "influxdb": InfluxdbSettings,
}
Source = Annotated[
    PrometheusSettings | ScrapeSettings | InfluxdbSettings, Field(discriminator="type")
]
