"""`keda-gpu-scaler explain`: say why a workload was (not) scaled, with everything behind it."""

import asyncio
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from keda_gpu_scaler import errors
from keda_gpu_scaler.cli.mistakes import Mistakes

if TYPE_CHECKING:
    from keda_gpu_scaler.cli.explaining import Asked
    from keda_gpu_scaler.record.drain import Drain
    from keda_gpu_scaler.record.record import Record
    from keda_gpu_scaler.record.why_not import WhyNot

SERVER = "http://localhost:8080"
"""Where `kubectl port-forward service/keda-gpu-scaler-http 8080` makes the HTTP port reachable."""
_NAME = re.compile(r"[^/]+/[^/]+")
_MOST_REPLICAS = 10_000
_QUESTIONS = ("--why-not", "--drain")
_OF_A_RUNNING_SCALER = ("--server", "--token-file", "--ca-file", "--kubeconfig", "--context")
_FOR_A_RUNNING_SCALER = (
    "it is for a running scaler; with --file, KEDA_GPU_SCALER_PROMETHEUS_… variables say how to "
    "connect to the source"
)
_OF_A_FILE = ("--prometheus-url", "--at")
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


def explain(  # noqa: PLR0913 - each argument is one flag of the command line
    scaled_object: Annotated[
        str | None,
        typer.Argument(
            metavar="NAMESPACE/NAME",
            help="The ScaledObject to explain; with --file, all in it unless one is named.",
        ),
    ] = None,
    *,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE|-", help="Decide the ScaledObjects in it here."),
    ] = None,
    prometheus_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="With --file: the source, over that of the settings."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="With --file: decide as of then: RFC 3339, Unix seconds, or how long ago (2h).",
        ),
    ] = None,
    namespace: Annotated[
        str,
        typer.Option(metavar="NAME", help="With --file: the namespace of objects that name none."),
    ] = "default",
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help=f"The scaler's HTTP port; without --file {SERVER}."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            metavar="FILE",
            help="A file with the token of the HTTP port.",
        ),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, metavar="FILE", help="With https: the server's CA, in PEM."
        ),
    ] = None,
    why_not: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=_MOST_REPLICAS,
            metavar="N",
            help="Only say what would give so many replicas, or zero.",
        ),
    ] = None,
    drain: Annotated[
        bool,
        typer.Option(
            "--drain", help="Only print the annotations that let the least busy pods go first."
        ),
    ] = False,
    output: Annotated[
        Output,
        typer.Option("--output", "-o", metavar="|".join(Output), help="How to write it."),
    ] = Output.TEXT,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How long to wait for each answer.")
    ] = 10,
    cluster: Annotated[
        bool, typer.Option(help="Ask Kubernetes what KEDA and the HPA make of it.")
    ] = True,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            metavar="FILE",
            help="Of that cluster; as kubectl without it.",
        ),
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Another one than the current context.")
    ] = None,
) -> None:
    """Show what is decided of a ScaledObject, and what that is made of.

    A running scaler decides again, as for a call of KEDA; nothing is changed. With --file it is
    decided here, without a running scaler and without KEDA: from the sources that the settings of
    serve (KEDA_GPU_SCALER_… variables) name, or --prometheus-url.

    Of a running scaler's, Kubernetes shows the gates between that and the replicas; without access
    one line says why they are not shown.

    Exit status: 0 when there is a decision, 1 when the scaler or the source does not answer, or the
    scaler knows no such ScaledObject, 2 for a wrong argument, file or setting.
    """
    flags = {
        "--why-not": why_not,
        "--drain": drain or None,
        "--at": at,
        "--prometheus-url": prometheus_url,
        "--server": server,
        "--token-file": token_file,
        "--ca-file": ca_file,
        "--kubeconfig": kubeconfig,
        "--context": context,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    wrong = Mistakes()
    for name, mistake in _unfitting(given, scaled_object, is_file=file is not None):
        wrong.note(name, mistake)
    wrong.raise_any()
    if file is not None:
        chosen = _Chosen(file, namespace, scaled_object, prometheus_url, at, timeout)
        shown = _explain_file(chosen, output, why_not, drain=drain)
    else:
        from keda_gpu_scaler.cli.explaining import Asked  # noqa: PLC0415 - it loads Rich and HTTP

        url = (server or SERVER).rstrip("/")
        asked = Asked(url, str(scaled_object), token_file, ca_file, timeout)
        behind = cluster and why_not is None and not drain
        access = (kubeconfig, context) if behind else None
        shown = _explain_running(asked, access, output, why_not, drain=drain)
    asyncio.run(shown)


def _unfitting(
    given: Mapping[str, object], scaled_object: str | None, *, is_file: bool
) -> Iterator[tuple[str, str]]:
    """Yield what does not go together, or is no value, by its name."""
    questions = [name for name in _QUESTIONS if name in given]
    if len(questions) > 1:
        yield ", ".join(questions), "expected only one of them"
    if "--drain" in given and "--at" in given:
        yield "--at", "--drain is about the pods that there are now"
    for name in given:
        if is_file and name in _OF_A_RUNNING_SCALER:
            yield name, _FOR_A_RUNNING_SCALER
        if not is_file and name in _OF_A_FILE:
            yield name, _FOR_A_FILE
    if scaled_object is None and not is_file:
        yield "NAMESPACE/NAME", "expected it, or --file"
    if scaled_object is not None and not _NAME.fullmatch(scaled_object):
        yield "NAMESPACE/NAME", f"{scaled_object!r} is not NAMESPACE/NAME"
    if not str(given.get("--server", SERVER)).startswith(("http://", "https://")):
        yield "--server", f"{given['--server']!r} is no URL: expected http://… or https://…"


async def _explain_running(
    asked: "Asked",
    access: tuple[Path | None, str | None] | None,
    output: Output,
    why_not: int | None,
    *,
    drain: bool,
) -> None:
    """Show what a running scaler decides, and what holds the replicas behind that.

    Without `access`, a kubeconfig and its context, Kubernetes is not asked.
    """
    from keda_gpu_scaler.cli import cluster, explaining  # noqa: PLC0415 - they load HTTP clients

    records, behind, trouble = [], None, None
    try:
        records = await explaining.ask(asked)
    except explaining.ExplainError as error:
        trouble = _end(f"{asked.server}: {error}", _FAILED)
    if access is not None:
        given = cluster.Access(*access, asked.timeout_seconds)
        try:
            behind = await cluster.found(given, asked.scaled_object, records)
        except cluster.ClusterError as error:
            said = f"what holds the replicas is not shown (--no-cluster: not asked for): {error}"
            typer.echo(f"keda-gpu-scaler: {said}", err=True)
    if records or behind is not None:
        explaining.write(_answered(records, why_not, drain=drain), output, behind)
    if trouble is not None:
        raise trouble


def _answered(
    found: "list[Record]", wanted: int | None, *, drain: bool
) -> "Sequence[Record | WhyNot | Drain]":
    from keda_gpu_scaler.record.drain import drain as drained  # noqa: PLC0415 - for this flag only
    from keda_gpu_scaler.record.why_not import why_not  # noqa: PLC0415 - it loads much

    if drain:  # one pod has one cost: that of the first trigger
        first = {one.scaled_object: one for one in reversed(found)}
        return [drained(one) for one in reversed(first.values())]
    return found if wanted is None else [why_not(one, wanted) for one in found]


class _Chosen(NamedTuple):
    """What to decide, of which source, and of when."""

    file: str
    namespace: str
    scaled_object: str | None
    prometheus_url: str | None
    at: str | None
    timeout_seconds: float


async def _explain_file(
    given: _Chosen, output: Output, why_not: int | None, *, drain: bool
) -> None:
    from keda_gpu_scaler.cli import explaining  # noqa: PLC0415 - it loads Rich and HTTP

    found = await _decided(given)
    explaining.write(_answered(found, why_not, drain=drain), output)
    _end_without_samples(found)


async def _decided(given: _Chosen) -> "list[Record]":
    """Decide the triggers of a file, and say what is not known here."""
    from keda_gpu_scaler.check.objects import Terms  # noqa: PLC0415 - for a file only
    from keda_gpu_scaler.cli import check, files, local  # noqa: PLC0415 - they load all that `serve` does

    try:
        at = None if given.at is None else local.instant(given.at, time.time())
        is_past = at is not None
        chosen = local.source_settings(given.prometheus_url, is_past=is_past)
        texts = {given.file: check.read(given.file)}
        terms = Terms(given.namespace)
        triggers = local.given(texts, terms, chosen.access, given.scaled_object)
        found = await local.records(triggers, chosen, slow_seconds=given.timeout_seconds, at=at)
    except (errors.SettingsError, files.FileError, OSError, ValueError) as error:
        raise _end(str(error), _WRONG) from error
    for unknown in local.unknown_here(triggers, chosen, is_past=is_past):
        typer.echo(f"not known here: {unknown}", err=True)
    return found


def _end_without_samples(found: "Sequence[Record]") -> None:
    """Fail where a source gave nothing: what is shown is what a scaler answers then."""
    troubles = {one.source.trouble: None for one in found if one.source.snapshot_at is None}
    for trouble in filter(None, troubles):
        typer.echo(f"keda-gpu-scaler: {trouble}", err=True)
    if troubles:
        raise typer.Exit(_FAILED)


def _end(message: str, status: int) -> typer.Exit:
    typer.echo(f"keda-gpu-scaler: {message}", err=True)
    return typer.Exit(status)
