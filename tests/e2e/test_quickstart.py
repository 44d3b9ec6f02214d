"""Both quick starts, each command in its order, as printed.

What a page forwards to the reader's machine is reached by the Service's name: the kubelet here
forwards no ports.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed import guides
from testbed.cluster.cluster import Cluster
from testbed.cluster.manifests import namespace
from testbed.cluster.shell import Shell
from testbed.processes import until
from tests.e2e.furnishing import open_lab
from tests.e2e.lab import PATIENCE_SECONDS, Lab
from tests.e2e.release import everything
from tests.support import printed

pytestmark = pytest.mark.xdist_group("live")
KEPT = re.compile(r"^[A-Z]+=.*$", re.MULTILINE)
"""A variable of the reader's shell, which later steps use."""
LOOKS = re.compile(r"kubectl (get|logs|wait) |curl --silent (--get )?(?!--request)")
"""What a command that changes nothing begins with."""


async def follow(
    shell: Shell, page: str, scenes: Mapping[str, Callable[[], Awaitable[None]]]
) -> None:
    """Type every step of a page, and bring about what it says has happened before one."""
    places: dict[str, str] = {}
    kept = ""
    for step in guides.steps(guides.page(page)):
        if step.is_(guides.NOT_RUN):
            continue
        for remark in step.remarks:
            await scenes[remark.words]()
        if step.forwarded is not None:
            places |= [step.forwarded]
            continue
        commands = step.commands
        for there, here in places.items():
            commands = commands.replace(there, here)
        await _type(shell, kept + commands, step)
        kept += "".join(f"{line}\n" for line in KEPT.findall(commands))


async def _type(shell: Shell, commands: str, step: guides.Step) -> None:
    """Type the commands of a step; if they only look, again until they show what the page does."""
    only_looks = all(map(LOOKS.match, step.commands.splitlines()))

    async def shown() -> bool:
        done = await shell.run(commands)
        if done.status == 0 and (
            step.output is None or printed.is_shown_by(done.output, step.output)
        ):
            return True
        assert only_looks, f"{step.section!r} prints\n{step.output}\n{done}"
        seen.append(str(done))
        return False

    seen: list[str] = []
    try:
        await until(shown, PATIENCE_SECONDS, f"{step.section!r} prints\n{step.output}")
    except TimeoutError as error:
        raise AssertionError(f"{error}\n{seen[-1]}") from error


async def _is_as_before(shell: Shell, before: set[str]) -> None:
    async def nothing_is_left() -> bool:
        return not await everything(shell) - before

    await until(nothing_is_left, PATIENCE_SECONDS, "nothing of the page is left")


@pytest.mark.core
async def test_the_quick_start_without_a_gpu_does_what_it_prints(shell: Shell) -> None:
    before = await everything(shell)
    await follow(shell, "quickstart", {})
    await _is_as_before(shell, before)


async def test_the_quick_start_with_dcgm_exporter_does_what_it_prints(
    live: Cluster, shell: Shell, tmp_path: Path
) -> None:
    async with open_lab("inference", live.kubeconfig, tmp_path) as lab:
        lab.scaler.stop()
        before = await everything(shell)
        await _install_monitoring(lab)
        await lab.deploy("bert", replicas=1)
        await lab.prometheus.wait_for('kube_pod_owner{namespace="inference"}', PATIENCE_SECONDS)
        await lab.prometheus.wait_for('DCGM_FI_DEV_GPU_UTIL{pod=~"bert-.*"}', PATIENCE_SECONDS)

        async def requests() -> None:
            await lab.offer("bert", 40)

        await follow(shell, "quickstart-dcgm", {"40 requests are in progress": requests})
        await shell.expect("kubectl delete deployment -n inference bert")
        await shell.expect("kubectl delete namespace monitoring")
        await _is_as_before(shell, before)


async def _install_monitoring(lab: Lab) -> None:
    """Give the lab's Prometheus its usual name, and a gateway that counts the lab's load."""
    relabeled = [
        {"source_labels": ["__name__"], "regex": "simulator_router_offered_load_percent",
         "target_label": "__name__", "replacement": "gateway_requests_in_progress"},
        {"source_labels": ["workload"], "target_label": "service"},
    ]  # fmt: skip
    gateway = {
        "job_name": "gateway",
        "metrics_path": "/router/metrics",
        "static_configs": [{"targets": [f"127.0.0.1:{lab.simulator.port}"]}],
        "metric_relabel_configs": relabeled,
    }
    await lab.prometheus.reload([*lab.prometheus.scrape_configs, gateway])
    for manifest in _service("monitoring", "prometheus-operated", 9090, lab.prometheus.port):
        await lab.apply(manifest)


def _service(space: str, name: str, port: int, here: int) -> list[dict[str, Any]]:
    """Return a Service that leads to a port of this machine."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": space, "name": name},
        "spec": {"ports": [{"name": "web", "port": port}]},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": space,
            "name": name,
            "labels": {"kubernetes.io/service-name": name},
        },
        "addressType": "IPv4",
        "ports": [{"name": "web", "port": here}],
        # The loopback address of this one is 127.0.0.1.
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    }
    return [namespace(space), service, endpoints]
