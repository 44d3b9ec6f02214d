"""PromQL texts: the snapshot query for all triggers, sample ages, exporters, and custom PromQL.

Pure text. Every value enters a text through `quoted` or `alternatives`, also what a user wrote. The
queries were tried on real servers for their cost and for the problems named here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import re2

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles.model import Labels, Measure, Metric, MetricSource
from keda_gpu_scaler.query.promql import quoted
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery, SplittableQuery
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import OwnQuery, Signal

ALIVE_LABEL = "alive"
"""Marks the row of an `AgesQuery` which says that the source was scraping two minutes ago."""
ON_TIME_LABEL = "on_time"
"""Marks the row of an `AgesQuery` which says that a sample of any target is fresh."""
ORIGIN_LABEL = "origin"
"""Keeps apart what the selectors of a query say of one pod."""
METRIC_LABEL = "metric"
"""Keeps apart rows that are equal without their names; `or` would drop one of them."""
LONGEST_BYTES = 16_384
"""VictoriaMetrics refuses longer texts, unless its `-search.maxQueryLen` allows them."""
STALE_SECONDS = 60
"""Younger samples count as fresh at any scrape interval; only older ones are returned."""
NEWEST_AGE = "time() - max(max_over_time(timestamp(up)[5m:15s]))"
"""The query for the age of the newest sample of all targets, scraped well or not.

