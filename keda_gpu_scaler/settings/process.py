"""All process settings in one frozen value."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.settings import names, values
from keda_gpu_scaler.settings import sources as kinds
from keda_gpu_scaler.settings.ports import PortSettings, WebhookSettings
from keda_gpu_scaler.settings.sources import CONFIG, conflict
from keda_gpu_scaler.spec.demand import Pace
from keda_gpu_scaler.telemetry.logs import LogFormat, LogLevel
from keda_gpu_scaler.trigger.access import NO_NAMESPACE, Access

_LOWER = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)


class Settings(PortSettings, BaseSettings):
    """The operator's settings, checked.

    An instance made directly holds the given values and those of the file that `config` names. Only
    `load` reads the environment.
    """

    model_config = SettingsConfigDict(
        **CONFIG,
        case_sensitive=True,
        enable_decoding=False,
        env_prefix=names.PREFIX,
        env_prefix_target="all",
        env_nested_delimiter="_",
        env_nested_max_split=1,
    )

    config: names.SettingsFile | None = None
    """YAML file with more settings, such as several named sources."""
    log_level: Annotated[LogLevel, _LOWER] = LogLevel.INFO
    """debug, info, warning or error."""
    log_format: Annotated[LogFormat, _LOWER] = LogFormat.AUTO
    """json, console, or auto: console on a terminal, else json."""
    own_promql: Annotated[Policy, _LOWER] = Policy.NAMESPACED
    """What PromQL in triggers may read: allow, namespaced (only series of the ScaledObject's
    namespace), or deny."""
    kubernetes: values.Flag = False
    """true: ask the Kubernetes API which pods there are; it needs the role in
    deploy/kubernetes-evidence.yaml."""
    claims_without_gpus: values.Names = frozenset()
    """ResourceClaims that are for no GPU, by their name, their template's or their name in the pod,
    and DeviceClasses of extended resources, separated by commas; every other one counts as one for
    a GPU."""
    traces: values.Traces = False
    """true: send traces by OTLP, to where the standard OTEL_… variables say; it needs the extra
    otel."""
    give_up_seconds: Annotated[float, BeforeValidator(values.seconds(60))] = 3600.0
    """How long a pod that vanished together with its exporter still counts as missing."""
    shutdown_grace_seconds: Annotated[float, BeforeValidator(values.seconds(0))] = 20.0
    """Longest time for calls to end when the process is asked to; keep it below
    terminationGracePeriodSeconds."""
    connection_max_age_seconds: Annotated[float, BeforeValidator(values.seconds(1))] = 600.0
    """After this KEDA connects again and finds new replicas of the scaler."""
    max_concurrent_rpcs: values.Count = 5_000
    """Calls open at once, streams included; one more is RESOURCE_EXHAUSTED. One namespace has at
    most three times as many as are free, which is three quarters of all."""
    demand_interval_seconds: Annotated[float, BeforeValidator(values.seconds(1))] = 5.0
    """How often one demandQuery is asked at most; open streams look as often."""
    demand_queries_per_second: values.Count = 10
    """How many demandQueries a source is asked per second; more of them take turns."""
    other_namespaces: values.Namespaces = NO_NAMESPACE
    """Whose pods ScaledObjects of other namespaces may measure: namespaces separated by commas, or
    * for all; by default none."""
    webhook: WebhookSettings = WebhookSettings()
    """Who may say that alerts fire."""
    # The short names that define the source `default`; read it from `sources`.
    prometheus: kinds.PrometheusSettings | None = Field(default=None, exclude=True, repr=False)
    scrape: kinds.ScrapeSettings | None = Field(default=None, exclude=True, repr=False)
    influxdb: kinds.InfluxdbSettings | None = Field(default=None, exclude=True, repr=False)
    sources: Mapping[values.SourceName, kinds.Source] = {}
    """Where samples come from, by name; triggers use `default` unless they say more."""

    @property
    def access(self) -> Access:
        """What ScaledObjects may use, by their namespace."""
        users = {name: source.namespaces for name, source in self.sources.items()}
        return Access(
            users,
            self.other_namespaces,
            self.own_promql,
            direct_sources=self._named(kinds.ScrapeSettings),
            knows_targets=self.kubernetes,
            influxql_sources=self._named(kinds.InfluxdbSettings),
        )

    def _named(self, kind: type[kinds.Source]) -> frozenset[str]:
        return frozenset(name for name, one in self.sources.items() if isinstance(one, kind))

    @property
    def demand_pace(self) -> Pace:
        """How often a source is sent demandQueries."""
        return Pace(self.demand_interval_seconds, self.demand_queries_per_second)

    @field_validator("sources")
    @classmethod
    def _with_the_default(
        cls, named: Mapping[str, kinds.Source], info: ValidationInfo
    ) -> Mapping[str, kinds.Source]:
        claims = {
            "prometheus.url": info.data.get("prometheus"),
            "scrape.targets": info.data.get("scrape"),
            "influxdb.url": info.data.get("influxdb"),
            "sources.default": named.get("default"),
        }
        given = {claim: source for claim, source in claims.items() if source is not None}
        if len(given) > 1:
            raise conflict("only one of them to say what `default` is", *given)
        if not given and not named and kinds.KINDS.keys() <= info.data.keys():
            raise ValueError(
                "at least one: set KEDA_GPU_SCALER_PROMETHEUS_URL, KEDA_GPU_SCALER_SCRAPE_TARGETS "
                "or KEDA_GPU_SCALER_INFLUXDB_URL, or name sources in the file that "
                "KEDA_GPU_SCALER_CONFIG names"
            )
        return {**named, **{"default": source for source in given.values()}}  # noqa: B035 - one at most

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - `load` gives what it says
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - not wanted
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - not wanted
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let given values win over the file."""
        return init_settings, names.FileSource(settings_cls, init_settings().get("config"))
