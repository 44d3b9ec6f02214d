"""PromQL texts: the snapshot query for all triggers, sample ages, exporters, and custom PromQL.

Pure text. Every value enters a text through `quoted` or `alternatives`, also what a user wrote. The
queries were tried on real servers for their cost and for the problems named here.
"""

import re
from collections.abc import Callable, Collection, Iterable

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles.model import GpuMetric, Labels, MetricSource, Part
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import OwnQuery, Signal

ALIVE_LABEL = "alive"
"""Marks the row of `ages_text` which says that the source was scraping two minutes ago."""
ON_TIME_LABEL = "on_time"
"""Marks the row of `ages_text` which says that a sample of any target is fresh."""
EXPORTER_LABEL = "exporter"
"""Names the exporter that a row of `EXPORTERS` has found."""
TARGET_LABEL = "target"
"""Marks the rows of `snapshot_text` which are about targets."""
STATE_LABEL = "state"
"""Marks the rows of `gpus_text`: reported or busy."""
BREADTH_LABEL, TARGETS, NAMESPACES = "breadth", "targets", "namespaces"
"""Marks the rows of `breadth_text`, and how."""
LOOK_LABEL, METRICS, A_SERIES, A_TARGET, PODS = "look", "metrics", "series", "target", "pods"
"""Marks the rows of `LOOK`, and how."""
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


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def alternatives(texts: Iterable[str]) -> str:
    """Return a PromQL string literal: a regex that matches exactly one of `texts`."""
    return quoted("|".join(re.escape(text) for text in sorted(texts)))


def marked(expression: str, label: str, text: str) -> str:
    """Return `expression` with a label added to each of its rows, to tell them apart."""
    return f'label_replace({expression}, "{label}", "{text}", "", "")'


def texts_about(
    names: frozenset[str], write: Callable[[Collection[str]], str], longest_bytes: float
) -> list[str]:
    """Return one text about all names, as `write` makes it, or several about parts of them.

    The names are namespaces or GPUs; the answer is the sum of the answers about the parts. One name
    is never split.
    """
    text = write(names)
    if len(names) <= 1 or len(text.encode()) <= longest_bytes:
        return [text]
    ordered, middle = sorted(names), len(names) // 2
    halves = map(frozenset, (ordered[:middle], ordered[middle:]))
    return [part for half in halves for part in texts_about(half, write, longest_bytes)]


def snapshot_text(
    metric_sources: Iterable[MetricSource],
    jobs: Iterable[str],
    span_seconds: float,
    step_seconds: float,
    namespaces: Iterable[str],
) -> str:
    """Return the query for every GPU series, and the health of its targets, one point per step.

    `jobs` are the scrape jobs of the exporters, as far as they are known.
    """
    here, pod_labels = alternatives(namespaces), dict[str, None]()
    alike: dict[object, list[MetricSource]] = {}
    for source in metric_sources:
        alike.setdefault(_shape(source), []).append(source)
        pod_labels |= dict.fromkeys((*source.labels.namespaces, *source.labels.pods))
    branches = [f"({_gpus(sources, here)})" for sources in alike.values()]
    if jobs:
        scrapes = _good_scrapes(jobs, pod_labels)
        # A GPU whose series has no label but these would be equal, and `or` would drop one of them.
        branches.append(marked(scrapes, TARGET_LABEL, "1"))
    return f"({' or '.join(branches)}){range_text(span_seconds, step_seconds)}"


