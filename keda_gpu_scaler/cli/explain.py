"""`keda-gpu-scaler explain`: say why a workload was (not) scaled, with everything behind it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

SERVER = "http://localhost:8080"
"""Where `kubectl port-forward service/keda-gpu-scaler-http 8080` makes the HTTP port reachable."""


class Output(StrEnum):
    """How a record is written."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


def explain(  # noqa: PLR0913 - each argument is one flag of the command line
    scaled_object: Annotated[
        str, typer.Argument(metavar="NAMESPACE/NAME", help="The ScaledObject to explain.")
    ],
    *,
    server: Annotated[str, typer.Option(metavar="URL", help="The scaler's HTTP port.")] = SERVER,
    token_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A file with the token of the HTTP port."),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="With https: the server's CA, in PEM."),
    ] = None,
    output: Annotated[Output, typer.Option(help="How to write it.")] = Output.TEXT,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for the answer.")] = 10,
) -> None:
    """Show what a running scaler decides of a ScaledObject, and what that is made of.

    The scaler decides anew, as for a call of KEDA's; nothing is changed. Exit status: 0 when there
    is a decision, 1 when the scaler cannot be asked or knows no such ScaledObject, 2 for a wrong
    argument.
    """
    from keda_gpu_scaler.cli import explaining  # noqa: PLC0415 - it loads Rich and an HTTP client

    namespace, _, name = scaled_object.partition("/")
    if not namespace or not name or "/" in name:
        raise typer.BadParameter(f"{scaled_object!r} is not NAMESPACE/NAME")
    if not server.startswith(("http://", "https://")):
        raise typer.BadParameter(f"--server {server!r} is no URL: expected http://… or https://…")
    asked = explaining.Asked(server.rstrip("/"), namespace, name, token_file, ca_file, timeout)
    try:
        found = explaining.ask(asked)
    except explaining.ExplainError as error:
        typer.echo(f"keda-gpu-scaler: {server}: {error}", err=True)
        raise typer.Exit(1) from error
    explaining.write(found, output)
