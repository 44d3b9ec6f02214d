"""What `explain --drain` prints, run as printed: the real ReplicaSet controller takes idle pods.

The idle ones are those that it would have kept: it takes pods that share a node first.
"""

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Pod

from tests.e2e import manifests
from tests.e2e.lab import PATIENCE_SECONDS, Lab
from tests.support import programs
from tests.support.processes import bounded

_COMMAND = str(Path(sys.executable).with_name("keda-gpu-scaler"))
REPLICAS = 4
"""On three nodes two of them share one: these are left, as only they are busy."""
QUICK = {"KEDA_GPU_SCALER_PROMETHEUS_STEP": "1s", "KEDA_GPU_SCALER_PROMETHEUS_COLLECTION": "2s"}


async def _pods(lab: Lab) -> dict[str, str]:
    """Return the node of each pod that is not about to end."""
    found = [pod async for pod in lab.client.list(Pod, namespace=lab.name)]
    return {
        pod.metadata.name or "": (pod.spec and pod.spec.nodeName) or ""
        for pod in found
        if pod.metadata and pod.metadata.deletionTimestamp is None
    }


async def _run(*command: str, **environment: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *bounded(PATIENCE_SECONDS),
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | environment,
    )
    printed, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    return printed.decode()


@pytest.mark.needs("kubectl")
async def test_the_replica_set_controller_takes_the_idle_pods_once_the_costs_are_written(
    lab: Lab, tmp_path: Path
) -> None:
    await lab.deploy("bert", replicas=REPLICAS, load=REPLICAS * 60)
    await lab.reaches("bert", REPLICAS)
    pods = await _pods(lab)
    [(shared, _)] = Counter(pods.values()).most_common(1)
    busy = sorted(pod for pod, node in pods.items() if node == shared)
    assert len(busy) == 2, pods

    query = f'DCGM_FI_DEV_GPU_UTIL{{pod=~"{"|".join(busy)}"}} or 0 * DCGM_FI_DEV_GPU_UTIL'
    file = tmp_path / "bert.yaml"
    written = manifests.scaled_object(
        lab.name,
        "bert",
        [lab.gpu("bert", query=query, signal="utilization")],
        min_replicas=1,
        max_replicas=9,
        polling_seconds=30,
        cooldown_seconds=300,
        stabilization_seconds=300,
    )
    file.write_text(yaml.safe_dump(written))
    scripts = []

    async def known() -> bool:
        source = ("--file", str(file), "--prometheus-url", lab.prometheus.url)
        scripts.append(await _run(_COMMAND, "explain", *source, "--drain", **QUICK))
        return scripts[-1].count("pod-deletion-cost=-") == REPLICAS

    await lab.wait(known, "every pod has a cost")

    folder = str(Path(programs.path("kubectl")).parent)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    await _run("bash", "-ec", scripts[-1], KUBECONFIG=str(lab.kubeconfig), PATH=path)
    lab.timeline.note("the costs are written, and half of the pods have to go")
    spec = {"spec": {"replicas": len(busy)}}
    await lab.client.patch(Deployment, "bert", spec, namespace=lab.name)
    await lab.reaches("bert", len(busy))
    assert sorted(await _pods(lab)) == busy, f"{scripts[-1]}\n{lab.story()}"
