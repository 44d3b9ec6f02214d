"""The process settings: what the operator decides, read once before a port opens.

    values     text → value: durations, sizes, addresses, files
    endpoints  text → value: URLs, targets, headers, tokens
    tokens     tokens in files, read again whenever they are needed
    api        what every source behind an HTTP API has
    sources    where samples may come from: the settings of each kind of source
    ports      where to listen, and the certificates to show
    webhook    who may say that alerts fire, and who else is told
    names      how each setting is called, as rows that the documentation shows
    file       the YAML file, as a source of pydantic-settings
    process    all settings together: `Settings`
    loading    environment and file → `Settings`, or one message that names every mistake
    report     what such a message says, without showing a secret

A trigger never carries any of this, and nothing in here opens a connection.
"""

from keda_gpu_scaler.settings.loading import describe, load
from keda_gpu_scaler.settings.names import Row
from keda_gpu_scaler.settings.ports import TlsFiles, WebhookSettings
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
    "TlsFiles",
    "WebhookSettings",
    "describe",
    "load",
]
