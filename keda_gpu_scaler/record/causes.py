"""Why no exporter shows a workload's GPUs, and the cure: from what the source shows instead. Pure.

Nothing is advised that was not seen. A cause is for the workload's owner, so it says only how many
other namespaces and pods there are: their names are for the operator.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from keda_gpu_scaler.decision import load
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles import dcgm
from keda_gpu_scaler.query.promql_texts import LOOK_PODS
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot
from keda_gpu_scaler.spec.durations import counted
from keda_gpu_scaler.spec.spec import TriggerSpec

Labels = Mapping[str, str]
"""Of one row, with its metric as `__name__`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a source shows of accelerators, whatever reads it."""

    refused: str = ""
    """Why it does not say; empty: it does."""
    metrics: Sequence[Labels] = ()
    """Each metric in each job."""
    series: Sequence[Labels] = ()
    """Of each that shows how busy accelerators are, one series with all its labels."""
    targets: Sequence[Labels] = ()
    """One of each job, with its own labels."""
    pods: Sequence[Labels] = ()
    """What may name pods in such series, by metric and job, where that is not the target alone."""
    jobs: Collection[str] = ()
    """The only jobs that count, by the source's settings; empty: all of them."""


class Cause(NamedTuple):
    """Why no exporter shows a workload's GPUs."""

    rule: str
    """That of `check`."""
    why: str
    """As a clause, without a name of another namespace or pod."""
    cure: str
    """What to do, as a clause."""
    names: tuple[str, ...] = ()
    """The other namespaces, pods or jobs that it is about."""

    def __str__(self) -> str:
        return f"{self.why}: {self.cure}"


class Unread(NamedTuple):
    """A workload whose GPUs are not read, and what is known of its namespace."""

    spec: TriggerSpec
    asks: bool | None
    """A pod of it requests an accelerator, as the cluster says; None: that is not known."""
    own: int = 0
    """How many pods of it exporters show."""
    others: tuple[str, ...] = ()
    """The other pods of the namespace that exporters show."""
    unmatched: frozenset[str] | None = None
    """The labels of an element of its query that names no pod of the namespace; None: each does."""


def unread(spec: TriggerSpec, view: NamespaceSnapshot) -> Unread:
    pods = [pod for pod in load.pods_of(spec, view) if not pod.ended]
    asking = {pod.asks_gpu for pod in pods}
    asks = True if True in asking else None if None in asking or not pods else False
    names = {pod.name for pod in pods}
    shown = {pod.name for pod in view.pods.values() if pod.was_seen and not pod.ended}
    unmatched = view.unmatched_labels if view.unmatched_elements else None
    return Unread(spec, asks, len(shown & names), tuple(sorted(shown - names)), unmatched)


NO_SERIES, NO_LABELS, NO_PODS = "no-series", "no-pod-labels", "no-pods"
_SHOWN = 5
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_ASK = (
    "where it has a ResourceClaim, set KUBERNETES_ENABLE_DRA=true for dcgm-exporter beside "
    "DCGM_EXPORTER_KUBERNETES=true; otherwise let its container request one, such as nvidia.com/gpu"
)


def cause(workload: Unread, look: Look) -> Cause:
    """Return the one cause that what the source shows speaks for."""
    if look.refused:
        why = f"the source does not show its metrics of accelerators ({look.refused})"
        return Cause(NO_PODS, why, "let it answer queries about all metrics, or make it faster")
    if workload.spec.query is not None:
        return _of_query(workload, look)
    if not look.metrics:
        why = "the source has no metric of an exporter of accelerators"
        return Cause(NO_SERIES, why, "let it scrape an exporter on each node that has them")
    wanted = profiles.metric_names(workload.spec.profile, workload.spec.signal)
    shown = [row for row in look.metrics if row["__name__"] in wanted]
    if not shown:
        return _mig(look, wanted) or _other_metric(workload.spec, look, wanted)
    return _of_series(workload, look, shown, wanted)


def _of_series(
    workload: Unread, look: Look, shown: Sequence[Labels], wanted: frozenset[str]
) -> Cause:
    """Return why series of the right metrics show no pod of the workload."""
    counting = [row for row in shown if not look.jobs or row.get("job") in look.jobs]
    if not counting:
        jobs = tuple(sorted({row.get("job", "") for row in shown}))
        one = counted(len(jobs), "job")
        why = f"exporter_jobs leaves out {one}, which alone would show {_names(shown)[0]}"
        return Cause(NO_SERIES, why, "let the operator add it to exporter_jobs", jobs)
    by = {(row.get("job"), profiles.BY_METRIC[row["__name__"]]) for row in counting}
    names = wanted if wanted & profiles.UTILIZATION_METRICS else profiles.BY_METRIC
    series, pods = (
        [
            row
            for row in rows
            if row["__name__"] in names
            and (row.get("job"), profiles.BY_METRIC[row["__name__"]]) in by
        ]
        for rows in (look.series, look.pods)
    )
    naming = [row for row in pods if profiles.namings(row)]
    if not naming:
        return _mig(look, wanted) or _unnamed(workload, look, series or counting, pods)
    return _shares(workload, look, naming, wanted) or _others_named(workload, series, naming)


