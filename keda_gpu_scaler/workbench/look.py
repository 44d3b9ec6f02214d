"""Asks the source and the cluster what `check --live` judges.

The scaler's own evaluator answers everything: it decides each trigger as `explain --file` does.
Where it shows no GPU of the workload, the evaluator says why; a few numbers say the rest. Nothing
is changed anywhere.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.evaluator.demand_queries import NOTHING
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles import dcgm
from keda_gpu_scaler.query.promql_texts import alternatives, quoted, selector
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.settings import Settings
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.spec import Demand, DemandSpec, OnEmpty, ScaledObject, TriggerSpec
from keda_gpu_scaler.workbench import check, local
from keda_gpu_scaler.workbench.check import live
from keda_gpu_scaler.workbench.check.findings import Finding
from keda_gpu_scaler.workbench.check.manifests import Trigger


def ask(
    texts: Mapping[str, str], namespace: str, settings: Settings, timeout_seconds: float
) -> list[Finding]:
    """Return what is wrong with the triggers in some texts by what the source and cluster show."""
    findings: list[Finding] = []
    looks: list[_Look] = []
    manifests, _ = check.read_objects(texts, namespace)
    for manifest in manifests:
        for trigger in manifest.ours if manifest.kind == "ScaledObject" else ():
            spec, mistakes = trigger.parse(settings.access)
            findings += [*check.from_env(trigger), *check.refused(trigger, mistakes)]
            if spec is not None:
                looks.append(_Look(trigger, spec))
    return findings + asyncio.run(_judge(looks, settings, timeout_seconds))


async def _judge(looks: list["_Look"], settings: Settings, timeout_seconds: float) -> list[Finding]:
    findings: list[Finding] = []
    specs = [look.spec for look in looks]
    async with local.open_evaluator(specs, settings, slow_seconds=timeout_seconds) as evaluator:
        records = await asyncio.gather(
            *(evaluator.record(look.scaled_object, look.spec) for look in looks)
        )
        # One after the other, to query the source slowly.
        for look, record in zip(looks, records, strict=True):
            seen = await look.seen(evaluator, record)
            for rule_name, wrong in live.check(look.trigger, look.spec, seen):
                findings.append(check.as_finding(rule_name, look.trigger.of, wrong))
    return findings


class _Look(NamedTuple):
    trigger: Trigger
    spec: TriggerSpec

    @property
    def scaled_object(self) -> ScaledObject:
        return self.trigger.of.scaled_object

    async def seen(self, evaluator: Evaluator, record: Record) -> live.Seen:
        if record.source.snapshot_at is None:
            return live.Seen(trouble=record.source.trouble or "no answer")
        demand = Demand(None)
        if self.spec.demand is not None:
            demand = await evaluator.demand(self.scaled_object, self.spec, None)
        seen = live.Seen(
            is_empty=record.state == State.EMPTY,
            has_gpus=any(pod.gpus for pod in record.pods),
            lag_seconds=record.source.lag_seconds,
            has_readiness=record.source.evidence not in (None, EvidenceSource.EXPORTERS),
            # Held as a lower bound, it is known.
            demand_trouble=None if demand.is_least else demand.trouble or None,
        )
        if self.spec.query is not None:
            if seen.has_gpus or seen.is_empty:
                return seen
            return replace(seen, cause=await evaluator.cause(self.scaled_object, self.spec))
        metrics = profiles.metric_names(self.spec.profile, self.spec.signal)
        interval_seconds = (await self._ask(evaluator, _interval_query(metrics))).value
        if interval_seconds is not None:
            seen = replace(seen, interval_seconds=round(interval_seconds))
        if seen.has_gpus or seen.is_empty:
            suspects = [
                (await self._has(evaluator, text), why) for text, why in _suspects(self.spec)
            ]
            return replace(seen, suspects=[why for is_shown, why in suspects if is_shown])
        if self.spec.is_by_demand:
            return seen
        cause = await evaluator.cause(self.scaled_object, self.spec)
        series = f"{{__name__=~{alternatives(metrics)}}}"
        stopped = f"last_over_time({series}[1h]) unless last_over_time({series}[5m])"
        has_none = cause is not None and cause.rule == "no-series"
        return replace(
            seen,
            cause=cause,
            has_ended_series=has_none and await self._has(evaluator, stopped) is True,
        )

    async def _has(self, evaluator: Evaluator, vector: str) -> bool | None:
        """Tell whether a vector has elements; None: the source does not say."""
        count = await self._ask(evaluator, f"count({vector})")
        return True if count.value is not None else (False if count.trouble == NOTHING else None)

    async def _ask(self, evaluator: Evaluator, text: str) -> Demand:
        demand = DemandSpec(
            text=text, activation_threshold=0.0, threshold=None, on_empty=OnEmpty.ERROR
        )
        spec = replace(self.spec, demand=demand)
        return await evaluator.demand(self.scaled_object, spec, None)


def _suspects(spec: TriggerSpec) -> Iterator[tuple[str, str]]:
    """Yield PromQL that has elements if the average of a GPU is probably wrong, and why."""
    namespace, pod = quoted(spec.pods.namespace), quoted(spec.pods.regex)
    named = [
        (metric_source, pods)
        for metric_source in profiles.metric_sources(spec.profile, spec.signal)
        if metric_source.measure.metrics[0] == dcgm.ENGINE
        for pods in zip(metric_source.labels.namespaces, metric_source.labels.pods, strict=True)
    ]
    for (labels, measure, _), (namespace_label, pod_label) in named:
        pods = [f"{namespace_label}={namespace}", f"{pod_label}=~{pod}"]
        name, ours = dcgm.ENGINE.name, selector(dcgm.ENGINE, labels, pods)
        if measure.twin is not None:
            gpu = ", ".join((*labels.gpu, labels.slice, labels.number, "job", "instance"))
            same = f"max_over_time({ours}[30m]) == min_over_time({ours}[30m]) and {ours} offset 30m"
            sampled = f"max_over_time({selector(measure.twin, labels, pods)}[30m])"
            text = f"(({same}) > 0) and on ({gpu}) {sampled} == 0"
            yield text, f"{name} has not changed for 30m, in which {measure.twin.name} was 0"
        part, board = f'{labels.slice}!=""', f"min by (job, instance, {labels.gpu[0]})"
        idle = f"max by (job, instance) (max_over_time({name}{{{part}}}[30m])) == 0"
        power = f"{dcgm.POWER.metrics[0].name}{{{part}}}"
        draws = f"{board} (min_over_time({power}[10m])) > 2 * {board} (min_over_time({power}[1d]))"
        text = f"{idle} and on (job, instance) {ours} and on (job, instance) ({draws})"
        yield text, f"{name} is 0 on every MIG instance of an exporter, of which a board {_DRAWS}"


_DRAWS = "draws more than twice its lowest power of the last day"


def _interval_query(metrics: Collection[str]) -> str:
    """Return PromQL for the time between two samples, of series that are 10 minutes old."""
    # Each metric by itself: two of one GPU have the same labels, and times have no name.
    intervals = (
        f"min((timestamp({series}) - timestamp({series} offset 10m)) / "
        f"count_over_time({series}[10m]))"
        for series in (f"{{__name__={quoted(metric)}}}" for metric in sorted(metrics))
    )
    return " or ".join(intervals)
