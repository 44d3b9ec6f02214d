"""What `backtest` does: reads the past of each trigger, replays it, and writes the result."""

import asyncio
import functools
import math
import multiprocessing
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor

import msgspec
from rich.console import Console
from rich.progress import Progress, TaskID

from keda_gpu_scaler import check, errors
from keda_gpu_scaler.autoscaling.objects import Behavior, quantity
from keda_gpu_scaler.autoscaling.rules import CLUSTERS, MetricType, Tolerances
from keda_gpu_scaler.backtest.advice import (
    Alternative,
    Case,
    advise,
    alternatives,
    references,
    replay,
)
from keda_gpu_scaler.backtest.recorded import work_of
from keda_gpu_scaler.backtest.replay import Limits, Outcome
from keda_gpu_scaler.backtest.work import Work
from keda_gpu_scaler.check.objects import Manifest, Trigger
from keda_gpu_scaler.cli import arguments, backtest_output, files, local
from keda_gpu_scaler.cli.backtest import Options
from keda_gpu_scaler.cli.backtest_output import Job, Result
from keda_gpu_scaler.cli.past import CHUNK_SECONDS, Cache, PastReader
from keda_gpu_scaler.settings import Settings
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import GpuAggregation, Signal, TriggerSpec
from keda_gpu_scaler.spec.workload import ScaleTarget

DAY_SECONDS = 86_400.0
LONGEST_SECONDS = 90 * DAY_SECONDS
"""Few Prometheus keep more, and it takes twenty minutes to read."""
_SHOW_FULL = frozenset({Signal.UTILIZATION, Signal.ENCODER, Signal.DECODER})
"""The signals that are at 100 % while there is more work than a GPU can do."""
_BEHAVIOR = ("spec", "advanced", "horizontalPodAutoscalerConfig", "behavior")


async def run(options: Options, text: str) -> None:
    """Replay the past; ends the command with its exit status if that is not 0."""
    try:
        settings = local.source_settings(options.prometheus_url)
        seconds = durations.bounded("--since", options.since, LONGEST_SECONDS, CHUNK_SECONDS)
        jobs, cache = _jobs(options, text, settings), Cache(options.cache)
        if options.html is not None:  # before minutes of reading, not after them
            options.html.touch()
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
                message = f"{name}: source {job.case.spec.source}: {error}"
                raise arguments.failure(message) from error
            work = work_of(
                chunks,
                job.replica_of,
                job.case.start_seconds,
                options.capacity,
                job.hole_seconds,
            )
            if not work.covered_seconds:
                what = "demand" if job.case.spec.is_by_demand else "sample of a GPU"
                raise arguments.failure(f"{name}: no {what} in the last {options.since}")
            results.append(await _replay(job, work, options, progress))
    backtest_output.write(results, options)


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
    triggers = files.triggers({options.file: text}, options.namespace, options.scaled_object)
    parsed, findings = check.parse(triggers, settings.access)
    files.refuse(findings)
    for option, numbers in (
        ("--threshold", options.threshold or ()),
        ("--capacity", () if options.capacity is None else (options.capacity,)),
    ):
        if not all(0 < number < math.inf for number in numbers):
            raise ValueError(f"{option}: expected a number above 0")
    start = durations.bounded("--start-up", options.start_up, DAY_SECONDS)
    node = durations.bounded("--node", options.node, DAY_SECONDS)
    jobs = []
    for trigger, (scaled_object, spec) in zip(triggers, parsed, strict=True):
        refuse(trigger, spec, _unfit(spec, options.capacity))
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
        others = tuple(
            [f"trigger {other.type}" for other in trigger.of.triggers if other is not trigger]
            + ["activationWorkload"] * (spec.neighbour is not None)
        )
        jobs.append(Job(scaled_object, case, others, stays))
    return jobs


def metric_type_of(trigger: Trigger) -> MetricType:
    return MetricType.AVERAGE_VALUE if trigger.average else MetricType.VALUE


def refuse(trigger: Trigger, spec: TriggerSpec, others: Mapping[str, bool]) -> None:
    """ValueError: no load can be replayed under this trigger, or one of the `others` applies."""
    is_work = spec.is_by_demand or spec.signal in _SHOW_FULL
    is_sum = spec.gpu_aggregation is GpuAggregation.SUM and not spec.is_by_demand
    reasons = {
        "expected a ScaledObject, as KEDA makes no HPA for a ScaledJob": (
            trigger.of.kind == "ScaledJob"
        ),
        "scalingModifiers: their target scales in place of the trigger's threshold; expected a "
        "copy of the ScaledObject without them": bool(trigger.of.formula),
        f"signal {spec.signal}: expected utilization, as it need not follow the work up to 100 %": (
            not is_work
        ),
        "gpuAggregation sum: expected average, with threshold divided by the GPUs of a replica": (
            is_sum
        ),
        **others,
    }
    for why, applies in reasons.items():
        if applies:
            raise ValueError(f"{trigger.of.scaled_object}: {why}")


def _unfit(spec: TriggerSpec, capacity: float | None) -> dict[str, bool]:
    """Return what can keep the past of a trigger from being replayed, and whether it does."""
    return {
        "expected workload or podPattern, because Prometheus shows pods of the past only by name": (
            isinstance(spec.pods, ScaleTarget)
        ),
        "no threshold: expected --capacity, the most demand that one replica can serve": (
            spec.is_by_demand and capacity is None
        ),
        "--capacity is only for a trigger without threshold, which scales by its demand": (
            capacity is not None and not spec.is_by_demand
        ),
    }


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
