"""What a source is asked for and what it brings back: the values between sources and the core.

Values only. A source reports in *instants*: ascending points in time at which everything it knows
was looked at together. At one instant a GPU series is there or not, and a target's latest scrape
was good or not; the two together are what makes absence mean something.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Target(NamedTuple):
    """One scrape target, which is one exporter: Prometheus' own two labels for it."""

    job: str
    instance: str


class Row(NamedTuple):
    """One raw series: its labels, `__name__` among them, and its points in ascending time."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Series:
    """One GPU of one pod as one target reported it, in the signal's unit."""

    namespace: str
    pod: str
    gpu: str
    target: Target
    present: tuple[float, ...]
    """The instants at which the series was there, believable or not."""
    times: tuple[float, ...]
    values: tuple[float, ...]
    averaged: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """What one fetch brought."""

    instants: tuple[float, ...]
    series: tuple[Series, ...]
    good_scrapes: Mapping[Target, Mapping[float, float]]
    """For each target, the instants at which its latest scrape was good, and that scrape's time."""
    sample_ages: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Seconds between the newest sample of a (namespace, pod) and the last instant, where long."""
    absence_known: bool = False
    """The source has been watching long enough for absence to mean something."""
    misses_targets: bool = False
    """A target that should report never has: whoever is behind it is overlooked."""
    refused_samples: int = 0
    unmatched_elements: int = 0
    """Elements of a user's own query that name no pod in the namespaces that were asked about."""
    is_selective: bool = False
    """It may leave out pods that are there, so what it does not show proves nothing."""
    collection_seconds: float = 0.0
    """How old a number can be when it is scraped: how seldom the exporter reads its GPUs."""

    @property
    def at(self) -> float:
        """The newest instant."""
        return self.instants[-1]


@dataclass(frozen=True, slots=True)
class GpuReports:
    """Where GPUs are now that vanished together with their pods (by UUID)."""

    reported: frozenset[str] = frozenset()
    """Somebody reports the GPU, with another pod or none."""
    busy_without_pod: frozenset[str] = frozenset()
    """Under load and without any pod: the exporter has lost its map of pods, not the pod."""


def uuid_of(gpu: str) -> str:
    """Return the board's UUID of a GPU or of one of its MIG instances (`UUID/instance`)."""
    return gpu.partition("/")[0]
