"""A kubelet in small, for the pods of this checkout's own image: their containers are processes.

    python -m testbed.cluster.kubelet CLUSTER PROXY_PORT LOG_PORT

It plays some nodes that KWOK leaves alone, and the network of their pods (`network.py`). A
container of the image `keda-gpu-scaler` runs from this checkout's virtual environment, with the
command, arguments, environment and files that its pod says. Its files follow their ConfigMaps and
Secrets, and readiness, the token of its ServiceAccount, the grace period and `kubectl logs` are as
in Kubernetes. A container of another image is Ready at once, and does nothing.

What differs, because there are neither containers nor a network of pods:

- A pod has one container, which is not started again when it has ended.
- A pod's address is made up. Its process listens on the loopback address that belongs to it, which
  replaces `0.0.0.0` in its command line.
- Its files are in a directory of its own, whose path replaces each `mountPath` in its environment
  and its command line. KUBECONFIG names the API server and the token.
- Users, limits, the read-only root and NetworkPolicies are not enforced.
"""

import asyncio
import base64
import contextlib
import datetime as dt
import itertools
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
import lightkube
import uvicorn
from grpc_health.v1 import health_pb2, health_pb2_grpc
from lightkube import ApiError, codecs
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Node, Pod, Secret, ServiceAccountToken
from lightkube.types import PatchType
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from testbed.cluster import network
from testbed.cluster.watching import again

LABEL = "e2e/processes"
"""Of the nodes whose pods are processes: KWOK leaves them alone."""
NODES = tuple(f"worker-{number}" for number in range(3))
"""As many as a rolling update of two replicas can want that keep away from each other."""
NODE_ADDRESS = "127.0.0.1"
_IMAGE = "keda-gpu-scaler"
"""Its name, and that of the program which it starts by itself."""
_BIN = str(Path(sys.executable).parent)
_LISTENS = {"KEDA_GPU_SCALER_GRPC_ADDRESS": 6000, "KEDA_GPU_SCALER_HTTP_ADDRESS": 8080}
_LOOK_EVERY_SECONDS = 1.0
"""How soon a changed ConfigMap or Secret is in the files: Kubernetes takes up to two minutes."""
_PROBE_EVERY_SECONDS = 0.5
_NO_PROXY = [("grpc.enable_http_proxy", 0)]
Manifest = dict[str, Any]


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _addresses() -> Iterator[str]:
    """Return addresses for successive pods, none of which another kubelet assigns."""
    high, low = divmod(os.getpid(), 256)
    return (f"10.{100 + high % 100}.{low}.{number}" for number in itertools.cycle(range(1, 255)))


@dataclass(slots=True)
class Kubelet:
    """All pods that run here, by their uid."""

    client: lightkube.AsyncClient
    kubeconfig: Path
    directory: Path
    proxy: str
    _lives: dict[str, "Life"] = field(default_factory=dict)
    _addresses: Iterator[str] = field(default_factory=_addresses)

    async def register(self, log_port: int) -> None:
        """Create the nodes. No lease is renewed: the control plane here waits for none."""
        room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        status = {
            "capacity": room,
            "allocatable": room,
            "addresses": [{"type": "InternalIP", "address": NODE_ADDRESS}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": log_port}},
            "nodeInfo": {},
            "conditions": [_condition("Ready", _now(), holds=True)],
        }
        for name in NODES:
            labels = {LABEL: "true", "kubernetes.io/hostname": name}
            node = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
            }
            await self.client.apply(codecs.from_dict(node), force=True)
            change = {"status": status}
            await self.client.patch(Node.Status, name, change, patch_type=PatchType.MERGE)

    async def follow(self) -> None:
        """Run every pod that is placed here, until the process ends."""

        async def watch() -> None:
            async for kind, pod in self.client.watch(Pod, namespace="*"):
                self._see(kind, pod.to_dict())

        await again(watch)

    def _see(self, kind: str, pod: Manifest) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            if life := self._lives.pop(uid, None):
                life.delete(0)
        elif pod["spec"].get("nodeName") in NODES:
            life = self._lives.get(uid)
            if life is None:
                life = self._lives[uid] = Life(self, pod, next(self._addresses))
            if "deletionTimestamp" in pod["metadata"]:
                life.delete(pod["metadata"].get("deletionGracePeriodSeconds", 0))

    async def serve_logs(self, port: int, certificate: Path, key: Path) -> None:
        """Answer the API server what `kubectl logs` shows, until the process ends."""

        async def answer(request: Request) -> Response:
            file = self.log(request.path_params["namespace"], request.path_params["pod"])
            if not file.exists():
                return PlainTextResponse("the container has not written anything", status_code=404)
            return FileResponse(file, media_type="text/plain")

        route = Route("/containerLogs/{namespace}/{pod}/{container}", answer)
        config = uvicorn.Config(
            Starlette(routes=[route]),
            host=NODE_ADDRESS,
            port=port,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            log_level="warning",
            lifespan="off",
        )
        await uvicorn.Server(config).serve()

    def log(self, namespace: str, pod: str) -> Path:
        return self.directory / f"{namespace}_{pod}.log"


