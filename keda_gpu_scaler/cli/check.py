"""`keda-gpu-scaler check`: what is wrong with ScaledObjects, before they are applied."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from keda_gpu_scaler import errors
from keda_gpu_scaler.cli import flags
from keda_gpu_scaler.cli.flags import option
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.workbench import check as core
from keda_gpu_scaler.workbench import manifest_files
from keda_gpu_scaler.workbench.check import FINDINGS_LIMIT, RULES, Report, formats
from keda_gpu_scaler.workbench.check.findings import Finding, Severity

Output = Literal["text", "json", "sarif"]
FailOn = Literal["error", "warning", "note", "never"]
_COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def _read_rule(name: str) -> str:
    if name not in RULES:
        raise typer.BadParameter(f"there is no rule {name!r}; expected one of {', '.join(RULES)}")
    return name


def check(  # noqa: PLR0913 - each argument is one flag of the command line
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|DIR|-",
            help="A YAML file, a folder with *.yaml and *.yml, or - for the standard input.",
        ),
    ],
    *,
    output: Annotated[
        Output, option("text|json|sarif", "Output format.", "--output", "-o")
    ] = "text",
    fail_on: Annotated[
        FailOn, option("error|warning|note|never", "Lowest severity that exits with 1.")
    ] = "error",
    ignore: Annotated[
        list[str] | None, option("RULE", "A rule to leave out; may be repeated.", parser=_read_rule)
    ] = None,
    allow_none: Annotated[
        bool, typer.Option("--allow-none", help="Exit with 0 if there is nothing to check.")
    ] = False,
    namespace: flags.Namespace = "default",
    is_live: Annotated[
        bool,
        typer.Option("--live", help="Query the source too, and the cluster if the settings do."),
    ] = False,
    prometheus_url: Annotated[
        str | None, option("URL", "With --live: URL of the source, instead of the settings'.")
    ] = None,
    timeout: Annotated[float, option("SECONDS", "With --live: longest wait.", min=0.1)] = 10,
) -> None:
    """Find mistakes in ScaledObjects before you apply them.

    It reads ScaledObjects and ScaledJobs from files, or from the output of helm template. Only
    --live queries a source and a cluster: those in the settings of serve (KEDA_GPU_SCALER_…
    variables), or --prometheus-url.

    Exit status: 0 if no finding is as severe as --fail-on, 1 if one is or findings are left out, 2
    if a file cannot be read, an argument is wrong, or there is nothing to check.
    """
    if prometheus_url is not None and not is_live:
        raise flags.wrong("--prometheus-url", "it needs --live")
    try:
        texts = {path: manifest_files.read_text(path) for name in paths for path in _paths(name)}
    except ValueError as error:
        raise flags.wrong("FILE|DIR|-", error) from error
    seen: list[Finding] = []
    if is_live:
        from keda_gpu_scaler.workbench import local, look  # noqa: PLC0415 - they load all that `serve` does

        try:
            seen = look.ask(texts, namespace, local.source_settings(prometheus_url), timeout)
        except errors.SettingsError as error:
            raise flags.wrong("--live", error) from error
    report = core.check(texts, namespace, ignore or (), seen)
    match output:
        case "json":
            typer.echo(formats.as_json(report))
        case "sarif":
            typer.echo(formats.as_sarif(report))
        case _:
            _print_text(report)
    if not report.is_complete:
        typer.echo(f"keda-gpu-scaler: stopped after {FINDINGS_LIMIT:,} findings", err=True)
    if fail_on != "never" and (
        not report.is_complete
        or any(finding.rule.severity.rank >= Severity(fail_on).rank for finding in report.findings)
    ):
        raise typer.Exit(1)
    if not (report.objects or report.findings or allow_none):
        what = f"{', '.join(paths)}: no ScaledObject and no ScaledJob to check"
        raise flags.failure(errors.without_controls(what), status=2)


def _paths(name: str) -> list[str]:
    """Return a file, or the YAML files of a folder.

    Hidden folders and the templates of charts, which are no YAML, are left out, and so is what is
    no file: to open a pipe would wait for its other end.
    """
    if name == manifest_files.STANDARD_INPUT or not Path(name).is_dir():
        return [name]
    paths: list[Path] = []
    for parent, folders, names in os.walk(name):
        skipped = {"templates"} if "Chart.yaml" in names else set()
        folders[:] = [folder for folder in folders if folder[0] != "." and folder not in skipped]
        paths += (Path(parent, file) for file in names if file.endswith((".yaml", ".yml")))
    existing = [str(path) for path in sorted(paths) if path.is_file()]
    if not existing:
        raise ValueError(f"{errors.without_controls(name)} has no *.yaml or *.yml")
    return existing


def _print_text(report: Report) -> None:
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for finding in report.findings:
        severity = finding.rule.severity
        place = f"{finding.file}:{finding.position.line}:{finding.position.column}"
        console.print(
            Text.assemble(
                (errors.without_controls(place), "bold"),
                ": ",
                (severity.value, _COLOURS[severity]),
                errors.without_controls(f" {finding.rule.name}: {finding.why}"),
            )
        )
        if finding.subject:
            console.print(Text(errors.without_controls(f"    in {finding.subject}")))
        console.print(Text(errors.without_controls(f"    {finding.fix}")))
    counted = [durations.counted(count, word) for word, count in formats.counts(report).items()]
    console.print(
        Text(
            f"checked {durations.counted(len(report.objects), 'KEDA object')}: {', '.join(counted)}"
        )
    )
