"""What the texts say of the workloads in them: their GPUs, and what scales them. Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from keda_gpu_scaler.check.nodes import Node
from keda_gpu_scaler.check.objects import Manifest

_GPU_RESOURCES = ("nvidia.com/", "amd.com/gpu", "gpu.intel.com/", "aliyun.com/gpu")
_HPA_NAME = ("spec", "advanced", "horizontalPodAutoscalerConfig", "name")
_GROUP = ("spec", "leaderWorkerTemplate")
_PODS = (
    ("spec", "template", "spec"),
    (*_GROUP, "leaderTemplate", "spec"),
    (*_GROUP, "workerTemplate", "spec"),
)


class Target(NamedTuple):
    """What a ScaledObject or an HPA scales."""

    namespace: str
    kind: str
    name: str


class Workloads:
    """All objects of all texts, found by what they are."""

    def __init__(self, manifests: Sequence[Manifest]) -> None:
        self._named = {
            (manifest.kind, manifest.namespace, manifest.name): manifest for manifest in manifests
        }
        self._scaled: dict[Target, Manifest] = {}
        hpas_of_keda = {
            (manifest.namespace, manifest.node.text(*_HPA_NAME) or f"keda-hpa-{manifest.name}")
            for manifest in manifests
            if manifest.kind == "ScaledObject"
        }
        # HPAs first: a finding belongs to the ScaledObject, wherever the HPA is.
        for manifest in sorted(manifests, key=_is_hpa, reverse=True):
            is_own = _is_hpa(manifest) and not _is_of_keda(manifest, hpas_of_keda)
            if is_own or manifest.kind == "ScaledObject":
                self._scaled.setdefault(target(manifest), manifest)

    def workload(self, manifest: Manifest) -> Manifest | None:
        """Return the workload that a ScaledObject scales, if it is in the texts."""
        scaled = target(manifest)
        return self._named.get((scaled.kind, scaled.namespace, scaled.name))

    def first_scaling(self, manifest: Manifest) -> Manifest:
        """Return an HPA that scales what a ScaledObject scales, or else the first ScaledObject."""
        return self._scaled[target(manifest)]

    def pods(self, manifest: Manifest) -> list[Node]:
        """Return the specs of the workload's pods; a LeaderWorkerSet has two at most."""
        workload = self.workload(manifest)
        return [
            workload.node.block(*path) for path in _PODS if workload and workload.node.has(*path)
        ]

    def gpus(self, manifest: Manifest) -> int | None:
        """Return how many GPUs a pod of a ScaledObject's workload requests, if that is known."""
        counts = [sum(map(_gpus, pod.blocks("containers"))) for pod in self.pods(manifest)]
        return max(counts, default=0) or None


def target(manifest: Manifest) -> Target:
    """Return what a ScaledObject scales; KEDA's default kind is Deployment."""
    reference = manifest.node.block("spec", "scaleTargetRef")
    return Target(
        manifest.namespace, reference.text("kind") or "Deployment", reference.text("name")
    )


def _is_hpa(manifest: Manifest) -> bool:
    return manifest.kind == "HorizontalPodAutoscaler"


def _is_of_keda(hpa: Manifest, hpas_of_keda: set[tuple[str, str]]) -> bool:
    owners = hpa.node.blocks("metadata", "ownerReferences")
    is_owned = any(owner.text("kind") == "ScaledObject" for owner in owners)
    return is_owned or (hpa.namespace, hpa.name) in hpas_of_keda


def _gpus(container: Node) -> int:
    limits = container.block("resources", "limits").entries
    texts = [limits[name].value.scalar for name in limits if name.startswith(_GPU_RESOURCES)]
    # No pod has 10,000.
    return sum(int(text) for text in texts if re.fullmatch("[0-9]{1,4}", text))
