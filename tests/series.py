"""Series for a Prometheus to store, and their spelling in OTLP, which it can read as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STALE = None
"""The value that ends a series, as Prometheus itself marks a series gone from its target."""

_NO_RECORDED_VALUE = 1
"""OTLP's flag on a data point which says that the series has no value from here on."""

_NO_JSON_NUMBER = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


@dataclass(frozen=True, slots=True)
class Series:
    """A series: its name, labels, and (seconds since the epoch, value) samples."""

    name: str
    labels: Mapping[str, str]
    samples: Sequence[tuple[float, float | None]]


def as_otlp(history: Iterable[Series]) -> dict[str, Any]:
    """Return the export request that carries these series as gauges."""
    metrics = [
        {"name": one.name, "gauge": {"dataPoints": [_point(one.labels, *at) for at in one.samples]}}
        for one in history
    ]
    return {"resourceMetrics": [{"resource": {}, "scopeMetrics": [{"metrics": metrics}]}]}


def _point(labels: Mapping[str, str], seconds: float, value: float | None) -> dict[str, Any]:
    attributes = [{"key": label, "value": {"stringValue": text}} for label, text in labels.items()]
    number = {"flags": _NO_RECORDED_VALUE} if value is STALE else {"asDouble": _double(value)}
    return {"attributes": attributes, "timeUnixNano": str(round(seconds * 1e9)), **number}


def _double(value: float | None) -> float | str | None:
    return _NO_JSON_NUMBER.get(str(value), value)
