"""The result of a backtest: a table for people, JSON, and a page with plots."""

import math
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from keda_gpu_scaler import errors
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.spec.workload import Kind, Workload
from keda_gpu_scaler.workbench.backtest import recipes
from keda_gpu_scaler.workbench.backtest.advice import (
    Advice,
    Alternative,
    Case,
    gpu_hours,
    number,
    percent,
    share,
)
from keda_gpu_scaler.workbench.backtest.page import Section, page
from keda_gpu_scaler.workbench.backtest.recorded import HOLE_SECONDS
from keda_gpu_scaler.workbench.backtest.replay import Outcome
from keda_gpu_scaler.workbench.backtest.work import Work
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS

WIDTH = 120
TICKS = 8
"""The most times on the axis of a plot."""
FUTILE_SHOWN = 10
"""The newest scale-outs that did not help."""


_NEW_NAMES = frozenset({Kind.DEPLOYMENT, Kind.REPLICA_SET, Kind.ROLLOUT})
"""Each of their pods has a name that no other one had."""


class Job(NamedTuple):
    """One trigger to replay."""

    scaled_object: ScaledObject
    case: Case
    others: tuple[str, ...]
    """What is left out: the types of other triggers, and what else would scale it."""
    stays: bool
    """It goes to zero, and nothing in the trigger says then that there is work: so here it stays
    at one."""

    @property
    def hole_seconds(self) -> float:
        """How long a pod can be away and be the same one after it."""
        pods = self.case.spec.pods
        has_new_names = isinstance(pods, Workload) and pods.kind in _NEW_NAMES
        return math.inf if has_new_names else HOLE_SECONDS

    def replica_of(self, pod: str) -> str:
        return self.case.spec.pods.replica_of(pod, frozenset())


class Result(NamedTuple):
    """What came of one trigger."""

    job: Job
    work: Work
    outcomes: list[tuple[Alternative, Outcome]]
    references: list[tuple[str, Outcome]]
    advice: Advice


def write(
    results: Sequence[Result], price: float | None, html: Path | None, *, as_json: bool
) -> None:
    """Write all results; OSError: the page cannot be written."""
    sections = [_section(result, price) for result in results]
    if html is not None:
        html.write_text(page(sections), encoding="utf-8")
    if as_json:
        values = [json_of(result, price) for result in results]
        typer.echo(msgspec.json.format(msgspec.json.encode(values)))
        return
    console = Console(
        highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else WIDTH
    )
    for result, section in zip(results, sections, strict=True):
        console.print(section.title, style="bold")
        table = Table()
        for column, head in enumerate(section.heads):
            table.add_column(head, justify="right" if column else "left")
        for row in section.rows:
            table.add_row(*row)
        console.print(table)
        *notes, advice = section.notes
        for note in notes:
            console.print(errors.without_controls(note))
        console.print(advice, style="bold")
        if result.advice.threshold is not None:
            key = result.job.case.key
            console.print(f'\n  metadata:\n    {key}: "{number(result.advice.threshold)}"')


def _section(result: Result, price: float | None) -> Section:
    job, work = result.job, result.work
    costs = [] if price is None else ["cost"]
    heads = ["alternative", "GPU-hours", *costs, "overloaded", "of the time", "changes", "wakes"]
    outcomes = dict(_named(result))
    rows = []
    for name, outcome in outcomes.items():
        hours = gpu_hours(work, outcome)
        rows.append(
            [
                name,
                f"{hours:,.1f}",
                *([] if price is None else [f"{hours * price:,.2f}"]),
                durations.text(outcome.overloaded_seconds),
                percent(share(work, outcome)),
                str(outcome.changes),
                str(outcome.wakes),
                durations.text(outcome.longest_wake_seconds) if outcome.wakes else "",
            ]
        )
    title = f"{job.scaled_object}, {job.case.spec.workload}"
    notes = [*_notes(result), result.advice.sentence]
    times = [*ticks(work.begin, STEP_SECONDS * len(work.loads))]
    return Section(title, work, _drawn(result), [*heads, "longest wake"], rows, notes, times)


