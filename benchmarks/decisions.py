"""How well replicas follow public traces: `make bench-decisions`.

The closed loops of `testbed/loops` on load curves of `benchmarks/traces`: the scaler's own
decisions, and models of everything around it, in simulated time. Each run begins with the replicas
that its load needs. All figures are the same for the same code: what is random comes from a seed.
"""

import asyncio
import csv
import functools
import itertools
import json
import math
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import decided, page
from benchmarks.decided import (
    AVERAGE,
    DEMAND,
    FIXED,
    LOADING,
    MORE,
    OURS,
    START_SECONDS,
    SUM,
    USUAL,
    VALUE,
    Row,
)
from benchmarks.results import RUNS
from keda_gpu_scaler.autoscaling.rules import Hpa
from keda_gpu_scaler.workbench.backtest import recipes
from keda_gpu_scaler.workbench.backtest.recipes import Recipe
from keda_gpu_scaler.workbench.world.loop import COLLECT_SECONDS
from testbed.loops.loop import BEGIN, Loop
from testbed.loops.monitoring import Scrapes, each_at_its_own_second
from testbed.triggers import demanding, spec

app = typer.Typer(pretty_exceptions_enable=False)

HERE = Path(__file__).parent
PEAK_REPLICAS, THRESHOLD = 12, 70
"""The highest load of a trace is that of so many replicas at this threshold, for each trigger."""
MOST_REPLICAS = 4 * PEAK_REPLICAS
BIN = 10
"""Seconds for which the load is the same."""
SMOOTH_BINS = 6
"""A request works for about a minute: the load is the mean of so many bins."""
PIECE_WINDOWS = 12
"""Two hours of a trace in windows of ten minutes."""
NOISE_SHAPE = 16
"""Of the gamma distribution of the work of a bin within a window, with a deviation of 25 % as in
the two traces that have bins."""
THRESHOLDS = 50, 60, 70, 80, 90
SETTINGS = {FIXED: (6, 7, 8, 10, 12), AVERAGE: (USUAL,), VALUE: (USUAL,)}
"""Of ways that have others than these thresholds."""
SEEDS = 5
WIDTH = 240
RECIPES: Mapping[str, Recipe] = {
    SUM: recipes.SUM,
    AVERAGE: recipes.AVERAGE,
    VALUE: recipes.AVERAGE_AS_VALUE,
}
WAYS = (OURS, MORE, DEMAND, *RECIPES, FIXED)
TRACES: Mapping[str, tuple[str, int]] = {
    "azure2023_conv_10s": ("output_tokens", BIN),
    "mooncake_conversation_10s": ("prompt_tokens", BIN),
    "servegen_m-small_600s": ("c38", 600),
}
"""The column that is the work of each, and the seconds of its windows."""


class Case(NamedTuple):
    """One run."""

    way: str
    setting: int
    """The threshold, and of a fixed size the replicas."""
    loading: int
    """What GPUs show while a model loads, in percent."""
    start_seconds: int
    trace: str
    seed: int


