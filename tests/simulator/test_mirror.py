"""The mirror of a real cluster: which pods it shows, on which GPUs, and with which load."""

import dataclasses
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightkube.models.core_v1 import (
    Container,
    Node,
    NodeStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from lightkube.models.meta_v1 import ObjectMeta, OwnerReference

from keda_gpu_scaler.simulator import cluster, kubernetes, mirror

KEY = cluster.Key("team-a", "bert")
NODES = [mirror.Node("blue", 4), mirror.Node("green", 4)]


def owner(kind: str, name: str, *, controller: bool = True) -> OwnerReference:
    return OwnerReference("v1", kind, name, uid="0", controller=controller)


def container(gpus: str | None, name: str = "model") -> Container:
    limits = {"cpu": "1"} | ({"nvidia.com/gpu": gpus} if gpus else {})
    return Container(name, resources=ResourceRequirements(limits=limits))


def real(
    *containers: Container,
    metadata: ObjectMeta | None = None,
    node: str | None = "blue",
    status: PodStatus | None = None,
) -> Pod:
    named = metadata or ObjectMeta(name="bert-0", namespace="team-a", uid="1")
    spec = PodSpec(containers=list(containers or [container("1")]), nodeName=node)
    return Pod(metadata=named, spec=spec, status=status)


def seen(
    name: str = "bert-0",
    *,
    node: str = "blue",
    gpus: int = 1,
    ready: bool = True,
    terminating: bool = False,
) -> mirror.Pod:
    return mirror.Pod(
        uid=f"{name} on {gpus} of {node}",
        name=name,
        workload=KEY,
        node=node,
        gpus=gpus,
        container="model",
        ready=ready,
        terminating=terminating,
    )


def completed(name: str) -> mirror.Pod:
    return dataclasses.replace(seen(name, ready=False), completed=True)


def offer(
    shown: mirror.Mirror,
    load: float,
    *,
    loading_percent: float = 0,
    draining_percent: float = 0,
    completed_percent: float | None = None,
) -> None:
    wanted = cluster.Wanted(
        load=load,
        loading_percent=loading_percent,
        draining_percent=draining_percent,
        completed_percent=completed_percent,
    )
    shown.put(KEY, wanted, 0)


def percents(shown: mirror.Mirror) -> list[float]:
    return [percent for _, percent in shown.workloads[KEY].percents(0)]


def held(shown: mirror.Mirror) -> dict[str, list[tuple[int, int]]]:
    found = (pod for workload in shown.workloads.values() for pod in workload.pods.values())
    return {pod.name: [(each.node, each.gpu) for each in pod.devices] for pod in found}


# What Kubernetes objects say


def test_nodes_are_those_with_gpus_to_give() -> None:
    def node(name: str, allocatable: dict[str, str] | None) -> Node:
        return Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable=allocatable))

    found = [
        node("big", {"nvidia.com/gpu": "8"}),
        node("huge", {"nvidia.com/gpu": "1k"}),
        node("broken", {"nvidia.com/gpu": "0"}),
        node("plain", {"cpu": "8"}),
        node("new", None),
        Node(metadata=ObjectMeta(name="newest")),
    ]
    expected = [mirror.Node("big", 8), mirror.Node("huge", 1000), mirror.Node("broken", 0)]
    assert list(kubernetes.nodes(found)) == expected


@pytest.mark.parametrize(
    ("pod", "shown"),
    [
        pytest.param(real(), True, id="scheduled and not started"),
        pytest.param(real(status=PodStatus(phase="Running")), True, id="running"),
        pytest.param(real(status=PodStatus(phase="Failed")), True, id="failed"),
        pytest.param(real(node=None), False, id="pending without a node"),
        pytest.param(real(container(None)), False, id="asks for no GPU"),
        pytest.param(real(container("0")), False, id="asks for none in words"),
        pytest.param(real(Container("model")), False, id="asks for nothing"),
        pytest.param(Pod(), False, id="empty"),
    ],
)
def test_a_pod_that_was_placed_has_gpus_if_it_asks_for_them(pod: Pod, *, shown: bool) -> None:
    assert bool(list(kubernetes.pods([pod]))) is shown


