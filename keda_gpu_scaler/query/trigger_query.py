"""One trigger's value as a single PromQL query, to paste into Prometheus.

Pure text. The scaler itself does not send this query: all triggers share one snapshot. Both give
the same value if all pods of the workload have reported for the whole window, and are not full. The
query cannot tell whether a pod is missing, warming or gone, nor whether a row without a UUID is
about a GPU of another row. Nor does an unbelievable sample make the whole instant of its pod
unknown: here the pod's other GPUs still count.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.kube_state_texts import KINDS, LINKS
from keda_gpu_scaler.query.profiles.model import (
    EXPORTED,
    NAMESPACE,
    POD,
    SHARE_LIMIT,
    GpuMetric,
    MetricSource,
    Part,
    naming,
)
from keda_gpu_scaler.query.promql_texts import quoted, range_text, selector
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.spec import (
    AVERAGED_WINDOW_SECONDS,
    WINDOW_SECONDS,
    Aggregation,
    GpuAggregation,
    TriggerSpec,
)
from keda_gpu_scaler.spec.workload import Kind, PodSelector, Workload

STEP_SECONDS = 15.0
"""How often a source is queried, unless its settings say otherwise."""
_OVER_REPLICAS = {
    Aggregation.SUM: "sum({0})",
    Aggregation.AVERAGE: "avg({0})",
    Aggregation.MAX: "count({0}) * max({0})",
    # Another label, or `or` would take the sum alone.
    Aggregation.P95: "max(sum({0}) or "
    'label_replace(count({0}) * quantile(0.95, {0}), "of", "p95", "", ""))',
}
_LABELS = {kind: label for label, kind in KINDS.items()}
"""The label with the name of an object in kube-state-metrics, by the object's kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The queries of one trigger."""

    spec: TriggerSpec
    found: Collection[str] = ()
    """The exporters beside dcgm-exporter that the profile `auto` looks for."""
    shown_by: Collection[str] = ()
    """The metrics that show the workload's pods, as `model.naming` names them: the queries are
    about no other. Empty: they are about every metric that the profile can read. Where all are
    averages, as `DCGM_FI_PROF_GR_ENGINE_ACTIVE`, the usual window is shorter."""
    owned: bool = False
    """Find the pods by owner in kube-state-metrics, as far as owners can tell."""
    step_seconds: float = STEP_SECONDS
    """How often the source is queried."""

    @property
    def value(self) -> str:
        """The query for the trigger's value: one number, or nothing where no pod reports."""
        spec, sources = self.spec, self._sources()
        is_averaged = all(
            metric.averaged for named in sources for metric in named.metric_source.measure.metrics
        )
        usual = AVERAGED_WINDOW_SECONDS if is_averaged else WINDOW_SECONDS
        gpus = _gpus(spec.pods, sources)
        is_mean = spec.gpu_aggregation is GpuAggregation.AVERAGE
        over_gpus = "avg" if is_mean else spec.gpu_aggregation
        pods = f"{over_gpus} by (pod) ({gpus}){self._owned()}"
        window = range_text(spec.window_seconds or usual, self.step_seconds)
        loads = f"avg_over_time(({pods}){window})"
        text = _OVER_REPLICAS[spec.aggregation].format(_replicas(spec.pods, loads))
        if not spec.signal.follows_work:
            return text
        how = Aggregation.SUM if spec.aggregation.is_for_all else Aggregation.AVERAGE
        newest = _OVER_REPLICAS[how].format(_replicas(spec.pods, pods))
        # Another label, or `or` would take the mean alone.
        return f'max({text} or label_replace({newest}, "of", "newest", "", ""))'

    @property
    def busiest(self) -> str:
        instants = range_text(self.spec.activation_window_seconds, self.step_seconds)
        gpus = _gpus(self.spec.pods, self._sources())
        return f"max(max_over_time((({gpus}){self._owned()}){instants}))"

    def _owned(self) -> str:
        """Return the condition on the pods' owner; empty where only names can tell."""
        pods = self.spec.pods
        if not self.owned or not isinstance(pods, Workload) or pods.owner is None:
            return ""
        between = workload.BETWEEN.get(pods.kind)
        name, namespace = pods.name.replace(".", "[.]"), f"namespace={quoted(pods.namespace)}"
        more = "(-[0-9]+)?" if pods.kind is Kind.LEADER_WORKER_SET else ""
        owner = f'owner_kind="{pods.owner.kind}",owner_name=~{quoted(name + more)}'
        if between is None:
            return f" and on (pod) kube_pod_owner{{{namespace},{owner}}}"
        label = _LABELS[between]
        owned = f'kube_pod_owner{{{namespace},owner_kind="{between}"}}'
        linked = f'label_replace({owned}, "{label}", "$1", "owner_name", "(.*)")'
        return f" and on (pod) ({linked} and on ({label}) {LINKS[label]}{{{namespace},{owner}}})"

    def _sources(self) -> list["_Named"]:
        """Return the metric sources with the metrics that show something; all, if none does."""
        every = [
            _Named(metric_source, namespace, pod)
            for metric_source in profiles.metric_sources(
                self.spec.profile, self.spec.signal, frozenset(self.found)
            )
            for namespace in metric_source.labels.namespaces
            for pod in metric_source.labels.pods
        ]
        showing = []
        for named in every:
            measure = named.metric_source.measure
            shown = tuple(
                metric
                for metric in measure.metrics
                if naming(metric, named.namespace, named.pod) in self.shown_by
            )
            if shown and measure.is_ratio:
                showing.append(named)  # a ratio needs all of its metrics
            elif shown:
                measure = replace(measure, metrics=shown)
                showing.append(
                    named._replace(metric_source=named.metric_source._replace(measure=measure))
                )
        return showing or [named for named in every if named.is_usual]