@functools.cache
def load(trace: str, seed: int) -> tuple[float, ...]:
    """Return the load of each bin in GPU percent; its highest is that of `PEAK_REPLICAS`.

    Of a trace with long windows it is a piece that the seed draws, with the arrivals within them.
    """
    column, window_seconds = TRACES[trace]
    with (HERE / "traces" / f"{trace}.csv").open(encoding="utf-8") as lines:
        bins = [float(row[column]) for row in csv.DictReader(lines)]
    if window_seconds > BIN:
        bins = _drawn(bins, window_seconds // BIN, random.Random(seed))  # noqa: S311 - no secret
    smooth = [mean(bins[max(0, at - SMOOTH_BINS + 1) : at + 1]) for at in range(len(bins))]
    highest = max(smooth)
    return tuple(rate / highest * PEAK_REPLICAS * THRESHOLD for rate in smooth)


def _drawn(rates: Sequence[float], bins: int, chance: random.Random) -> list[float]:
    """Return the bins of a piece in which the rate at least doubles, and never ends."""
    pieces = [rates[at : at + PIECE_WINDOWS + 1] for at in range(0, len(rates), PIECE_WINDOWS)]
    lively = [
        piece
        for piece in pieces
        if len(piece) > PIECE_WINDOWS and max(piece) / 50 < min(piece) < max(piece) / 2
    ]
    piece = chance.choice(lively)
    return [
        (before + (after - before) * part / bins)
        * chance.gammavariate(NOISE_SHAPE, 1 / NOISE_SHAPE)
        for before, after in itertools.pairwise(piece)
        for part in range(bins)
    ]


def clairvoyant_hours(offered: Sequence[float], start_seconds: float) -> float:
    """Return the replica-hours of one who has what is needed until a start has passed."""
    need = [max(1, math.ceil(work / THRESHOLD)) for work in offered]
    ahead = round(start_seconds / BIN) + 1
    return sum(max(need[at : at + ahead]) for at in range(len(need))) * BIN / 3600


def replay(case: Case) -> tuple[float, float, float]:
    """Return the replica-hours ÷ the clairvoyant's, the percent overloaded, and changes an hour."""
    offered = load(case.trace, case.seed)
    seconds = len(offered) * BIN
    best = clairvoyant_hours(offered, case.start_seconds)
    if case.way == FIXED:
        over = mean(work > 100 * case.setting for work in offered)
        return case.setting * seconds / 3600 / best, 100 * over, 0.0

    def at(since: float) -> float:
        return offered[min(len(offered) - 1, max(0, int(since // BIN)))]

    chance = random.Random(case.seed)  # noqa: S311 - no secret
    threshold = str(case.setting)
    loop = Loop(
        at,
        replicas=max(1, math.ceil(offered[0] / THRESHOLD)),
        seed=case.seed,
        start_seconds=case.start_seconds,
        loading=case.loading,
        recipe=RECIPES.get(case.way),
        hpa=Hpa(maximum=MOST_REPLICAS),
        begin=BEGIN + chance.randrange(2 * COLLECT_SECONDS),
        trigger=demanding("sum(waiting)", demandThreshold=threshold)
        if case.way == DEMAND
        else spec(threshold=threshold),
        demand=at if case.way == DEMAND else None,
        # The recipe's own, with `target: "1"`.
        formula=(lambda gpu, _: gpu / case.setting + min(gpu, 1)) if case.way == MORE else None,
    )
    loop.monitoring.list_scrapes = Scrapes(30, chance.randrange(30))
    loop.monitoring.exporter_scrapes = each_at_its_own_second(chance.random())
    asyncio.run(loop.run(seconds))
    over = loop.overloaded_seconds / seconds
    return loop.replica_hours / best, 100 * over, (len(loop.grown) - 1) / seconds * 3600


def cases(
    ways: Iterable[str] = WAYS, thresholds: Sequence[int] = THRESHOLDS, seeds: int = SEEDS
) -> list[Case]:
    """Return every run that a score needs."""
    return [
        Case(way, setting, loading, start_seconds, trace, seed)
        for way in ways
        for setting in SETTINGS.get(way, thresholds)
        for loading in LOADING
        for start_seconds in START_SECONDS
        for trace in TRACES
        for seed in range(1, seeds + 1)
    ]


def rows(found: Mapping[Case, Sequence[float]]) -> list[Row]:
    """Return the means of runs, for each start-up and for all of them."""
    grouped: dict[tuple[str, int, int, int | None], list[Sequence[float]]] = {}
    for case, figures in found.items():
        for start_seconds in (case.start_seconds, None):
            key = case.way, case.setting, case.loading, start_seconds
            grouped.setdefault(key, []).append(figures)
    return [
        Row(*key, *(round(mean(column), 3) for column in zip(*figures, strict=True)))
        for key, figures in grouped.items()
    ]


@app.command()
def main(
    *,
    quick: Annotated[bool, typer.Option(help="Fewer ways and thresholds, and 2 seeds.")] = False,
    commit: Annotated[bool, typer.Option(help="Write the figures and their pages.")] = False,
) -> None:
    """Score the decisions on public traces, next to recipes and to fixed sizes."""
    # The whole curve of the sum costs nothing, and others have to be within it to be compared.
    few = [*cases([OURS], (60, 70, 80), 2), *cases([SUM], seeds=2)]
    chosen = few if quick else cases()
    with ProcessPoolExecutor() as pool:
        found = rows(dict(zip(chosen, pool.map(replay, chosen, chunksize=5), strict=True)))
    lines = ",\n".join(json.dumps(asdict(row)) for row in found)
    text = f'{{"rows": [\n{lines}\n]}}\n'
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    table = Table(*decided.HEAD, title="Replica-hours ÷ clairvoyant, and the overloaded time")
    for line in decided.cells(found):
        table.add_row(*line)
    console.print(table)
    RUNS.mkdir(parents=True, exist_ok=True)
    (RUNS / "decisions.json").write_text(text, encoding="utf-8")
    if commit:
        decided.COMMITTED.write_text(text, encoding="utf-8")
        page.regenerate()


if __name__ == "__main__":
    app()