def test_the_gpus_of_all_containers_count_and_the_first_of_them_names_the_container() -> None:
    (found,) = kubernetes.pods(
        [real(container(None, "proxy"), container("2", "a"), container("1", "b"))]
    )
    assert (found.gpus, found.container) == (3, "a")


@pytest.mark.parametrize(
    ("name", "owners", "labels", "workload"),
    [
        pytest.param(
            "bert-5d4f8-abcde",
            [owner("ReplicaSet", "bert-5d4f8")],
            {"pod-template-hash": "5d4f8"},
            "bert",
            id="Deployment",
        ),
        pytest.param("bert-abcde", [owner("ReplicaSet", "bert")], None, "bert", id="ReplicaSet"),
        pytest.param("bert-0", [owner("StatefulSet", "bert")], {}, "bert", id="StatefulSet"),
        pytest.param("bert-abcde", [owner("Job", "bert")], None, "bert", id="Job"),
        pytest.param(
            "bert-abcde",
            [owner("Quota", "other", controller=False), owner("Job", "bert")],
            None,
            "bert",
            id="an owner that is no controller",
        ),
        pytest.param("bert", None, None, "bert", id="bare pod"),
    ],
)
def test_the_workload_of_a_pod_is_its_controller(
    name: str, owners: list[OwnerReference] | None, labels: dict[str, str] | None, workload: str
) -> None:
    metadata = ObjectMeta(name=name, namespace="team-a", ownerReferences=owners, labels=labels)
    (found,) = kubernetes.pods([real(metadata=metadata)])
    assert found.workload == cluster.Key("team-a", workload)


def condition(kind: str, status: str) -> PodCondition:
    return PodCondition(type=kind, status=status)


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([condition("Initialized", "True"), condition("Ready", "True")], True),
        ([condition("Initialized", "True"), condition("Ready", "False")], False),
        ([condition("Ready", "Unknown")], False),
        (None, False),
    ],
)
def test_a_pod_is_ready_by_its_condition(
    conditions: list[PodCondition] | None, *, ready: bool
) -> None:
    (found,) = kubernetes.pods([real(status=PodStatus(phase="Running", conditions=conditions))])
    assert found.ready is ready


def test_a_pod_that_was_deleted_is_terminating() -> None:
    (alive,) = kubernetes.pods([real()])
    gone = ObjectMeta(name="bert-0", deletionTimestamp=datetime(2026, 1, 1, tzinfo=UTC))
    (terminating,) = kubernetes.pods([real(metadata=gone)])
    assert (alive.terminating, terminating.terminating) == (False, True)


@pytest.mark.parametrize(
    ("phase", "ended"), [("Running", False), ("Succeeded", True), ("Failed", True)]
)
def test_a_pod_that_succeeded_or_failed_has_completed(phase: str, *, ended: bool) -> None:
    (found,) = kubernetes.pods([real(status=PodStatus(phase=phase))])
    assert found.completed is ended


# Which GPUs are shown


def test_the_gpus_of_all_nodes_are_shown_whether_held_or_not() -> None:
    shown = mirror.Mirror()
    shown.show(NODES, [])
    assert [(node.host, len(node.devices)) for node in shown.nodes] == [("blue", 4), ("green", 4)]


def test_a_pod_keeps_its_gpus_while_others_come_and_go() -> None:
    shown = mirror.Mirror()
    shown.show(NODES, [seen("a"), seen("b", gpus=2)])
    assert held(shown) == {"a": [(0, 0)], "b": [(0, 1), (0, 2)]}
    shown.show(NODES, [seen("b", gpus=2), seen("c"), seen("d", node="green")])
    assert held(shown) == {"b": [(0, 1), (0, 2)], "c": [(0, 0)], "d": [(1, 0)]}


def test_pods_on_nodes_that_are_not_shown_are_not_shown() -> None:
    shown = mirror.Mirror()
    shown.show(NODES, [seen("a", node="green"), seen("b", node="elsewhere")])
    assert held(shown) == {"a": [(1, 0)]}
    shown.show(NODES[:1], [seen("a", node="green")])
    assert (held(shown), [node.host for node in shown.nodes]) == ({}, ["blue"])
    shown.show(NODES, [seen("a", node="green")])
    assert held(shown) == {"a": [(2, 0)]}


