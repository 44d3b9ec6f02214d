"""What a ScaledObject in a file says of replicas: what `backtest` and an Episode replay."""

from collections.abc import Mapping

import msgspec

from keda_gpu_scaler import errors
from keda_gpu_scaler.autoscaling.api_objects import Behavior
from keda_gpu_scaler.autoscaling.rules import CLUSTERS, Hpa, Keda, MetricType, Tolerances
from keda_gpu_scaler.spec.spec import GpuAggregation, Signal, TriggerSpec
from keda_gpu_scaler.spec.workload import ScaleTarget
from keda_gpu_scaler.workbench.backtest import episode
from keda_gpu_scaler.workbench.backtest.advice import Alternative, Case, replay
from keda_gpu_scaler.workbench.check.manifests import BEHAVIOR, Manifest, Trigger

_SHOW_FULL = frozenset({Signal.UTILIZATION, Signal.ENCODER, Signal.DECODER})
"""The signals that are at 100 % while there is more work than a GPU can do."""


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


def unfit(spec: TriggerSpec, capacity: float | None) -> dict[str, bool]:
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


def case_of(
    trigger: Trigger, spec: TriggerSpec, start_seconds: float, node_seconds: float, loading: float
) -> Case:
    """Return the case of a trigger by its ScaledObject; ValueError names what is wrong there."""
    manifest, node = trigger.of, trigger.of.node
    behavior, tolerances = None, CLUSTERS
    if (written := node.get(*BEHAVIOR)) is not None:
        try:
            behavior = msgspec.convert(written.plain, Behavior, strict=False)
        except msgspec.ValidationError as error:
            raise ValueError(f"{manifest.subject}: {'.'.join(BEHAVIOR)}: {error}") from error
        tolerances = Tolerances.of(behavior)
    cooldown = node.integer("spec", "cooldownPeriod")
    return Case(
        spec=spec,
        hpa=Hpa(
            minimum=manifest.minimum,
            maximum=manifest.maximum,
            tolerances=tolerances,
            behavior=behavior,
        ),
        keda=Keda(
            minimum=manifest.minimum,
            goes_to_zero=manifest.goes_to_zero,
            cooldown_seconds=300 if cooldown is None else cooldown,
        ),
        metric_type=MetricType.AVERAGE_VALUE if trigger.average else MetricType.VALUE,
        start_seconds=start_seconds,
        node_seconds=node_seconds,
        loading=loading,
    )


def run_episode(manifest: Manifest, triggers: list[Trigger]) -> tuple[str, list[str]]:
    """Run an episode; return what is said of it, and what was not as expected.

    ValueError: it cannot be run.
    """
    name = errors.without_controls(manifest.node.text("metadata", "name"))
    file = errors.without_controls(manifest.file)
    place = f"{file}:{manifest.node.position.line}: Episode {name}"
    of_name = [trigger for trigger in triggers if trigger.of.scaled_object.name == name]
    candidates = of_name or triggers
    if len(candidates) != 1 or (spec := candidates[0].spec) is None:
        expected = "the name of the ScaledObject that it is about, with one trigger for this scaler"
        raise ValueError(f"{place}: metadata.name: expected {expected}")
    trigger = candidates[0]
    try:
        parsed = episode.parse(manifest.node.block("spec").plain)
    except ValueError as error:
        raise ValueError(f"{place}: {errors.without_controls(str(error))}") from error
    needs_demand = spec.demand is not None and spec.demand.threshold is not None
    missing = f"Episode {name}: demand: expected it, because the trigger scales by it"
    refuse(trigger, spec, {missing: needs_demand and not parsed.work.demands})
    case = case_of(trigger, spec, parsed.start_seconds, parsed.node_seconds, parsed.loading)
    outcome = replay(case, parsed.work, Alternative("", spec.threshold))
    wrong = [f"{place}: {failure}" for failure in episode.failures(parsed, outcome)]
    return f"{place}: {len(parsed.expectations)} times, replicas as expected", wrong
