"""The nodes that this kubelet plays, and the pods that are placed on them."""

import asyncio
import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import httpx2
from lightkube import ApiError, codecs
from lightkube.resources.core_v1 import Node, Pod
from lightkube.types import PatchType

from tests.e2e.kubelet import addresses
from tests.e2e.kubelet.container import now
from tests.e2e.kubelet.files import Manifest
from tests.e2e.kubelet.life import Life
from tests.e2e.kubelet.setup import House
from tests.e2e.kubelet.status import NODE_ADDRESS

LABEL = "e2e/processes"
"""Of the nodes whose pods are processes: KWOK leaves them alone."""
_PAUSE_SECONDS = 0.5
log = logging.getLogger(__name__)


def manifest(name: str) -> Manifest:
    """Return a node with room, and without GPUs."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL: "true", "kubernetes.io/hostname": name}},
    }


def status(log_port: int) -> Manifest:
    """Return the status of a node that is well, and where its pods' logs are."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return {
        "capacity": room,
        "allocatable": room,
        "addresses": [{"type": "InternalIP", "address": NODE_ADDRESS}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": log_port}},
        "nodeInfo": {},
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "lastHeartbeatTime": now(),
                "lastTransitionTime": now(),
            }
        ],
    }


@dataclass(slots=True)
class Nodes:
    """All pods that run here, by their uid."""

    house: House
    names: Collection[str]
    _lives: dict[str, Life] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _addresses: Iterator[str] = field(default_factory=addresses.pod_addresses)

    async def register(self, log_port: int) -> None:
        """Create the nodes. No lease is renewed: the control plane here waits for none."""
        for name in self.names:
            await self.house.client.apply(codecs.from_dict(manifest(name)), force=True)
            change = {"status": status(log_port)}
            await self.house.client.patch(Node.Status, name, change, patch_type=PatchType.MERGE)

    async def follow(self) -> None:
        """Run every pod that is placed here, until the process ends."""
        while True:
            try:
                async for kind, pod in self.house.client.watch(Pod, namespace="*"):
                    self._see(kind, pod.to_dict())
            except (ApiError, httpx2.HTTPError) as error:
                log.warning("the watch of pods ended: %s", error)
            await asyncio.sleep(_PAUSE_SECONDS)

    def _see(self, kind: str, pod: Manifest) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            if life := self._lives.pop(uid, None):
                life.delete(0)
        elif pod["spec"].get("nodeName") in self.names:
            life = self._lives.get(uid) or self._begin(uid, pod)
            if "deletionTimestamp" in pod["metadata"]:
                life.delete(pod["metadata"].get("deletionGracePeriodSeconds", 0))

    def _begin(self, uid: str, pod: Manifest) -> Life:
        pod["status"] = {**pod.get("status", {}), "podIP": next(self._addresses)}
        life = self._lives[uid] = Life(self.house, pod)
        log.info("%s comes to %s at %s", life.name, pod["spec"]["nodeName"], pod["status"]["podIP"])
        task = asyncio.create_task(life.run(), name="/".join(life.name))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return life

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("the life of %s failed", task.get_name(), exc_info=error)
