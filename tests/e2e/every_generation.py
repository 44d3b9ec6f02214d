"""`make e2e-all`: every scenario on the newest KEDA and Kubernetes, a part of them on the others.

    python -m tests.e2e.every_generation            # all, one after the other
    python -m tests.e2e.every_generation 2.16/1.35  # this one

That part is marked `generations`. Each run prints at its end what ran on what, which is kept in
`ran.json` and docs/versions.md; what did not run to its end stays there as it was.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

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
    failed = [name for name in names or NAMES if not _runs(name, options)]
    if failed:
        typer.echo(f"failed: {', '.join(failed)}")
    raise typer.Exit(1 if failed else 0)


def _runs(name: str, options: str) -> bool:
    """Run the scenarios of one generation, keep what ran, and tell whether all is well."""
    typer.echo(f"KEDA and Kubernetes {name}")
    keda, kubernetes = NAMES[name]
    marked = [] if name == next(iter(NAMES)) else ["-m", MARK]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "ran.json"
        words = ["--servers", *marked, *shlex.split(options), f"--ran={file}"]
        # After Ctrl-C, which pytest is told by the terminal as well, it still stops its cluster.
        with subprocess.Popen(
            [sys.executable, "-m", "pytest", *words],
            env=os.environ | {"KEDA": keda, "KUBERNETES": kubernetes},
        ) as process:
            status = process.wait()
        known = {one.generation: one for one in (*ran.read(), *ran.read(file))}
    ran.write(known[each] for each in generation.ALL if each in known)
    versions.write()
    return status == 0


if __name__ == "__main__":
    app()
