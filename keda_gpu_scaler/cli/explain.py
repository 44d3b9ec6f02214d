"""`keda-gpu-scaler explain`: say why a workload was (not) scaled, with everything behind it."""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keda_gpu_scaler import errors
from keda_gpu_scaler.cli.mistakes import Mistakes

if TYPE_CHECKING:
    from keda_gpu_scaler.autoscaling import gates
    from keda_gpu_scaler.record.record import Record

SERVER = "http://localhost:8080"
"""Where `kubectl port-forward service/keda-gpu-scaler-http 8080` makes the HTTP port reachable."""
_NAME = re.compile(r"[^/]+/[^/]+")
_MOST_REPLICAS = 10_000
_OF_A_RUNNING_SCALER = ("server", "token_file", "ca_file", "kubeconfig", "context")
_FOR_A_RUNNING_SCALER = (
    "it is for a running scaler; with --file, KEDA_GPU_SCALER_PROMETHEUS_… variables say how to "
    "connect to the source"
)
_OF_A_FILE = ("prometheus_url", "at")
_FOR_A_FILE = "it is for --file: a running scaler has sources of its own, and decides now"
_FAILED = 1
_WRONG = 2


class Output(StrEnum):
    """How a record is written."""

    TEXT = "text"
    JSON = "json"


def unknown_option(option: str) -> str | None:
    """Return what to use in the place of an option that was removed."""
    if option != "--history":
        return None
    return "The history is at /api/v1/triggers/NAMESPACE/NAME/history and on the status page."


def _option(metavar: str, text: str, *names: str, **more: Any) -> Any:  # noqa: ANN401 - Typer's
    return typer.Option(*names, metavar=metavar, help=text, **more)


