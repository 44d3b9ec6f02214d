"""`keda-gpu-scaler explain`: say why a workload was (not) scaled, with everything behind it."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from keda_gpu_scaler.cli import arguments
from keda_gpu_scaler.cli.arguments import file_option, option
from keda_gpu_scaler.spec.spec import ScaledObject

SERVER = "http://localhost:8080"
"""Where kubectl makes the HTTP port reachable; `explaining` says how."""
_OF_A_RUNNING_SCALER = ("server", "token_file", "ca_file", "kubeconfig", "context")
_FOR_A_RUNNING_SCALER = (
    "it is for a running scaler; with --file, KEDA_GPU_SCALER_PROMETHEUS_… variables say how to "
    "connect to the source"
)
_OF_A_FILE = ("prometheus_url", "at")
_FOR_A_FILE = "it is for --file: a running scaler has sources of its own, and decides now"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to explain, where it is decided, and how it is shown."""

    scaled_object: Annotated[
        ScaledObject | None,
        typer.Argument(
            metavar="NAMESPACE/NAME",
            help="The ScaledObject to explain; with --file, all in it unless one is named.",
            parser=arguments.read_scaled_object,
        ),
    ] = None
    file: Annotated[
        str | None, option("FILE|-", "Decide the ScaledObjects in it here.", "--file", "-f")
    ] = None
    prometheus_url: Annotated[
        str | None, option("URL", "With --file: the source, over that of the settings.")
    ] = None
    at: Annotated[
        str | None,
        option(
            "TIME",
            "With --file: decide as of then: RFC 3339, Unix seconds, or how long ago (2h).",
        ),
    ] = None
    namespace: Annotated[
        str, option("NAME", "With --file: the namespace of objects that name none.")
    ] = "default"
    server: Annotated[
        str | None, option("URL", f"The scaler's HTTP port; without --file {SERVER}.")
    ] = None
    token_file: Annotated[Path | None, file_option("A file with the token of the HTTP port.")] = (
        None
    )
    ca_file: Annotated[Path | None, file_option("With https: the server's CA, in PEM.")] = None
    output: Annotated[
        Literal["text", "json"], option("text|json", "How to write it.", "--output", "-o")
    ] = "text"
    timeout: Annotated[float, option("SECONDS", "How long to wait for each answer.", min=0.1)] = 10
    cluster: Annotated[
        bool, typer.Option(help="Ask Kubernetes what KEDA and the HPA make of it.")
    ] = True
    kubeconfig: Annotated[Path | None, file_option("Of that cluster; as kubectl without it.")] = (
        None
    )
    context: Annotated[str | None, option("NAME", "Another one than the current context.")] = None


def explain(options: Options) -> None:
    """Show what is decided of a ScaledObject, and what that is made of.

    A running scaler decides again, as for a call of KEDA; nothing is changed. With --file it is
    decided here, without a running scaler and without KEDA: from the sources that the settings of
    serve (KEDA_GPU_SCALER_… variables) name, or --prometheus-url.

    Of a running scaler's, Kubernetes shows the gates between that and the replicas; without access
    one line says why they are not shown.

    Exit status: 0 when there is a decision, 1 when the scaler or the source does not answer, or the
    scaler knows no such ScaledObject, 2 for a wrong argument, file or setting.
    """
    _refuse_combinations(options)
    from keda_gpu_scaler.cli import explaining  # noqa: PLC0415 - it loads what --help does not need

    if options.file is not None:
        asyncio.run(explaining.explain_file(options, options.file))
    elif options.scaled_object is None:
        raise arguments.wrong("NAMESPACE/NAME", "expected it, or --file")
    else:
        server = (options.server or SERVER).rstrip("/")
        if not server.startswith(("http://", "https://")):
            what = f"{server!r} is no URL: expected http://… or https://…"
            raise arguments.wrong("--server", what)
        asyncio.run(explaining.explain_running(options, options.scaled_object, server))


def _refuse_combinations(options: Options) -> None:
    is_file = options.file is not None
    unfitting = _OF_A_RUNNING_SCALER if is_file else _OF_A_FILE
    why = _FOR_A_RUNNING_SCALER if is_file else _FOR_A_FILE
    for name in unfitting:
        if getattr(options, name) is not None:
            raise arguments.wrong(f"--{name.replace('_', '-')}", why)
