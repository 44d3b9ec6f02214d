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


def stored(
    shown: Mapping[str, str], attached: Mapping[str, str], *, honor_labels: bool = False
) -> dict[str, str]:
    """Return a series' labels after a scrape: of two with one name the shown one is renamed."""
    if honor_labels:
        return {**attached, **shown}
    kept = {f"exported_{name}" if name in attached else name: text for name, text in shown.items()}
    return {**kept, **attached}
