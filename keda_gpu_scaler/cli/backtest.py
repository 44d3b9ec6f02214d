"""`keda-gpu-scaler backtest`: replay recorded load under other thresholds, recipes and sizes."""

import asyncio
import dataclasses
import functools
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, TaskID

from keda_gpu_scaler import errors
from keda_gpu_scaler.cli import flags
from keda_gpu_scaler.cli.flags import option
from keda_gpu_scaler.settings import Settings
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.workbench import check, local, manifest_files
from keda_gpu_scaler.workbench.backtest import cases, episode, output
from keda_gpu_scaler.workbench.backtest.advice import (
    Alternative,
    advise,
    alternatives,
    references,
    replay,
)
from keda_gpu_scaler.workbench.backtest.output import Job, Result
from keda_gpu_scaler.workbench.backtest.past import CHUNK_SECONDS, read_past
from keda_gpu_scaler.workbench.backtest.recorded import Chunk, work_of
from keda_gpu_scaler.workbench.backtest.replay import Outcome
from keda_gpu_scaler.workbench.backtest.work import Work
from keda_gpu_scaler.workbench.cache import Cache

LONGEST_SECONDS = 90.0 * durations.DAY_SECONDS
"""Few Prometheus keep more, and it takes twenty minutes to read."""
_OF_AN_EPISODE = "file", "namespace"
"""What a command with an episode takes."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to replay, what is assumed of its pods, and how the result is shown."""

    file: Annotated[str, typer.Argument(metavar="FILE|-", help="YAML with ScaledObjects.")]
    scaled_object: Annotated[
        ScaledObject | None,
        typer.Argument(
            metavar="NAMESPACE/NAME",
            help="The ScaledObject to replay; all in the file unless one is named.",
            parser=flags.read_scaled_object,
        ),
    ] = None
    prometheus_url: flags.PrometheusUrl = None
    namespace: flags.Namespace = "default"
    since: flags.Since = "7d"
    cache: flags.CacheFile = None
    threshold: Annotated[
        list[float] | None, option("NUMBER", "A threshold to try; may be repeated.")
    ] = None
    start_up: Annotated[str, option("DURATION", "Time from a pod's node to Ready.")] = "2m"
    node: Annotated[str, option("DURATION", "How long a pod waits for its node.")] = "0s"
    loading: Annotated[
        float, option("PERCENT", "GPU load while a model loads.", min=0, max=100)
    ] = 100
    capacity: Annotated[
        float | None,
        option("NUMBER", "Without threshold: the most demand that one replica can serve."),
    ] = None
    overloaded: Annotated[
        float, option("PERCENT", "Share of the time that may be overloaded.", min=0, max=100)
    ] = 1
    price: flags.Price = None
    html: Annotated[
        Path | None, option("FILE", "Also write a page with plots.", dir_okay=False)
    ] = None
    output: flags.Output = "text"


def backtest(options: Options) -> None:
    """Replay recorded load under this trigger, other thresholds and KEDA's prometheus trigger.

    Reads the samples of the last days from Prometheus, at most two queries a second, and computes
    the replicas of each alternative with the scaler's code and the rules of KEDA and the HPA. It
    changes nothing. The Prometheus is that of the settings of serve (KEDA_GPU_SCALER_… variables),
    or --prometheus-url.

    With a document of kind Episode in the file it is a test: it replays the load of the Episode and
    queries no source.

    Exit status: 0 when the load was replayed, 1 when the source has nothing to replay or the
    replicas are not as an Episode expects, 2 for a wrong argument, file or setting.
    """
    try:
        text = manifest_files.read_text(options.file)
    except ValueError as error:
        raise flags.failure(error, status=2) from error
    if not _run_episodes(options, text):
        results = asyncio.run(replayed(options, text))
        output.write(results, options.price, options.html, as_json=options.output == "json")


