"""`python -m benchmarks`: run them, print one table, write the file, and commit it."""

import asyncio
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import first, page, plan, polling, results, snapshots, tables
from benchmarks.comparison import Measured
from benchmarks.results import About, Results
from testbed import programs

app = typer.Typer(pretty_exceptions_enable=False)

LONGEST_SECONDS = 1800.0
"""Bounds one benchmark that hangs; the longest of `make bench-full` takes a third of it."""
WIDTH = 220


class Benchmark(NamedTuple):
    """One benchmark."""

    measure: Callable[[Path, int], Awaitable[Measured]]
    """Takes an empty folder for its data, and how many rounds to measure."""
    programs: tuple[str, ...] = ("prometheus",)
    """What it runs that is not Python."""
    is_full_only: bool = False
    """Too long for `make bench`, and without a goal of its own."""


BENCHMARKS = {
    "polling": Benchmark(polling.measure),
    "snapshots": Benchmark(snapshots.measure, ()),
    "plan": Benchmark(plan.measure, is_full_only=True),
    "first": Benchmark(first.measure, first.PROGRAMS, is_full_only=True),
}
"""In the order in which they run, and in which the page shows them."""


@app.command()
def main(
    *,
    only: Annotated[list[str] | None, typer.Option(help="Benchmarks by name.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Less than 10 is a trial.")] = 10,
    full: Annotated[bool, typer.Option(help="Also what takes longer.")] = False,
    run: Annotated[Path | None, typer.Option(help="Show the file of an earlier run.")] = None,
    commit: Annotated[bool, typer.Option(help="Write the figures and their page.")] = False,
) -> None:
    """Measure the scaler next to what it is compared with, and tell which goals are met."""
    # As wide as the table where it is read from a file.
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    failed: list[str] = []
    if run is None:
        if unknown := set(only or ()) - BENCHMARKS.keys():
            raise typer.BadParameter(f"no benchmark {', '.join(unknown)}: {', '.join(BENCHMARKS)}")
        chosen = {
            name: benchmark
            for name, benchmark in BENCHMARKS.items()
            if name in (only or ()) or (not only and (full or not benchmark.is_full_only))
        }
        found, failed = _measured(chosen, rounds, console)
    else:
        found = results.parse(run.read_text(encoding="utf-8"))
    show(found, console)
    if commit:
        results.commit(found)
        page.regenerate()
        console.print(f"written: {results.FIGURES.name} and {page.PAGE}")
    if failed:
        raise typer.Exit(1)


def show(found: Results, console: Console) -> None:
    """Print one table of all rows, and the details."""
    table = Table(*tables.HEAD, title="Next to its reference, in the same rounds")
    for line in tables.cells(results.rows(found)):
        table.add_row(*line)
    console.print(table)
    for detail in (each for result in found.values() for each in result.details):
        beside = Table(*detail.head, title=detail.title)
        for cells in detail.cells:
            beside.add_row(*cells)
        console.print(beside)


def _measured(
    chosen: Mapping[str, Benchmark], rounds: int, console: Console
) -> tuple[Results, list[str]]:
    """Run benchmarks one after the other; return what they found, and which failed."""
    programs.build({program for benchmark in chosen.values() for program in benchmark.programs})
    found: Results = {}
    failed, raw = [], {}
    for name, benchmark in chosen.items():
        console.print(f"[dim]{name} …[/dim]")
        began = time.monotonic()
        about = About.now()
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            try:
                measuring = benchmark.measure(Path(directory), rounds)
                measured = asyncio.run(asyncio.wait_for(measuring, LONGEST_SECONDS))
            except Exception:  # noqa: BLE001 - the others are still measured, and the run fails
                traceback.print_exc()
                failed.append(name)
                continue
        console.print(f"[dim]{name} took {time.monotonic() - began:.0f} s[/dim]")
        found[name] = results.found(about, measured)
        raw[name] = measured.raw
    console.print(f"everything measured: {results.write(found, raw)}", soft_wrap=True)
    return found, failed


if __name__ == "__main__":
    app()