@dataclass(slots=True)
class Life:
    """One pod that was placed on a node here: prepared, run, reported, and taken away."""

    kubelet: Kubelet
    pod: Manifest
    address: str
    _began: str = field(default_factory=_now)
    _ready: tuple[bool, str] = (False, "")
    """Whether it is, and since when."""
    _deleted: asyncio.Event = field(default_factory=asyncio.Event)
    _grace_seconds: float = 0
    _task: asyncio.Task[None] = field(init=False)

    def __post_init__(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self.name)

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])

    @property
    def home(self) -> Path:
        return self.kubelet.directory / str(self.pod["metadata"]["uid"])

    @property
    def container(self) -> Manifest:
        (container,) = self.pod["spec"]["containers"]
        return dict(container)

    def delete(self, grace_seconds: float) -> None:
        self._grace_seconds = grace_seconds
        self._deleted.set()

    async def _run(self) -> None:
        """Live until the pod is gone from the API."""
        if self.container["image"].rpartition("/")[2].partition(":")[0] == _IMAGE:
            await self._live()
        else:
            await self._tell("Running", ready=True)
        await self._deleted.wait()
        with contextlib.suppress(ApiError):  # somebody may have deleted it by force
            await self.kubelet.client.delete(
                Pod, self.name, namespace=self.namespace, grace_period=0
            )

    async def _live(self) -> None:
        await self._tell("Pending", ready=False)
        self.home.mkdir()
        while not await self._write_files():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._deleted.wait(), _LOOK_EVERY_SECONDS)
                return
        with self.kubelet.log(self.namespace, self.name).open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *self._words(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=await self._environment(),
                cwd=self.home,
            )
        beside = [self._keep_files(), self._watch_readiness(), self._stop_when_deleted(process)]
        tasks = [asyncio.create_task(each) for each in beside]
        code = await process.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._tell("Failed" if code else "Succeeded", ready=False, code=code)

    async def _stop_when_deleted(self, process: asyncio.subprocess.Process) -> None:
        await self._deleted.wait()
        process.terminate()
        await asyncio.sleep(self._grace_seconds)
        process.kill()

    async def _watch_readiness(self) -> None:
        probe = self.container.get("readinessProbe")
        while True:
            await self._tell("Running", ready=probe is None or await self._succeeds(probe))
            await asyncio.sleep(_PROBE_EVERY_SECONDS)

    async def _succeeds(self, probe: Manifest) -> bool:
        """Probe once; one that takes longer than its timeout has failed."""
        with contextlib.suppress(TimeoutError, httpx.HTTPError, grpc.RpcError):
            async with asyncio.timeout(probe.get("timeoutSeconds", 1)):
                if "grpc" in probe:
                    return await self._serves(probe["grpc"]["port"])
                return await self._answers(probe["httpGet"])
        return False

    async def _answers(self, request: Manifest) -> bool:
        """Probe as the kubelet does, which trusts every certificate."""
        ports = {each["name"]: each["containerPort"] for each in self.container["ports"]}
        port = ports.get(request["port"], request["port"])
        host, scheme = network.loopback(self.address), request.get("scheme", "HTTP").lower()
        async with httpx.AsyncClient(verify=False, trust_env=False) as client:  # noqa: S501 - see above
            return (await client.get(f"{scheme}://{host}:{port}{request['path']}")).is_success

    async def _serves(self, port: int) -> bool:
        address = f"{network.loopback(self.address)}:{port}"
        async with grpc.aio.insecure_channel(address, options=_NO_PROXY) as channel:
            answer = await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest()
            )
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    async def _tell(self, phase: str, *, ready: bool, code: int | None = None) -> None:
        known = self.pod.setdefault("status", {})
        if known.get("phase") == phase and self._ready[0] == ready and "podIP" in known:
            return
        if self._ready[0] != ready or not self._ready[1]:
            self._ready = ready, _now()
        state: Manifest = {"running": {"startedAt": self._began}}
        if phase == "Pending":
            state = {"waiting": {"reason": "ContainerCreating"}}
        elif code is not None:
            state = {"terminated": {"exitCode": code, "finishedAt": _now()}}
        known |= {
            "phase": phase,
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "hostIP": NODE_ADDRESS,
            "startTime": self._began,
            "conditions": [
                *(_condition(each, self._began, holds=True) for each in _PLACED),
                *(_condition(each, self._ready[1], holds=ready) for each in _READY),
            ],
            "containerStatuses": [
                {
                    **{key: self.container[key] for key in ("name", "image")},
                    "imageID": "",
                    "ready": ready,
                    "restartCount": 0,
                    "state": state,
                }
            ],
        }
        with contextlib.suppress(ApiError):  # the pod may have been deleted by force
            await self.kubelet.client.patch(
                Pod.Status,
                self.name,
                {"status": known},
                namespace=self.namespace,
                patch_type=PatchType.MERGE,
            )

    async def _keep_files(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
            await self._write_files()

    async def _write_files(self) -> bool:
        """Bring every volume up to date; False: something is missing."""
        for volume in self.pod["spec"].get("volumes", []):
            try:
                found = await self._content(volume)
            except ApiError:
                return False
            _project(self.home / "volumes" / volume["name"], found)
        return True

    async def _content(self, volume: Manifest) -> dict[str, bytes]:
        client = self.kubelet.client
        if "configMap" in volume:
            name = volume["configMap"]["name"]
            texts = (await client.get(ConfigMap, name, namespace=self.namespace)).data or {}
            return {key: text.encode() for key, text in texts.items()}
        name = volume["secret"]["secretName"]
        data = (await client.get(Secret, name, namespace=self.namespace)).data or {}
        return {key: base64.b64decode(text) for key, text in data.items()}

    def _here(self, text: str) -> str:
        """Return a text of the pod with local addresses and paths."""
        for mount in self.container.get("volumeMounts", []):
            text = text.replace(mount["mountPath"], str(self.home / "volumes" / mount["name"]))
        return text.replace("0.0.0.0:", f"{network.loopback(self.address)}:")

    def _words(self) -> list[str]:
        """Return the command line; what the image lacks cannot be run."""
        (program,) = self.container.get("command", [_IMAGE])
        found = shutil.which(program, path=_BIN)
        assert found is not None, program
        return [found, *map(self._here, self.container["args"])]

    async def _environment(self) -> dict[str, str]:
        host, proxy = network.loopback(self.address), self.kubelet.proxy
        names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
        surroundings = {"PATH": _BIN, "HOME": str(self.home), "HOSTNAME": self.name}
        no_proxy = dict.fromkeys(("no_proxy", "NO_PROXY"), f"{NODE_ADDRESS},localhost")
        own = {each["name"]: self._here(each["value"]) for each in self.container.get("env", [])}
        listens = {name: f"{host}:{port}" for name, port in _LISTENS.items()}
        access = await self._access()
        return surroundings | dict.fromkeys(names, proxy) | no_proxy | own | listens | access

    async def _access(self) -> dict[str, str]:
        """Return how the pod finds the API server, if it has a token of its ServiceAccount."""
        spec = self.pod["spec"]
        if not spec.get("automountServiceAccountToken", True):
            return {}
        request = ServiceAccountToken(
            metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=[], expirationSeconds=3600)
        )
        issued = await self.kubelet.client.create(
            request, spec["serviceAccountName"], namespace=self.namespace
        )
        assert issued.status is not None
        configuration = json.loads(self.kubelet.kubeconfig.read_text())
        configuration["users"][0]["user"] = {"token": issued.status.token}
        path = self.home / "kubeconfig"
        path.write_text(json.dumps(configuration))
        return {"KUBECONFIG": str(path)}


