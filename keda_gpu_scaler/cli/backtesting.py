"""What `backtest` does: reads the past of each trigger, replays it, and writes the result."""

import asyncio
import functools
import math
import multiprocessing
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import orjson
import typer
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from keda_gpu_scaler import check, errors
from keda_gpu_scaler.autoscaling.objects import Behavior, quantity
from keda_gpu_scaler.autoscaling.rules import CLUSTERS, MetricType, Tolerances
from keda_gpu_scaler.backtest.advice import (
    Advice,
    Alternative,
    Case,
    advise,
    alternatives,
    percent,
    references,
    replay,
    share,
)
from keda_gpu_scaler.backtest.loop import STEP_SECONDS
from keda_gpu_scaler.backtest.recorded import work_of
from keda_gpu_scaler.backtest.replay import Limits, Outcome
from keda_gpu_scaler.backtest.work import Work
from keda_gpu_scaler.check.objects import Manifest, Terms, Trigger
from keda_gpu_scaler.cli import arguments, files, local
from keda_gpu_scaler.cli.backtest import Options
from keda_gpu_scaler.cli.past import Cache, PastReader
from keda_gpu_scaler.settings import Settings
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import GpuAggregation, ScaledObject, TriggerSpec
from keda_gpu_scaler.spec.workload import ScaleTarget

WIDTH = 120
DAY_SECONDS = 86_400.0
LONGEST_SECONDS = 90 * DAY_SECONDS
"""Few Prometheus keep more, and it takes twenty minutes to read."""
_BEHAVIOR = ("spec", "advanced", "horizontalPodAutoscalerConfig", "behavior")


class _Job(NamedTuple):
    """One trigger to replay."""

    scaled_object: ScaledObject
    case: Case
    others: tuple[str, ...]
    """The types of the ScaledObject's other triggers, which are left out."""
    stays: bool
    """It goes to zero, and nothing in the trigger says then that there is work: so here it stays
    at one."""

    def replica_of(self, pod: str) -> str:
        return self.case.spec.pods.replica_of(pod, frozenset())


class _Result(NamedTuple):
    job: _Job
    work: Work
    outcomes: list[tuple[Alternative, Outcome]]
    references: list[tuple[str, Outcome]]
    advice: Advice


async def run(options: Options, text: str) -> None:
    """Replay the past; ends the command with its exit status if that is not 0."""
    try:
        settings = local.source_settings(options.prometheus_url)
        seconds = _seconds("--since", options.since, LONGEST_SECONDS)
        jobs, cache = _jobs(options, text, settings), Cache(options.cache)
    except (errors.SettingsError, OSError, ValueError) as error:
        raise arguments.failure(error, status=2) from error
    console, results = Console(stderr=True), []
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        for job in jobs:
            name = str(job.scaled_object)
            task = progress.add_task(f"{name}: read {options.since}", total=1.0)
            try:
                async with PastReader(job.case.spec, settings, cache) as reader:
                    chunks = await reader.read(
                        seconds, functools.partial(_show_part, progress, task)
                    )
            except (errors.SourceError, errors.SettingsError, OSError) as error:
                raise arguments.failure(f"{name}: {error}") from error
            work = work_of(chunks, job.replica_of, job.case.start_seconds, options.capacity)
            if not work.covered_seconds:
                raise arguments.failure(f"{name}: no samples in the last {options.since}")
            results.append(await _replay(job, work, options, progress))
    if options.output == "json":
        values = [_as_json(result, options) for result in results]
        typer.echo(orjson.dumps(values, option=orjson.OPT_INDENT_2))
    else:
        for result in results:
            _write(result, options)


def _show_part(progress: Progress, task: TaskID, part: float) -> None:
    progress.update(task, completed=part)


async def _replay(job: _Job, work: Work, options: Options, progress: Progress) -> _Result:
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
    return _Result(
        job,
        work,
        pairs,
        list(references(job.case, work, most_overloaded)),
        advise(job.case, work, pairs, most_overloaded),
    )


