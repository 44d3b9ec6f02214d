"""`python -m tests.fuzz`: feed one target after the other, each for a while.

Inputs that reach new code are kept in `.cache/corpus`; the corpus in the repository holds those
that are worth a test. An input that breaks a promise is left in `build/fuzz`, and the run fails.
"""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from tests.fuzz.targets import TARGETS

app = typer.Typer(pretty_exceptions_enable=False)
_KEPT, _BROKEN = Path(".cache/corpus"), Path("build/fuzz")
_INPUT_SECONDS, _INPUT_BYTES, _MEMORY_MIB = 5, 65_536, 2048
_SHOWN_LINES = 60


@app.command()
def main(
    targets: Annotated[list[str] | None, typer.Argument(help="By default all of them.")] = None,
    seconds: Annotated[int, typer.Option(min=1, help="How long for each target.")] = 60,
) -> None:
    """Feed every reader of foreign bytes with inputs that reach new code."""
    _BROKEN.mkdir(parents=True, exist_ok=True)
    failed = [name for name in targets or TARGETS if not _fed(name, seconds)]
    if failed:
        typer.echo(f"broken: {', '.join(failed)}; the inputs are in {_BROKEN}")
        raise typer.Exit(1)


def _fed(name: str, seconds: int) -> bool:
    """Feed one target, and tell whether every input was read or refused."""
    kept = _KEPT / name
    kept.mkdir(parents=True, exist_ok=True)
    bounds = (
        f"-max_total_time={seconds}",
        f"-timeout={_INPUT_SECONDS}",
        f"-max_len={_INPUT_BYTES}",
        f"-rss_limit_mb={_MEMORY_MIB}",
        f"-artifact_prefix={_BROKEN}/{name}-",
    )
    command = [sys.executable, "-m", "tests.fuzz.one", name, str(kept), *bounds]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    lines = ended.stderr.splitlines()
    if ended.returncode:
        typer.echo("\n".join([name, *lines[-_SHOWN_LINES:]]))
        return False
    typer.echo(f"{name}: {next((line for line in reversed(lines) if 'cov:' in line), 'no input')}")
    return True


if __name__ == "__main__":
    app()