def ticks(begin: float, seconds: float) -> Iterator[tuple[float, str]]:
    """Yield times of the day in UTC, and where they are in parts of all of the time."""
    steps = (hours * 3600 for hours in (0.25, 1, 3, 6, 12, 24))
    every = next((step for step in steps if seconds / step <= TICKS), 24 * 3600)
    for tick in range(math.ceil(begin / every), math.ceil((begin + seconds) / every)):
        at = datetime.fromtimestamp(tick * every, UTC)
        yield (tick * every - begin) / seconds, f"{at:%H:%M}" if every % 86400 else f"{at:%b %d}"


def _drawn(result: Result) -> dict[str, Outcome]:
    """Return what is worth a curve: the trigger as it is, as advised, by `sum()`, by foresight."""
    ways = [way for way, _ in result.outcomes]
    advised = [way for way in ways[1:] if way.threshold == result.advice.threshold]
    usual = [way for way in ways if way.recipe is recipes.SUM]
    names = {way.name for way in (*ways[:1], *advised[:1], *usual)}
    foresight = result.references[-1:]
    return {way.name: outcome for way, outcome in result.outcomes if way.name in names} | dict(
        foresight
    )


def _named(result: Result) -> Iterator[tuple[str, Outcome]]:
    """Yield every outcome: thresholds from the lowest on, then recipes and references."""
    ordered = sorted(result.outcomes, key=lambda pair: (bool(pair[0].recipe), pair[0].threshold))
    yield from ((alternative.name, outcome) for alternative, outcome in ordered)
    yield from result.references


def _notes(result: Result) -> Iterator[str]:
    """Yield what the numbers rest on."""
    work, case = result.work, result.job.case
    seconds = STEP_SECONDS * len(work.loads)
    until = datetime.fromtimestamp(work.begin + seconds, UTC)
    yield (
        f"The work of {durations.text(seconds)} until {until:%Y-%m-%d %H:%M} UTC is known for "
        f"{percent(work.coverage)} of the time, and GPU-hours cover that part. "
        + (
            f"A replica has {work.gpus} GPU{'s' * (work.gpus != 1)}."
            if work.gpus
            else "No exporter shows its GPUs: GPU-hours are replica-hours."
        )
    )
    if work.full:
        yield (
            f"All GPUs were full for {percent(work.saturation)} of the known time, and the work "
            "may have been more then."
        )
    yield (
        f"Assumed: a pod waits {durations.text(case.node_seconds)} for its node (--node) and is "
        f"Ready {durations.text(case.start_seconds)} later (--start-up). Its GPUs show "
        f"{case.loading:g} % until then (--loading)."
    )
    if result.job.stays:
        yield "Not replayed: zero replicas, because no demand of the trigger wakes the workload."
    for at, sentence in work.futile[-FUTILE_SHOWN:]:
        yield f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC: {sentence}."
    if len(work.futile) > FUTILE_SHOWN:
        yield f"{len(work.futile)} scale-outs did not help in all."
    if result.job.others:
        yield f"Left out: {', '.join(result.job.others)}."


def json_of(result: Result, price: float | None) -> dict[str, Any]:
    """Return a result as its JSON has it."""
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
                "gpu_hours": gpu_hours(work, outcome),
                "cost": None if price is None else gpu_hours(work, outcome) * price,
                "overloaded_seconds": outcome.overloaded_seconds,
                "overloaded_share": share(work, outcome),
                "changes": outcome.changes,
                "wakes": outcome.wakes,
                "longest_wake_seconds": outcome.longest_wake_seconds,
                "replicas": outcome.sizes,
            }
            for name, outcome in _named(result)
        ],
        "notes": list(_notes(result)),
        "advice": result.advice.sentence,
        "recommended": {result.job.case.key: result.advice.threshold},
    }