VictoriaMetrics shows a sample for no longer than one and a half of its intervals: so it is looked
for in the past. With many targets that takes longer, and it is asked only where none is fresh.
"""


def alternatives(texts: Iterable[str]) -> str:
    """Return a PromQL string literal: a regex that matches exactly one of `texts`."""
    return quoted("|".join(re2.escape(text) for text in sorted(texts)))


def marked(expression: str, label: str, text: str) -> str:
    """Return `expression` with a label added to each of its rows, to tell them apart."""
    return f'label_replace({expression}, "{label}", "{text}", "", "")'


@dataclass(frozen=True, slots=True)
class SnapshotPromql(SplittableQuery):
    """Every GPU series of some namespaces, and the health of its targets, one point per step."""

    metric_sources: tuple[MetricSource, ...]
    span_seconds: float
    jobs: frozenset[str]
    """The scrape jobs of the exporters, as far as they are known."""
    step_seconds: float

    @property
    def text(self) -> str:
        """The PromQL."""
        branches = list(_gpu_branches(self.metric_sources, alternatives(self.names)))
        if self.jobs:
            branches.append(good_scrapes_text(self.jobs))
        span, step = durations.text(self.span_seconds), durations.text(self.step_seconds)
        return f"({' or '.join(branches)})[{span}:{step}]"


@dataclass(frozen=True, slots=True)
class AgesPromql(SplittableQuery):
    """The ages of stale pods in some namespaces, and whether the source is alive and on time.

    A pod is as fresh as its freshest sample. `group(up offset 2m)` is empty in the first two
    minutes after a cold start: absent series may not have been scraped yet.
    """

    metric_sources: tuple[MetricSource, ...]

    @property
    def text(self) -> str:
        """The PromQL."""
        here = alternatives(self.names)
        newest = []
        for labels, measure, _ in self.metric_sources:
            for metric in measure.metrics:
                times = f"timestamp({selector(metric, labels, _matchers(labels, here))})"
                by_pod = f"max by ({labels.namespace}, {labels.pod}) ({times})"
                newest.append(marked(by_pod, METRIC_LABEL, metric.name))
        names = ((labels.namespace, labels.pod) for labels, *_ in self.metric_sources)
        pod = ", ".join(dict.fromkeys(name for pair in names for name in pair))
        stale = f"time() - max by ({pod}) ({' or '.join(newest)}) > {STALE_SECONDS}"
        alive = marked("group(up offset 2m)", ALIVE_LABEL, "1")
        fresh = f"max(timestamp(up)) >= time() - {STALE_SECONDS}"
        return f"({stale}) or {alive} or {marked(fresh, ON_TIME_LABEL, '1')}"


def snapshot_promql(
    snapshot_query: SnapshotQuery, jobs: Iterable[str], step_seconds: float
) -> SnapshotPromql:
    """Return the query for everything that `snapshot_query` covers, with an instant per step.

    `jobs` are the scrape jobs of the exporters, as far as they are known.
    """
    return SnapshotPromql(
        snapshot_query.namespaces,
        _metric_sources(snapshot_query),
        snapshot_query.span_seconds,
        frozenset(jobs),
        step_seconds,
    )


def ages_promql(snapshot_query: SnapshotQuery) -> AgesPromql:
    """Return the query for the ages of the pods that `snapshot_query` covers."""
    return AgesPromql(snapshot_query.namespaces, _metric_sources(snapshot_query))


def good_scrapes_text(jobs: Iterable[str]) -> str:
    """Return an expression with a row for each target with a good latest scrape.

    The value is the time of that scrape. `timestamp(up == 1)` would be the evaluation time instead.
    """
    up = f"up{{job=~{alternatives(jobs)}}}"
    return f"max by (job, instance) (timestamp({up}) and {up} == 1)"


def _metric_sources(snapshot_query: SnapshotQuery) -> tuple[MetricSource, ...]:
    return tuple(
        profiles.metric_sources(snapshot_query.profile, snapshot_query.signal, snapshot_query.found)
    )


def _gpu_branches(metric_sources: Iterable[MetricSource], here: str) -> Iterator[str]:
    """Yield an expression for each metric source; `here` matches the namespaces."""
    for labels, measure, _ in metric_sources:
        branch = _measured(measure, labels, here)
        if labels.may_name_exporter:
            exporters = f"up{{namespace=~{here}}}"
            branch = f"({branch}) unless on (job, instance, namespace, pod) {exporters}"
        yield f"({branch})"


def _measured(measure: Measure, labels: Labels, here: str) -> str:
    gpu = (*labels.gpu, labels.number, labels.slice)
    told_apart = dict.fromkeys(label for metric in measure.metrics for label, _ in metric.where)
    identity = ", ".join((labels.namespace, labels.pod, *gpu, *told_apart, "job", "instance"))
    matchers = _matchers(labels, here)
    if measure.is_ratio:
        # Both metrics at once: `used or free` would drop one, as `or` ignores metric names.
        names = "|".join(metric.name for metric in measure.metrics)
        return _largest(identity, f'{{__name__=~"{names}",{",".join(matchers)}}}')
    preferred = ""
    for metric in measure.metrics:
        series = selector(metric, labels, matchers)
        if metric.zero_is_unknown:
            # Not `> 0`: that would drop NaN, and the instant would count without it.
            series = f"{series} != 0"
        shown = _largest(identity, series)
        if not preferred:
            preferred = shown
            continue
        # VictoriaMetrics takes rows that are equal without their names for one row with gaps, and
        # `or` fills the gaps with the other metric's values: so the other one gets a label.
        missing = f"{shown} unless on ({identity}) ({preferred})"
        preferred = f"{preferred} or {marked(missing, METRIC_LABEL, metric.name)}"
    return preferred


def _largest(identity: str, series: str) -> str:
    """Merge duplicates of one series (two Prometheus replicas behind one API) into the larger."""
    return f"max by ({identity}, __name__) ({series})"


def selector(metric: Metric, labels: Labels, matchers: Iterable[str]) -> str:
    """Return the selector of a metric; `matchers` say of which pods."""
    whole = [_one_of(labels.slice, labels.whole)] if metric.whole_gpus_only else []
    where = [_one_of(label, texts) for label, texts in metric.where]
    return f"{metric.name}{{{','.join([*matchers, *whole, *where])}}}"


def _one_of(label: str, texts: tuple[str, ...]) -> str:
    return f"{label}={quoted(texts[0])}" if len(texts) == 1 else f"{label}=~{alternatives(texts)}"


def _matchers(labels: Labels, here: str) -> list[str]:
    absent = [f'{label}=""' for label in labels.absent]
    return [f"{labels.namespace}=~{here}", f'{labels.pod}!=""', *absent]


def elements_text(own: OwnQuery, span_seconds: float, step_seconds: float) -> str:
    """Return the query for the points of every element, one per step."""
    span, step = durations.text(span_seconds), durations.text(step_seconds)
    # The line break ends a comment at the end of the user's text.
    return f"({own.text}\n)[{span}:{step}]"


def element_targets_text(jobs: Iterable[str], span_seconds: float, step_seconds: float) -> str:
    """Return the query for the good scrapes of the elements' targets."""
    span, step = durations.text(span_seconds), durations.text(step_seconds)
    return f"({good_scrapes_text(jobs)})[{span}:{step}]"


