"""Every benchmark of `make bench`, by its name; one more is one line here."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from benchmarks import plan, polling, snapshots
from benchmarks.comparison import Measured, Plan


class Benchmark(NamedTuple):
    """One benchmark."""

    measure: Callable[[Path, Plan], Awaitable[Measured]]
    """Takes an empty folder for its data, and how much to measure."""
    programs: tuple[str, ...] = ("prometheus",)
    """What it runs that is not Python."""
    is_full_only: bool = False
    """Too long for `make bench`, and without a goal of its own."""


BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType(
    {
        "polling": Benchmark(polling.measure),
        "snapshots": Benchmark(snapshots.measure, ()),
        "plan": Benchmark(plan.measure, is_full_only=True),
    }
)
"""In the order in which they run, and in which the page shows them."""


def chosen(only: list[str], *, is_full: bool) -> dict[str, Benchmark]:
    """Return the benchmarks of these names, or all that a run has.

    Raises:
        ValueError: a name is not one of a benchmark.
    """
    unknown = set(only) - BENCHMARKS.keys()
    if unknown:
        raise ValueError(f"no benchmark {', '.join(sorted(unknown))}; {', '.join(BENCHMARKS)}")
    return {
        name: one
        for name, one in BENCHMARKS.items()
        if name in only or (not only and (is_full or not one.is_full_only))
    }
