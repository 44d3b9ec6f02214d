"""`keda-gpu-scaler explain`: say why a workload was (not) scaled, with everything behind it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

SERVER = "http://localhost:8080"
"""Where `kubectl port-forward service/keda-gpu-scaler 8080` makes the HTTP port reachable."""


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
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for each answer.")] = 10,
    cluster: Annotated[
        bool, typer.Option(help="Ask Kubernetes what KEDA and the HPA make of it.")
    ] = True,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Of that cluster; as kubectl without it."),
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Another one than the current context.")
    ] = None,
) -> None:
    """Show what a running scaler decides of a ScaledObject, and what that is made of.

    The scaler decides anew, as for a call of KEDA's; nothing is changed. From Kubernetes come the
    gates between that and the replicas; without access one line says why they are not shown. Exit
    status: 0 when there is a decision, 1 when the scaler cannot be asked or knows no such
    ScaledObject (then the gates alone are shown), 2 for a wrong argument.
    """
    from keda_gpu_scaler.cli import explaining  # noqa: PLC0415 - it loads Rich and an HTTP client

    namespace, _, name = scaled_object.partition("/")
    if not namespace or not name or "/" in name:
        raise typer.BadParameter(f"{scaled_object!r} is not NAMESPACE/NAME")
    if not server.startswith(("http://", "https://")):
        raise typer.BadParameter(f"--server {server!r} is no URL: expected http://… or https://…")
    asked = explaining.Asked(server.rstrip("/"), namespace, name, token_file, ca_file, timeout)
    records, behind, status = [], None, 0
    try:
        records = explaining.ask(asked)
    except explaining.ExplainError as error:
        typer.echo(f"keda-gpu-scaler: {server}: {error}", err=True)
        status = 1
    if cluster:
        from keda_gpu_scaler.cli import cluster as kubernetes  # noqa: PLC0415 - it loads lightkube

        access = kubernetes.Access(kubeconfig, context, timeout)
        try:
            behind = kubernetes.found(access, namespace, name, records)
        except kubernetes.ClusterError as error:
            said = f"what holds the replicas is not shown (--no-cluster: not asked for): {error}"
            typer.echo(f"keda-gpu-scaler: {said}", err=True)
    if records or behind is not None:
        explaining.write(records, behind, output)
    raise typer.Exit(status)
