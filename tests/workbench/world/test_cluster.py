"""The simulated GPUs: which pods hold them, and how busy each is."""

import math

import pytest

from keda_gpu_scaler.workbench.world.cluster import (
    Cluster,
    MadeUp,
    SimulatedPod,
    Wanted,
    WorkloadKey,
)

KEY = WorkloadKey("team-a", "bert")
NODES = {"blue": 4, "green": 4}


def seen(
    name: str = "bert-0",
    *,
    node: str = "blue",
    gpus: int = 1,
    ready: bool = True,
    terminating: bool = False,
) -> SimulatedPod:
    return SimulatedPod(
        # A pod that moved or grew has another uid: names are given again, uids are not.
        uid=f"{name} on {gpus} of {node}",
        name=name,
        workload=KEY,
        node=node,
        gpus=gpus,
        container="model",
        ready_at=-math.inf if ready else math.inf,
        terminating=terminating,
    )


def percents(cluster: Cluster, now: float = 0) -> list[float]:
    return list(cluster.percents(now).values())


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([seen("a"), seen("b")], [75, 75], id="spread over the pods"),
        pytest.param([seen("a")], [100], id="capped at a full card"),
        pytest.param([seen("a", gpus=3), seen("b")], [37.5, 37.5], id="spread over the GPUs"),
        pytest.param([seen("a", gpus=2), seen("b", ready=False)], [75, 33], id="one is loading"),
        pytest.param([seen("a", ready=False)], [33], id="all are loading"),
        pytest.param([seen("a", gpus=2), seen("b", terminating=True)], [75, 0], id="one leaves"),
        pytest.param([seen("a", ready=False, terminating=True)], [0], id="leaves without Ready"),
    ],
)
def test_load_spreads_over_the_gpus_of_ready_pods(
    pods: list[SimulatedPod], expected: list[float]
) -> None:
    shown = Cluster()
    wanted = Wanted(load=150, loading_percent=33)
    shown.put(KEY, wanted, 0)
    shown.show(NODES, pods)
    assert percents(shown) == expected


def test_the_pods_of_a_real_cluster_are_not_up_to_the_simulator() -> None:
    with pytest.raises(ValueError, match="replicas: not up to the simulator here; only load"):
        Cluster().changed(KEY, b'{"load": 1, "replicas": 1}')


@pytest.mark.parametrize("loading", [0, 100])
def test_a_starting_pod_shows_its_loading_and_takes_no_load(loading: float) -> None:
    shown, wanted = MadeUp(), Wanted(load=90, startup_seconds=30, loading_percent=loading)
    shown.put(KEY, wanted.model_copy(update={"replicas": 1}), 0)
    assert percents(shown, 29.9) == [loading]
    shown.put(KEY, wanted.model_copy(update={"replicas": 2}), 30)
    assert percents(shown, 59.9) == [90, loading]
    assert percents(shown, 60) == [45, 45]
