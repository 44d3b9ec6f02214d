"""Claims about worlds that name their labels, resources and workloads in other ways."""

from collections.abc import Callable
from typing import Any

import pytest

from keda_gpu_scaler.autoscaling.rules import Hpa
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.workbench.world.loop import COLLECT_SECONDS
from testbed.loops.dialects import EXPORTERS_POD, Dialect
from testbed.loops.loop import Loop
from testbed.loops.pods import SimPod
from testbed.triggers import spec
from tests.stories.loops.variants import each, told

DIALECTS = {
    "the target has neither label": Dialect({}),
    "the target has both, and the series' are kept": Dialect(EXPORTERS_POD, honor_labels=True),
    "pods have two GPUs": Dialect(gpus=2),
    "a resource that no table has": Dialect(resource="example.com/accelerator"),
    "the target has a pod alone": Dialect({"pod": "dcgm-exporter-x7kqp"}),
    "the target has a namespace alone": Dialect({"namespace": "ml"}),
    "the target has another label for a pod": Dialect(
        {"namespace": "gpu-operator", "pod_name": "dcgm-exporter-x7kqp"}
    ),
    "another tenant shows its pods as idle": Dialect(tenant_shows=0.0),
    "another tenant shows its pods as full": Dialect(tenant_shows=100.0),
}


@each
@pytest.mark.parametrize(
    "dialect", [pytest.param(dialect, id=said) for said, dialect in DIALECTS.items()]
)
async def test_in_any_dialect_the_work_is_the_same(
    evidence: EvidenceSource, dialect: Dialect
) -> None:
    usual, other = (
        Loop(lambda t: 60.0 if t < 300 else 190.0, evidence, dialect=each_dialect)
        for each_dialect in (Dialect(), dialect)
    )
    await usual.run(900)
    await other.run(900)
    assert [decision.value for decision in other.decisions] == [
        decision.value for decision in usual.decisions
    ]
    assert other.sizes[-1] == 3


@told
async def test_busy_workers_that_no_exporter_shows_are_not_idle_beside_idle_leaders(
    evidence: EvidenceSource,
) -> None:
    """They ask for a resource that no table has, and exporters show others that ask for it."""

    def differ(pod: SimPod) -> None:
        pod.part = 2.0 if pod.worker else 0.0
        if pod.worker and pod.number < 3:
            pod.silent = pod.created

    unknown = Dialect(resource="example.com/npu")
    loop = _groups(evidence, differ, lambda _: 160.0, dialect=unknown)
    await loop.run(1800)
    assert set(loop.sizes) == {4}


@told
async def test_groups_with_leaders_that_ask_for_no_gpu_follow_the_work(
    evidence: EvidenceSource,
) -> None:
    """Work in bursts is not taken for less because the leader of a group that leaves is gone."""

    def differ(pod: SimPod) -> None:
        if not pod.worker:
            pod.asks, pod.gpu_count = "rdma/hca_shared", 0

    loop = _groups(evidence, differ, lambda t: 120.0 if t // COLLECT_SECONDS % 2 else 180.0)
    await loop.run(1800)
    assert min(loop.sizes) == 3


def _groups(
    evidence: EvidenceSource,
    differ: Callable[[SimPod], None],
    offered: Callable[[float], float],
    **terms: Any,
) -> Loop:
    return Loop(
        offered,
        evidence,
        replicas=4,
        group=2,
        when_created=differ,
        hpa=Hpa(stabilization_seconds=0),
        trigger=spec(workload="lws/bert"),
        **terms,
    )


@told
async def test_a_trigger_that_names_no_workload_holds_its_replicas_and_wakes_none(
    evidence: EvidenceSource,
) -> None:
    for replicas in (3, 0):
        loop = Loop(
            lambda t: 0.0 if t < 600 else 300.0,
            evidence,
            replicas=replicas,
            owner=Owner("Deployment", "bert"),
            trigger=spec(workload="bret"),
        )
        await loop.run(1800, keda=True)
        assert set(loop.sizes) == {replicas}