def test_a_node_gains_gpus_and_never_loses_one() -> None:
    shown = mirror.Mirror()
    for gpus, expected in ((2, 2), (3, 3), (0, 3)):
        shown.show([mirror.Node("blue", gpus)], [])
        assert len(shown.nodes[0].devices) == expected


@given(
    looks=st.lists(
        st.dictionaries(
            st.sampled_from("abcdef"),
            st.tuples(st.sampled_from(["blue", "green"]), st.integers(1, 3)),
        ),
        max_size=8,
    )
)
def test_no_gpu_is_held_twice_and_none_is_lost(looks: list[dict[str, tuple[str, int]]]) -> None:
    shown = mirror.Mirror()
    for number, look in enumerate(looks):
        # A pod that moved or grew has another uid: names are given again, uids are not.
        found = [seen(name, node=home, gpus=gpus) for name, (home, gpus) in look.items()]
        shown.show(NODES if number % 3 else NODES[:1], found)
        devices = [device for each in held(shown).values() for device in each]
        assert len(devices) == len(set(devices)) == sum(node.taken for node in shown.nodes)


# Load


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param([seen("a"), seen("b")], [75, 75], id="spread over the pods"),
        pytest.param([seen("a")], [100], id="capped at a full card"),
        pytest.param([seen("a", gpus=3), seen("b")], [37.5, 37.5], id="spread over the GPUs"),
        pytest.param([seen("a", gpus=2), seen("b", ready=False)], [75, 33], id="one is loading"),
        pytest.param([seen("a", ready=False)], [33], id="all are loading"),
        pytest.param([seen("a", gpus=2), seen("b", terminating=True)], [75, 22], id="one leaves"),
        pytest.param([seen("a", ready=False, terminating=True)], [22], id="leaves without Ready"),
        pytest.param([seen("a"), completed("b")], [100], id="one completed"),
    ],
)
def test_load_spreads_over_the_gpus_of_ready_pods(
    found: list[mirror.Pod], expected: list[float]
) -> None:
    shown = mirror.Mirror()
    offer(shown, 150, loading_percent=33, draining_percent=22)
    shown.show(NODES, found)
    assert percents(shown) == expected


@pytest.mark.parametrize("percent", [0, 44])
def test_a_completed_pod_is_named_where_an_exporter_is_wanted_that_does_so(percent: float) -> None:
    shown = mirror.Mirror()
    shown.show(NODES, [seen("a"), seen("b")])
    offer(shown, 50, completed_percent=percent)
    shown.show(NODES, [seen("a"), completed("b")])
    assert percents(shown) == [50, percent]
    assert held(shown) == {"a": [(0, 0)], "b": [(0, 1)]}
    offer(shown, 50)
    shown.show(NODES, [seen("a"), completed("b")])
    assert held(shown) == {"a": [(0, 0)]}


def test_load_can_be_offered_before_there_are_pods_and_stays_when_they_are_gone() -> None:
    shown = mirror.Mirror()
    offer(shown, 80)
    for found, expected in (([], []), ([seen()], [80]), ([], [])):
        shown.show(NODES, found)
        assert percents(shown) == expected
        assert shown.workloads[KEY].wanted.load == 80


def test_pods_nobody_offers_load_to_are_idle() -> None:
    shown = mirror.Mirror()
    shown.show(NODES, [seen(ready=False), seen("bert-1")])
    assert percents(shown) == [0, 0]


def test_what_was_offered_can_be_forgotten_and_pods_stay() -> None:
    shown = mirror.Mirror()
    offer(shown, 80)
    shown.show(NODES, [seen()])
    shown.delete(KEY)
    assert percents(shown) == [0]
    shown.show(NODES, [])
    with pytest.raises(KeyError):
        shown.delete(KEY)
    offer(shown, 80)
    shown.delete(KEY)
    assert not shown.workloads
