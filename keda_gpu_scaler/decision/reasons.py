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
from keda_gpu_scaler.spec.durations import counted
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.spec.workload import Owner

NAMES_SHOWN = 3
_MINUTE = 60
_LEAST_WHOLE = 999.5
LISTED = "the cluster lists a pod of it, and nothing more is remembered"
ASKED = "the HPA asks about it, which it does while it has replicas"
UNTOLD = "; held: it is not known how long the replicas that just left still worked"
BRIEF = "; held: less than half a window of samples for every pod"
OVERLOOKED = "pods may be overlooked, because the past hour or an exporter was not seen yet"


def measured(workload: MeasuredWorkload, busy: Activity, value: float | None) -> str:
    """Say what was measured, which replicas it needs, and how busy the workload is."""
    spec = workload.spec
    total = workload.asked
    mean, over = _number(spec, workload.mean), counted(len(workload.replicas), "replica")
    starting = workload.names(PodState.STARTING)
    waiting = f"; {_names(starting)} not Ready yet" if starting else ""
    if spec.is_by_demand:
        return f"mean {spec.signal} {mean} over {over}; {_activity(spec, busy)}{waiting}"
    left = " and those that just left" if workload.total == workload.sums.before > 0 else ""
    needs = _needs(workload, total, alone=total)
    held = "" if value is not None else _why_held(workload)
    measurement = f"mean {spec.signal} {mean} over {over}{left}: {needs}{held}"
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
        request = "requests a GPU that" if len(unseen) == 1 else "request GPUs that"
        yield f"{_names(unseen)} {request} no exporter shows"


def empty(workload: MeasuredWorkload) -> str:
    """Say which evidence shows that there is no pod."""
    name = workload.spec.workload
    if workload.view.evidence_source is EvidenceSource.KUBERNETES:
        return f"the Kubernetes API lists no pod of {name}"
    return f"kube-state-metrics counts no replicas of {name}"


def ended(workload: MeasuredWorkload) -> str:
    """Say why the workload is believed to have no pods."""
    name = workload.spec.workload
    if workload.ended_pods:
        return f"{counted(workload.ended_pods, 'pod')} of {name} ended; no pod is left"
    return f"no exporter shows a pod of {name}, and none was seen in the last hour"


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
        why = f"the Kubernetes API does not list the pods of {spec.workload} by label now"
        why = f"{why}, and nothing else does {evidence}"
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
    asked = "" if wanted is None else f"{wanted} wanted, "
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
    of_it = "" if spec.only_shown else f" of {spec.workload}"
    if not unmatched_elements:
        return f"query shows no pod{of_it}, which does not prove that there is none"
    return (
        f"query shows no pod{of_it}, and {counted(unmatched_elements, 'element')} that "
        f"{'names' if unmatched_elements == 1 else 'name'} no pod in namespace "
        f"{spec.pods.namespace}"
    )


def _needs(workload: MeasuredWorkload, total: float, *, alone: float) -> str:
    """Say which replicas the total needs; `alone` is what is counted for the measured ones."""
    spec = workload.spec
    threshold, count = _limit(spec, spec.threshold), len(workload.replicas)
    if not spec.aggregation.is_for_all:
        return f"average {_number(spec, total / count)} against {threshold}"
    needs, shown = f"which {wanted(spec, count, total)} at {threshold}", _number(spec, total)
    if alone > workload.total:
        each = f"{spec.aggregation} {_number(spec, workload.outstanding)}"
        those = counted(workload.counted, "replica")
        others = (
            ""
            if math.isclose(total, alone)
            else f" and {_number(spec, total - alone)} for the others"
        )
        return f"{each} for each of {those}{others}, in all {shown}, {needs}"
    is_newest = math.isclose(total, workload.sums.newest)
    if not is_newest or workload.sums.newest <= workload.sums.summed:
        return f"sum {shown}, {needs}"
    if not workload.sums.are_full:
        return f"sum {shown} in the newest samples, {needs}"
    full = f"all {count} replicas are" if count > 1 else "the only replica is"
    product = f"{count} × {_number(spec, total / count)} = " if count > 1 else ""  # noqa: RUF001 - the sign
    return f"{full} full, so more load may be waiting: counted as {product}{shown}, {needs}"


def wanted(spec: TriggerSpec, replicas: int, total: float) -> str:
    """Say what the HPA does with the sum, if it runs as many replicas as report here."""
    ratio = total / (replicas * spec.threshold) if replicas else math.inf
    if 1 - load.TOLERANCE <= ratio <= 1 + load.TOLERANCE:  # both ends, as in the HPA
        return f"is on target for {counted(replicas, 'replica')}"
    return f"needs {counted(math.ceil(total / spec.threshold), 'replica')}"


def _why_held(workload: MeasuredWorkload) -> str:
    """Say why the sum of the replicas that work is no reason to do with fewer."""
    if workload.sums.is_untold or workload.sums.is_brief:
        return UNTOLD if workload.sums.is_untold else BRIEF
    is_one = workload.pending == 1
    missing = f"{'is' if is_one else 'are'} not Ready"
    ready = [pod for pod in workload.pods if pod.readiness is Readiness.EVER and not pod.ended]
    if any(pod.asks_gpu is False for pod in ready):
        missing += f", or {'requests' if is_one else 'request'} no GPU"
    return f"; held: {workload.pending} more of its replicas {missing}"


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
    needs = _needs(workload, total, alone=of_measured)
    if math.isclose(total, of_measured) and total > len(workload.replicas) * spec.threshold:
        return f"{part}, and those alone need more than there are: {needs}"
    if workload.of(PodState.SILENT):
        return f"{part}, all of them full, and the others that are Ready count as full: {needs}"
    if workload.of(PodState.UNSEEN):
        return f"{part}, and the others count as on target at least: {needs}"
    needs = _needs(workload, total, alone=0.0)
    return f"{part}, and the most that those did recently needs all that there are: {needs}"


def _activity(spec: TriggerSpec, busy: Activity) -> str:
    if busy.busiest is None:
        return "no GPU sample shows whether it is active"
    threshold = _limit(spec, spec.activation_threshold)
    window = durations.text(spec.activation_window_seconds)
    busiest = f"busiest GPU {_limit(spec, busy.busiest)}"
    if busy.active:
        return f"{busiest} is above activationThreshold {threshold}"
    if not busy.covered:
        rest = f"but samples do not cover {window} yet"
    elif busy.averaged or spec.query is not None or not has_limit(spec.signal):
        rest = "idle"  # the samples of a user's own query may be means
    else:
        rest = "idle in samples of single moments (short requests show only in an averaged metric)"
    return f"{busiest} within {window} is not above activationThreshold {threshold}, {rest}"


def rounded(value: float) -> str:
    """Return a number for people: three digits, or all of those before the point."""
    return f"{value:.3g}" if abs(value) < _LEAST_WHOLE else f"{value:.0f}"


def _number(spec: TriggerSpec, value: float) -> str:
    return f"{rounded(value)} {spec.signal.unit}".rstrip()


def _limit(spec: TriggerSpec, value: float) -> str:
    """Return a threshold, or what is compared with it, as it is: it shows what is above."""
    return f"{value:.6g} {spec.signal.unit}".rstrip()


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    rest = len(names) - NAMES_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