def _jobs(options: Options, text: str, settings: Settings) -> list[_Job]:
    """Return what to replay; FileError or ValueError: it cannot be."""
    wanted = None if options.scaled_object is None else str(options.scaled_object)
    triggers, refused = files.triggers({options.file: text}, Terms(options.namespace), wanted)
    parsed, findings = check.parse(triggers, settings.access)
    files.refuse([*refused, *findings])
    for option, numbers in (
        ("--threshold", options.threshold or ()),
        ("--capacity", () if options.capacity is None else (options.capacity,)),
    ):
        if any(not 0 < number < math.inf for number in numbers):
            raise ValueError(f"{option}: expected a number above 0")
    start, node = _seconds("--start-up", options.start_up), _seconds("--node", options.node)
    jobs = []
    for trigger, (scaled_object, spec) in zip(triggers, parsed, strict=True):
        if (why := _unfit(spec, options.capacity)) is not None:
            raise ValueError(f"{scaled_object}: {why}")
        limits = limits_of(trigger.of)
        stays = limits.goes_to_zero and not (spec.demand is not None and spec.demand.wakes)
        case = Case(
            spec=spec,
            limits=limits.above_zero() if stays else limits,
            metric_type=metric_type_of(trigger),
            start_seconds=start,
            node_seconds=node,
            loading=options.loading,
        )
        others = tuple(other.type for other in trigger.of.triggers if other is not trigger)
        jobs.append(_Job(scaled_object, case, others, stays))
    return jobs


def metric_type_of(trigger: Trigger) -> MetricType:
    return MetricType.AVERAGE_VALUE if trigger.average else MetricType.VALUE


def _seconds(option: str, text: str, most: float = DAY_SECONDS) -> float:
    try:
        seconds = durations.parse(text)
    except ValueError as error:
        raise ValueError(f"{option} {text!r}: expected {error}") from error
    if seconds > most:
        raise ValueError(f"{option} {text!r}: expected at most {durations.text(most)}")
    return seconds


def _unfit(spec: TriggerSpec, capacity: float | None) -> str | None:
    """Return why a trigger cannot be replayed; None: it can."""
    needs_capacity = spec.is_by_demand and capacity is None
    is_work = spec.is_by_demand or (spec.signal.is_percentage and spec.signal.follows_work)
    is_sum = spec.gpu_aggregation is GpuAggregation.SUM and not spec.is_by_demand
    reasons = {
        "no workload is given: expected workload, because pods of the past are known by their "
        "names": isinstance(spec.pods, ScaleTarget),
        "the demand alone scales: expected --capacity, the most that a replica can serve": (
            needs_capacity
        ),
        "--capacity is for a trigger without threshold, in which the demand alone scales": (
            capacity is not None and not spec.is_by_demand
        ),
        f"signal {spec.signal} does not follow the work: expected a utilization": not is_work,
        "gpuAggregation sum: expected average, with threshold divided by the GPUs of a replica": (
            is_sum
        ),
    }
    return next((why for why, applies in reasons.items() if applies), None)


def limits_of(manifest: Manifest) -> Limits:
    """Read what a ScaledObject says of replicas; ValueError names what is wrong."""
    node = manifest.node
    behavior, tolerances = None, CLUSTERS
    if (written := node.get(*_BEHAVIOR)) is not None:
        try:
            behavior = msgspec.convert(written.plain, Behavior, strict=False)
        except msgspec.ValidationError as error:
            raise ValueError(f"{manifest.subject}: {'.'.join(_BEHAVIOR)}: {error}") from error
        up, down = (
            quantity(direction.tolerance) for direction in (behavior.scale_up, behavior.scale_down)
        )
        tolerances = Tolerances(
            up=CLUSTERS.up if up is None else up, down=CLUSTERS.down if down is None else down
        )
    cooldown = node.integer("spec", "cooldownPeriod")
    return Limits(
        minimum=manifest.minimum,
        maximum=manifest.maximum,
        goes_to_zero=manifest.goes_to_zero,
        cooldown_seconds=300 if cooldown is None else cooldown,
        behavior=behavior,
        tolerances=tolerances,
    )


