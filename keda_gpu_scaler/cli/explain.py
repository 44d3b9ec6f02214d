"""`keda-gpu-scaler explain`: say why a workload was (not) scaled, with everything behind it."""

import asyncio
import re
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from keda_gpu_scaler import errors

if TYPE_CHECKING:
    from keda_gpu_scaler.record.record import Record

SERVER = "http://localhost:8080"
"""Where `kubectl port-forward service/keda-gpu-scaler-http 8080` makes the HTTP port reachable."""
_NAME = re.compile(r"[^/]+/[^/]+")
_FAILED = 1
_WRONG = 2


class Output(StrEnum):
    """How a record is written."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


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
        str, typer.Option(help="With --file: the namespace of objects that name none.")
    ] = "default",
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help=f"The scaler's HTTP port; without --file {SERVER}."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A file with the token of the HTTP port."),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="With https: the server's CA, in PEM."),
    ] = None,
    history: Annotated[
        bool,
        typer.Option("--history", help="Show how the decisions of a running scaler changed."),
    ] = False,
    output: Annotated[Output, typer.Option(help="How to write it.")] = Output.TEXT,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for the answer.")] = 10,
) -> None:
    """Show what is decided of a ScaledObject, and what that is made of.

    A running scaler decides anew, as for a call of KEDA's; nothing is changed. With --file it is
    decided here, without a running scaler and without KEDA: from the sources that the settings of
    serve (KEDA_GPU_SCALER_… variables) name, or --prometheus-url.

    Exit status: 0 when there is a decision, 1 when the scaler or the source does not answer, or the
    scaler knows no such ScaledObject, 2 for a wrong argument, file or setting.
    """
    from keda_gpu_scaler.cli import changes, explaining  # noqa: PLC0415 - they load Rich and HTTP

    if scaled_object is not None and not _NAME.fullmatch(scaled_object):
        raise typer.BadParameter(f"{scaled_object!r} is not NAMESPACE/NAME")
    if file is not None:
        if history or server is not None or token_file is not None or ca_file is not None:
            raise typer.BadParameter(
                "--history, --server, --token-file and --ca-file are for a running scaler; with "
                "--file, KEDA_GPU_SCALER_PROMETHEUS_… variables say how to connect to the source"
            )
        chosen = _Chosen(file, namespace, scaled_object, prometheus_url, at, timeout)
        found = _decided(chosen)
        explaining.write(found, output)
        _end_without_samples(found)
        return
    if prometheus_url is not None or at is not None:
        raise typer.BadParameter(
            "--prometheus-url and --at are for --file: a running scaler has sources of its own, "
            "and decides now"
        )
    if scaled_object is None:
        raise typer.BadParameter("expected NAMESPACE/NAME, or --file")
    url = server or SERVER
    if not url.startswith(("http://", "https://")):
        raise typer.BadParameter(f"--server {url!r} is no URL: expected http://… or https://…")
    asked = explaining.Asked(url.rstrip("/"), scaled_object, token_file, ca_file, timeout)
    try:
        if history:
            changes.write(changes.ask(asked), scaled_object, output)
            return
        found = explaining.ask(asked)
    except explaining.ExplainError as error:
        raise _end(f"{url}: {error}", _FAILED) from error
    explaining.write(found, output)


class _Chosen(NamedTuple):
    """What to decide, of which source, and of when."""

    file: str
    namespace: str
    scaled_object: str | None
    prometheus_url: str | None
    at: str | None
    timeout_seconds: float


def _decided(given: _Chosen) -> "list[Record]":
    """Decide the triggers of a file, and say what is not known here."""
    from keda_gpu_scaler.check.objects import Terms  # noqa: PLC0415 - for a file only
    from keda_gpu_scaler.cli import check, local  # noqa: PLC0415 - they load all that `serve` does

    try:
        at = None if given.at is None else local.instant(given.at, time.time())
        is_past = at is not None
        chosen = local.source_settings(given.prometheus_url, is_past=is_past)
        texts = {given.file: check.read(given.file)}
        terms = Terms(given.namespace)
        triggers = local.given(texts, terms, chosen.access, given.scaled_object)
        found = asyncio.run(
            local.records(triggers, chosen, slow_seconds=given.timeout_seconds, at=at)
        )
    except (errors.SettingsError, local.LocalError, OSError, ValueError) as error:
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
