"""`python -m benchmarks`: run all of them, print the tables, write the file."""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import evidence, looked, queries, report, streams, throughput, tls
from tests.support import programs

app = typer.Typer(pretty_exceptions_enable=False)

LONGEST_SECONDS = 900.0
"""Bounds a run that hangs; with the defaults one takes about ten minutes."""


@app.command()
def main(  # noqa: PLR0913 - each argument is one option
    *,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each server.")] = 5,
    requests: Annotated[
        int, typer.Option(min=100, max=throughput.MOST_REQUESTS, help="Requests of one turn.")
    ] = 4000,
    seconds: Annotated[float, typer.Option(min=1, help="How long to poll.")] = 60.0,
    triggers: Annotated[list[int] | None, typer.Option(min=1, help="How many to poll.")] = None,
    pods: Annotated[int, typer.Option(min=10, help="How many to ask the cluster about.")] = 2000,
    held: Annotated[int, typer.Option(min=4, help="How many streams to hold open.")] = 1000,
) -> None:
    """Measure GetMetrics against an echo server, and what questions and open streams cost."""
    programs.build(("ghz", "prometheus"))
    counts = sorted(triggers or [10, 100, 1000])
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        measuring = _measure(Path(directory), _Plan(rounds, requests, counts, seconds, pods, held))
        results = asyncio.run(asyncio.wait_for(measuring, LONGEST_SECONDS))
    console = Console()
    report.show(results, console)
    console.print(f"everything measured: {report.write(results)}", soft_wrap=True)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How much of everything."""

    rounds: int
    requests: int
    triggers: list[int]
    seconds: float
    pods: int
    held: int


async def _measure(directory: Path, plan: _Plan) -> report.Results:
    runs = await throughput.measure(_new(directory / "throughput"), plan.rounds, plan.requests)
    secured = await tls.measure(_new(directory / "tls"), plan.rounds, plan.requests)
    costs = [
        await queries.measure(_new(directory / f"{count}"), count, plan.seconds)
        for count in plan.triggers
    ]
    most = plan.triggers[-1]
    own = await queries.measure_own_trigger(_new(directory / "own"), most, plan.seconds)
    asked = await evidence.measure(_new(directory / "evidence"), plan.pods, plan.rounds)
    held = await streams.measure(_new(directory / "streams"), plan.held, plan.seconds)
    seen = await looked.measure(_new(directory / "looked"), looked.TRIGGERS, plan.rounds)
    return report.Results(runs, secured, costs, own, asked, held, seen)


def _new(directory: Path) -> Path:
    directory.mkdir()
    return directory


if __name__ == "__main__":
    app()
