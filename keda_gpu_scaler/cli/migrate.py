"""`keda-gpu-scaler migrate`: KEDA's prometheus triggers in a file → this scaler's."""

import difflib
import io
from typing import Annotated, Literal

import typer

from keda_gpu_scaler import errors
from keda_gpu_scaler.cli import flags
from keda_gpu_scaler.cli.flags import option
from keda_gpu_scaler.workbench import manifest_files
from keda_gpu_scaler.workbench import migrate as core

_NO_NEWLINE = "\\ No newline at end of file\n"
"""What patch expects below such a line."""
Output = Literal["diff", "yaml"]


def migrate(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="A YAML file, or - for the standard input.")
    ],
    *,
    output: Annotated[
        Output, option("diff|yaml", "What patch applies, or the whole new file.", "--output", "-o")
    ] = "diff",
    scaler_address: Annotated[
        str, option("HOST:PORT", "Address of the scaler, for KEDA.")
    ] = "keda-gpu-scaler.keda.svc:6000",
) -> None:
    """Write ScaledObjects with this scaler's trigger in place of KEDA's prometheus trigger.

    It changes no file, and no line that says the same: comments and order stay. A comment says what
    each new line was before. Where a query cannot be moved, its trigger stays, and the reason is on
    the standard error output.

    Exit status: 0 if every prometheus trigger is moved, 1 if one stays, 2 if there is none or the
    file cannot be read.
    """
    name = errors.without_controls(file)
    try:
        text = manifest_files.read_text(file)
        moved = core.migrate(name, text, scaler_address)
    except ValueError as error:
        raise flags.wrong("FILE|-", error) from error
    if not moved.triggers:
        raise flags.failure(f"{name}: no trigger of type prometheus", status=2)
    if output == "yaml":
        typer.echo(moved.text, nl=False)
    else:
        old, new = (list(io.StringIO(given)) for given in (text, moved.text))
        for line in difflib.unified_diff(old, new, name, name):
            typer.echo(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}", nl=False)
    if moved.kept:
        raise flags.failure("\n".join(f"stays: {reason}" for reason in moved.kept))
