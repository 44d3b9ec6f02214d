"""All process settings in one frozen value."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, field_validator

from keda_gpu_scaler.settings import sources, values

Source = Annotated[sources.PrometheusSettings | sources.ScrapeSettings, Field(discriminator="type")]


class LogLevel(StrEnum):
    """The least important lines that are still written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How a line looks."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class Settings(BaseModel):
    """What the operator decided, checked."""

    model_config = sources.CONFIG

    grpc_address: values.ListenAddress = Field(
        default=values.Address("", 6000),
        description="Where KEDA finds the scaler; port 0 takes a free one.",
    )
    http_address: values.ListenAddress = Field(
        default=values.Address("", 8080), description="Where /metrics, /healthz and /readyz are."
    )
    config: Path | None = Field(
        default=None, description="YAML file with more settings, such as several named sources."
    )
    log_level: Annotated[LogLevel, BeforeValidator(_lower)] = Field(
        default=LogLevel.INFO, description="debug, info, warning or error."
    )
    log_format: Annotated[LogFormat, BeforeValidator(_lower)] = Field(
        default=LogFormat.AUTO,
        description="json, console, or auto: console on a terminal, else json.",
    )
    give_up_seconds: Annotated[float, BeforeValidator(values.seconds(60))] = Field(
        default=3600.0,
        validation_alias="give_up",
        description=(
            "How long a pod that vanished together with its exporter still counts as missing."
        ),
    )
    shutdown_grace_seconds: Annotated[float, BeforeValidator(values.seconds(0))] = Field(
        default=20.0,
        validation_alias="shutdown_grace",
        description=(
            "Longest time for calls to end when the process is asked to; keep it below "
            "terminationGracePeriodSeconds."
        ),
    )
    connection_max_age_seconds: Annotated[float, BeforeValidator(values.seconds(1))] = Field(
        default=600.0,
        validation_alias="connection_max_age",
        description="After this KEDA connects anew and finds new replicas of the scaler.",
    )
    max_concurrent_rpcs: values.Count = Field(
        default=5_000,
        description="Calls open at once, streams included; one more is RESOURCE_EXHAUSTED.",
    )
    sources: Mapping[values.SourceName, Source] = Field(
        description="Where samples come from, by name; triggers use `default` unless they say more."
    )

    @field_validator("sources")
    @classmethod
    def _there_is_one(cls, given: Mapping[str, Source]) -> Mapping[str, Source]:
        if not given:
            raise ValueError(
                "at least one: set KEDA_GPU_SCALER_PROMETHEUS_URL or "
                "KEDA_GPU_SCALER_SCRAPE_TARGETS, or name sources in the file that "
                "KEDA_GPU_SCALER_CONFIG names"
            )
        return given
