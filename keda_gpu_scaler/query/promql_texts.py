"""PromQL texts: the snapshot query for all triggers, sample ages, and which exporters there are.

Pure text. Every value enters a text through `quoted` or `alternatives`, also what a user wrote. The
queries were tried on real servers for their cost and for the problems named here.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

import re2

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles import Labels, Measure, Metric, MetricSource
from keda_gpu_scaler.query.promql import quoted
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import Signal

ALIVE_LABEL = "alive"
"""Marks the row of `ages_text` which says that the source was scraping two minutes ago."""
METRIC_LABEL = "metric"
"""Keeps apart rows that are equal without their names; `or` would drop one of them."""
TextFor = Callable[[Collection[str]], str]
"""Makes the text of a query about some names: of namespaces, or of GPUs."""
LONGEST_BYTES = 16_384
"""VictoriaMetrics refuses longer texts, unless its `-search.maxQueryLen` allows them."""
STALE_SECONDS = 60
"""Younger samples count as fresh at any scrape interval; only older ones are returned."""


def alternatives(texts: Iterable[str]) -> str:
    """Return a PromQL string literal: a regex that matches exactly one of `texts`."""
    return quoted("|".join(re2.escape(text) for text in sorted(texts)))


def marked(expression: str, label: str, text: str) -> str:
    """Return `expression` with a label added to each of its rows, to tell them apart."""
    return f'label_replace({expression}, "{label}", "{text}", "", "")'


def snapshot_parts(
    text_for: TextFor, names: Collection[str], longest_bytes: int = LONGEST_BYTES
) -> Iterator[str]:
    """Yield one text for all names, or several texts for parts of them if it would be too long.

    Args:
        text_for: makes the query text for some of the names.
        names: what the query is about.
        longest_bytes: the longest text that is sent, unless it has a single name.
    """
    text = text_for(names)
    if len(names) > 1 and len(text.encode()) > longest_bytes:
        ordered = sorted(names)
        middle = len(ordered) // 2
        yield from snapshot_parts(text_for, ordered[:middle], longest_bytes)
        yield from snapshot_parts(text_for, ordered[middle:], longest_bytes)
    else:
        yield text


def snapshot_text(snapshot_query: SnapshotQuery, jobs: Iterable[str], step_seconds: float) -> str:
    """Return the query for every GPU series of the namespaces and for the health of its targets.

    Args:
        snapshot_query: what to cover.
        jobs: the scrape jobs of the exporters, as far as they are known.
        step_seconds: the time between two instants.
    """
    branches = list(_gpu_branches(snapshot_query))
    names = sorted(jobs)
    if names:
        branches.append(good_scrapes_text(names))
    span, step = durations.text(snapshot_query.span_seconds), durations.text(step_seconds)
    return f"({' or '.join(branches)})[{span}:{step}]"


def ages_text(snapshot_query: SnapshotQuery) -> str:
    """Return the query for the ages of stale pods, and for whether the source was alive before.

    A pod is as fresh as its freshest sample. `group(up offset 2m)` is empty in the first two
    minutes after a cold start: absent series may not have been scraped yet.
    """
    metric_sources = _ways(snapshot_query)
    newest = [
        marked(_newest(metric, labels, snapshot_query), METRIC_LABEL, metric.name)
        for labels, measure, _ in metric_sources
        for metric in measure.metrics
    ]
    pod = ", ".join(
        dict.fromkeys(name for one, *_ in metric_sources for name in (one.namespace, one.pod))
    )
    stale = f"time() - max by ({pod}) ({' or '.join(newest)}) > {STALE_SECONDS}"
    return f"({stale}) or {marked('group(up offset 2m)', ALIVE_LABEL, '1')}"


def good_scrapes_text(jobs: Iterable[str]) -> str:
    """Return an expression with a row for each target with a good latest scrape.

    The value is the time of that scrape. `timestamp(up == 1)` would be the evaluation time instead.
    """
    up = f"up{{job=~{alternatives(jobs)}}}"
    return f"max by (job, instance) (timestamp({up}) and {up} == 1)"


def _ways(snapshot_query: SnapshotQuery) -> list[MetricSource]:
    return profiles.metric_sources(
        snapshot_query.profile, snapshot_query.signal, snapshot_query.found
    )


def _newest(metric: Metric, labels: Labels, snapshot_query: SnapshotQuery) -> str:
    times = f"timestamp({_selector(metric, labels, snapshot_query)})"
    return f"max by ({labels.namespace}, {labels.pod}) ({times})"


def _gpu_branches(snapshot_query: SnapshotQuery) -> Iterator[str]:
    for labels, measure, _ in _ways(snapshot_query):
        branch = _measured(measure, labels, snapshot_query)
        if labels.may_name_exporter:
            exporters = f"up{{namespace=~{alternatives(snapshot_query.namespaces)}}}"
            branch = f"({branch}) unless on (job, instance, namespace, pod) {exporters}"
        yield f"({branch})"


def _measured(measure: Measure, labels: Labels, snapshot_query: SnapshotQuery) -> str:
    identity = ", ".join(_identity(labels, measure))
    if measure.is_ratio:
        return _largest(identity, _selector_of_both(measure, labels, snapshot_query))
    first, *others = (
        (metric.name, _largest(identity, _known(metric, _selector(metric, labels, snapshot_query))))
        for metric in measure.metrics
    )
    _, preferred = first
    for name, other in others:
        # VictoriaMetrics takes rows that are equal without their names for one row with gaps, and
        # `or` fills the gaps with the other metric's values: so the other one gets a label.
        missing = f"{other} unless on ({identity}) ({preferred})"
        preferred = f"{preferred} or {marked(missing, METRIC_LABEL, name)}"
    return preferred


def _known(metric: Metric, selector: str) -> str:
    # Not `> 0`: that would drop NaN, and the instant would count without it.
    return f"{selector} != 0" if metric.zero_is_unknown else selector


def _largest(identity: str, selector: str) -> str:
    """Merge duplicates of one series (two Prometheus replicas behind one API) into the larger."""
    return f"max by ({identity}, __name__) ({selector})"


def _identity(labels: Labels, measure: Measure) -> tuple[str, ...]:
    gpu = (*labels.gpu, labels.number, labels.slice)
    told_apart = dict.fromkeys(label for metric in measure.metrics for label, _ in metric.where)
    return (labels.namespace, labels.pod, *gpu, *told_apart, "job", "instance")


def _selector(metric: Metric, labels: Labels, snapshot_query: SnapshotQuery) -> str:
    whole = [_one_of(labels.slice, labels.whole)] if metric.whole_gpus_only else []
    where = [_one_of(label, texts) for label, texts in metric.where]
    return f"{metric.name}{{{','.join([*_matchers(labels, snapshot_query), *whole, *where])}}}"


def _one_of(label: str, texts: tuple[str, ...]) -> str:
    return f"{label}={quoted(texts[0])}" if len(texts) == 1 else f"{label}=~{alternatives(texts)}"


def _selector_of_both(measure: Measure, labels: Labels, snapshot_query: SnapshotQuery) -> str:
    """Select both metrics at once: `used or free` would drop one, as `or` ignores metric names."""
    names = "|".join(metric.name for metric in measure.metrics)
    return f'{{__name__=~"{names}",{",".join(_matchers(labels, snapshot_query))}}}'


def _matchers(labels: Labels, snapshot_query: SnapshotQuery) -> list[str]:
    absent = [f'{label}=""' for label in labels.absent]
    namespaces = f"{labels.namespace}=~{alternatives(snapshot_query.namespaces)}"
    return [namespaces, f'{labels.pod}!=""', *absent]


EXPORTER_LABEL = "exporter"
"""Names the exporter that a row of `exporters_text` has found."""
STATE_LABEL = "state"
"""Marks the rows of `reported_gpus_text`: reported or busy."""


def reported_gpus_text(uuids: Iterable[str]) -> str:
    """Return the query for which of these GPUs are reported, and which are busy without a pod.

    A row has no pod when no label names one, or when `pod` is the exporter's own, which is what
    Prometheus attaches to idle GPUs: then `up` carries the same pod. A GPU has no pod when no row
    of it has one: where GPUs are shared, exporters show the device itself beside each pod's copy.
    """
    matched = alternatives(uuids)
    return " or ".join(
        branch for label in profiles.BOARD_LABELS for branch in _gpu_states(label, matched)
    )


def exporters_text() -> str:
    """Return the query for which exporters beside dcgm-exporter show pods."""
    return " or ".join(
        marked(f"group({_shown(way)})", EXPORTER_LABEL, name)
        for name in profiles.DETECTED
        for way in profiles.metric_sources(name, Signal.UTILIZATION)
    )


def _shown(way: MetricSource) -> str:
    names = "|".join(metric.name for metric in way.measure.metrics)
    absent = "".join(f',{label}=""' for label in way.labels.absent)
    return f'{{__name__=~"{names}",{way.labels.namespace}!="",{way.labels.pod}!=""{absent}}}'


def _gpu_states(label: str, matched: str) -> Iterator[str]:
    names = "|".join(sorted(profiles.UTILIZATION_METRICS))
    gpu = f'__name__=~"{names}",{label}=~{matched}'
    no_pod = ",".join([gpu, *(f'{name}=""' for name in profiles.POD_LABELS if name != "pod")])
    unmapped = (
        f'({{{no_pod},pod=""}} or ({{{no_pod},pod!=""}} and on (job, instance, namespace, pod) up))'
    )
    mapped = f"({{{gpu}}} unless {unmapped})"
    busy = f"{unmapped} > 0 unless on ({label}, GPU_I_ID) {mapped}"
    yield marked(f"group by ({label}) ({busy})", STATE_LABEL, "busy")
    yield marked(f"group by ({label}) ({{{gpu}}})", STATE_LABEL, "reported")