def _write(result: _Result, options: Options) -> None:
    """Write a result for people."""
    work, case = result.work, result.job.case
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    until = datetime.fromtimestamp(work.begin + STEP_SECONDS * len(work.loads), UTC)
    gpus = "1 GPU" if work.gpus == 1 else f"{work.gpus} GPUs"
    table = Table("alternative", title=f"{result.job.scaled_object}, {case.spec.workload}")
    heads = ["GPU-hours", "overloaded", "of the time", "changes", "wakes", "longest wake"]
    if options.price is not None:
        heads.insert(1, "cost")
    for head in heads:
        table.add_column(head, justify="right")
    for name, outcome in _rows(result):
        hours = outcome.replica_hours * work.gpus
        cells = [
            f"{hours:,.1f}",
            durations.text(outcome.overloaded_seconds),
            percent(share(work, outcome)),
            str(outcome.changes),
            str(outcome.wakes),
            durations.text(outcome.longest_wake_seconds) if outcome.wakes else "",
        ]
        if options.price is not None:
            cells.insert(1, f"{hours * options.price:,.2f}")
        table.add_row(name, *cells)
    console.print(table)
    console.print(
        f"The work of {durations.text(STEP_SECONDS * len(work.loads))} until "
        f"{until:%Y-%m-%d %H:%M} UTC is known in {percent(work.coverage)} of the time; a replica "
        f"has {gpus}. All GPUs were full in {percent(work.saturation)} of it: there may have been "
        "more work then."
    )
    for note in _notes(result):
        console.print(note)
    console.print(result.advice.sentence, style="bold")
    if result.advice.threshold is not None:
        console.print(f'\n  metadata:\n    {case.key}: "{result.advice.threshold:g}"')


def _rows(result: _Result) -> Iterator[tuple[str, Outcome]]:
    yield from ((alternative.name, outcome) for alternative, outcome in result.outcomes)
    yield from result.references


def _notes(result: _Result) -> Iterator[str]:
    """Yield what the numbers rest on."""
    case = result.job.case
    yield (
        f"Assumed: a pod is Ready {durations.text(case.start_seconds)} after it has a node, which "
        f"takes {durations.text(case.node_seconds)}, and its GPUs show {case.loading:g} % until "
        "then (--start-up, --node, --loading)."
    )
    if result.job.stays:
        yield "Not replayed: zero replicas, as nothing in the trigger says then that there is work."
    if result.job.others:
        yield f"Left out: the other triggers ({', '.join(result.job.others)})."


def _as_json(result: _Result, options: Options) -> dict[str, Any]:
    work = result.work
    return {
        "scaled_object": str(result.job.scaled_object),
        "workload": result.job.case.spec.workload,
        "begin": work.begin,
        "step_seconds": STEP_SECONDS,
        "coverage": work.coverage,
        "saturation": work.saturation,
        "gpus_per_replica": work.gpus,
        "work": work.loads,
        "alternatives": [
            {
                "name": name,
                "gpu_hours": outcome.replica_hours * work.gpus,
                "cost": None
                if options.price is None
                else outcome.replica_hours * work.gpus * options.price,
                "overloaded_seconds": outcome.overloaded_seconds,
                "overloaded_share": share(work, outcome),
                "changes": outcome.changes,
                "wakes": outcome.wakes,
                "longest_wake_seconds": outcome.longest_wake_seconds,
                "replicas": outcome.sizes,
            }
            for name, outcome in _rows(result)
        ],
        "notes": list(_notes(result)),
        "advice": result.advice.sentence,
        "recommended": {result.job.case.key: result.advice.threshold},
    }
