"""`python -m tests.soak`: play it, print the report, fail if something does not hold."""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from testbed import programs
from tests.soak.run import Pace, Soak

_SHOWN = 100
"""The most failures to print."""
app = typer.Typer(pretty_exceptions_enable=False)
_LONG_MINUTES = 30
"""From here on sizes are judged: there are enough of them in each quarter."""


@app.command()
def main(
    minutes: Annotated[float, typer.Option(min=1, help="How long.")] = 60,
    seed: Annotated[int | None, typer.Option(help="Which order of faults; by default any.")] = None,
) -> None:
    """Let two scalers live with servers that misbehave, and compare each answer with the truth."""
    programs.build(["prometheus"])
    chosen = time.time_ns() % 10_000 if seed is None else seed
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        soak = Soak(Path(directory), Pace(minutes * 60), chosen)
        report = asyncio.run(soak.run())
    typer.echo(f"seed {chosen}")
    typer.echo("\n".join(report.lines()))
    failures = report.failures(is_long=minutes >= _LONG_MINUTES)
    typer.echo("\n".join(failures[:_SHOWN]))
    raise typer.Exit(1 if failures else 0)


if __name__ == "__main__":
    app()
