"""All watches of one API server, and the evidence from them.

Evidence requires the list of pods. ReplicaSets and Jobs only show the owners of the pods' owners:
without them those pods are assigned by their names.
"""

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from keda_gpu_scaler import errors
from keda_gpu_scaler.evidence.kubernetes import objects
from keda_gpu_scaler.evidence.kubernetes.api import Api
from keda_gpu_scaler.evidence.kubernetes.objects import ListedPod, Resource, ScaleReference
from keda_gpu_scaler.evidence.kubernetes.reflector import Reflector
from keda_gpu_scaler.evidence.kubernetes.selections import Selections
from keda_gpu_scaler.snapshot.evidence import Evidence, EvidenceSource, PodKey, PodStatement
from keda_gpu_scaler.snapshot.observation import Target
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.spec.workload import Owner, PodSelector, Workload
from keda_gpu_scaler.telemetry import facts

PODS = Resource("", "v1", "pods")
REPLICA_SETS = Resource("apps", "v1", "replicasets", metadata_only=True)
JOBS = Resource("batch", "v1", "jobs", metadata_only=True)
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects")
HPAS = Resource("autoscaling", "v2", "horizontalpodautoscalers")
API_SERVER = Target("kubernetes", "api")
FIRST_LIST_SECONDS = 1.0
"""How long the first snapshots wait for the first list of pods; the rest is time for queries."""


def create(observe: facts.Observer, without_gpus: Collection[str] = ()) -> "Following":
    """Return the watches of the API server that the service account or KUBECONFIG names."""
    try:
        return Following(Api(), observe, without_gpus=without_gpus)
    except ValueError as error:
        raise errors.SettingsError(f"KEDA_GPU_SCALER_KUBERNETES: {error}") from error


class Following:
    """The pods of one cluster, their owners, and the scale targets of its ScaledObjects."""

    name = "the Kubernetes API"

    def __init__(
        self,
        api: Api,
        observe: facts.Observer,
        clock: Callable[[], float] = time.monotonic,
        *,
        without_gpus: Collection[str] = (),
    ) -> None:
        """Set up the watches; `start` begins them, and `close` closes the API's connections.

        `without_gpus` is what pods may ask for and is no GPU (`objects.pod`).
        """
        self._api = api
        pod = functools.partial(objects.pod, without_gpus=without_gpus)
        self._pods = Reflector(api, PODS, pod, observe, clock)
        self._replica_sets = Reflector(api, REPLICA_SETS, objects.controller, observe, clock)
        jobs = Reflector(api, JOBS, objects.controller, observe, clock)
        self._controllers = {"ReplicaSet": self._replica_sets, "Job": jobs}
        self._targets = Reflector(api, SCALED_OBJECTS, objects.target, observe, clock)
        self._selections = Selections(api, observe, clock)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        reflectors: list[Reflector[Any]] = [self._pods, *self._controllers.values(), self._targets]
        for reflector in reflectors:
            self._tasks.append(asyncio.create_task(reflector.run(), name="kubernetes-watch"))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._selections.close()
        await self._api.close()

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence:
        """Return what the API server last sent about the pods of these namespaces."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LIST_SECONDS):
                await self._pods.wait_for_first_list()
        if self._pods.trouble is not None:
            raise errors.SourceUnreachableError(self._pods.trouble)
        self._selections.renew(namespaces)
        pods: dict[PodKey, PodStatement] = {}
        for namespace in namespaces:
            for name, pod in self._pods.listing.of(namespace).items():
                pods[namespace, name] = self._statement(namespace, name, pod)
        for (namespace, name), pod in self._pods.listing.gone():
            if namespace in namespaces:
                statement = self._statement(namespace, name, pod)
                pods[namespace, name] = replace(statement, ended=True)
        return Evidence(
            pods=pods,
            selected=self._selections.trusted(namespaces, pods),
            wanted=self._wanted(namespaces),
            owners=self._owners(namespaces),
            covered=frozenset(namespaces),
            scrapes={API_SERVER: min(at, now - self._pods.silence_seconds)},
            stable_since={API_SERVER: 0.0},
            evidence_source=EvidenceSource.KUBERNETES,
        )

    async def target(self, scaled_object: ScaledObject, grace_seconds: float) -> PodSelector:
        """Return the pods it scales; the last known ones while the API server is down."""
        known = self._targets.listing.get(scaled_object)
        if isinstance(known, Workload):  # as a rule
            return known
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                known = await self._targets.wait_for(scaled_object)
                if isinstance(known, ScaleReference):
                    await self._selections.learn(known)
        if known is None:
            known = self._targets.trouble or "the Kubernetes API lists no such ScaledObject"
        pods = self._selections.pods(known) if isinstance(known, ScaleReference) else known
        if isinstance(pods, str):
            message = f"it is not known which pods {scaled_object} scales: {pods}"
            raise errors.SourceRefusedError(f"{message}; workload or podPattern would say it")
        return pods

    def _statement(self, namespace: str, name: str, pod: ListedPod) -> PodStatement:
        """Add the owner's owner, and the scale targets that select the pod."""
        statement = pod.statement
        added = self._selections.selecting(namespace, name, pod.labels)
        for owner in statement.owners:
            reflector = self._controllers.get(owner.kind)
            controller = reflector.listing.last((namespace, owner.name)) if reflector else None
            if controller is not None:
                added.add(controller.owner)
        return replace(statement, owners=statement.owners | added) if added else statement

    def _wanted(self, namespaces: Collection[str]) -> dict[tuple[str, Owner], int]:
        """Return how many replicas the owners of ReplicaSets ask for; {}: it may be out of date."""
        if self._replica_sets.trouble is not None:
            return {}
        by_revision = sorted(
            (replica_set.revision, replica_set.wanted, (namespace, replica_set.owner))
            for namespace in namespaces
            for replica_set in self._replica_sets.listing.of(namespace).values()
            if replica_set.wanted is not None
        )
        return {owner: wanted for _, wanted, owner in by_revision}  # the last one is the newest

    def _owners(self, namespaces: Collection[str]) -> dict[tuple[str, str], frozenset[str]]:
        """Return the Deployments in namespaces with pods; each has a ReplicaSet, also without."""
        if self._replica_sets.trouble is not None:
            return {}
        return {
            (namespace, "Deployment"): frozenset(
                replica_set.owner.name
                for replica_set in self._replica_sets.listing.of(namespace).values()
                if replica_set.owner.kind == "Deployment"
            )
            for namespace in namespaces
            if self._pods.listing.of(namespace)
        }
