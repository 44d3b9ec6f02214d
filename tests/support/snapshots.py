"""Snapshots for tests of the arithmetic: pods with a life of samples, at one instant."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence, PodStatus, Readiness
from keda_gpu_scaler.snapshot.snapshot import NEVER_SEEN, GpuSamples, NamespaceSnapshot, Pod
from keda_gpu_scaler.spec.workload import Owner

BERT_DEPLOYMENT = Owner("Deployment", "bert")
NOW = 10_000.0
STEP = 15.0
COLLECTION = 30.0


def pod(
    name: str,
    *gpus: float | Sequence[float],
    first_seen: float = NEVER_SEEN,
    last_seen: float = NOW,
    age: float = 0.0,
    averaged: bool = False,
    ended: bool = False,
    history: float = 300.0,
    status: PodStatus | None = None,
) -> Pod:
    """Return a pod whose GPUs show a constant, or their last values one step apart."""
    begin = max(first_seen, last_seen - history)
    return Pod(
        name=name,
        gpus=tuple(_gpu(name, n, values, begin, last_seen) for n, values in enumerate(gpus)),
        first_seen=first_seen,
        last_seen=last_seen,
        sampled_at=last_seen - age,
        scrape_interval_seconds=STEP,
        collection_seconds=COLLECTION,
        averaged=averaged,
        ended=ended,
        status=status,
    )


def said(
    *,
    ready: float = NEVER_SEEN,
    never: bool = False,
    is_ready: bool | None = None,
    created: float | None = NOW - 7200,
    listed: float = NOW - 10,
    **how: Any,
) -> PodStatus:
    """Return what the cluster says of a pod of deployment/bert, Ready for long unless told."""
    usual = PodStatus(
        readiness=Readiness.NEVER if never else Readiness.EVER,
        ready=is_ready,
        ready_since=ready,
        created_at=created,
        listed_at=listed,
        owners=frozenset({BERT_DEPLOYMENT}),
        asks_gpu=True,
    )
    return replace(usual, **how)


def unseen(suffix: str, status: PodStatus) -> Pod:
    """Return a pod of deployment/bert that no exporter has shown."""
    name = f"bert-7b6667bd9-{suffix * 5}"
    return Pod(name, collection_seconds=COLLECTION, status=status)


def bert(
    suffix: str, *gpus: float | Sequence[float], **how: float | bool | PodStatus | None
) -> Pod:
    return pod(f"bert-7b6667bd9-{suffix * 5}", *gpus, **how)  # type: ignore[arg-type]  # a table of any


def snapshot(
    *pods: Pod,
    absence_known: bool = True,
    complete: bool = True,
    evidence: NamespaceEvidence | None = None,
) -> NamespaceSnapshot:
    named = {pod.name: pod for pod in pods}
    return NamespaceSnapshot(
        NOW,
        tuple(sorted(named)),
        named,
        absence_known=absence_known,
        shows_every_pod=complete,
        evidence=evidence,
    )


def _gpu(
    name: str, number: int, values: float | Sequence[float], begin: float, end: float
) -> GpuSamples:
    if isinstance(values, int | float):
        count = int((end - begin) // STEP) + 1
        values = [values] * count
    times = tuple(end - STEP * back for back in reversed(range(len(values))))
    return GpuSamples(f"GPU-{name}-{number}", times, tuple(float(value) for value in values))
