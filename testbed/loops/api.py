"""The scaler's cluster: what the Kubernetes API says of the pods of a loop."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from keda_gpu_scaler.evidence.kubernetes.following import API_SERVER
from keda_gpu_scaler.evidence.kubernetes.reflector import GONE_SECONDS
from keda_gpu_scaler.snapshot.evidence import Evidence, EvidenceSource
from keda_gpu_scaler.spec.workload import Owner
from testbed.loops.dialects import asked_of_the_api
from testbed.loops.pods import SimPod


@dataclass(slots=True)
class Api:
    """It knows of each change at once."""

    pods: list[SimPod]
    owner: Owner
    wanted: Callable[[float], int]
    name: str = "the Kubernetes API"

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence:
        found = {
            ("ml", pod.name): pod.said(now, asked_of_the_api(pod.asks))
            for pod in self.pods
            if pod.exists(now) or 0 <= now - pod.gone <= GONE_SECONDS
        }
        return Evidence(
            found,
            covered=frozenset(namespaces),
            scrapes={API_SERVER: at},
            stable_since={API_SERVER: 0.0},
            evidence_source=EvidenceSource.KUBERNETES,
            wanted={("ml", self.owner): self.wanted(now)},
            owners={("ml", self.owner.kind): frozenset({self.owner.name})},
        )
