"""The process settings: the operator's choices, read once before a port opens.

A trigger never contains any of them, and nothing here opens a connection.
"""

from keda_gpu_scaler.settings.loading import load
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
    "ScrapeSettings",
    "Settings",
    "load",
]