def ages_text(metric_sources: Iterable[MetricSource], namespaces: Iterable[str]) -> str:
    """Return the query for the ages of stale pods, and whether the source is alive and on time.

    A pod is as fresh as its freshest sample. `group(up offset 2m)` is empty in the first two
    minutes after a cold start: absent series may not have been scraped yet.
    """
    here = alternatives(namespaces)
    newest, pod_labels = [], dict[str, None]()
    for labels, measure, _ in metric_sources:
        by = dict.fromkeys((*labels.namespaces, *labels.pods))
        pod_labels |= by
        confined = namespace_matchers(labels, here)
        for metric in measure.metrics:
            if metric.part in {Part.FREE, Part.TOTAL}:
                continue  # a share is as old as what is used
            # Only of a selector it is the sample's time; of any other expression the present. Of
            # several metrics it fails: without their names their rows can be equal.
            times = [f"timestamp({selector(metric, labels, each)})" for each in confined]
            by_pod = f"max by ({', '.join(by)}) ({' or '.join(times)})"
            newest.append(marked(by_pod, METRIC_LABEL, metric.name))
    stale = f"time() - max by ({', '.join(pod_labels)}) ({' or '.join(newest)}) > {STALE_SECONDS}"
    alive = marked("group(up offset 2m)", ALIVE_LABEL, "1")
    fresh = f"max(timestamp(up)) >= time() - {STALE_SECONDS}"
    return f"({stale}) or {alive} or {marked(fresh, ON_TIME_LABEL, '1')}"


def range_text(span_seconds: float, step_seconds: float) -> str:
    """Return the range of a subquery."""
    return f"[{durations.text(span_seconds)}:{durations.text(step_seconds)}]"


def _good_scrapes(jobs: Iterable[str], labels: Iterable[str] = ()) -> str:
    """Return an expression with a row for each target with a good latest scrape.

    The value is the time of that scrape. `timestamp(up == 1)` would be the evaluation time instead.
    A row has the target's own texts of `labels` too.
    """
    up = f"up{{job=~{alternatives(jobs)}}}"
    return f"max by ({', '.join(('job', 'instance', *labels))}) (timestamp({up}) and {up} == 1)"


def _shape(source: MetricSource) -> object:
    """Return what sources have in common that are asked for in one expression, all but names."""
    labels, measure, _ = source
    metrics = measure.metrics[:1] if measure.is_ratio else measure.metrics
    parts = [
        (each.where, each.zero_is_unknown, each.averaged, _whole(each, labels)) for each in metrics
    ]
    return labels.namespaces, labels.pods, measure.is_ratio, tuple(parts)


def _gpus(sources: list[MetricSource], here: str) -> str:
    """Return an expression for the GPUs of metric sources of one shape.

    `here` matches the namespaces. Duplicates of one series (two Prometheus replicas behind one API)
    become the larger one.
    """
    labels, measure, _ = sources[0]
    told_apart = (label for metric in measure.metrics for label, _ in metric.where)
    gpu = (label for each, *_ in sources for label in (*each.gpu, each.number, each.slice))
    by = dict.fromkeys((*labels.namespaces, *labels.pods, *gpu, *told_apart, "job", "instance"))
    identity = ", ".join(by)
    if measure.is_ratio:
        # Both metrics at once: `used or free` would drop one, as `or` ignores metric names.
        names = [metric.name for _, each, _ in sources for metric in each.metrics]
        return f"max by ({identity}, __name__) {_series(names, measure.metrics[0], labels, here)}"
    preferred, first = "", ""
    for number, metric in enumerate(measure.metrics):
        names = [each.metrics[number].name for _, each, _ in sources]
        series = _series(names, metric, labels, here)
        if metric.zero_is_unknown:
            # Not `> 0`: that would drop NaN, and the instant would count without it.
            series = f"({series} != 0)"
        if metric is measure.twin:
            # Both where the first is 0, on the series, which costs less than on maxima.
            series = f"({series} unless on ({identity}) {first} != 0)"
        shown = f"max by ({identity}, __name__) {series}"
        if not preferred:
            preferred, first = shown, series
            continue
        # VictoriaMetrics takes rows that are equal without their names for one row with gaps, and
        # `or` fills the gaps with the other metric's values: so the other one gets a label.
        if metric is not measure.twin:
            shown = f"{shown} unless on ({identity}) ({preferred})"
        preferred = f"{preferred} or {marked(shown, METRIC_LABEL, metric.name)}"
    return preferred