def _of_query(workload: Unread, look: Look) -> Cause:
    """Return why a query of the user's own shows no pod of the workload."""
    spec, names = workload.spec, _names(look.metrics)
    missing = [
        what
        for what, labels in (("namespace", profiles.NAMESPACE_LABELS), ("pod", profiles.POD_LABELS))
        if workload.unmatched is not None and workload.unmatched.isdisjoint(labels)
    ]
    if missing:
        why = f"the elements of the query have no label of the {' and the '.join(missing)}"
        cure = "keep both in the result, as in max by (namespace, pod) (…)"
        return Cause(NO_LABELS, why, cure)
    text = "" if spec.query is None else spec.query.text
    for name in [name for name in _NAME.findall(text) if name in names]:
        rows = [row for row in look.pods if row["__name__"] == name]
        labels = sorted({naming[2:] for row in rows for naming in profiles.namings(row)})
        if not labels:
            why = f"the query reads {name}, and its series name no pod"
            (cure,) = _exporters([{"__name__": name}]).values() or ("let its exporter name pods",)
            return Cause(NO_LABELS, why, cure)
        by = " and ".join(labels[0])
        why = f"the query shows no pod of {spec.workload}, and {name} names pods by {by}"
        cure = f"keep these labels in the result, and select the namespace by {labels[0][0]}"
        if name in profiles.BY_METRIC:
            cure = f"remove query: {name} is read without one"
        return Cause(NO_PODS, why, cure)
    why = "the query reads no metric of an exporter that the source has"
    has = f"it has {_listed(names)}" if names else "it has none"
    return Cause(NO_PODS, f"{why}; {has}", "run the query by hand; explain shows its text")


def _other_metric(spec: TriggerSpec, look: Look, wanted: Collection[str]) -> Cause:
    """Return why a source with metrics of accelerators has none that is wanted."""
    names = _names(look.metrics)
    known = [name for name in names if name in profiles.BY_METRIC]
    for_all = profiles.metric_names(profiles.AUTO, spec.signal)
    if for_all.intersection(known):
        why = f"profile {spec.profile} does not read {_listed(for_all.intersection(known))}"
        return Cause(NO_SERIES, why, "remove profile, or name the one that reads it")
    for name in [name for name in names if name not in profiles.BY_METRIC]:
        inside = [metric for metric in for_all if metric.lower() in name.lower()]
        if inside:
            metric = max(inside, key=lambda metric: (metric in name, len(metric)))
            why = f"{metric} is there under another name: {name}"
            return Cause(NO_SERIES, why, "keep the exporter's name, or write a query with this one")
    if known:
        exporters = _exporters(look.metrics)
        missing = [name for name in wanted if _exporters([{"__name__": name}]).keys() & exporters]
        why = (
            f"{_listed(exporters)} does not show the signal {spec.signal}: there is no "
            f"{_listed(missing or wanted)}, but {_listed(known)}"
        )
        return Cause(NO_SERIES, why, "let the exporter show it, or use another signal")
    for name in names:
        if name in profiles.UNREAD:
            exporter = profiles.UNREAD[name]
            why = f"the source has {name} of {exporter.name}, and its series name no pod"
            return Cause(NO_SERIES, why, exporter.to_name_pods)
    why = f"the source has {_listed(names)}, which no profile reads"
    cure = "let it scrape an exporter that a profile reads, or write a query with these metrics"
    return Cause(NO_SERIES, why, cure)


def _mig(look: Look, wanted: Collection[str], namespace: str | None = None) -> Cause | None:
    """Return the cause if GPUs are MIG instances, of the namespace, without the only metric."""
    rows = look.pods if namespace else (*look.series, *look.pods)
    has_instances = any(
        row.get("GPU_I_PROFILE") and (not namespace or namespace in row.values()) for row in rows
    )
    name = dcgm.ENGINE.name
    if not has_instances or name not in wanted or name in _names(look.metrics):
        return None
    why = f"the GPUs are MIG instances, which show no utilization but {name}"
    return Cause(NO_SERIES, why, f"let dcgm-exporter collect {name}")


