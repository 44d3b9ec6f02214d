"""Public traces, replayed by `backtest`: the work, and the replicas of some alternatives."""

import csv
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.decisions import HERE, PEAK_REPLICAS, THRESHOLD, load
from benchmarks.drawings import Curve, Panel, picture, words
from keda_gpu_scaler.spec.durations import DAY_SECONDS
from keda_gpu_scaler.workbench.backtest.advice import Alternative, Case, percent, replay, share
from keda_gpu_scaler.workbench.backtest.recipes import AVERAGE
from keda_gpu_scaler.workbench.backtest.replay import clairvoyant
from keda_gpu_scaler.workbench.backtest.work import Work
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.triggers import spec

WINDOW_SECONDS = 600
"""Of a row of ServeGen's."""


class Trace(NamedTuple):
    """The work of a trace."""

    title: str
    loads: Sequence[float]
    """Of each step, in percent of a replica."""
    marks: Sequence[tuple[float, str]]
    """Labels of the time, and where they are in parts of all of it."""


def azure() -> Trace:
    """Return the hour of Azure's trace of conversations."""
    bins = load("azure2023_conv_10s", 1)
    steps = len(bins) * 10 // STEP_SECONDS
    minutes = range(0, 60, 10)
    return Trace(
        "Azure's conversations of 2023, an hour: work in percent of a GPU",
        [bins[step * STEP_SECONDS // 10] for step in range(steps)],
        [(minute * 60 / STEP_SECONDS / steps, f"{minute} min") for minute in minutes],
    )


def servegen() -> Trace:
    """Return a week of a client of ServeGen, whose rate changes evenly between two rows."""
    with (HERE / "traces" / "servegen_m-small_600s.csv").open(encoding="utf-8") as lines:
        rates = [float(row["c38"]) for row in csv.DictReader(lines)]
    steps, each = 7 * DAY_SECONDS // STEP_SECONDS, WINDOW_SECONDS // STEP_SECONDS
    rates = rates[: steps // each + 1]
    unit = PEAK_REPLICAS * THRESHOLD / max(rates)
    loads = []
    for step in range(steps):
        row, part = divmod(step, each)
        loads.append(unit * (rates[row] + (rates[row + 1] - rates[row]) * part / each))
    days = [(day / 7, f"day {day + 1}") for day in range(7)]
    return Trace("ServeGen's client 38, a week: work in percent of a GPU", loads, days)


def replayed(trace: Trace) -> str:
    """Return the replicas of this scaler, of the usual query and of foresight, under the work."""
    work = Work(0.0, trace.loads, replicas=[1], gpus=1)
    case = Case(spec=spec()).above_zero()
    outcomes = [
        ("clairvoyant", "l", clairvoyant(work, case.start_seconds)),
        ("threshold 70", "o", replay(case, work, Alternative("", THRESHOLD))),
        ("avg()", "u", replay(case, work, Alternative("", THRESHOLD, AVERAGE))),
    ]
    curves = [
        Curve(
            f"{name}: {outcome.replica_hours:,.0f} GPU-hours, overloaded "
            f"{percent(share(work, outcome))} of the time",
            kind,
            [size or 0 for size in outcome.sizes],
        )
        for name, kind, outcome in outcomes
    ]
    most = max(max(curve.values) for curve in curves)
    over, under = Panel(64, 46, 766, 60, max(trace.loads)), Panel(64, 150, 766, 150, most)
    return picture(
        860,
        390,
        "; ".join(curve.name for curve in curves),
        words(12, 26, trace.title, "t"),
        over.axis((0, round(over.highest)), " %"),
        over.steps(Curve("work", "l", trace.loads[:: 1 + len(trace.loads) // over.width])),
        words(12, 134, "Replicas", "t"),
        under.axis((0, most)),
        *(under.steps(curve) for curve in curves),
        *(
            words(64, 342 + 18 * number, curve.name, f"{curve.kind} n")
            for number, curve in enumerate(curves)
        ),
        "".join(
            f'<text class="q m" x="{under.left + under.width * at:.1f}" y="318">{label}</text>'
            for at, label in trace.marks
        ),
    )
