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
_MOST_REPLICAS = 10_000
_OF_A_RUNNING_SCALER = ("server", "token_file", "ca_file", "kubeconfig", "context")
_FOR_A_RUNNING_SCALER = (
    "it is for a running scaler; with --file, set the connection to the source in "
    "KEDA_GPU_SCALER_PROMETHEUS_… variables"
)
_OF_A_FILE = ("prometheus_url", "at")
_FOR_A_FILE = "it needs --file: a running scaler uses its own sources, and decides now"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to explain, where it is decided, and how it is shown."""

    scaled_object: Annotated[
        ScaledObject | None,
        typer.Argument(
            metavar="NAMESPACE/NAME",
            help="The ScaledObject to explain. With --file, by default all in the file.",
            parser=arguments.read_scaled_object,
        ),
    ] = None
    file: Annotated[
        str | None,
        option("FILE|-", "Decide the ScaledObjects in a file, without a scaler.", "--file", "-f"),
    ] = None
    prometheus_url: Annotated[
        str | None, option("URL", "With --file: URL of the source, instead of the settings'.")
    ] = None
    at: Annotated[
        str | None,
        option(
            "TIME",
            "With --file: time of the decision: RFC 3339, Unix seconds, or how long ago (2h).",
        ),
    ] = None
    namespace: Annotated[str, option("NAME", "With --file: namespace of objects without one.")] = (
        "default"
    )
    server: Annotated[
        str | None, option("URL", f"URL of the scaler's HTTP port, by default {SERVER}.")
    ] = None
    token_file: Annotated[Path | None, file_option("File with the token of the HTTP port.")] = None
    ca_file: Annotated[Path | None, file_option("With https: the server's CA in PEM.")] = None
    why_not: Annotated[
        int | None,
        option(
            "N",
            "Only show what would give this number of replicas, or zero.",
            min=0,
            max=_MOST_REPLICAS,
        ),
    ] = None
    drain: Annotated[
        bool,
        typer.Option(
            "--drain", help="Only print the annotations that let the least busy pods go first."
        ),
    ] = False
    output: Annotated[
        Literal["text", "json"], option("text|json", "Output format.", "--output", "-o")
    ] = "text"
    timeout: Annotated[float, option("SECONDS", "Longest wait for each answer.", min=0.1)] = 10
    cluster: Annotated[
        bool, typer.Option(help="Show from Kubernetes what KEDA and the HPA do.")
    ] = True
    kubeconfig: Annotated[Path | None, file_option("Kubeconfig, by default kubectl's.")] = None
    context: Annotated[str | None, option("NAME", "Context, by default the current one.")] = None


def explain(options: Options) -> None:
    """Show the decision for a ScaledObject, with everything that it depends on.

    A running scaler decides again, as for a call of KEDA, and changes nothing. With --file, the
    command itself decides as a scaler that has just started, without KEDA, from the sources in the
    settings of serve (KEDA_GPU_SCALER_… variables) or from --prometheus-url.

    For a running scaler, it also shows from Kubernetes what holds the replicas, or why it cannot.

    Exit status: 0 if there is a decision, 1 if the scaler or the source does not answer, or the
    scaler has no such ScaledObject, 2 for a wrong argument, file or setting.
    """
    _refuse_combinations(options)
    from keda_gpu_scaler.cli import explaining  # noqa: PLC0415 - it loads what --help does not need

    if options.file is not None:
        asyncio.run(explaining.explain_file(options, options.file))
    elif options.scaled_object is None:
        raise arguments.wrong("NAMESPACE/NAME", "name a ScaledObject, or give --file")
    else:
        server = (options.server or SERVER).rstrip("/")
        if not server.startswith(("http://", "https://")):
            what = f"{server!r} is not a URL: expected http://… or https://…"
            raise arguments.wrong("--server", what)
        asyncio.run(explaining.explain_running(options, options.scaled_object, server))


def _refuse_combinations(options: Options) -> None:
    if options.drain and options.why_not is not None:
        raise arguments.wrong("--why-not, --drain", "give only one of them")
    if options.drain and options.at is not None:
        raise arguments.wrong("--at", "--drain is about the pods that there are now")
    if options.drain and options.output == "json":
        what = "--drain prints commands; the loads of pods are in the record"
        raise arguments.wrong("--output", what)
    is_file = options.file is not None
    unfitting = _OF_A_RUNNING_SCALER if is_file else _OF_A_FILE
    why = _FOR_A_RUNNING_SCALER if is_file else _FOR_A_FILE
    for name in unfitting:
        if getattr(options, name) is not None:
            raise arguments.wrong(f"--{name.replace('_', '-')}", why)
