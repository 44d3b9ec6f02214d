"""Decisions in words: one plain sentence with the numbers in it.

Pure. The operator reads them in the log and in gRPC errors. They must answer "why was this workload
(not) scaled?" without reading the code.
"""

import math
from collections.abc import Iterator, Sequence

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision import load
from keda_gpu_scaler.decision.activity import Activity
from keda_gpu_scaler.decision.load import MeasuredWorkload
from keda_gpu_scaler.decision.pod_state import PodState, has_limit
from keda_gpu_scaler.snapshot.evidence import (
    EvidenceSource,
    NamespaceEvidence,
    Readiness,
    Unschedulable,
)
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.spec.workload import Owner

NAMES_SHOWN = 3
_MINUTE = 60
LISTED = "the cluster lists a pod of it, and nothing is remembered that says more"
ASKED = "the HPA asks about it, which it does while it has replicas"
UNTOLD = " at least, and it is not known until when the replicas worked that left just now: hold"
NEWEST = " by the newest samples"
FOR_FULL = " for full replicas, which may have more work than they show,"
BRIEF = " by samples that show all of them for less than half a window: hold"
OVERLOOKED = "pods may be overlooked, because the past hour or an exporter was not seen yet"


def measured(workload: MeasuredWorkload, busy: Activity, value: float | None) -> str:
    """Say what was measured, what it asks for, and how busy the workload is."""
    spec = workload.spec
    total = workload.asked
    mean, over = _number(spec, workload.mean), counted(len(workload.replicas), "replica")
    starting = workload.names(PodState.STARTING)
    waiting = f"; {_names(starting)} not Ready yet" if starting else ""
    if spec.is_by_demand:
        return f"mean {spec.signal} {mean} over {over}; {_activity(spec, busy)}{waiting}"
    left = " and those that left just now" if workload.total == workload.sums.before > 0 else ""
    asks = _asks(workload, total, alone=total)
    held = "" if value is not None else _why_held(workload)
    measurement = f"mean {spec.signal} {mean} over {over}{left}, {asks}{held}"
    return f"{measurement}; {_activity(spec, busy)}{waiting}"


def starting(workload: MeasuredWorkload, busy: Activity, value: float | None) -> str:
    """Say which replicas are not measured yet, why, and how that changes the answer."""
    spec, warming = workload.spec, workload.names(PodState.WARMING)
    if warming:
        why = f"{_names(warming)} {_why_warming(workload)}"
        return f"{why}: {_incomplete(workload, value)}; {_activity(spec, busy)}"
    held = "" if spec.is_by_demand else ": hold"
    if workload.is_only_asked_about:
        return f"{_only_asked_about(spec)} yet{held}"
    young = workload.names(PodState.STARTING)
    if young:
        return f"{_names(young)} not Ready yet{held}; {_activity(spec, busy)}"
    limit = durations.text(spec.start_timeout_seconds)
    late = f"{_names(workload.names(PodState.STALLED))} not Ready within startTimeout {limit}"
    return f"{late}{held}, and not active by itself; {_activity(spec, busy)}"


def partial(workload: MeasuredWorkload, busy: Activity, value: float | None) -> str:
    """Say which replicas do not report, and how that changes the answer."""
    why = "; ".join(_not_seen(workload)) or OVERLOOKED
    return f"{why}: {_incomplete(workload, value)}; {_activity(workload.spec, busy)}"


def stuck(pods: Sequence[Pod]) -> list[str]:
    """Say which metrics of pods that have not ended are stuck at 0, and which are read instead."""
    alive = [pod for pod in pods if not pod.ended]
    return [
        f"{clause} for {_names([pod.name for pod in alive if clause in pod.stuck])}"
        for clause in sorted({clause for pod in alive for clause in pod.stuck})
    ]


def _not_seen(workload: MeasuredWorkload) -> Iterator[str]:
    """Say which replicas do not report, by what is the matter with them."""
    silent = workload.of(PodState.MISSING, PodState.SILENT)
    never = [replica.name for replica in silent if replica.is_never_named]
    unnamed = [replica.name for replica in silent if replica.is_unnamed]
    stopped = [replica.name for replica in silent if replica.name not in {*never, *unnamed}]
    if workload.blank:
        yield f"no number of {_names(workload.blank)} can be believed"
    elif stopped:
        yield f"{_names(stopped)} stopped reporting without having ended"
    if unnamed:
        yield f"GPUs of {_names(unnamed)} are shown without a pod"
    if never:
        yield f"no exporter has named {_names(never)} yet"
    unseen = workload.names(PodState.UNSEEN)
    if unseen:
        ask = "asks for a GPU that" if len(unseen) == 1 else "ask for GPUs that"
        yield f"{_names(unseen)} {ask} no exporter shows"


