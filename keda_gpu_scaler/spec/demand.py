"""The demand for a workload: what a trigger asks about it, and the answer. Values only.

Demand exists without pods (requests at a router, the length of a queue). So it can wake a workload
that has no GPU samples yet, and say at once how many replicas are needed.
"""

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from keda_gpu_scaler.spec.workload import Workload

METRIC_NAME = "gpu-demand"
"""The metric's name in the HPA, beside the one of the load."""
TOO_LARGE = 2.0**53
"""Below this a float holds every integer, and the thousandths that KEDA counts fit an int64."""


class OnEmpty(StrEnum):
    """What an unknown demand means while the workload has no pods."""

    ERROR = "error"
    INACTIVE = "inactive"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandSpec:
    """What a trigger says of the demand."""

    text: str
    """The expression as it is sent to the source; it gives one number."""
    activation_threshold: float
    """Active while the demand is above this."""
    threshold: float | None
    """The demand that one replica can serve; None: the demand wakes and does not scale."""
    on_empty: OnEmpty
    preset: str = ""
    """The demandPreset that the text was made from; empty: it is the user's own."""
    wakes: bool = True
    """It exists without pods of the workload, and says when there is work."""
    activates: bool = True
    """It says whether the workload is in use, and not only how many replicas it needs."""
    router: Workload | None = None
    """The router whose pods show it; None: it names none."""

    @property
    def name(self) -> str:
        return name_of(self.text)


def name_of(text: str) -> str:
    return f"demand-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class Demand:
    """The answer of the source."""

    value: float | None
    """A number that `is_countable`; None: unknown."""
    trouble: str = ""
    """Why it is unknown, as a clause."""
    is_least: bool = field(default=False, compare=False)
    """It is new after a gap, so servers that are not scraped again yet may be missing in it."""


class Pace(NamedTuple):
    """How often sources are asked about demand."""

    interval_seconds: float = 5.0
    """The shortest time between two queries of one expression."""
    queries_per_second: float = 10.0
    """How many queries a source gets on average, for all its expressions together."""


USUAL_PACE = Pace()


def is_countable(number: float) -> bool:
    """Tell whether KEDA and the HPA can count with a number: from 0 to below 2^53."""
    return 0 <= number < TOO_LARGE
