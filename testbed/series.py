"""Series for a Prometheus to store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

STALE = None
"""The value that ends a series, as Prometheus itself marks a series gone from its target."""


@dataclass(frozen=True, slots=True)
class Series:
    """A series: its name, labels, and (seconds since the epoch, value) samples."""

    name: str
    labels: Mapping[str, str]
    samples: Sequence[tuple[float, float | None]]