def empty(workload: MeasuredWorkload) -> str:
    """Say which evidence shows that there is no pod."""
    name = workload.spec.workload
    if workload.view.evidence_source is EvidenceSource.KUBERNETES:
        return f"the Kubernetes API lists no pod of {name}"
    return f"{name} has no replicas by its own count in kube-state-metrics"


def ended(workload: MeasuredWorkload) -> str:
    """Say why the workload is believed to have no pods."""
    name = workload.spec.workload
    if workload.ended_pods:
        return f"{counted(workload.ended_pods, 'pod')} of {name} ended; no pod is left"
    return f"no pod of {name} reports or is remembered, and the source is healthy"


def unknown(workload: MeasuredWorkload, age_seconds: float, trouble: str | None) -> str:
    """Say what is not known, as a clause, with the source's error if it failed."""
    spec, view = workload.spec, workload.view
    evidence = f"(evidence: {view.evidence_source})"
    if age_seconds > spec.max_age_seconds:
        limit = durations.text(spec.max_age_seconds)
        why = f"the newest samples are {age_seconds:.0f} s old, beyond maxAge {limit}"
    elif load.are_pods_known(spec, view):
        why = _none_reports(workload)
    else:
        why = "the Kubernetes API does not say now which pods the label selector selects"
        why = f"{why} of {spec.workload}, and nothing else could {evidence}"
        if view.evidence_source is EvidenceSource.KUBERNETES:
            why = (
                f"{why}, or it leaves out pods of the same owner, or no label names the replica of "
                "one: podPattern could name them"
            )
        return why
    return f"{why} {evidence}" if trouble is None else f"{why} ({trouble})"


def _none_reports(workload: MeasuredWorkload) -> str:
    """Say why no pod shows a load although the samples are fresh."""
    spec = workload.spec
    if workload.replicas:
        names = _names([replica.name for replica in workload.replicas])
        if all(replica.is_never_named for replica in workload.replicas):
            return f"no exporter has named {names} yet"
        if workload.blank:
            return f"no number of {_names(workload.blank)} can be believed"
        return f"{names} did not end, and no fresh sample of them is left"
    if workload.is_only_asked_about:
        return f"{_only_asked_about(spec)} within startTimeout"
    if spec.query is not None:
        return _not_shown(spec, workload.view.unmatched_elements)
    early = "too soon to believe that after the source began or came back"
    return f"no pod of {spec.workload} is seen, {early}"


def unschedulable(replicas: int, wanted: int | None, first: Unschedulable, at: float) -> str:
    """Say how many replicas are unschedulable, and what holds for the first of them."""
    asked = "" if wanted is None else f"{wanted} asked for, "
    at_most = "up to " if replicas > 1 else ""
    return f"{asked}{replicas} unschedulable for {at_most}{waited(first, at)}"


def waited(pod: Unschedulable, at: float) -> str:
    """Say how long a pod has been unschedulable, and why in the scheduler's words, if known."""
    seconds = int(max(0.0, at - pod.since))
    whole = durations.text(seconds if seconds < _MINUTE else seconds - seconds % _MINUTE)
    return f'{whole} ("{pod.message}")' if pod.message else whole


def never_seen(spec: TriggerSpec) -> str:
    """Say that nothing has shown a pod of the workload, as a clause."""
    return f"never seen: no exporter has shown a pod of {spec.workload}; check its name"


def unlisted(spec: TriggerSpec, owner: Owner, evidence: NamespaceEvidence) -> str:
    """Say that the cluster has no such workload, and which one its name may mean."""
    nearest = errors.nearest(owner.name, evidence.owners[owner.kind])
    of_its_name = [
        f"{kind.lower()}/{owner.name}"
        for kind, names in evidence.owners.items()
        if owner.name in names
    ]
    meant = next(iter(of_its_name), nearest)
    hint = f" (did you mean {meant}?)" if meant else ""
    return f"there is no {spec.workload}{hint} (evidence: {evidence.evidence_source})"


def _only_asked_about(spec: TriggerSpec) -> str:
    return f"the HPA asks about {spec.workload}, which has replicas then, and no exporter shows one"


def _not_shown(spec: TriggerSpec, unmatched_elements: int) -> str:
    """Say that a user's query shows no pod of the workload, which does not prove it is gone."""
    whose = "" if spec.only_shown else f" of {spec.workload}"
    if not unmatched_elements:
        return f"query shows no pod{whose}, which does not say that there is none"
    return (
        f"query shows no pod{whose}, and {counted(unmatched_elements, 'element')} that "
        f"{'names' if unmatched_elements == 1 else 'name'} no pod in namespace "
        f"{spec.pods.namespace}"
    )