def _unnamed(
    workload: Unread, look: Look, series: Iterable[Labels], pods: Iterable[Labels]
) -> Cause:
    """Return why series name no pod together with its namespace."""
    for row in pods:
        own = _own(look, row)
        label = next(
            (each for each in profiles.POD_LABELS if row.get(each) and each not in own), ""
        )
        if label:
            why = f"series name pods by {label}, and no label names their namespace"
            cure = "keep the label namespace, or exported_namespace, where relabelling drops it"
            return Cause(NO_LABELS, why, cure)
    for row in series:
        others = {label for label in row if label not in _own(look, row)} - profiles.KNOWN_LABELS
        named = sorted(label for label in others if _POD.search(label))
        if named:
            space = min((label for label in others if "namespace" in label.lower()), default="")
            why = f"{row['__name__']} may name pods by {_listed(named)}, which is not read"
            to_namespace = f"{space or 'a label with their namespace'} to namespace"
            return Cause(NO_LABELS, why, f"relabel {named[0]} to pod, and {to_namespace}")
    exporters = _exporters(series)
    why = f"the series of {_listed(exporters)} name no pod"
    cures = [f"for {name}, {cure}" for name, cure in exporters.items()]
    cure = "; ".join(cures) if len(cures) > 1 else next(iter(exporters.values()))
    if workload.asks is False:
        why += f", and no pod of {workload.spec.workload} requests an accelerator"
        if dcgm.TO_NAME_PODS in exporters.values():
            cure = _ASK
    return Cause(NO_LABELS, why, cure)


_POD = re.compile(r"(?i)pod(?!.*(?:uu?id|ip$|namespace|hash|template|label))")
_HAMI = {profiles.PROFILES["hami"].name, profiles.PROFILES["hami-legacy"].name}


def _shares(
    workload: Unread, look: Look, naming: Sequence[Labels], wanted: Collection[str]
) -> Cause | None:
    """Return why exporters that show pods leave out those of the workload; None: unknown."""
    if workload.asks is False and not workload.own:
        why = f"no pod of {workload.spec.workload} requests an accelerator, as the cluster lists it"
        return Cause(NO_PODS, why, _ASK)
    if mig := _mig(look, wanted, workload.spec.pods.namespace):
        return mig
    if all(profiles.BY_METRIC[row["__name__"]].startswith("hami") for row in naming):
        why = "HAMi's monitor shows no whole card, and a share only once its pod has used it"
        return Cause(NO_PODS, why, "let the source scrape dcgm-exporter for whole cards as well")
    if _HAMI.intersection(_exporters(look.metrics)):
        why = "HAMi shares GPUs here, and dcgm-exporter does not see the pods that have a share"
        return Cause(NO_PODS, why, "let the source scrape HAMi's metrics of containers as well")
    return None


def _others_named(workload: Unread, series: Iterable[Labels], naming: Sequence[Labels]) -> Cause:
    """Return which pods exporters show instead of those of the workload."""
    here, ours = workload.spec.pods.namespace, workload.spec.workload
    names = {row["__name__"] for row in naming}
    if workload.own:
        why = f"exporters show {counted(workload.own, 'pod')} of {ours}, and not all"
        return Cause(NO_PODS, why, "check the exporters on the nodes of the others")
    if workload.others:
        count = counted(len(workload.others), "other pod")
        why = f"exporters show {count} of namespace {here}, and none of {ours}"
        cure = "name the workload of these pods, or check the exporters on the nodes of its own"
        return Cause(NO_PODS, why, cure, workload.others)
    named = [profiles.namings(row)[0] for row in naming]
    own = {each.pod for each in named if each.namespace == here}
    if own:
        why = f"the source has {_listed(names)} of {counted(len(own), 'pod')} of namespace {here}"
        cure = f"compare their names, labels and numbers with what is read of {ours}"
        return Cause(NO_PODS, f"{why}, which are not read", cure, tuple(sorted(own)))
    spaces = tuple(sorted({each.namespace for each in named}))
    of_job = Counter((row["__name__"], row.get("job")) for row in naming)
    least = "at least " if max(of_job.values()) >= LOOK_PODS else ""
    count = f"{least}{counted(len(spaces), 'other namespace')}"
    why = f"exporters show pods of {count}, and none of namespace {here}"
    cure = "correct the namespace, or check the exporters on the nodes of its pods"
    for name, to_name_pods in _exporters(series).items():
        if name not in _exporters(naming):
            why, cure = f"{why}; the series of {name} name no pod", f"{cure}; {to_name_pods}"
    return Cause(NO_PODS, why, cure, spaces)


def _own(look: Look, row: Labels) -> set[str]:
    """Return the labels of a row that are its target's own."""
    return {label for each in look.targets if each.get("job") == row.get("job") for label in each}


def _exporters(rows: Iterable[Labels]) -> dict[str, str]:
    """Return the exporters of some series, each with what makes it name pods."""
    exporters = {
        metric: profiles.UNREAD.get(metric) or profiles.PROFILES[profiles.BY_METRIC[metric]]
        for metric in _names(rows)
        if metric in profiles.BY_METRIC or metric in profiles.UNREAD
    }
    return {exporter.name: exporter.to_name_pods for exporter in exporters.values()}


def _names(rows: Iterable[Labels]) -> list[str]:
    return sorted({row["__name__"] for row in rows})


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - _SHOWN
    return ", ".join(ordered[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