def _run_episodes(options: Options, text: str) -> bool:
    """Run the episodes of a file; False: it has none. Ends the command if one fails, or is wrong.

    Each of them is about the one ScaledObject in the file, or the one that its metadata name.
    """
    manifests, _ = check.read_objects({options.file: text}, options.namespace)
    episodes = [manifest for manifest in manifests if manifest.kind == episode.KIND]
    if not episodes:
        return False
    for field in dataclasses.fields(options):
        if field.name not in _OF_AN_EPISODE and getattr(options, field.name) != field.default:
            what = "expected none beside an Episode, which says all"
            name = f"--{field.name.replace('_', '-')}"
            raise flags.wrong({"scaled_object": "NAMESPACE/NAME"}.get(field.name, name), what)
    try:
        triggers = manifest_files.triggers({options.file: text}, options.namespace)
        manifest_files.refuse(
            f for trigger in triggers for f in check.refused(trigger, trigger.mistakes)
        )
        results = [cases.run_episode(manifest, triggers) for manifest in episodes]
    except ValueError as error:
        raise flags.failure(error, status=2) from error
    for as_expected, failures in results:
        for failure in failures:
            typer.echo(errors.without_controls(failure), err=True)
        if not failures:
            typer.echo(as_expected)
    if any(failures for _, failures in results):
        raise typer.Exit(1)
    return True


async def replayed(options: Options, text: str) -> list[Result]:
    """Replay the past; ends the command with its exit status if that is not 0."""
    try:
        settings = local.source_settings(options.prometheus_url)
        seconds = durations.bounded("--since", options.since, LONGEST_SECONDS, CHUNK_SECONDS)
        jobs, cache = _jobs(options, text, settings), Cache(options.cache, Chunk)
        if options.html is not None:  # before minutes of reading, not after them
            options.html.touch()
    except (errors.SettingsError, OSError, ValueError) as error:
        raise flags.failure(error, status=2) from error
    console, results = Console(stderr=True), []
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        for job in jobs:
            name = str(job.scaled_object)
            task = progress.add_task(f"{name}: read {options.since}", total=1.0)
            try:
                tell = functools.partial(_show_part, progress, task)
                chunks = await read_past(job.case.spec, settings, cache, seconds, tell)
            except (errors.SourceError, errors.SettingsError, OSError) as error:
                message = f"{name}: source {job.case.spec.source}: {error}"
                raise flags.failure(message) from error
            work = work_of(
                chunks,
                job.replica_of,
                job.case.start_seconds,
                options.capacity,
                job.hole_seconds,
            )
            if not work.covered_seconds:
                what = "demand" if job.case.spec.is_by_demand else "sample of a GPU"
                raise flags.failure(f"{name}: no {what} in the last {options.since}")
            results.append(await _replay(job, work, options, progress))
    return results


def _show_part(progress: Progress, task: TaskID, part: float) -> None:
    progress.update(task, completed=part)


async def _replay(job: Job, work: Work, options: Options, progress: Progress) -> Result:
    """Replay all alternatives, each in a process of its own."""
    tried = list(alternatives(job.case, options.threshold or ()))
    task = progress.add_task(f"{job.scaled_object}: replay", total=len(tried))
    most_overloaded = options.overloaded / 100
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:

        async def outcome_of(alternative: Alternative) -> Outcome:
            outcome = await loop.run_in_executor(pool, replay, job.case, work, alternative)
            progress.advance(task)
            return outcome

        outcomes = await asyncio.gather(*map(outcome_of, tried))
    pairs = list(zip(tried, outcomes, strict=True))
    return Result(
        job,
        work,
        pairs,
        list(references(job.case, work, most_overloaded)),
        advise(job.case, work, pairs, most_overloaded),
    )


def _jobs(options: Options, text: str, settings: Settings) -> list[Job]:
    """Return what to replay; ValueError: it cannot be."""
    triggers = manifest_files.triggers(
        {options.file: text}, options.namespace, options.scaled_object
    )
    parsed, findings = check.parse(triggers, settings.access)
    manifest_files.refuse(findings)
    for flag, numbers in (
        ("--threshold", options.threshold or ()),
        ("--capacity", () if options.capacity is None else (options.capacity,)),
    ):
        if not all(0 < number < math.inf for number in numbers):
            raise ValueError(f"{flag}: expected a number above 0")
    start = durations.bounded("--start-up", options.start_up, durations.DAY_SECONDS)
    node = durations.bounded("--node", options.node, durations.DAY_SECONDS)
    jobs = []
    for trigger, (scaled_object, spec) in zip(triggers, parsed, strict=True):
        cases.refuse(trigger, spec, cases.unfit(spec, options.capacity))
        case = cases.case_of(trigger, spec, start, node, options.loading)
        stays = case.keda.goes_to_zero and not (spec.demand is not None and spec.demand.wakes)
        others = tuple(
            [f"trigger {other.type}" for other in trigger.of.triggers if other is not trigger]
            + ["activationWorkload"] * (spec.neighbour is not None)
        )
        jobs.append(Job(scaled_object, case.above_zero() if stays else case, others, stays))
    return jobs