def namespace_matchers(labels: Labels, here: str) -> list[list[str]]:
    """Return matchers for each label that can name the namespace; `or` drops what has two of them.

    A selector has no "or". Prometheus' own name for a renamed label is the only one that is never
    a target's, and always decides (`profiles.namings`).
    """
    exported, *others = labels.namespaces
    return [[f"{exported}=~{here}"], *([f"{label}=~{here}", f'{exported}=""'] for label in others)]


def _series(names: list[str], metric: GpuMetric, labels: Labels, here: str) -> str:
    """Return the series of metrics that differ in their names alone."""
    matched = namespace_matchers(labels, here)
    return f"({' or '.join(selector(metric, labels, each, *names) for each in matched)})"


def selector(metric: GpuMetric, labels: Labels, matchers: Iterable[str], *names: str) -> str:
    """Return the selector of a metric, or of `names`; `matchers` say of which pods."""
    where = [_one_of(label, texts) for label, texts in metric.where]
    parts = ",".join([*matchers, *_whole(metric, labels), *where])
    if len(names) > 1:
        return f'{{__name__=~"{"|".join(names)}",{parts}}}'
    return f"{metric.name}{{{parts}}}"


def _whole(metric: GpuMetric, labels: Labels) -> tuple[str, ...]:
    return (_one_of(labels.slice, labels.whole),) if metric.whole_gpus_only else ()


def _one_of(label: str, texts: tuple[str, ...]) -> str:
    return f"{label}={quoted(texts[0])}" if len(texts) == 1 else f"{label}=~{alternatives(texts)}"


def elements_text(own: OwnQuery, span_seconds: float, step_seconds: float) -> str:
    """Return the query for the points of every element, one per step."""
    # The line break ends a comment at the end of the user's text.
    return f"({own.text}\n){range_text(span_seconds, step_seconds)}"


def element_targets_text(jobs: Iterable[str], span_seconds: float, step_seconds: float) -> str:
    """Return the query for the good scrapes of the elements' targets."""
    return f"({_good_scrapes(jobs)}){range_text(span_seconds, step_seconds)}"


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
            span = range_text(origin.lookback_seconds + step_seconds, step_seconds)
            times = f"max_over_time({times}{span})"
        newest_times.append(marked(f"max by ({labels}) ({times})", ORIGIN_LABEL, str(number)))
    return f"time() - ({' or '.join(newest_times)}) > {STALE_SECONDS}"


def gpus_text(uuids: Iterable[str], jobs: Iterable[str] = ()) -> str:
    """Return the query for which of these GPUs are reported, and which are busy without a pod.

    A row has no pod when no label names one, or when those that do are the target's own, which is
    what Prometheus attaches to idle GPUs: then `up` has the same. A GPU has no pod when no row has
    one: where GPUs are shared, exporters show the device itself beside each pod's copy. With `jobs`
    only their rows count.
    """
    matched = alternatives(uuids)
    no_pod = ",".join(f'{name}=""' for name in profiles.POD_LABELS)
    own_pod = f"on ({', '.join(('job', 'instance', *profiles.POD_LABELS))}) up"
    of_jobs = f",job=~{alternatives(jobs)}" if jobs else ""
    branches = []
    for label, metrics in profiles.UTILIZATION_BY_BOARD_LABEL.items():
        gpu = f'__name__=~"{"|".join(sorted(metrics))}",{label}=~{matched}{of_jobs}'
        unmapped = f"({{{gpu},{no_pod}}} or {{{gpu}}} and {own_pod})"
        # NaN differs from 0: only a number can show that a GPU is idle.
        busy = f"{unmapped} != 0 unless on ({label}, GPU_I_ID) ({{{gpu}}} unless {unmapped})"
        branches.append(marked(f"group by ({label}) ({busy})", STATE_LABEL, "busy"))
        branches.append(marked(f"group by ({label}) ({{{gpu}}})", STATE_LABEL, "reported"))
    return " or ".join(branches)


