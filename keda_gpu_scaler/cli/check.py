"""`keda-gpu-scaler check`: what is wrong with ScaledObjects, before they are applied."""

import difflib
import os
import sys
import textwrap
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from keda_gpu_scaler import check as core
from keda_gpu_scaler import errors
from keda_gpu_scaler.check import Report, catalog, formats, kustomize
from keda_gpu_scaler.check.documents import BYTES_LIMIT
from keda_gpu_scaler.check.findings import Finding, Severity
from keda_gpu_scaler.check.objects import Terms
from keda_gpu_scaler.cli.mistakes import Mistakes
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
    output: Annotated[
        Output,
        typer.Option("--output", "-o", metavar="|".join(Output), help="How findings are written."),
    ] = Output.TEXT,
    fail_on: Annotated[
        FailOn,
        typer.Option(metavar="|".join(FailOn), help="Exit with 1 from this severity on."),
    ] = FailOn.ERROR,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="A rule to leave out.")
    ] = None,
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="The namespace of objects that name none.")
    ] = "default",
    longest_request: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="How long a request can take, where a ScaledObject's annotation does not say it.",
        ),
    ] = "",
    is_live: Annotated[
        bool,
        typer.Option("--live", help="Ask the source, and the cluster where the settings do."),
    ] = False,
    prometheus_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="With --live: the source, over that of the settings."),
    ] = None,
    gateway: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="With --live: what the gateway before the workload answers at."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="With --live: how long to wait.")
    ] = 10,
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
    and of what helm template prints. Asks no cluster and no source, except with --live: then those
    that the settings of serve (KEDA_GPU_SCALER_… variables) name, or --prometheus-url.

    Exit status: 0 when nothing is found that is as bad as --fail-on, 1 when something is, 2 when a
    file cannot be read or an argument is wrong.
    """
    wrong = Mistakes()
    for name in sorted(set(ignore or ()) - catalog.RULES.keys()):
        wrong.note("--ignore", f"there is no rule {name!r}{_near(name)}")
    for name, value in (("--prometheus-url", prometheus_url), ("--gateway", gateway)):
        if value is not None and not is_live:
            wrong.note(name, "it is for --live")
    with wrong.of("--longest-request"):
        longest_seconds = _seconds(longest_request)
    texts: dict[str, str] = {}
    for file in files:
        with wrong.of("FILE|DIR|-"):
            texts |= _texts(file)
    wrong.raise_any()
    terms = Terms(namespace, frozenset(scaler or ()), longest_seconds)
    asked = _Asked(prometheus_url, gateway, timeout) if is_live else None
    seen = [] if asked is None else _seen(texts, terms, asked)
    report = core.check(texts, terms, ignore or (), seen)
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


class _Asked(NamedTuple):
    """What is asked with --live."""

    prometheus_url: str | None
    gateway: str | None
    timeout_seconds: float


def _seen(texts: Mapping[str, str], terms: Terms, asked: _Asked) -> list[Finding]:
    """Return what the source and the cluster show."""
    from keda_gpu_scaler.cli import live, local  # noqa: PLC0415 - they load all that `serve` does

    try:
        chosen = local.source_settings(asked.prometheus_url)
        return live.look(texts, terms, live.Wanted(chosen, asked.gateway, asked.timeout_seconds))
    except (errors.SettingsError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="'--live'") from error


def _near(rule: str) -> str:
    near = difflib.get_close_matches(rule, catalog.RULES, n=1)
    return f": did you mean {near[0]!r}?" if near else ""


def _seconds(duration: str) -> float | None:
    try:
        return durations.parse(duration) if duration else None
    except ValueError as error:
        raise ValueError(f"{duration!r}: expected {error}") from error


def _is_failed(findings: Iterable[Finding], least: Severity) -> bool:
    return any(one.rule.severity.rank >= least.rank for one in findings)


def _texts(name: str) -> dict[str, str]:
    """Return the text of a file, or the texts of a folder, with their names.

    Raises:
        ValueError: a file cannot be read or is not in UTF-8, or a folder has nothing to check.
    """
    if name == _STANDARD_INPUT or not Path(name).is_dir():
        return {name: read(name)}
    found = _below(Path(name))
    if not found:
        raise ValueError(f"{name} has no *.yaml and no *.yml")
    return {str(path): read(str(path)) for path in found}


def read(name: str) -> str:
    """Return the text of a file, or of the standard input for `-`, as far as any is looked at.

    Raises:
        ValueError: it cannot be read, or is not in UTF-8.
    """
    if name == _STANDARD_INPUT:
        return _decoded(name, sys.stdin.buffer.read(BYTES_LIMIT + 1))
    try:
        with Path(name).open("rb") as file:
            return _decoded(name, file.read(BYTES_LIMIT + 1))
    except OSError as error:
        raise ValueError(f"cannot read {name}: {error.strerror}") from error


def _decoded(name: str, data: bytes) -> str:
    """Return a text; a larger one than is read ends within a character, perhaps."""
    if len(data) > BYTES_LIMIT:
        return data.decode("utf-8-sig", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not in UTF-8: {error.reason} at byte {error.start}") from error


def _below(folder: Path) -> list[Path]:
    """Return a folder's YAML, in order.

    Hidden folders, the templates of charts, which are no YAML, and patches of Kustomize are left
    out, and so is what is no file: to open a pipe would wait for its other end.
    """
    found: list[Path] = []
    patches: set[str] = set()
    for where, folders, files in os.walk(folder):
        is_chart = "Chart.yaml" in files
        folders[:] = [
            each
            for each in folders
            if not each.startswith(".") and not (is_chart and each == "templates")
        ]
        paths = [path for each in files if (path := Path(where, each)).is_file()]
        found += [path for path in paths if path.suffix in _SUFFIXES]
        for path in paths:
            if path.name in kustomize.FILES:
                named = kustomize.patches(read(str(path)))
                patches |= {os.path.normpath(Path(where, each)) for each in named}
    return sorted(path for path in found if os.path.normpath(path) not in patches)


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
        indented = " " * (one.position.column - 1) + one.replacement
        for line in textwrap.dedent(indented).splitlines():
            console.print(Text(f"      {line}"))
    found = ", ".join(_counted(count, word) for word, count in formats.counts(report).items())
    console.print(Text(f"{_counted(report.checked, 'object')} of KEDA's checked: {found}"))


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
