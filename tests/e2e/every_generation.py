"""`make e2e-all`: every scenario on the newest KEDA and Kubernetes, a part of them on the others.

    python -m tests.e2e.every_generation            # all, one after the other
    python -m tests.e2e.every_generation 2.16/1.35  # this one

That part is marked `generations`. At the end it prints what ran on what, and keeps it in `ran.json`
and docs/versions.md; what did not run to its end stays there as it was.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from tests.e2e import generation, ran
from tests.repository import versions

MARK = "generations"
NAMES = {"/".join(each): each for each in generation.ALL}
app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"Some of {', '.join(NAMES)}.")] = None,
    options: Annotated[str, typer.Option("--pytest", help="What it is told.")] = "tests/e2e",
) -> None:
    """Run these generations, without a name all of them; each runs, whatever another does."""
    if unknown := set(names or ()) - NAMES.keys():
        message = f"{', '.join(sorted(unknown))}: name some of {', '.join(NAMES)}"
        raise typer.BadParameter(message)
    found, missing = run_all(names or NAMES, lambda name: _run(name, shlex.split(options)))
    _keep(found)
    typer.echo("\n".join(("What ran on what:", *map(str, found), *missing)))
    raise typer.Exit(1 if missing or any(one.failed for one in found) else 0)


class Outcome(NamedTuple):
    """How the scenarios of one generation ended."""

    ran: list[ran.Ran]
    """What ran; nothing if they did not run to their end."""
    status: int
    """pytest's exit status."""
    interrupted: bool
    """Whether someone has had enough: by Ctrl-C."""


def run_all(names: Iterable[str], run: Callable[[str], Outcome]) -> tuple[list[ran.Ran], list[str]]:
    """Run one generation after the other; return what ran, and for each other one why not.

    One that fails stops no other one. Ctrl-C does, and what ran before it is still returned.
    """
    found: list[ran.Ran] = []
    missing: list[str] = []
    interrupted = False
    for name in names:
        if interrupted:
            missing.append(f"{name}: not run")
            continue
        outcome = run(name)
        found += outcome.ran
        interrupted = outcome.interrupted
        if not outcome.ran:
            missing.append(f"{name}: did not run to its end (pytest's status {outcome.status})")
    return found, missing


def _run(name: str, options: Sequence[str]) -> Outcome:
    """Run the scenarios of one generation."""
    typer.echo(f"KEDA and Kubernetes {name}")
    keda, kubernetes = NAMES[name]
    marked = [] if name == next(iter(NAMES)) else ["-m", MARK]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "ran.json"
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "--servers", *marked, *options, f"--ran={file}"],
            env=os.environ | {"KEDA": keda, "KUBERNETES": kubernetes},
        )
        interrupted = False
        while process.returncode is None:
            try:
                process.wait()
            except KeyboardInterrupt:
                # The terminal interrupts pytest as well. It stops its cluster now.
                interrupted = True
        return Outcome(ran.read(file), process.returncode, interrupted)


def _keep(found: Sequence[ran.Ran]) -> None:
    """Keep what ran to its end, in place of what the same generations did before."""
    known = {one.generation: one for one in (*ran.read(), *found)}
    ran.write(known[each] for each in generation.ALL if each in known)
    versions.write()


if __name__ == "__main__":
    app()
