"""`keda-gpu-scaler explain`: say why a workload was (not) scaled, with everything behind it."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import orjson
import typer

from keda_gpu_scaler import errors
from keda_gpu_scaler.autoscaling import gates
from keda_gpu_scaler.check.objects import Terms
from keda_gpu_scaler.cli import arguments, check, explaining
from keda_gpu_scaler.cli.arguments import file_option, option
from keda_gpu_scaler.record.drain import drain
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.record.why_not import why_not
from keda_gpu_scaler.spec.spec import ScaledObject

SERVER = "http://localhost:8080"
"""Where `kubectl port-forward service/keda-gpu-scaler-http 8080` makes the HTTP port reachable."""
_MOST_REPLICAS = 10_000
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
    why_not: Annotated[
        int | None,
        option(
            "N", "Only say what would give so many replicas, or zero.", min=0, max=_MOST_REPLICAS
        ),
    ] = None
    drain: Annotated[
        bool,
        typer.Option(
            "--drain", help="Only print the annotations that let the least busy pods go first."
        ),
    ] = False
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
    if options.file is not None:
        asyncio.run(_explain_file(options, options.file))
        return
    if options.scaled_object is None:
        raise arguments.wrong("NAMESPACE/NAME", "expected it, or --file")
    server = (options.server or SERVER).rstrip("/")
    if not server.startswith(("http://", "https://")):
        raise arguments.wrong("--server", f"{server!r} is no URL: expected http://… or https://…")
    token = None
    if options.token_file is not None:
        token = options.token_file.read_text(errors="replace").strip()
    asyncio.run(_explain_running(options, options.scaled_object, server, token))


def _refuse_combinations(options: Options) -> None:
    if options.drain and options.why_not is not None:
        raise arguments.wrong("--why-not, --drain", "expected only one of them")
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


async def _explain_running(
    options: Options, scaled_object: ScaledObject, server: str, token: str | None
) -> None:
    """Show what a running scaler decides, and what holds the replicas behind that."""
    records, behind, failure = [], None, None
    url = f"{server}/api/v1/triggers/{scaled_object}"
    try:
        records = await explaining.ask(url, token, options.ca_file, options.timeout)
    except (errors.SourceError, OSError, UnicodeError) as error:
        failure = arguments.failure(f"{server}: {error}")
    if options.cluster and options.why_not is None and not options.drain:
        from keda_gpu_scaler.cli import cluster  # noqa: PLC0415 - it loads what speaks to Kubernetes

        try:
            behind = await cluster.fetch_gates(
                scaled_object, records, options.kubeconfig, options.context, options.timeout
            )
        except errors.SourceError as error:
            typer.echo(
                "keda-gpu-scaler: what holds the replicas is not shown (--no-cluster: not asked "
                f"for): {error}",
                err=True,
            )
    if records or behind is not None:
        _show(records, options, behind)
    if failure is not None:
        raise failure


async def _explain_file(options: Options, file: str) -> None:
    """Decide the triggers of a file here; a source that gives nothing is a failure."""
    from keda_gpu_scaler.cli import files, local  # noqa: PLC0415 - they load all that `serve` does

    is_past = options.at is not None
    wanted = None if options.scaled_object is None else str(options.scaled_object)
    try:
        at = None if options.at is None else local.instant(options.at, time.time())
        settings = local.source_settings(options.prometheus_url, is_past=is_past)
        texts, terms = {file: check.read(file)}, Terms(options.namespace)
        triggers = local.given(texts, terms, settings.access, wanted)
        specs = [given.spec for given in triggers]
        async with local.open_evaluator(
            specs, settings, slow_seconds=options.timeout, at=at
        ) as evaluator:
            records = await asyncio.gather(*(evaluator.record(*given) for given in triggers))
    except (errors.SettingsError, files.FileError, OSError, ValueError) as error:
        raise arguments.failure(error, status=2) from error
    for unknown in local.unknown_here(triggers, settings, is_past=is_past):
        typer.echo(f"not known here: {unknown}", err=True)
    _show(records, options)
    sources = [record.source for record in records]
    troubles = {source.trouble: None for source in sources if source.snapshot_at is None}
    for trouble in filter(None, troubles):
        typer.echo(f"keda-gpu-scaler: {trouble}", err=True)
    if troubles:
        raise typer.Exit(1)


def _show(records: Sequence[Record], options: Options, behind: gates.Gates | None = None) -> None:
    """Write the records, or what they say to another question."""
    answers = None
    if options.why_not is not None:
        answers = [why_not(record, options.why_not) for record in records]
    if options.drain:  # one pod has one cost: that of the first trigger
        first = {record.scaled_object: record for record in reversed(records)}
        for record in reversed(first.values()):
            typer.echo("\n".join(drain(record)))
    elif options.output == "json":
        values = {"triggers": records, "gates": behind} if answers is None else answers
        typer.echo(orjson.dumps(values, option=orjson.OPT_INDENT_2))
    elif answers is None:
        explaining.write(records, behind)
    else:
        explaining.write_why_not(answers)
