"""Each symptom of the page on troubleshooting is told by the first command of its section.

The state is brought about around a real scaler, the command is typed as the page has it, and what
it prints is what the page shows.
"""

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
import yaml

from keda_gpu_scaler import app
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.settings import PrometheusSettings, ScrapeSettings, Settings
from testbed import gpus, guides
from testbed.gpus import Gpu, Up
from testbed.processes import free_port, until
from testbed.prometheus import PrometheusServer
from tests.support import http_replies as web
from tests.support import kube_state, printed
from tests.support.http_replies import HttpServer
from tests.support.kube_state import KubePod
from tests.test_app import LOCAL, running

pytestmark = pytest.mark.slow

PROGRAM = Path(sys.executable).with_name("keda-gpu-scaler")
SHORT = {"window": "4s", "activationWindow": "4s", "warmup": "4s"}
PATIENCE_SECONDS = 20
PODS = ["bert-7b6667bd9-bbbbb", "bert-7b6667bd9-ccccc"]
OURS = (
    "keda-gpu-scaler explain ",
    "applied | keda-gpu-scaler check ",
    "keda-gpu-scaler probe ",
    'curl -s "http://localhost:8080/api/v1/',
)
LEADS = {
    step.section: step
    for step in reversed(guides.steps(guides.page("troubleshooting")))
    if step.section
}
"""The first step of each section."""
OF_THE_SCALER_ITSELF = {
    "The pods crash with exit code 2",
    "The image cannot be pulled",
    "KEDA does not reach the scaler",
    "OpenShift refuses its pods",
}
"""Sections about a scaler that cannot be asked yet."""


@dataclass(slots=True)
class Scene:
    """A scaler, KEDA's part towards it, and a reader with the page."""

    directory: Path
    ports: app.Listening
    stub: Any

    async def poll(self, **metadata: str) -> float | None:
        """Ask what KEDA asks in a poll; a refusal is KEDA's, and an answer without one too."""
        trigger = {"workload": "bert", "threshold": "70", **SHORT, **metadata}
        about = pb.ScaledObjectRef(name="bert", namespace="inference", scalerMetadata=trigger)
        try:
            await self.stub.GetMetricSpec(about)
            wanted = pb.GetMetricsRequest(scaledObjectRef=about, metricName="gpu-utilization")
            answer = await self.stub.GetMetrics(wanted)
            await self.stub.IsActive(about)
        except grpc.aio.AioRpcError:
            return None
        return next((float(one.metricValueFloat) for one in answer.metricValues), None)

    def applied(self, *, kind: str = "external", least: int = 1, **metadata: str) -> None:
        """Write the ScaledObject as kubectl would show it."""
        trigger = {"workload": "bert", "threshold": "70", **SHORT, **metadata}
        trigger["scalerAddress"] = "keda-gpu-scaler.keda.svc:6000"
        behavior = {"scaleDown": {"stabilizationWindowSeconds": 2}}
        spec = {
            "scaleTargetRef": {"name": "bert"},
            "minReplicaCount": least,
            "maxReplicaCount": 4,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": behavior}},
            "triggers": [{"type": kind, "metadata": trigger}],
        }
        named = {"name": "bert", "namespace": "inference"}
        shown = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": named}
        (self.directory / "applied.yaml").write_text(yaml.safe_dump(shown | {"spec": spec}))

    async def shows(self, section: str, prometheus_url: str = "") -> None:
        """Type the first command of a section, and compare what it prints with the page."""
        step = LEADS[section]
        script = f"""
NAMESPACE=inference NAME=bert PROMETHEUS={prometheus_url}
applied() {{ cat {shlex.quote(str(self.directory / "applied.yaml"))}; }}
keda-gpu-scaler() {{
  local program={shlex.quote(str(PROGRAM))} command=$1; shift
  case $command in
    explain)
      "$program" explain "$@" --server http://localhost:{self.ports.http_port} --no-cluster ;;
    probe) "$program" probe "${{@/localhost:6000/localhost:{self.ports.grpc_port}}}" ;;
    *) "$program" "$command" "$@" ;;
  esac
}}
curl() {{ command curl "${{@/localhost:8080/localhost:{self.ports.http_port}}}"; }}
failed=0; trap 'failed=1' ERR
{step.commands}
exit $failed
"""
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", script),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        text = output.decode().replace(f"localhost:{self.ports.http_port}", "localhost:8080")
        assert step.output is not None
        assert printed.is_shown_by(text, step.output), text
        assert (process.returncode != 0) == step.is_(guides.FAILS), text


@asynccontextmanager
async def scene(
    directory: Path, source: PrometheusSettings | ScrapeSettings
) -> AsyncIterator[Scene]:
    chosen = Settings(grpc_address=LOCAL, http_address=LOCAL, sources={"default": source})
    async with running(chosen) as scaler:
        ports = await scaler.ports()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{ports.grpc_port}") as channel:
            yield Scene(directory, ports, externalscaler_pb2_grpc.ExternalScalerStub(channel))


