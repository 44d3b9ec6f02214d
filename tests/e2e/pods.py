"""The command lines of what makes pods run: the kubelet in small, and the cluster's network."""

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.certificates import Certificates
from tests.e2e.programs import ROOT

NODES = tuple(f"worker-{number}" for number in range(3))
"""As many as a rolling update of two replicas can want that keep away from each other."""


@dataclass(frozen=True, slots=True)
class Pods:
    """What the commands have in common."""

    directory: Path
    kubeconfig: Path
    certificates: Certificates
    network_port: int
    log_port: int

    @property
    def network_url(self) -> str:
        """The proxy that leads to Services."""
        return f"http://127.0.0.1:{self.network_port}"

    def environment(self) -> dict[str, str]:
        """Return what makes these modules found."""
        return {"PYTHONPATH": str(ROOT)}

    def network(self) -> list[str]:
        """Lead to Services by their names."""
        return [
            *(sys.executable, "-m", "tests.e2e.network"),
            f"--kubeconfig={self.kubeconfig}",
            f"--port={self.network_port}",
        ]

    def kubelet(self) -> list[str]:
        """Run the product's own pods."""
        return [
            *(sys.executable, "-m", "tests.e2e.kubelet"),
            f"--kubeconfig={self.kubeconfig}",
            f"--directory={self.directory}",
            f"--proxy={self.network_url}",
            f"--certificate={self.certificates.certificate}",
            f"--key={self.certificates.key}",
            f"--log-port={self.log_port}",
            *(f"--node={name}" for name in NODES),
        ]
