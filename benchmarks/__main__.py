"""`python -m benchmarks`: run all of them, print the tables, write the file."""

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import ghz, queries, report, throughput
from tests import prometheus

app = typer.Typer(pretty_exceptions_enable=False)

LONGEST_SECONDS = 360.0
"""Bounds a run that hangs; with the defaults one takes about five minutes."""


@app.command()
def main(
    *,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each server.")] = 5,
    requests: Annotated[int, typer.Option(min=100, help="Requests of one turn.")] = 4000,
    seconds: Annotated[float, typer.Option(min=1, help="How long to poll.")] = 60.0,
    triggers: Annotated[list[int] | None, typer.Option(min=1, help="How many to poll.")] = None,
) -> None:
    """Measure GetMetrics against an echo server, and what polling costs a Prometheus."""
    ghz.binary()
    prometheus.PrometheusServer.binary()
    counts = sorted(triggers or [10, 1000])
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        measuring = _measure(Path(directory), rounds, requests, counts, seconds)
        results = asyncio.run(asyncio.wait_for(measuring, LONGEST_SECONDS))
    console = Console()
    report.show(results, console)
    console.print(f"everything measured: {report.write(results)}", soft_wrap=True)


async def _measure(
    directory: Path, rounds: int, requests: int, counts: list[int], seconds: float
) -> report.Results:
    runs = await throughput.measure(_new(directory / "throughput"), rounds, requests)
    costs = [
        await queries.measure(_new(directory / f"{count}"), count, seconds) for count in counts
    ]
    own = await queries.measure_own_trigger(_new(directory / "own"), counts[-1], seconds)
    return report.Results(runs, costs, own)


def _new(directory: Path) -> Path:
    directory.mkdir()
    return directory


if __name__ == "__main__":
    app()