_PLACED, _READY = ("PodScheduled", "Initialized"), ("ContainersReady", "Ready")


def _condition(kind: str, since: str, *, holds: bool) -> Manifest:
    return {"type": kind, "status": str(holds), "lastTransitionTime": since}


def _project(directory: Path, wanted: Mapping[str, bytes]) -> None:
    """Make these the files of a volume, all at once, if they differ.

    As the kubelet does: a new directory is written, and one symbolic link turned to it, so that no
    process reads a certificate with the key of another.
    """
    directory.mkdir(parents=True, exist_ok=True)
    link = directory / "..data"
    if link.exists() and {each.name: each.read_bytes() for each in link.iterdir()} == dict(wanted):
        return
    fresh = directory / f"..{time.time_ns()}"
    fresh.mkdir()
    for name, content in wanted.items():
        (fresh / name).write_bytes(content)
    turned = directory / "..turned"
    turned.symlink_to(fresh.name)
    turned.replace(link)
    for name in wanted:
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")


async def _run(cluster: Path, proxy_port: int, log_port: int) -> None:
    kubeconfig, certificates = cluster / "kubeconfig", cluster / "certificates"
    configuration = lightkube.KubeConfig.from_file(kubeconfig)
    client = lightkube.AsyncClient(configuration, field_manager="kubelet", trust_env=False)
    kubelet = Kubelet(client, kubeconfig, cluster / "pods", f"http://127.0.0.1:{proxy_port}")
    logs = kubelet.serve_logs(log_port, certificates / "tls.crt", certificates / "tls.key")
    async with contextlib.aclosing(client), asyncio.TaskGroup() as group:
        group.create_task(network.serve(client, proxy_port))
        group.create_task(logs)
        await kubelet.register(log_port)
        group.create_task(kubelet.follow())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    for chatty in ("httpx", "httpx2"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    home, *ports = sys.argv[1:]
    (Path(home) / "pods").mkdir()
    asyncio.run(_run(Path(home), *map(int, ports)))
