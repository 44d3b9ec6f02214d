"""The joins that the page about accelerators without pod labels shows, on every real server."""

from pathlib import Path
from typing import Any

import pytest

from keda_gpu_scaler import promql
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from testbed.prometheus import PrometheusServer
from testbed.series import Series
from tests.repository.test_docs_snippets import pieces
from tests.support.each_prometheus import ON_EVERY_SERVER
from tests.support.prometheus_source import connected

PAGE = Path(__file__).parents[3] / "docs" / "accelerators.md"
SHOWN: dict[str, Any] = {
    piece.document["metadata"]["name"]: piece.document for piece in pieces(PAGE)
}
BY_NODE = SHOWN["llama-by-node"]["spec"]["triggers"][0]["metadata"]["query"]
BY_DEVICE = SHOWN["accelerators"]["spec"]["groups"][0]["rules"][0]["expr"]
OF_HAMI = (
    BY_DEVICE.replace("mlu_container", "hami_vgpu_core_allocated_ratio")
    .replace("mlu_utilization", "hami_host_gpu_utilization_ratio")
    .replace("uuid", "device_uuid")
)
Labelled = list[tuple[str, dict[str, str], float]]
"""The name, labels and value of each series."""


def devices(joins: str, loads: str, uuid: str) -> Labelled:
    """Return the devices a, b and c of two pods and of none."""
    pods = {"a": "llama-0", "b": "llama-0", "c": "llama-1"}
    shown = {"a": 80.0, "b": 60.0, "c": 20.0, "d": 0.0}
    return [
        *(
            (joins, {"namespace": "inference", "pod": pod, uuid: of}, 7.0)
            for of, pod in pods.items()
        ),
        *((loads, {"namespace": "monitoring", uuid: of}, load) for of, load in shown.items()),
    ]


CASES: dict[str, tuple[str, Labelled, dict[str, list[float]]]] = {
    "by node": (
        BY_NODE,
        [
            *(
                ("kube_pod_info", {"namespace": space, "pod": pod, "node": node}, 1.0)
                for space, pod, node in (
                    ("inference", "llama-0", "a"),
                    ("inference", "llama-1", "b"),
                    ("inference", "router-0", "c"),
                    ("kube-system", "neuron-monitor-x", "a"),
                )
            ),
            *(
                ("neuroncore_utilization_ratio", {"node": node, "neuroncore": core}, load)
                for node, core, load in (("a", "0", 0.9), ("a", "1", 0.7), ("b", "0", 0.2))
            ),
        ],
        {"llama-0": [80.0], "llama-1": [20.0]},
    ),
    "by device": (
        BY_DEVICE,
        devices("mlu_container", "mlu_utilization", "uuid"),
        {"llama-0": [60.0, 80.0], "llama-1": [20.0]},
    ),
    "by device of HAMi": (
        OF_HAMI,
        devices("hami_vgpu_core_allocated_ratio", "hami_host_gpu_utilization_ratio", "device_uuid"),
        {"llama-0": [60.0, 80.0], "llama-1": [20.0]},
    ),
}


@ON_EVERY_SERVER
@pytest.mark.parametrize(("text", "given", "expected"), CASES.values(), ids=CASES)
async def test_a_join_gives_each_pod_the_load_of_its_devices(
    prometheus: PrometheusServer,
    text: str,
    given: Labelled,
    expected: dict[str, list[float]],
) -> None:
    now = prometheus.now()
    times = [now - 15 * back for back in reversed(range(40))]
    await prometheus.write(
        [
            Series(name, {"job": "x", **labels}, [(at, load) for at in times])
            for name, labels, load in given
        ]
    )
    query = promql.own(text, Policy.ALLOW, "inference")
    asked = SnapshotQuery(
        Signal.UTILIZATION, "auto", frozenset({"inference"}), 300, 120, query=query
    )
    async with connected(prometheus.url, step="15s") as source:
        await source.synchronize()
        observation = await source.fetch(asked, source.instant())
    loads: dict[str, list[float]] = {}
    for element in observation.series:
        loads.setdefault(element.pod, []).append(element.values[-1])
    assert {pod: sorted(of_pod) for pod, of_pod in loads.items()} == {
        pod: pytest.approx(of_pod) for pod, of_pod in expected.items()
    }
