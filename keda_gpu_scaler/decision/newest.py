"""The newest load of a workload, which may ask for more replicas than the mean over the window.

Pure. A mean lags behind a load that rises, so the newest samples may raise the number of replicas.
They never lower it: a single sample of a load in bursts is no mean.
"""

from collections.abc import Sequence

from keda_gpu_scaler.decision.pod_state import (
    COVERED,
    FULL,
    NEVER,
    Loads,
    Reported,
    as_one,
    delay_seconds,
    has_limit,
    loads,
    within,
)
from keda_gpu_scaler.snapshot.evidence import Readiness
from keda_gpu_scaler.snapshot.observation import grace_seconds
from keda_gpu_scaler.spec.spec import TriggerSpec

FULL_LOAD, FULL_GROWTH = 1.2, 1.7
"""Full replicas may have more work than they show. They ask for this multiple of what they show,
and for this multiple of their threshold. Both come from the score on public traces: with less, a
climb from one replica takes too many start-ups; with more, replicas that have just enough work ask
for twice as many."""


def newest(
    spec: TriggerSpec, replicas: Sequence[Sequence[Reported]], at: float, *, is_lone: bool
) -> tuple[float, bool]:
    """Return the sum over the newest samples, and whether each replica is full.

    The sum is 0 where no recent instant shows all of them. A replica is full that has been for a
    minute, or since its samples count.

    Of several replicas one may just have left, and works for a while beside those that replace it.
    So their sum is that of the newest instant after which each of them is known to have stayed.
    `replicas` are the pods of each that reports; `is_lone`: no other should report.
    """
    if not replicas or not spec.signal.follows_work:
        return 0.0, False
    recent = [_recent(spec, pods, at) for pods in replicas]
    are_full = has_limit(spec.signal) and all(full for _, full in recent)
    counted = [shown for shown, _ in recent if shown]
    together = set.intersection(*map(set, counted)) if counted else set[float]()
    sums = {time: sum(shown[time] for shown in counted) for time in together}
    until = last = max(sums, default=NEVER)
    if not is_lone:
        # Exporters alone show a pod until it is gone, so a drain of half a minute has to be over.
        until = min(
            last - delay_seconds(pod.pod) if pod.pod.status is None else pod.pod.status.alive_at
            for pods in replicas
            for pod in pods
        )
    stayed = max((time for time in sums if time <= until), default=None)
    return 0.0 if stayed is None else sums[stayed], are_full


def _recent(spec: TriggerSpec, pods: Sequence[Reported], at: float) -> tuple[Loads, bool]:
    """Return a replica's loads that are added up, and whether all of its GPUs are full.

    They are those of the last minute, or of two scrapes if that is longer, and of instants that
    show each GPU. Where it is not known when a pod became Ready, a model may still load when
    `warmup` is over; so its first half window is not added up. It can be full, if all others are.
    """
    pod_loads, are_full = list[Loads](), True
    for reported in pods:
        pod, since = reported.pod, reported.since
        began = pod.last_seen - reported.window_seconds
        gpus = sum(gpu.times[-1:] > (began,) for gpu in pod.gpus)
        after = at - grace_seconds(pod.scrape_interval_seconds)
        samples = within(pod, reported.since, after, pod.last_seen)
        whole = {time: values for time, values in samples.items() if len(values) == gpus}
        are_full = are_full and bool(whole) and min(map(min, whole.values())) >= FULL
        if pod.readiness is Readiness.UNKNOWN:
            since = max(since, pod.sampled_since) + COVERED * reported.window_seconds
        pod_loads.append({time: load for time, load in loads(spec, whole).items() if time >= since})
    work, shown = as_one(pod_loads)
    return {time: work[time] for time in shown}, are_full
