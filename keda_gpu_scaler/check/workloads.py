"""What else a text says of the workloads in it: their GPUs, their starts, who scales them. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.nodes import Block
from keda_gpu_scaler.check.objects import Manifest, shown

_GPU_RESOURCES = ("nvidia.com/", "amd.com/gpu", "gpu.intel.com/", "aliyun.com/gpu")
_DEFAULT_PORTS = ("", "svc", "svc.cluster.local", "svc.cluster.local.")


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


class World:
    """All objects of all texts, found by what they are."""

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        self.manifests: Sequence[Manifest] = tuple(manifests)
        self._found = {(one.kind, one.namespace, one.name): one for one in self.manifests}

    def workload(self, of: Manifest) -> Manifest | None:
        """Return the workload that a ScaledObject scales, if it is in the texts."""
        wanted = target(of)
        return self._found.get((wanted.kind, wanted.namespace, wanted.name))

    def gpus(self, of: Manifest) -> int | None:
        """Return how many GPUs a pod of a ScaledObject's workload asks for, if that is known."""
        found = self.workload(of)
        if found is None:
            return None
        pods = (found.node.blocks(*path, "containers") for path in pod_paths(found))
        return max((sum(map(_gpus, containers)) for containers in pods), default=0) or None

    def slowest_probe_seconds(self, of: Manifest) -> int:
        """Return how long a new pod of the workload cannot be Ready, by its probes."""
        found = self.workload(of)
        if found is None:
            return 0
        return max(
            (
                each.integer(probe, "initialDelaySeconds") or 0
                for path in pod_paths(found)
                for each in found.node.blocks(*path, "containers")
                for probe in ("readinessProbe", "startupProbe")
            ),
            default=0,
        )

    def service(self, address: str, namespace: str) -> Manifest | None:
        """Return the Service of an address, if it is in the texts.

        Args:
            address: a host and a port, the host as within the cluster.
            namespace: that of KEDA's operator is not known; a bare name is looked for here.
        """
        host = address.rpartition(":")[0] or address
        name, _, rest = host.removeprefix("dns:///").partition(".")
        where, _, domain = rest.partition(".")
        if domain not in _DEFAULT_PORTS:
            return None
        return self._found.get(("Service", where or namespace, name))

    def replicas_behind(self, service: Manifest) -> int | None:
        """Return how many replicas a Service has behind it, if that is known."""
        selector = service.node.block("spec", "selector").entries
        wanted = {key: service.node.text("spec", "selector", key) for key in selector}
        for one in self.manifests:
            labels = ("spec", "template", "metadata", "labels")
            fits = {key: one.node.text(*labels, key) for key in wanted} == wanted
            if wanted and fits and one.namespace == service.namespace:
                replicas = one.node.integer("spec", "replicas")
                return 1 if replicas is None else replicas
        return None

    def shared(self) -> Iterator[Finding]:
        """Yield each ScaledObject and HPA whose workload another one scales as well."""
        first: dict[Target, Manifest] = {}
        for one in self.manifests:
            if not _scales(one):
                continue
            other = first.setdefault(target(one), one)
            # Two versions of one object, as in overlays, never meet in one cluster.
            if (other.kind, other.name) != (one.kind, one.name):
                why = (
                    f"{other.subject} scales {shown(' '.join(target(one)[1:]))} as well: the two "
                    "overrule each other at every turn, and KEDA's webhook refuses the second"
                )
                fix = "Put the triggers of both into one ScaledObject."
                place = one.node.place("spec", "scaleTargetRef", "name")
                yield one.find("shared-workload", place, why, fix)


def pod_paths(workload: Manifest) -> list[tuple[str, ...]]:
    """Return where the specs of a workload's pods are; a LeaderWorkerSet has two at most."""
    return [path for path in _PODS if workload.node.has(*path)]


def target(of: Manifest) -> Target:
    """Return what a ScaledObject scales; KEDA's default kind is Deployment."""
    reference = of.node.block("spec", "scaleTargetRef")
    return Target(of.namespace, reference.text("kind") or "Deployment", reference.text("name"))


def _scales(one: Manifest) -> bool:
    if one.kind == "HorizontalPodAutoscaler":
        # KEDA's own HPA belongs to its ScaledObject.
        return not one.name.startswith("keda-hpa-")
    return one.kind == "ScaledObject" and bool(target(one).name)


def _gpus(container: Block) -> int:
    limits = container.block("resources", "limits").entries
    names = [name for name in limits if name.startswith(_GPU_RESOURCES)]
    return sum(_count(container.text("resources", "limits", name)) for name in names)


def _count(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 5 else 0  # noqa: PLR2004 - no pod has 10,000
