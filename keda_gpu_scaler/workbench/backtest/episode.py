"""A made-up load and the replicas that are expected, as a test of a ScaledObject. Pure.

It stands in a file beside its ScaledObject, as the document of kind Episode.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct, ValidationError, convert

from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.workbench.backtest.replay import Outcome
from keda_gpu_scaler.workbench.backtest.work import Work
from keda_gpu_scaler.workbench.world.loop import CAPACITY, STEP_SECONDS

KIND = "Episode"
LONGEST_SECONDS = 7 * 86_400.0
_REPLICAS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)
Curve = dict[str, Annotated[float, Meta(ge=0, le=1e9)]]
"""A number from each time on, by the time since the begin."""


class _Spec(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What an episode says."""

    expect: dict[str, int | str]
    """The replicas at times: a number, or a range such as 2-4."""
    load: Curve = {}
    """In percent of what one replica can do."""
    demand: Curve = {}
    capacity: Annotated[float, Meta(gt=0)] | None = None
    """The demand that one replica can serve at most; it makes the load of the demand."""
    replicas: Annotated[int, Meta(ge=0, le=10_000)] = 1
    """At the begin."""
    start_up: str = "2m"
    node: str = "0s"
    loading: Annotated[float, Meta(ge=0, le=100)] = 100.0


class Expectation(NamedTuple):
    """The replicas that there should be at a time since the begin."""

    seconds: float
    fewest: int
    most: int

    def __str__(self) -> str:
        numbers = f"{self.fewest} to {self.most}" if self.fewest < self.most else str(self.most)
        return f"{numbers} replica{'s' * (self.most != 1)}"


class Episode(NamedTuple):
    """A load, how pods start, and what is expected."""

    work: Work
    expectations: tuple[Expectation, ...]
    start_seconds: float
    node_seconds: float
    loading: float


def parse(text: object) -> Episode:
    """Read the `spec` of an episode; ValueError names the field, and what was expected."""
    try:
        spec = convert(text, _Spec, strict=False)
    except ValidationError as error:
        raise ValueError(str(error)) from error
    expectations = sorted(_expectations(spec.expect))
    if not expectations:
        raise ValueError("expect: expected replicas at one time at least, such as 10m: 3")
    if (spec.capacity is None) == (not spec.load):
        raise ValueError("expected a load, or a demand with the capacity of a replica")
    steps = math.floor(expectations[-1].seconds / STEP_SECONDS) + 1
    loads, demands = _values("load", spec.load, steps), _values("demand", spec.demand, steps)
    if spec.capacity is not None:
        loads = [demand / spec.capacity * CAPACITY for demand in demands]
    return Episode(
        Work(0.0, loads, demands if spec.demand else (), [spec.replicas] * steps),
        tuple(expectations),
        _seconds("startUp", spec.start_up),
        _seconds("node", spec.node),
        spec.loading,
    )


def failures(episode: Episode, outcome: Outcome) -> Iterator[str]:
    """Yield each expectation that was not met."""
    for expectation in episode.expectations:
        replicas = outcome.sizes[math.floor(expectation.seconds / STEP_SECONDS)] or 0
        if not expectation.fewest <= replicas <= expectation.most:
            at = durations.text(expectation.seconds)
            yield f"at {at}: expected {expectation}, there are {replicas}"


def _expectations(written: Mapping[str, int | str]) -> Iterator[Expectation]:
    for time, replicas in written.items():
        match = _REPLICAS.fullmatch(str(replicas))
        if match is None:
            raise ValueError(f"expect.{time} {replicas!r}: expected a number, or a range: 2-4")
        yield Expectation(_seconds("expect", time), int(match[1]), int(match[2] or match[1]))


def _values(field: str, curve: Mapping[str, float], steps: int) -> list[float]:
    """Return the number of a curve at each step; 0 before its first time."""
    begins = sorted((_seconds(field, time), number) for time, number in curve.items())
    values, number = [], 0.0
    for step in range(steps):
        while begins and begins[0][0] <= step * STEP_SECONDS:
            number = begins.pop(0)[1]
        values.append(number)
    return values


def _seconds(field: str, text: str) -> float:
    return durations.bounded(f"{field}:", text, LONGEST_SECONDS)