def breadth_text(metrics: Iterable[str], jobs: Iterable[str]) -> str:
    """Return the query for how many targets and namespaces each of these jobs shows."""
    series = f"{{__name__=~{alternatives(metrics)},job=~{alternatives(jobs)}}}"
    namespaces = ", ".join(profiles.NAMESPACE_LABELS)
    return " or ".join(
        marked(f"count by (job) (group by (job, {labels}) ({series}))", BREADTH_LABEL, what)
        for what, labels in ((TARGETS, "instance"), (NAMESPACES, namespaces))
    )


LOOK_BACK = "5m"
"""Some scrapes: right after one that failed, an exporter shows nothing at that instant."""


def _exporters_text() -> str:
    branches = []
    for name in profiles.DETECTED:
        for labels, measure, _ in profiles.metric_sources(name, Signal.UTILIZATION):
            names = "|".join(metric.name for metric in measure.metrics)
            shown = [
                f'group(last_over_time({{__name__=~"{names}",{label}!=""}}[{LOOK_BACK}]))'
                for label in labels.pods
            ]
            branches.append(marked(f"group({' or '.join(shown)})", EXPORTER_LABEL, name))
    return " or ".join(branches)


EXPORTERS = _exporters_text()
"""The query for which exporters beside dcgm-exporter show pods."""
LOOK_PODS = 5
"""Pods of one metric in one job, those with the most series first."""
_OTHERS_METRICS = {"memory_used", "memory_total"}
"""Known metrics with names that many other programs have as well."""
_ACCELERATORS = "gpu|npu|tpu|gcu|mlu|dcu|xpu|neuroncore|habanalabs|accelerator"
_BUSY = "util|usage|busy|duty|activ"
"""Parts of the names of metrics that look like those of an exporter, whichever it is."""
_NOT_EXPORTERS = "keda_gpu_scaler_.*|(vllm|sglang|lmdeploy):.*"


def _look_text() -> str:
    every = profiles.KNOWN_METRICS.union(profiles.UNREAD) - _OTHERS_METRICS
    # Of a cluster with 4,000 GPUs all their metrics take a server ten times as long as a few.
    few = profiles.UTILIZATION_METRICS.union(
        profiles.UNREAD, ("DCGM_FI_DEV_FB_USED", "tensorcore_utilization")
    )
    metrics = _recent(every, f"dcgm|{_ACCELERATORS}")
    series = _recent(few, _ACCELERATORS)
    by = ", ".join((*profiles.NAMESPACE_LABELS, *profiles.POD_LABELS))
    shown = f"{series} unless on (job, instance, {by}) up"
    pods = f"count by (__name__, job, GPU_I_PROFILE, {by}) ({shown})"
    branches = (
        (METRICS, 80, f"group by (__name__, job) ({metrics})"),
        (A_SERIES, 40, f"topk by (__name__, job) (1, {series})"),
        (PODS, 60, f"topk by (__name__, job) ({LOOK_PODS}, {pods})"),
        (A_TARGET, 20, f"topk by (job) (1, up and on (job, instance) {series})"),
    )
    return " or ".join(
        marked(f"topk({limit}, {rows})", LOOK_LABEL, kind) for kind, limit, rows in branches
    )


def _recent(names: Iterable[str], parts: str) -> str:
    alike = f"(?i:.*({parts}).*({_BUSY}).*)"
    matchers = f'__name__=~"{"|".join(sorted(names))}|{alike}",__name__!~"{_NOT_EXPORTERS}"'
    return f"last_over_time({{{matchers}}}[{LOOK_BACK}])"


LOOK = _look_text()
"""The query for what a source shows of accelerators, whatever reads it; at most 200 rows.

They are all metrics by their jobs, and of those that show utilization: one series of each with all
its labels, a target of each job, and what may name pods, where that is not the target's own.
"""
