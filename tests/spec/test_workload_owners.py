"""Claims about which workload a pod belongs to, by its owners."""

import pytest

from keda_gpu_scaler.spec.workload import NO_OWNER, Kind, Owner, PodPattern, Workload, parse_kind

REPLICA_SET = Owner("ReplicaSet", "bert-7b6667bd9")
DEPLOYMENT = Owner("Deployment", "bert")


@pytest.mark.parametrize(
    ("workload", "above", "ours"),
    [
        ("deployment", {REPLICA_SET, DEPLOYMENT}, True),
        ("deployment", {REPLICA_SET, Owner("Deployment", "bert-b")}, False),
        ("deployment", {REPLICA_SET, Owner("Rollout", "bert")}, False),
        ("deployment", {REPLICA_SET}, None),
        ("deployment", {REPLICA_SET, NO_OWNER}, False),
        ("replicaset", {Owner("ReplicaSet", "bert"), NO_OWNER}, True),
        ("deployment", {Owner("DaemonSet", "bert")}, False),
        ("deployment", set(), False),
        ("rollout", {REPLICA_SET, Owner("Rollout", "bert")}, True),
        ("replicaset", {Owner("ReplicaSet", "bert"), DEPLOYMENT}, True),
        ("replicaset", {REPLICA_SET, DEPLOYMENT}, False),
        ("statefulset", {Owner("StatefulSet", "bert")}, True),
        ("statefulset", {Owner("StatefulSet", "bert-0")}, False),
        ("leaderworkerset", {Owner("StatefulSet", "bert")}, True),
        ("leaderworkerset", {Owner("StatefulSet", "bert-0")}, True),
        ("leaderworkerset", {Owner("StatefulSet", "bert-x")}, False),
        ("leaderworkerset", {Owner("Deployment", "bert-0")}, False),
        ("modelserving", {Owner("ModelServing", "bert")}, True),
        ("modelserving", {Owner("ModelServing", "bert-0")}, False),
        ("podclique", {Owner("PodClique", "bert")}, True),
        ("podclique", {Owner("ReplicaSet", "bert")}, False),
        ("vllmruntime", {REPLICA_SET, DEPLOYMENT}, True),
        ("daemonset", {Owner("DaemonSet", "bert")}, True),
        ("job", {Owner("Job", "bert")}, True),
        ("cronjob", {Owner("Job", "bert-123"), Owner("CronJob", "bert")}, True),
        ("cronjob", {Owner("Job", "bert-123")}, None),
        ("cronjob", {Owner("Job", "bert-123"), NO_OWNER}, False),
        ("inferenceservice", {REPLICA_SET, Owner("Deployment", "bert-predictor")}, None),
    ],
)
def test_a_pod_is_the_workload_s_if_its_owner_is_the_workload(
    workload: str, above: set[Owner], *, ours: bool | None
) -> None:
    found = Workload(parse_kind(workload), "ml", "bert")
    assert found.owns(frozenset(above)) is ours


def test_a_pattern_leaves_it_to_the_name() -> None:
    pattern = PodPattern("ml", "bert-.*")
    assert pattern.owns(frozenset({DEPLOYMENT})) is None
    assert pattern.owner is None


@pytest.mark.parametrize("kind", Kind)
def test_the_owner_with_the_replica_count_is_known_by_the_workload_s_name(kind: Kind) -> None:
    owner = Workload(kind, "ml", "bert").owner
    by_other_names = {Kind.INFERENCE_SERVICE, Kind.KNATIVE_SERVICE}
    assert (owner is None) == (kind in by_other_names)
    assert owner is None or owner.name == "bert"