def _asks(workload: MeasuredWorkload, total: float, *, alone: float) -> str:
    """Say what the HPA is asked for; `alone` is what the measured replicas ask for."""
    spec = workload.spec
    threshold = _number(spec, spec.threshold)
    if not spec.aggregation.is_for_all:
        average = _number(spec, total / len(workload.replicas))
        return f"average {average} against threshold {threshold}"
    asks, shown = wanted(spec, len(workload.replicas), total), _number(spec, total)
    if alone > workload.total:
        each = f"{spec.aggregation} {_number(spec, workload.outstanding)}"
        those = counted(workload.counted, "replica")
        others = (
            ""
            if math.isclose(total, alone)
            else f" and {_number(spec, total - alone)} for the others"
        )
        added = f"{each} for each of {those}{others}"
        return f"{added}, in all {shown} at threshold {threshold} {asks}"
    of = ""
    if math.isclose(total, workload.sums.newest) and workload.sums.newest > workload.sums.summed:
        of = FOR_FULL if workload.sums.are_full else NEWEST
    return f"sum {shown}{of} at threshold {threshold} {asks}"


def wanted(spec: TriggerSpec, replicas: int, total: float) -> str:
    """Say what the HPA does with the sum, if it runs as many replicas as report here."""
    ratio = total / (replicas * spec.threshold) if replicas else math.inf
    if 1 - load.TOLERANCE <= ratio <= 1 + load.TOLERANCE:  # both ends, as in the HPA
        return f"is on target for {counted(replicas, 'replica')}"
    return f"asks for {counted(math.ceil(total / spec.threshold), 'replica')}"


def _why_held(workload: MeasuredWorkload) -> str:
    """Say why the sum of the replicas that work is no reason to do with fewer."""
    if workload.sums.is_untold or workload.sums.is_brief:
        return UNTOLD if workload.sums.is_untold else BRIEF
    is_one = workload.pending == 1
    missing = f"{'is' if is_one else 'are'} not Ready"
    ready = [pod for pod in workload.pods if pod.readiness is Readiness.EVER and not pod.ended]
    if any(pod.asks_gpu is False for pod in ready):
        missing += f", or {'requests' if is_one else 'request'} no GPU"
    return f" at least, and {workload.pending} more that its owner asks for {missing}: hold"


def _why_warming(workload: MeasuredWorkload) -> str:
    if workload.lacks_past:
        return "not scraped for a whole window yet"
    warming = [reported for reported in workload.reported if reported.state is PodState.WARMING]
    if any(reported.pod.readiness is not Readiness.UNKNOWN for reported in warming):
        return "Ready for too short a time to be measured"
    if all(reported.pod.last_seen >= reported.since for reported in warming):
        return "idle until now beside full replicas, as while a model loads"
    return f"younger than warmup {durations.text(workload.spec.warmup_seconds)}"


def _incomplete(workload: MeasuredWorkload, value: float | None) -> str:
    spec = workload.spec
    part = f"{len(workload.measured)} of {counted(len(workload.replicas), 'replica')} measured"
    if value is None:
        return part if spec.is_by_demand else f"{part}, hold"
    total = value if spec.aggregation.is_for_all else value * len(workload.replicas)
    of_measured = workload.asked
    asks = _asks(workload, total, alone=of_measured)
    if math.isclose(total, of_measured) and total > len(workload.replicas) * spec.threshold:
        return f"{part}, and those alone ask for more than there are: {asks}"
    if workload.of(PodState.MISSING, PodState.SILENT):
        return f"{part}, all of them full, and the others that are Ready count as full: {asks}"
    if workload.of(PodState.UNSEEN):
        return f"{part}, and the others count as on target at least: {asks}"
    asks = _asks(workload, total, alone=0.0)
    return f"{part}, and the most that those did recently needs all that there are: {asks}"


def _activity(spec: TriggerSpec, busy: Activity) -> str:
    if busy.busiest is None:
        return "no GPU sample to judge activity by"
    threshold = _number(spec, spec.activation_threshold)
    window = durations.text(spec.activation_window_seconds)
    busiest = f"busiest GPU {_number(spec, busy.busiest)}"
    if busy.active:
        return f"{busiest} is above activationThreshold {threshold}"
    if not busy.covered:
        rest = f"but samples do not cover {window} yet"
    elif busy.averaged or spec.query is not None or not has_limit(spec.signal):
        rest = "idle"  # the samples of a user's own query may be means
    else:
        rest = "idle by samples of single moments (short requests show only in an averaged metric)"
    return f"{busiest} within {window} is not above activationThreshold {threshold}, {rest}"


def _number(spec: TriggerSpec, value: float) -> str:
    return f"{round(value, load.DECIMALS):.6g} {spec.signal.unit}".rstrip()


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    rest = len(names) - NAMES_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