def element_ages_text(own: OwnQuery, step_seconds: float) -> str:
    """Return the query for the ages of the samples behind the numbers, where they are not fresh.

    An average over ten minutes goes on for ten minutes after its samples have ended, and looks
    fresh all the time. So the times are read from the samples, not from the result.
    """
    newest_times = []
    labels = ", ".join((*profiles.NAMESPACE_LABELS, *profiles.POD_LABELS))
    for number, origin in enumerate(own.origins):
        times = f"timestamp({origin.selector})"
        if origin.lookback_seconds:
            # One step longer than the lookback, so that it contains at least one instant.
            span = durations.text(origin.lookback_seconds + step_seconds)
            times = f"max_over_time({times}[{span}:{durations.text(step_seconds)}])"
        newest_times.append(marked(f"max by ({labels}) ({times})", ORIGIN_LABEL, str(number)))
    return f"time() - ({' or '.join(newest_times)}) > {STALE_SECONDS}"


EXPORTER_LABEL = "exporter"
"""Names the exporter that a row of `EXPORTERS` has found."""
STATE_LABEL = "state"
"""Marks the rows of a `GpusPromql`: reported or busy."""


@dataclass(frozen=True, slots=True)
class GpusPromql(SplittableQuery):
    """Which of the GPUs with these UUIDs are reported, and which are busy without a pod.

    A row has no pod when no label names one, or when `pod` is the exporter's own, which is what
    Prometheus attaches to idle GPUs: then `up` carries the same pod. A GPU has no pod when no row
    of it has one: where GPUs are shared, exporters show the device itself beside each pod's copy.
    """

    @property
    def text(self) -> str:
        """The PromQL."""
        matched = alternatives(self.names)
        return " or ".join(
            branch for label in profiles.BOARD_LABELS for branch in _gpu_states(label, matched)
        )


def _with_pods(metric_source: MetricSource) -> str:
    """Select the series of a metric source that name a pod."""
    labels, measure, _ = metric_source
    names = "|".join(metric.name for metric in measure.metrics)
    absent = "".join(f',{label}=""' for label in labels.absent)
    return f'{{__name__=~"{names}",{labels.namespace}!="",{labels.pod}!=""{absent}}}'


EXPORTERS = " or ".join(
    marked(f"group({_with_pods(metric_source)})", EXPORTER_LABEL, name)
    for name in profiles.DETECTED
    for metric_source in profiles.metric_sources(name, Signal.UTILIZATION)
)
"""The query for which exporters beside dcgm-exporter show pods."""


def _gpu_states(label: str, matched: str) -> Iterator[str]:
    names = "|".join(sorted(profiles.UTILIZATION_METRICS))
    gpu = f'__name__=~"{names}",{label}=~{matched}'
    no_pod = ",".join([gpu, *(f'{name}=""' for name in profiles.POD_LABELS if name != "pod")])
    unmapped = (
        f'({{{no_pod},pod=""}} or ({{{no_pod},pod!=""}} and on (job, instance, namespace, pod) up))'
    )
    mapped = f"({{{gpu}}} unless {unmapped})"
    # NaN differs from 0: only a number can show that a GPU is idle.
    busy = f"{unmapped} != 0 unless on ({label}, GPU_I_ID) {mapped}"
    yield marked(f"group by ({label}) ({busy})", STATE_LABEL, "busy")
    yield marked(f"group by ({label}) ({{{gpu}}})", STATE_LABEL, "reported")