def _file(text: str) -> Any:  # noqa: ANN401 - Typer's
    return _option("FILE", text, exists=True, dir_okay=False)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to explain, where it is decided, and how it is shown."""

    scaled_object: Annotated[
        str | None,
        typer.Argument(
            metavar="NAMESPACE/NAME",
            help="The ScaledObject to explain; with --file, all in it unless one is named.",
        ),
    ] = None
    file: Annotated[
        str | None, _option("FILE|-", "Decide the ScaledObjects in it here.", "--file", "-f")
    ] = None
    prometheus_url: Annotated[
        str | None, _option("URL", "With --file: the source, over that of the settings.")
    ] = None
    at: Annotated[
        str | None,
        _option(
            "TIME",
            "With --file: decide as of then: RFC 3339, Unix seconds, or how long ago (2h).",
        ),
    ] = None
    namespace: Annotated[
        str, _option("NAME", "With --file: the namespace of objects that name none.")
    ] = "default"
    server: Annotated[
        str | None, _option("URL", f"The scaler's HTTP port; without --file {SERVER}.")
    ] = None
    token_file: Annotated[Path | None, _file("A file with the token of the HTTP port.")] = None
    ca_file: Annotated[Path | None, _file("With https: the server's CA, in PEM.")] = None
    why_not: Annotated[
        int | None,
        _option(
            "N", "Only say what would give so many replicas, or zero.", min=0, max=_MOST_REPLICAS
        ),
    ] = None
    drain: Annotated[
        bool,
        typer.Option(
            "--drain", help="Only print the annotations that let the least busy pods go first."
        ),
    ] = False
    output: Annotated[Output, _option("|".join(Output), "How to write it.", "--output", "-o")] = (
        Output.TEXT
    )
    timeout: Annotated[float, _option("SECONDS", "How long to wait for each answer.", min=0.1)] = 10
    cluster: Annotated[
        bool, typer.Option(help="Ask Kubernetes what KEDA and the HPA make of it.")
    ] = True
    kubeconfig: Annotated[Path | None, _file("Of that cluster; as kubectl without it.")] = None
    context: Annotated[str | None, _option("NAME", "Another one than the current context.")] = None


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
    _refuse_mistakes(options)
    asyncio.run(_explain_running(options) if options.file is None else _explain_file(options))


def _refuse_mistakes(options: Options) -> None:
    wrong, named = Mistakes(), options.scaled_object
    if options.drain and options.why_not is not None:
        wrong.note("--why-not, --drain", "expected only one of them")
    if options.drain and options.at is not None:
        wrong.note("--at", "--drain is about the pods that there are now")
    if options.drain and options.output is Output.JSON:
        wrong.note("--output", "--drain prints commands; the loads of pods are in the record")
    is_file = options.file is not None
    unfitting = _OF_A_RUNNING_SCALER if is_file else _OF_A_FILE
    for name in unfitting:
        if getattr(options, name) is not None:
            why = _FOR_A_RUNNING_SCALER if is_file else _FOR_A_FILE
            wrong.note(f"--{name.replace('_', '-')}", why)
    if named is None and not is_file:
        wrong.note("NAMESPACE/NAME", "expected it, or --file")
    if named is not None and not _NAME.fullmatch(named):
        wrong.note("NAMESPACE/NAME", f"{named!r} is not NAMESPACE/NAME")
    if not (options.server or SERVER).startswith(("http://", "https://")):
        wrong.note("--server", f"{options.server!r} is no URL: expected http://… or https://…")
    wrong.raise_any()


async def _explain_running(options: Options) -> None:
    """Show what a running scaler decides, and what holds the replicas behind that."""
    from keda_gpu_scaler.cli import cluster, explaining  # noqa: PLC0415 - they load HTTP clients

    url, scaled_object = (options.server or SERVER).rstrip("/"), str(options.scaled_object)
    records, behind, trouble = [], None, None
    try:
        records = await explaining.ask(
            f"{url}/api/v1/triggers/{scaled_object}",
            options.token_file,
            options.ca_file,
            options.timeout,
        )
    except explaining.ExplainError as error:
        trouble = _end(f"{url}: {error}", _FAILED)
    if options.cluster and options.why_not is None and not options.drain:
        access = cluster.Access(options.kubeconfig, options.context, options.timeout)
        try:
            behind = await cluster.found(access, scaled_object, records)
        except cluster.ClusterError as error:
            typer.echo(
                "keda-gpu-scaler: what holds the replicas is not shown (--no-cluster: not asked "
                f"for): {error}",
                err=True,
            )
    if records or behind is not None:
        _show(records, options, behind)
    if trouble is not None:
        raise trouble


async def _explain_file(options: Options) -> None:
    """Decide the triggers of a file here; a source that gives nothing is a failure."""
    from keda_gpu_scaler.check.objects import Terms  # noqa: PLC0415 - for a file only
    from keda_gpu_scaler.cli import check, files, local  # noqa: PLC0415 - they load all that `serve` does

    file, is_past = str(options.file), options.at is not None
    try:
        at = None if options.at is None else local.instant(options.at, time.time())
        settings = local.source_settings(options.prometheus_url, is_past=is_past)
        texts, terms = {file: check.read(file)}, Terms(options.namespace)
        triggers = local.given(texts, terms, settings.access, options.scaled_object)
        records = await local.records(triggers, settings, slow_seconds=options.timeout, at=at)
    except (errors.SettingsError, files.FileError, OSError, ValueError) as error:
        raise _end(str(error), _WRONG) from error
    for unknown in local.unknown_here(triggers, settings, is_past=is_past):
        typer.echo(f"not known here: {unknown}", err=True)
    _show(records, options)
    sources = [record.source for record in records]
    troubles = {source.trouble: None for source in sources if source.snapshot_at is None}
    for trouble in filter(None, troubles):
        typer.echo(f"keda-gpu-scaler: {trouble}", err=True)
    if troubles:
        raise typer.Exit(_FAILED)


def _show(
    records: "Sequence[Record]", options: Options, behind: "gates.Gates | None" = None
) -> None:
    """Write the records, or what they say to another question."""
    from keda_gpu_scaler.cli import explaining  # noqa: PLC0415 - it loads Rich and HTTP
    from keda_gpu_scaler.record.drain import drain  # noqa: PLC0415 - for this flag only
    from keda_gpu_scaler.record.why_not import why_not  # noqa: PLC0415 - it loads much

    is_json = options.output is Output.JSON
    if options.drain:  # one pod has one cost: that of the first trigger
        first = {record.scaled_object: record for record in reversed(records)}
        for record in reversed(first.values()):
            typer.echo("\n".join(drain(record)))
    elif options.why_not is not None:
        answers = [why_not(record, options.why_not) for record in records]
        explaining.write_why_not(answers, is_json=is_json)
    else:
        explaining.write(records, behind, is_json=is_json)


def _end(message: str, status: int) -> typer.Exit:
    typer.echo(f"keda-gpu-scaler: {message}", err=True)
    return typer.Exit(status)
