"""Work → what each alternative costs, and which one to take. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from keda_gpu_scaler.autoscaling.rules import Hpa, Keda, MetricType
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.workbench.backtest.recipes import RECIPES, Recipe
from keda_gpu_scaler.workbench.backtest.replay import (
    Outcome,
    Replay,
    clairvoyant,
    fixed,
    past,
)
from keda_gpu_scaler.workbench.backtest.work import Work
from keda_gpu_scaler.workbench.world.loop import CAPACITY

USUAL_PERCENT = (50.0, 60.0, 70.0, 80.0)
"""Thresholds that are tried where none are named; of a demand, these parts of its own ÷ 70."""
LEAST_COVERAGE = 0.5
MOST_SATURATION = 0.2
MOST_SEEN = 0.98
"""From this part of the known time on, replicas of the past count as known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One workload: its trigger, what scales it by its ScaledObject, and how its pods start."""

    spec: TriggerSpec
    hpa: Hpa = field(default_factory=Hpa)
    keda: Keda = field(default_factory=Keda)
    """Both before they have acted: each replay has its own."""
    metric_type: MetricType = MetricType.AVERAGE_VALUE
    start_seconds: float = 120.0
    node_seconds: float = 0.0
    loading: float = 100.0
    """What a GPU shows while a model loads, in percent."""

    @property
    def key(self) -> str:
        """The key of the trigger that is tried."""
        return "demandThreshold" if self.spec.is_by_demand else "threshold"

    def above_zero(self) -> "Case":
        least = max(1, self.hpa.minimum)
        keda = replace(self.keda, minimum=least, goes_to_zero=False)
        return replace(self, hpa=replace(self.hpa, minimum=least), keda=keda)


@dataclass(frozen=True, slots=True)
class Alternative:
    """A way to scale the workload."""

    name: str
    threshold: float
    recipe: Recipe | None = None


def alternatives(case: Case, thresholds: Sequence[float]) -> Iterator[Alternative]:
    """Yield what is replayed, the present trigger first."""
    spec, present = case.spec, case.spec.threshold
    unit = present / 70 if spec.is_by_demand else 1.0
    tried = thresholds or [float(f"{percent * unit:.2g}") for percent in USUAL_PERCENT]
    for threshold in dict.fromkeys([present, *tried]):
        now = ", as it is" if threshold == present else ""
        yield Alternative(f"{case.key} {number(threshold)}{now}", threshold)
    if not spec.is_by_demand:
        for name, recipe in RECIPES.items():
            yield Alternative(f"{name}, threshold {number(present)}", present, recipe)


def replay(case: Case, work: Work, alternative: Alternative) -> Outcome:
    """Return what would have come of an alternative; it begins with the replicas that there were.

    A recipe keeps one replica: its query says nothing at zero.
    """
    spec, demand = case.spec, case.spec.demand
    if demand is not None and demand.threshold is not None and spec.is_by_demand:
        demand = replace(demand, threshold=alternative.threshold)
    spec = replace(spec, threshold=alternative.threshold, demand=demand)
    if alternative.recipe is not None:
        case = case.above_zero()
    first = next((replicas for replicas in work.replicas if replicas is not None), 1)
    return Replay(
        work,
        spec,
        recipe=alternative.recipe,
        metric_type=case.metric_type,
        replicas=min(case.hpa.maximum, max(case.hpa.minimum, first)),
        hpa=replace(case.hpa),
        keda=replace(case.keda, last_active=work.begin),
        start_seconds=case.start_seconds,
        node_seconds=case.node_seconds,
        loading=case.loading,
    ).run()


def references(case: Case, work: Work, most_overloaded: float) -> Iterator[tuple[str, Outcome]]:
    """Yield what needs no replay: what there was, a fixed size, and foresight."""
    if any(work.replicas):
        was, known = past(work), sum(load is not None for load in work.loads)
        seen = sum(size is not None for size in was.sizes) / known if known else 1.0
        name = "as it was" if seen > MOST_SEEN else f"as it was in {percent(seen)} of the time"
        yield f"{name}{' (overloaded: at least)' * bool(work.full)}", was
    needs = sorted(math.ceil(load / CAPACITY) for load in work.loads if load is not None)
    allowed = min(int(len(needs) * most_overloaded), len(needs) - 1)
    size = max(1, needs[-1 - allowed]) if needs else 1
    yield f"{size} replica{'s' * (size != 1)}, always", fixed(work, size)
    yield "clairvoyant", clairvoyant(work, case.start_seconds + case.node_seconds)


class Advice(NamedTuple):
    """What to do."""

    sentence: str
    threshold: float | None = None
    """To write into the trigger; None: nothing is recommended, or nothing would change."""


def advise(
    case: Case,
    work: Work,
    outcomes: Sequence[tuple[Alternative, Outcome]],
    most_overloaded: float,
) -> Advice:
    """Return the cheapest threshold within the share of overloaded time, and what it trades.

    `outcomes` begin with that of the present trigger; those of recipes do not count.
    """
    if work.coverage < LEAST_COVERAGE:
        known = f"the work is known for only {percent(work.coverage)} of the time"
        return Advice(f"No recommendation: {known}. Choose a time with samples.")
    if work.saturation > MOST_SATURATION:
        full = f"all GPUs were full for {percent(work.saturation)} of the time"
        return Advice(
            f"No recommendation: {full}, so they do not show how much work there was. Scale by "
            "a demand without threshold: demandPreset, or demandQuery with demandThreshold."
        )
    ours = [pair for pair in outcomes if pair[0].recipe is None]
    present, bound = ours[0][1], percent(most_overloaded)
    within = [pair for pair in ours if share(work, pair[1]) <= most_overloaded]
    if not within:
        best, least = min(ours, key=lambda pair: share(work, pair[1]))
        most = max(load or 0.0 for load in work.loads)
        if most > CAPACITY * case.hpa.maximum:
            return Advice(
                f"No recommendation: the work needs up to {math.ceil(most / CAPACITY)} replicas, "
                f"and maxReplicaCount is {case.hpa.maximum}."
            )
        return Advice(
            f"No recommendation: no {case.key} keeps the overload within {bound} of the time; the "
            f"least is {percent(share(work, least))}, at {number(best.threshold)}. Add a demand, "
            "which rises before the GPUs are full; or raise minReplicaCount; or let the exporter "
            "collect every 10 s."
        )
    best, outcome = min(within, key=lambda pair: pair[1].replica_hours)
    cheapest = f"the cheapest with at most {bound} of the time overloaded"
    if best.threshold == case.spec.threshold:
        return Advice(f"Keep {case.key} {number(best.threshold)}: it is {cheapest}.")
    hours = gpu_hours(work, outcome) - gpu_hours(work, present)
    overload, now = percent(share(work, outcome)), percent(share(work, present))
    now += " (both are lower bounds)" * any(work.full)
    return Advice(
        f"{case.key} {number(best.threshold)} is {cheapest}: {abs(hours):.3g} GPU-hours "
        f"{'more' if hours > 0 else 'less'} than now, with {overload} overloaded instead of {now}.",
        best.threshold,
    )


def share(work: Work, outcome: Outcome) -> float:
    """Return the part of the known time with more work than the replicas could do."""
    return outcome.overloaded_seconds / work.covered_seconds if work.covered_seconds else 0.0


def gpu_hours(work: Work, outcome: Outcome) -> float:
    """Return the hours of GPUs; of replicas, where no exporter shows their GPUs."""
    return outcome.replica_hours * max(1, work.gpus)


def percent(part: float) -> str:
    return f"{100 * part:.3g} %"


def number(value: float) -> str:
    """Return a threshold as people write it: without an exponent, and no zeros at the end."""
    return f"{value:.6f}".rstrip("0").rstrip(".")
