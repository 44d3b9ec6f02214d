"""The GPUs of one namespace's pods, as `keda-gpu-scaler simulate --kubernetes` shows them.

It runs in the test's process: to start another Python would cost more than all its work in a
scenario. The command itself runs in the quick start without a GPU.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import lightkube
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from keda_gpu_scaler.workbench.world import exposition, kubernetes, web
from keda_gpu_scaler.workbench.world.cluster import Cluster, SimulatedGpu, WorkloadKey
from testbed.cluster.manifests import NODE_LABEL
from tests.e2e import picker
from tests.e2e.product import READY_WITHIN_SECONDS

_CLOUDS = {
    "ack-dcgm-custom": (
        'DCGM_CUSTOM_PROCESS_SM_UTIL{{UUID="{uuid}",gpu="{index}",'
        'NamespaceName="{namespace}",PodName="{pod}"}} {percent}\n'
    ),
    "ack-legacy": (
        'nvidia_gpu_duty_cycle{{uuid="{uuid}",minor_number="{index}",'
        'namespace_name="{namespace}",pod_name="{pod}"}} {percent}\n'
    ),
}
"""What Alibaba Cloud's exporters show of a GPU's load, by the names of their profiles. Recorded
pages of both are in tests/data/exporters."""


class _Uneven(Cluster):
    """Shows other loads of some pods."""

    def __init__(self) -> None:
        super().__init__()
        self.of_pod: dict[str, float] = {}

    def percents(self, now: float) -> dict[str, float]:
        names = {uid: pod.name for uid, pod in self.pods.items()}
        percents = super().percents(now)
        return {uid: self.of_pod.get(names[uid], load) for uid, load in percents.items()}


@dataclass(frozen=True, slots=True)
class Simulator:
    """The way to a simulator that shows a lab's nodes, and its namespace's pods."""

    namespace: str
    port: int
    of_pod: dict[str, float]
    """The loads of single pods by their names, where they are not an even part."""
    _client: httpx.AsyncClient

    async def change(self, workload: str, **fields: object) -> None:
        path = f"/workloads/{self.namespace}/{workload}"
        response = await self._client.put(path, json=fields)
        assert response.is_success, response.text


@contextlib.asynccontextmanager
async def standing(config: lightkube.KubeConfig, lab: str) -> AsyncIterator[Simulator]:
    """Show what a lab has from now until the block ends."""
    shown, listed = _Uneven(), asyncio.Event()
    following = kubernetes.following(
        shown,
        listed.set,
        # Messages about failed lists are for the command's terminal: a scenario sees the GPUs.
        lambda _: None,
        namespace=lab,
        node_labels={NODE_LABEL: lab},
        config=config,
    )
    async with following:
        await asyncio.wait_for(listed.wait(), READY_WITHIN_SECONDS)
        application = _application(shown, lab)
        server = web.server(application)
        inside = httpx.ASGITransport(app=application)
        try:
            port = await server.start()
            async with httpx.AsyncClient(transport=inside, base_url="http://simulator") as client:
                yield Simulator(lab, port, shown.of_pod, client)
        finally:
            await server.stop()


def _application(shown: Cluster, namespace: str) -> Starlette:
    """Return the simulator's own, with a page for each node, of the exporter in the query."""

    async def node_metrics(request: Request) -> Response:
        node, exporter = request.path_params["node"], request.query_params.get("exporter")
        if node not in shown.nodes:
            return Response(status_code=404)
        gpus = [gpu for gpu in shown.gpus(time.monotonic()) if gpu.host == node]
        if exporter is None:
            page = exposition.gpu_page(gpus)
        else:
            page = "".join(_shown(gpu, _CLOUDS[exporter]) for gpu in gpus).encode()
        return Response(page, media_type=exposition.CONTENT_TYPE)

    async def picker_metrics(request: Request) -> Response:
        key = WorkloadKey(namespace, request.path_params["workload"])
        page = picker.page(shown, key, time.monotonic())
        return Response(page, media_type=exposition.CONTENT_TYPE)

    product = web.application(shown, time.monotonic)
    return Starlette(
        routes=[
            Route("/nodes/{node}/metrics", node_metrics),
            Route("/picker/{workload}/metrics", picker_metrics),
            Mount("/", product),
        ]
    )


def _shown(gpu: SimulatedGpu, line: str) -> str:
    namespace, pod = (gpu.pod.workload.namespace, gpu.pod.name) if gpu.pod else ("", "")
    return line.format(
        uuid=gpu.uuid, index=gpu.index, namespace=namespace, pod=pod, percent=round(gpu.percent)
    )
