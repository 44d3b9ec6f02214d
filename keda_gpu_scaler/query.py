"""PromQL texts: one snapshot query for everybody, and the few questions beside it.

Pure text. Whatever enters a text passes `quoted` or `alternatives`; nothing a user wrote gets into
PromQL by another way. The shapes were tried on real servers for cost and for the traps named here.
"""

from collections.abc import Iterable, Iterator

import re2

from keda_gpu_scaler import durations, profiles
from keda_gpu_scaler.observation import Demand
from keda_gpu_scaler.profiles import Labels, Measure, Metric

ALIVE_LABEL = "alive"
"""Marks the row of `ages` which says that the source was scraping two minutes ago."""
METRIC_LABEL = "metric"
"""Keeps apart what would be equal without its name, of which `or` would drop one."""
STATE_LABEL = "state"
"""Marks the rows of `gpus`: reported or busy."""
STALE_SECONDS = 60
"""Younger samples are fresh whatever the scrape interval; only older ones are returned."""


def quoted(text: str) -> str:
    """Return `text` as a PromQL string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def alternatives(texts: Iterable[str]) -> str:
    """Return a PromQL string literal: a regex that matches exactly one of `texts`."""
    return quoted("|".join(re2.escape(text) for text in sorted(texts)))


def marked(expression: str, label: str, text: str) -> str:
    """Return `expression` with a label added to each of its rows, to tell them apart by."""
    return f'label_replace({expression}, "{label}", "{text}", "", "")'


def snapshot(demand: Demand, jobs: Iterable[str], step_seconds: float) -> str:
    """Return the query for every GPU series of the namespaces and for the health of its targets.

    Args:
        demand: what to cover.
        jobs: the scrape jobs of the exporters, as far as they are known.
        step_seconds: the distance between two instants.
    """
    branches = list(_gpu_branches(demand))
    names = sorted(jobs)
    if names:
        branches.append(_good_scrapes(names))
    span, step = durations.text(demand.span_seconds), durations.text(step_seconds)
    return f"({' or '.join(branches)})[{span}:{step}]"


def ages(demand: Demand) -> str:
    """Return the query for the ages of stale pods, and for whether the source was alive before.

    A pod is as fresh as its freshest sample. `group(up offset 2m)` is empty in the first two
    minutes after a cold start: what is absent then may only not have been scraped yet.
    """
    ways = profiles.measures(demand.profile, demand.signal)
    newest = [
        marked(_newest(metric, labels, demand), METRIC_LABEL, metric.name)
        for labels, measure in ways
        for metric in measure.metrics
    ]
    pod = ", ".join(dict.fromkeys(label for one, _ in ways for label in (one.namespace, one.pod)))
    stale = f"time() - max by ({pod}) ({' or '.join(newest)}) > {STALE_SECONDS}"
    return f"({stale}) or {marked('group(up offset 2m)', ALIVE_LABEL, '1')}"


def gpus(uuids: Iterable[str]) -> str:
    """Return the query for which of these GPUs are reported at all, and which are busy without pod.

    A GPU has no pod when no label names one, or when `pod` is the exporter's own, which is what
    Prometheus attaches to idle GPUs: then `up` carries the same pod.
    """
    matched = alternatives(uuids)
    return " or ".join(
        branch for label in ("UUID", "uuid") for branch in _gpu_states(label, matched)
    )


def _newest(metric: Metric, labels: Labels, demand: Demand) -> str:
    times = f"timestamp({_selector(metric, labels, demand)})"
    return f"max by ({labels.namespace}, {labels.pod}) ({times})"


def _gpu_states(label: str, matched: str) -> Iterator[str]:
    names = "|".join(profiles.UTILIZATION_METRICS)
    gpu = f'__name__=~"{names}",{label}=~{matched}'
    no_pod = f'{gpu},exported_pod="",pod_name=""'
    unmapped = (
        f'{{{no_pod},pod=""}} or ({{{no_pod},pod!=""}} and on (job, instance, namespace, pod) up)'
    )
    yield marked(f"group by ({label}) (({unmapped}) > 0)", STATE_LABEL, "busy")
    yield marked(f"group by ({label}) ({{{gpu}}})", STATE_LABEL, "reported")


def _gpu_branches(demand: Demand) -> Iterator[str]:
    for labels, measure in profiles.measures(demand.profile, demand.signal):
        branch = _measured(measure, labels, demand)
        if labels.may_name_exporter:
            exporters = f"up{{namespace=~{alternatives(demand.namespaces)}}}"
            branch = f"({branch}) unless on (job, instance, namespace, pod) {exporters}"
        yield f"({branch})"


def _measured(measure: Measure, labels: Labels, demand: Demand) -> str:
    identity = ", ".join(_identity(labels))
    if measure.is_ratio:
        return _largest(identity, _selector_of_both(measure, labels, demand))
    return f" or on ({identity}) ".join(
        _largest(identity, _selector(metric, labels, demand)) for metric in measure.metrics
    )


def _largest(identity: str, selector: str) -> str:
    """Duplicates of one series (two Prometheus replicas behind one API) become one: the larger."""
    return f"max by ({identity}, __name__) ({selector})"


def _identity(labels: Labels) -> tuple[str, ...]:
    return (labels.namespace, labels.pod, labels.gpu, "gpu", "GPU_I_ID", "job", "instance")


def _selector(metric: Metric, labels: Labels, demand: Demand) -> str:
    whole = ['GPU_I_ID=""'] if metric.whole_gpus_only else []
    return f"{metric.name}{{{','.join([*_matchers(labels, demand), *whole])}}}"


def _selector_of_both(measure: Measure, labels: Labels, demand: Demand) -> str:
    """`used or free` would lose one: set operators do not look at the metric's name."""
    names = "|".join(metric.name for metric in measure.metrics)
    return f'{{__name__=~"{names}",{",".join(_matchers(labels, demand))}}}'


def _matchers(labels: Labels, demand: Demand) -> list[str]:
    absent = [f'{label}=""' for label in labels.absent]
    namespaces = f"{labels.namespace}=~{alternatives(demand.namespaces)}"
    return [namespaces, f'{labels.pod}!=""', *absent]


def _good_scrapes(jobs: list[str]) -> str:
    """One row per target, there only while its latest scrape was good; the value is its time.

    `timestamp(up == 1)` would be the evaluation time instead of the scrape's.
    """
    up = f"up{{job=~{alternatives(jobs)}}}"
    return f"max by (job, instance) (timestamp({up}) and {up} == 1)"