class _Named(NamedTuple):
    """A way to read a signal, with the labels that name the pod."""

    metric_source: MetricSource
    namespace: str
    pod: str

    @property
    def is_usual(self) -> bool:
        """Whether both labels were renamed in the same way, or neither was."""
        labels = self.metric_source.labels
        if len(labels.namespaces) < len(labels.pods):  # only the namespace's is renamed
            return self.pod == labels.pod
        return (self.namespace, self.pod) in zip(labels.namespaces, labels.pods, strict=True)


def _gpus(pods: PodSelector, sources: Iterable[_Named]) -> str:
    """Return one element for each `pod` and `gpu`, from the first exporter that shows the pod."""
    exporters = []
    for _, of_exporter in groupby(sources, lambda named: named.metric_source.rank):
        branches = []
        for named in of_exporter:
            parts = ", ".join(map(quoted, _gpu_labels(named.metric_source)))
            gpus = f'label_join({_Reader(named, pods).value()}, "gpu", "/", {parts})'
            if named.pod != POD:
                gpus = f'label_replace({gpus}, "pod", "$1", "{named.pod}", "(.*)")'
            branches.append(gpus)
        exporters.append(f"max by (pod, gpu) ({' or '.join(branches)})")
    return " or on (pod) ".join(exporters)


def _gpu_labels(metric_source: MetricSource) -> tuple[str, ...]:
    labels, measure, _ = metric_source
    part = () if measure.per_board else (labels.slice,)
    return (*labels.gpu, labels.number, *part)


class _Reader:
    """Writes the expression for a workload's GPUs in one metric source, in the signal's unit."""

    def __init__(self, named: _Named, pods: PodSelector) -> None:
        (self._labels, self._measure, _), self._namespace, self._pod = named
        self._pods = pods
        gpu = _gpu_labels(named.metric_source)
        self._identity = ", ".join((self._pod, *gpu, "job", "instance"))

    def value(self) -> str:
        if not self._measure.is_ratio:
            return self._first(Part.VALUE)
        used, free, total = map(self._first, (Part.USED, Part.FREE, Part.TOTAL))
        on = f"on ({self._identity})"
        both = f"(({used}) + {on} ({free}))" if free else ""
        whole = f" or {on} ".join(filter(None, (both, total)))
        return f"100 * ({used}) / {on} ({whole}) <= {SHARE_LIMIT}"

    def _first(self, part: Part) -> str:
        """Take the first metric that each GPU of a target has; of duplicates the largest."""
        return f" or on ({self._identity}) ".join(
            f"max by ({self._identity}) ({self._in_unit(metric)})"
            for metric in self._measure.metrics
            if metric.part is part
        )

    def _in_unit(self, metric: GpuMetric) -> str:
        at_least = ">" if metric.zero_is_unknown else ">="
        labels = self._labels
        matchers = [
            f"{self._namespace}={quoted(self._pods.namespace)}",
            f"{self._pod}=~{quoted(self._pods.regex)}",
        ]
        if self._pod == POD:
            matchers.append(f'{EXPORTED}{POD}=""')
        series = selector(metric, labels, matchers)
        shown = f"{series} {at_least} 0 <= {_number(metric.limit)}"
        if (self._namespace, self._pod) == (NAMESPACE, POD):
            here = f"up{{namespace={quoted(self._pods.namespace)}}}"
            shown = f"{shown} unless on (job, instance, namespace, pod) {here}"
        if metric.factor < 1:
            return f"({shown}) / {_number(1 / metric.factor)}"
        return shown if metric.factor == 1 else f"{_number(metric.factor)} * ({shown})"


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)


def _replicas(pods: PodSelector, loads: str) -> str:
    """Count the pods of one group as one replica, with their mean."""
    if not pods.group_regex:
        return loads
    group = quoted(pods.group_regex)
    return f'avg by (group) (label_replace({loads}, "group", "$1", "pod", {group}))'