def stored(url: str) -> PrometheusSettings:
    return PrometheusSettings.model_validate({"url": url, "step": "1s"})


def pod(name: str, **facts: Any) -> KubePod:
    return KubePod(name=name, namespace="inference", **facts)


async def write(prometheus: PrometheusServer, loads: Mapping[str, float], *pods: KubePod) -> None:
    """Let a Prometheus hold the GPUs and what kube-state-metrics says."""
    now = prometheus.now()
    shown = [Gpu(name, load, namespace="inference") for name, load in loads.items()]
    owner = kube_state.Listed(
        metric="kube_replicaset_owner",
        labels={
            "namespace": "inference",
            "replicaset": "bert-7b6667bd9",
            "owner_kind": "Deployment",
            "owner_name": "bert",
            "owner_is_controller": "true",
        },
    )
    count = [
        of(len(pods), namespace="inference") for of in (kube_state.replicas, kube_state.wanted)
    ]
    await prometheus.write(
        [
            *gpus.history(now, [Up(), *shown]),
            *kube_state.history(now, [kube_state.up(), owner, *count, *pods]),
        ]
    )


def test_each_section_begins_with_a_command_of_ours_and_what_it_prints() -> None:
    assert LEADS.keys() >= OF_THE_SCALER_ITSELF
    for section in LEADS.keys() - OF_THE_SCALER_ITSELF:
        step = LEADS[section]
        assert all(line.startswith(OURS) for line in step.commands.splitlines()), section
        # Which pods are wrong ones depends on the cluster.
        assert step.output is not None or section == "Wrong pods are measured"


class State(NamedTuple):
    """What is the case, and what KEDA is answered then."""

    loads: Mapping[str, float]
    """Of the pods that the Prometheus shows."""
    pods: Sequence[KubePod] = ()
    """Those that kube-state-metrics lists."""
    applied: Mapping[str, Any] | None = None
    """What is written into the ScaledObject, if the command reads it."""
    answer: float | None = None


STATES = {
    "`<unknown>` targets": State(
        {PODS[0]: 0}, [pod(PODS[0], ready=False, ready_since=None, created=-60)]
    ),
    "No GPU is seen": State({PODS[0]: 60}, [pod(PODS[0])], {"workload": "bart"}, 60),
    "Stuck at two replicas": State({}, [], {"aggregation": "average"}, 0),
    "Never reaches zero": State({PODS[0]: 5}, [pod(PODS[0])], None, 5),
    "Never wakes": State({}, [], {"kind": "external-push", "least": 0}, 0),
}


@pytest.mark.parametrize(("section", "state"), STATES.items(), ids=STATES)
async def test_what_prometheus_holds(
    prometheus: PrometheusServer, tmp_path: Path, section: str, state: State
) -> None:
    await write(prometheus, state.loads, *state.pods)
    async with scene(tmp_path, stored(prometheus.url)) as seen:
        if state.applied is not None:
            seen.applied(**state.applied)
        assert await seen.poll() == state.answer
        await seen.shows(section, prometheus.url)


def exporter(*loads: float) -> web.Reply:
    """Answer as dcgm-exporter with a pod for each load."""
    of = 'gpu="0",UUID="GPU-{0}",namespace="inference",pod="{0}"'
    lines = [
        f"DCGM_FI_DEV_GPU_UTIL{{{of.format(name)}}} {load}\n"
        for name, load in zip(PODS, loads, strict=True)
    ]
    return web.says("".join(lines), content_type="text/plain")


@pytest.mark.parametrize("section", ["Replicas flap", "Scaled in although it was busy"])
async def test_what_was_decided_before(section: str, tmp_path: Path) -> None:
    async with HttpServer(exporter(65, 65)) as gpu:
        source = ScrapeSettings.model_validate({"targets": [gpu.url], "interval": "1s"})
        async with scene(tmp_path, source) as seen:
            seen.applied()
            await until(is_answered(seen, 130), PATIENCE_SECONDS, "both are busy")
            gpu.reply = exporter(20, 20) if section == "Replicas flap" else exporter(30, 30)
            lull = 40 if section == "Replicas flap" else 60
            await until(is_answered(seen, lull), PATIENCE_SECONDS, "both have less to do")
            await seen.shows(section)


def is_answered(seen: Scene, value: float) -> Callable[[], Awaitable[bool]]:
    async def answered() -> bool:
        return await seen.poll() == value

    return answered


@pytest.mark.parametrize(
    ("section", "keys"),
    [
        ("The ScaledObject is not Ready", {"treshold": "70"}),
        ("TLS is refused", None),  # so nothing has asked
        ("The scaler cannot reach Prometheus", {}),
    ],
)
async def test_what_a_source_that_is_away_leaves(
    section: str, keys: dict[str, Any] | None, tmp_path: Path
) -> None:
    async with scene(tmp_path, stored(f"http://127.0.0.1:{free_port()}")) as seen:
        if keys is not None:
            seen.applied(**keys)
            assert await seen.poll(**keys) is None
        await seen.shows(section)
