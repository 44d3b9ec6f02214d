"""`keda-gpu-scaler check`: what is wrong with ScaledObjects, before they are applied."""

import os
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from keda_gpu_scaler import check as core
from keda_gpu_scaler.check import Report, catalog, formats
from keda_gpu_scaler.check.documents import BYTES_LIMIT
from keda_gpu_scaler.check.findings import Finding, Severity
from keda_gpu_scaler.check.objects import Terms
from keda_gpu_scaler.spec import durations

_STANDARD_INPUT = "-"
_SUFFIXES = (".yaml", ".yml")
_COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


class Output(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


class FailOn(StrEnum):
    """From which severity on the exit status is 1."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NEVER = "never"


def check(  # noqa: PLR0913 - each argument is one flag of the command line
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|DIR|-", help="YAML with any objects; a folder's *.yaml and *.yml; or -."
        ),
    ],
    *,
    output: Annotated[Output, typer.Option(help="How findings are written.")] = Output.TEXT,
    fail_on: Annotated[
        FailOn, typer.Option(help="Exit with 1 from this severity on.")
    ] = FailOn.ERROR,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="A rule to leave out.")
    ] = None,
    namespace: Annotated[
        str, typer.Option(help="The namespace of objects that name none.")
    ] = "default",
    longest_request: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="How long a request can take, where a ScaledObject's annotation does not say it.",
        ),
    ] = "",
    scaler: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT",
            help="A scalerAddress of this scaler; without any, triggers are known by their keys.",
        ),
    ] = None,
) -> None:
    """Find what is wrong with ScaledObjects before they are applied.

    Reads ScaledObjects, ScaledJobs and TriggerAuthentications, and what they name, out of files
    and of what helm template prints. Asks no cluster and no source. Exit status: 0 when nothing is
    found that is as bad as --fail-on, 1 when something is, 2 when a file cannot be read or an
    argument is wrong.
    """
    unknown = sorted(set(ignore or ()) - catalog.RULES.keys())
    if unknown:
        raise typer.BadParameter(f"there is no rule {', '.join(unknown)}")
    try:
        texts = dict(_texts(files))
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    terms = Terms(namespace, frozenset(scaler or ()), _seconds(longest_request))
    report = core.check(texts, terms, ignore or ())
    match output:
        case Output.JSON:
            typer.echo(formats.as_json(report))
        case Output.SARIF:
            typer.echo(formats.as_sarif(report))
        case Output.GITHUB:
            typer.echo(formats.as_github(report), nl=bool(report.findings))
        case _:
            _print(report)
    if fail_on is not FailOn.NEVER and _is_failed(report.findings, Severity(fail_on)):
        raise typer.Exit(1)


def _seconds(duration: str) -> float | None:
    try:
        return durations.parse(duration) if duration else None
    except ValueError as error:
        raise typer.BadParameter(f"--longest-request {duration}: expected {error}") from error


def _is_failed(findings: Iterable[Finding], least: Severity) -> bool:
    return any(one.rule.severity.rank >= least.rank for one in findings)


def _texts(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each text with its name.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is not in UTF-8, or a folder has nothing to check.
    """
    for name in names:
        if name != _STANDARD_INPUT and Path(name).is_dir():
            found = sorted(_below(Path(name)))
            if not found:
                raise ValueError(f"{name} has no *.yaml and no *.yml")
            for path in found:
                yield str(path), read(str(path))
        else:
            yield name, read(name)


def read(name: str) -> str:
    """Return the text of a file, or of the standard input for `-`, as far as any is looked at.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not in UTF-8.
    """
    if name == _STANDARD_INPUT:
        return _decoded(name, sys.stdin.buffer.read(BYTES_LIMIT + 1))
    with Path(name).open("rb") as file:
        return _decoded(name, file.read(BYTES_LIMIT + 1))


def _decoded(name: str, data: bytes) -> str:
    """Return a text; a larger one than is read ends within a character, perhaps."""
    if len(data) > BYTES_LIMIT:
        return data.decode("utf-8-sig", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not in UTF-8: {error.reason} at byte {error.start}") from error


def _below(folder: Path) -> Iterator[Path]:
    """Yield a folder's YAML, without hidden folders and the templates of charts, which are none."""
    for where, folders, files in os.walk(folder):
        is_chart = "Chart.yaml" in files
        folders[:] = [
            each
            for each in folders
            if not each.startswith(".") and not (is_chart and each == "templates")
        ]
        yield from (Path(where, each) for each in files if each.endswith(_SUFFIXES))


def _print(report: Report) -> None:
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for one in report.findings:
        severity = one.rule.severity
        console.print(
            Text.assemble(
                (f"{one.file}:{one.position.line}:{one.position.column}", "bold"),
                ": ",
                (severity.value, _COLOURS[severity]),
                f" {one.rule.name}: {one.why}",
            )
        )
        if one.subject:
            console.print(Text(f"    in {one.subject}"))
        console.print(Text(f"    {one.fix}"))
        for line in one.replacement.splitlines():
            console.print(Text(f"      {line}"))
    found = ", ".join(_counted(count, word) for word, count in formats.counts(report).items())
    console.print(Text(f"{_counted(report.checked, 'object')} of KEDA's checked: {found}"))


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
