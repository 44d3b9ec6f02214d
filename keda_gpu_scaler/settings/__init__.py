"""The process settings: the operator's choices, read once before a port opens.

    values   types: durations, sizes, addresses, files, URLs, targets, headers, tokens
    tokens   tokens in files, read again whenever they are needed
    sources  the settings of each kind of source
    process  all settings together: `Settings`
    loading  names of settings; environment and file → `Settings`, or every mistake in them

A trigger never contains any of these settings, and nothing here opens a connection.
"""

from keda_gpu_scaler.settings.loading import Row, describe, load
from keda_gpu_scaler.settings.process import Settings
from keda_gpu_scaler.settings.sources import (
    ApiSettings,
    InfluxdbSettings,
    PrometheusSettings,
    ScrapeSettings,
)
from keda_gpu_scaler.settings.values import Address
from keda_gpu_scaler.telemetry.logs import LogFormat, LogLevel

__all__ = [
    "Address",
    "ApiSettings",
    "InfluxdbSettings",
    "LogFormat",
    "LogLevel",
    "PrometheusSettings",
    "Row",
    "ScrapeSettings",
    "Settings",
    "describe",
    "load",
]
