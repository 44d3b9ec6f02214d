"""All process settings in one frozen value."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, DirectoryPath, Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.settings import sources as kinds
from keda_gpu_scaler.settings import tokens, values
from keda_gpu_scaler.settings.sources import CONFIG
from keda_gpu_scaler.settings.values import key_of, needs, without
from keda_gpu_scaler.spec.spec import Pace
from keda_gpu_scaler.telemetry.logs import LogFormat, LogLevel
from keda_gpu_scaler.trigger.access import NO_NAMESPACE, Access

_LOWER = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)


class Settings(BaseSettings):
    """The operator's settings, checked.

    An instance made directly holds the given values; `load` reads the environment and the file.
    """

    model_config = CONFIG

    grpc_address: values.ListenAddress = values.Address("", 6000)
    """Address of the gRPC port, for KEDA; port 0 takes a free one."""
    grpc_cert_file: values.CertificateFile | None = None
    """PEM file with the gRPC port's certificate, then its chain; empty: no TLS. Certificate, key
    and CAs are read again when they change."""
    grpc_key_file: Annotated[Path | None, needs("grpc_cert_file"), key_of("grpc_cert_file")] = None
    """PEM file with its key, unless the certificate file has it."""
    grpc_client_ca_file: Annotated[values.CertificateFile | None, needs("grpc_cert_file")] = None
    """PEM file with CAs; gRPC clients must have a certificate of one of them (mTLS)."""
    http_address: values.ListenAddress = values.Address("", 8080)
    """Address of the HTTP port: /metrics, /healthz, /readyz, /webhook, /alerts, status page."""
    http_cert_file: values.CertificateFile | None = None
    """PEM file with the HTTP port's certificate; the port then accepts only HTTPS. Certificate and
    key are read again when they change."""
    http_key_file: Annotated[Path | None, needs("http_cert_file"), key_of("http_cert_file")] = None
    """PEM file with its key, unless the certificate file has it."""
    http_token: values.Token | None = None
    """Token for every path except /healthz, /readyz and the webhook's; empty: every client may
    read."""
    http_token_file: Annotated[tokens.TokenFile | None, without("http_token")] = None
    """File with the token; read again when it changes."""
    http_namespace_tokens: Annotated[
        DirectoryPath | None, needs("http_token_file", "http_token")
    ] = None
    """Folder with tokens for single namespaces: each file has a namespace's name and holds its
    token. Needs http_token or http_token_file."""
    config: Path | None = None
    """YAML file with settings, such as several sources."""
    log_level: Annotated[LogLevel, _LOWER] = LogLevel.INFO
    """debug, info, warning or error."""
    log_format: Annotated[LogFormat, _LOWER] = LogFormat.AUTO
    """json, console, or auto: console on a terminal, else json."""
    own_promql: Annotated[Policy, _LOWER] = Policy.NAMESPACED
    """What PromQL in triggers may read: namespaced (only series of the ScaledObject's namespace),
    allow, or deny."""
    kubernetes: bool = False
    """true: read the list of pods from the Kubernetes API, with the role in
    deploy/kubernetes-evidence.yaml."""
    claims_without_gpus: values.Names = frozenset()
    """ResourceClaims without a GPU (their name, their template's, or their name in the pod) and
    such DeviceClasses of extended resources, separated by commas; any other is for a GPU."""
    resources_without_gpus: values.Resources = frozenset()
    """Beginnings of extended resources that are no GPUs, such as example.com/nic, separated by
    commas; one that is in no list may be a GPU."""
    traces: values.Traces = False
    """true: send traces by OTLP as the OTEL_… variables say; needs the extra otel."""
    shutdown_grace_seconds: Annotated[float, BeforeValidator(values.seconds(0))] = 20.0
    """How long the process waits for open calls when it stops; must be below
    terminationGracePeriodSeconds."""
    connection_max_age_seconds: Annotated[float, BeforeValidator(values.seconds(1))] = 600.0
    """Longest life of a connection, after which KEDA finds new replicas of the scaler."""
    max_concurrent_rpcs: values.Count = 5_000
    """Open calls and streams at once; more get RESOURCE_EXHAUSTED. One namespace gets at most three
    quarters of them."""
    demand_interval_seconds: Annotated[float, BeforeValidator(values.seconds(1))] = 5.0
    """Shortest time between two queries of one demandQuery, also for open streams."""
    demand_queries_per_second: values.Count = 10
    """demandQueries to one source per second; of more, each is sent less often."""
    other_namespaces: values.Namespaces = NO_NAMESPACE
    """Namespaces whose pods any ScaledObject may measure, separated by commas, or * for all."""
    webhook_token: values.Token | None = None
    """Token for senders of alerts; empty: no webhook."""
    webhook_token_file: Annotated[tokens.TokenFile | None, without("webhook_token")] = None
    """File with the token; read again when it changes."""
    webhook_lifetime_seconds: Annotated[float, BeforeValidator(values.seconds(60))] = 18_000.0
    """How long an alert fires unless it is sent again; must be above the sender's repeat interval,
    by default 4h in Alertmanager and Grafana."""
    webhook_peers: Annotated[values.Peers, needs("webhook_token", "webhook_token_file")] = ()
    """Other replicas of the scaler, separated by commas: http(s)://host:port, or
    dns+http(s)://name:port for every address of a headless Service; https if their HTTP port has a
    certificate."""
    webhook_ca_file: values.CertificateFile | None = None
    """PEM file with the CAs of https peers, instead of the system's; read again when it changes."""
    # The short names that define the source `default`; read it from `sources`.
    prometheus: kinds.PrometheusSettings | None = Field(default=None, exclude=True, repr=False)
    scrape: kinds.ScrapeSettings | None = Field(default=None, exclude=True, repr=False)
    influxdb: kinds.InfluxdbSettings | None = Field(default=None, exclude=True, repr=False)
    sources: Mapping[values.SourceName, kinds.Source] = {}
    """Where samples come from, by name; triggers use `default` unless they say more."""

    @property
    def http_secret(self) -> Callable[[], str] | None:
        """A function that returns the current token of the HTTP port; None: no token."""
        return tokens.of(self.http_token, self.http_token_file, "the HTTP port's token file")

    @property
    def http_namespaces(self) -> Callable[[bytes], frozenset[str]] | None:
        """A function that returns the namespaces that a token shows; None: no token shows some."""
        folder = self.http_namespace_tokens
        return None if folder is None else tokens.OfNamespaces(folder).allowed

    @property
    def webhook_secret(self) -> Callable[[], str] | None:
        """A function that returns the webhook's current token; None: there is no webhook."""
        return tokens.of(self.webhook_token, self.webhook_token_file, "the webhook's token file")

    @property
    def access(self) -> Access:
        namespaces = {name: source.namespaces for name, source in self.sources.items()}
        return Access(
            namespaces,
            self.other_namespaces,
            self.own_promql,
            direct_sources=self._sources_of_type("scrape"),
            knows_targets=self.kubernetes,
            influxql_sources=self._sources_of_type("influxdb"),
        )

    def _sources_of_type(self, kind: str) -> frozenset[str]:
        return frozenset(name for name, source in self.sources.items() if source.type == kind)

    @property
    def demand_pace(self) -> Pace:
        return Pace(self.demand_interval_seconds, self.demand_queries_per_second)

    @field_validator("sources")
    @classmethod
    def _add_default(
        cls, named_sources: Mapping[str, kinds.Source], info: ValidationInfo
    ) -> Mapping[str, kinds.Source]:
        by_kind = {kind: info.data.get(kind) for kind in kinds.KINDS}
        defaults = {f"{kind}_…": source for kind, source in by_kind.items() if source is not None}
        if "default" in named_sources:
            defaults["sources.default"] = named_sources["default"]
        if len(defaults) > 1:
            raise ValueError(f"one definition of `default`, and not {' and '.join(defaults)}")
        if not defaults and not named_sources and kinds.KINDS.keys() <= info.data.keys():
            raise ValueError(
                "at least one: set KEDA_GPU_SCALER_PROMETHEUS_URL, KEDA_GPU_SCALER_SCRAPE_TARGETS "
                "or KEDA_GPU_SCALER_INFLUXDB_URL, or name sources in the file that "
                "KEDA_GPU_SCALER_CONFIG names"
            )
        default = next(iter(defaults.values()), None)
        return named_sources if default is None else {**named_sources, "default": default}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the names are the library's
        init_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **others: PydanticBaseSettingsSource,  # noqa: ARG003 - `load` reads what is wanted
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Keep environment and files away from instances that are made directly."""
        return (init_settings,)
