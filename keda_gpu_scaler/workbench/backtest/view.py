"""Simulated pods → the snapshot that a Prometheus with kube-state-metrics gives of them.

Pure. It is built directly, and has what fetching and joining the samples of exporters and the lists
of kube-state-metrics gives: a week is replayed in seconds.
"""

import math
from collections.abc import Callable, Sequence

from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence, PodStatus, Readiness
from keda_gpu_scaler.snapshot.snapshot import (
    NEVER_SEEN,
    GpuSamples,
    NamespaceSnapshot,
    Pod,
)
from keda_gpu_scaler.spec.workload import Owner, Workload
from keda_gpu_scaler.workbench.world.loop import (
    COLLECT_SECONDS,
    NEVER,
    STEP_SECONDS,
    SimulatedReplica,
)

LIST_SECONDS = 30
"""How often kube-state-metrics is scraped."""


def view(
    workload: Workload,
    replicas: Sequence[SimulatedReplica],
    at: float,
    span_seconds: float,
    wanted: Callable[[float], int],
) -> NamespaceSnapshot:
    """Return the namespace of a workload as it is shown at the instant `at`.

    The samples reach `span_seconds` back. `wanted` tells how many replicas its owner asked for at a
    time.
    """
    owner, listed_at = Owner("Deployment", workload.name), at // LIST_SECONDS * LIST_SECONDS
    pods = {}
    for replica in replicas:
        pod = _pod(replica, f"{workload.prefix}{replica.number:07d}", owner, at, span_seconds)
        if pod is not None:
            pods[pod.name] = pod
    is_counted = any(replica.counts(listed_at) for replica in replicas)
    evidence = NamespaceEvidence(
        listed_at,
        absence_known=True,
        without_pods=frozenset() if is_counted else frozenset({owner}),
        wanted={owner: wanted(listed_at)},
    )
    return NamespaceSnapshot(
        at,
        tuple(sorted(pods)),
        pods,
        absence_known=True,
        shows_every_pod=True,
        evidence=evidence,
    )


def _pod(
    replica: SimulatedReplica, name: str, owner: Owner, at: float, span_seconds: float
) -> Pod | None:
    last = min(at, _last_before(replica.gone, STEP_SECONDS))
    first_seen = math.ceil(replica.placed / STEP_SECONDS) * STEP_SECONDS
    since = max(first_seen, last - span_seconds + STEP_SECONDS)
    shown = replica.shown
    samples = [
        (float(time), shown[collected])
        for time in range(int(since), int(last) + 1, STEP_SECONDS)
        if (collected := time // COLLECT_SECONDS * COLLECT_SECONDS) in shown
    ]
    status = _status(replica, owner, at // LIST_SECONDS * LIST_SECONDS)
    if not samples and status is None:
        return None
    last_seen = samples[-1][0] if samples else NEVER_SEEN
    times, values = zip(*samples, strict=True) if samples else ((), ())
    return Pod(
        name,
        (GpuSamples(name, times, values),) if samples else (),
        first_seen=first_seen if samples else NEVER_SEEN,
        last_seen=last_seen,
        sampled_at=last_seen,
        scrape_interval_seconds=STEP_SECONDS if samples else 0,
        collection_seconds=COLLECT_SECONDS,
        ended=status is not None and status.ended,
        shows_free_gpus=True,
        status=status,
    )


def _status(replica: SimulatedReplica, owner: Owner, newest: float) -> PodStatus | None:
    """Return what the lists up to the newest one say of a pod; None: none has shown it."""
    listed_at = min(newest, _last_before(replica.gone, LIST_SECONDS))
    if listed_at < replica.created:
        return None
    alive_at = min(listed_at, _last_before(replica.deleted, LIST_SECONDS))
    was_ready = replica.ready <= min(listed_at, replica.deleted)
    ended_at = NEVER
    if alive_at < listed_at:
        ended_at = math.ceil(replica.deleted / LIST_SECONDS) * LIST_SECONDS
    return PodStatus(
        owners=frozenset({owner}),
        created_at=replica.created,
        readiness=Readiness.EVER if was_ready else Readiness.NEVER,
        ready_since=replica.ready if was_ready else NEVER_SEEN,
        ended=ended_at < NEVER or replica.gone <= newest,
        asks_gpu=True,
        ready=replica.ready <= listed_at < replica.deleted,
        alive_at=alive_at if alive_at >= replica.created else NEVER_SEEN,
        ended_at=ended_at,
        listed_at=listed_at,
    )


def _last_before(time: float, every_seconds: int) -> float:
    """Return the last multiple before a time."""
    return NEVER if time == NEVER else (math.ceil(time / every_seconds) - 1) * every_seconds
