"""Every benchmark of `make bench`, by its name; one more is one line here."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from benchmarks import (
    direct,
    evidence,
    freshness,
    looked,
    one_call,
    plan,
    polling,
    scale,
    snapshots,
    start,
    streams,
    throughput,
    tls,
)
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
        "throughput": Benchmark(throughput.measure, ("prometheus", "ghz")),
        "one-call": Benchmark(one_call.measure, ()),
        "streams": Benchmark(streams.measure),
        "start": Benchmark(start.measure, ()),
        "snapshots": Benchmark(snapshots.measure, ()),
        "direct": Benchmark(direct.measure, ()),
        "scale": Benchmark(scale.measure, ()),
        "freshness": Benchmark(freshness.measure),
        "evidence": Benchmark(evidence.measure, is_full_only=True),
        "looked": Benchmark(looked.measure, is_full_only=True),
        "plan": Benchmark(plan.measure, is_full_only=True),
        "tls": Benchmark(tls.measure, ("prometheus", "ghz"), is_full_only=True),
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
