"""`keda-gpu-scaler survey`: what a cluster's GPUs were used for, before anything is installed."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress

from keda_gpu_scaler import __version__, errors
from keda_gpu_scaler.cli import backtest, flags
from keda_gpu_scaler.cli.flags import option
from keda_gpu_scaler.record.causes import Look
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.workbench import local
from keda_gpu_scaler.workbench.backtest import output
from keda_gpu_scaler.workbench.backtest.output import Result
from keda_gpu_scaler.workbench.backtest.past import pause
from keda_gpu_scaler.workbench.cache import Cache
from keda_gpu_scaler.workbench.survey import preflight, report
from keda_gpu_scaler.workbench.survey.first_object import scaled_object
from keda_gpu_scaler.workbench.survey.reading import PART_SECONDS, SurveyReader
from keda_gpu_scaler.workbench.survey.usage import Usage, UsagePart, usages


@dataclass(frozen=True, kw_only=True)
class Options:
    """How much of the past to read, and how the result is shown."""

    prometheus_url: flags.PrometheusUrl = None
    source: Annotated[str, option("NAME", "The source of the settings.")] = "default"
    since: flags.Since = "7d"
    cache: flags.CacheFile = None
    price: flags.Price = None
    html: Annotated[Path | None, option("FILE", "Also write a page with bars.", dir_okay=False)] = (
        None
    )
    report: Annotated[
        Path | None,
        option(
            "FILE",
            "Write what the exporters show, without anyone's names, for an issue.",
            dir_okay=False,
        ),
    ] = None
    write: Annotated[
        Path | None,
        option("DIR", "Write a ScaledObject for each workload into it.", file_okay=False),
    ] = None
    replay: Annotated[
        int, option("NUMBER", "How many of the most idle to backtest after it.", min=0)
    ] = 5
    output: Annotated[
        Literal["text", "markdown", "json"],
        option("text|markdown|json", "How to write it.", "--output", "-o"),
    ] = "text"


def survey(options: Options) -> None:
    """Show what every workload with GPUs used, how much of it was idle, and what to do.

    Reads the samples of the last days from Prometheus, at most two queries a second. It needs no
    KEDA and no scaler, and changes nothing. The Prometheus is that of the settings of serve
    (KEDA_GPU_SCALER_… variables), or --prometheus-url.

    Exit status: 0 when there was something to show, 1 when the source shows no pod with a GPU or
    does not answer, 2 for a wrong argument, file or setting.
    """
    try:
        settings = _settings(options)
        seconds = durations.bounded(
            "--since", options.since, backtest.LONGEST_SECONDS, PART_SECONDS
        )
        cache = Cache(options.cache, UsagePart)
        for file in filter(None, (options.html, options.report)):
            file.touch()  # before minutes of reading, not after them
        if options.write is not None:
            options.write.mkdir(parents=True, exist_ok=True)
    except (errors.SettingsError, OSError, ValueError) as error:
        raise flags.failure(error, status=2) from error
    try:
        parts, (look, has_kube_state) = asyncio.run(_read(options, settings, cache, seconds))
    except (errors.SourceError, OSError) as error:
        raise flags.failure(f"source {options.source}: {error}") from error
    notes = list(preflight.sentences(look, has_kube_state=has_kube_state))
    found = report.Survey(usages(parts), seconds, options.price, notes)
    if options.report is not None:
        told = preflight.report(look, has_kube_state=has_kube_state, version=__version__)
        options.report.write_bytes(msgspec.json.format(msgspec.json.encode(told)) + b"\n")
    if options.html is not None:
        options.html.write_text(report.page(found), encoding="utf-8")
    objects = _objects(options, found.usages)
    worth = [text for usage, text in objects if usage.is_ever_idle]
    replays = _replays(options, worth[: options.replay])
    report.write(found, options.output, list(replays) if options.output == "json" else ())
    if not found.usages:
        raise flags.failure(f"no pod with a GPU in the last {options.since}")
    if options.output == "text":
        for result in replays:
            output.write([result], options.price, None, as_json=False)


def _objects(options: Options, found: Sequence[Usage]) -> list[tuple[Usage, str]]:
    """Return a ScaledObject for each workload that has one, and write it where that is asked."""
    texts = [(usage, scaled_object(usage, options.source)) for usage in found]
    objects = [(usage, text) for usage, text in texts if text is not None]
    if options.write is not None:
        for usage, text in objects:
            file = options.write / f"{str(usage.used).replace('/', '-')}.yaml"
            file.write_text(text, encoding="utf-8")
    return objects


def _replays(options: Options, texts: list[str]) -> Iterator[Result]:
    for text in texts:
        replayed = backtest.Options(
            file="-",
            prometheus_url=options.prometheus_url,
            since=options.since,
            price=options.price,
        )
        # Its reason is on the standard error output; the survey stands, and so do the others.
        with contextlib.suppress(typer.Exit):
            yield from asyncio.run(backtest.replayed(replayed, text))


def _settings(options: Options) -> PrometheusSettings:
    settings = local.source_settings(options.prometheus_url).sources.get(options.source)
    if not isinstance(settings, PrometheusSettings) or settings.is_per_namespace:
        what = "expected a source of type prometheus that is asked about all namespaces"
        raise ValueError(f"--source {options.source}: {what}")
    return settings


async def _read(
    options: Options, settings: PrometheusSettings, cache: Cache[UsagePart], seconds: float
) -> tuple[list[UsagePart], tuple[Look, bool]]:
    console = Console(stderr=True)
    client = PrometheusClient(options.source, settings, before_query=pause)
    try:
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task(f"read {options.since}", total=1.0)
            reader = SurveyReader(client, cache)
            look = await reader.look()
            parts = await reader.read(seconds, lambda share: progress.update(task, completed=share))
            return parts, look
    finally:
        await client.close()
