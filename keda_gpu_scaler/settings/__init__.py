"""The process settings: what the operator decides, read once before a port opens.

    values     text → value: durations, sizes, addresses, files
    endpoints  text → value: URLs, targets, headers, tokens
    sources    where samples may come from: the settings of each kind of source
    process    everything else, and all of it together: `Settings`
    names      how a setting is called, and where it stands
    file       the YAML file
    reading    environment and file → settings, or one message that names every mistake
    report     what such a message says, without showing a secret
    table      the rows people read in the documentation

A trigger never carries any of this, and nothing in here opens a connection.
"""

from keda_gpu_scaler.settings.process import LogFormat, LogLevel, Settings
from keda_gpu_scaler.settings.reading import load
from keda_gpu_scaler.settings.sources import PrometheusSettings, ScrapeSettings
from keda_gpu_scaler.settings.table import Row, describe
from keda_gpu_scaler.settings.values import Address

__all__ = [
    "Address",
    "LogFormat",
    "LogLevel",
    "PrometheusSettings",
    "Row",
    "ScrapeSettings",
    "Settings",
    "describe",
    "load",
]
