"""The command lines of a Kubernetes control plane without nodes and containers, all on loopback.

Only what differs from the defaults is said, and why. Sources: the `--help` of each program in the
version that tests/e2e/tools pins.
"""

from dataclasses import dataclass, field
from pathlib import Path

from testbed import programs
from testbed.cluster import generation
from testbed.cluster.certificates import Certificates
from testbed.cluster.kubelet import LABEL as PROCESSES
from testbed.processes import free_port

HPA_SYNC_SECONDS = 2
"""Instead of 15: a scenario then sees many syncs within a minute."""
DOWNSCALE_STABILIZATION_SECONDS = 5
"""For HPAs without a `behavior`. No number of syncs takes just as long."""
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "horizontal-pod-autoscaler-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "endpointslice-controller",
    "disruption-controller",
    "serviceaccount-controller",
)


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """What the commands have in common."""

    directory: Path
    certificates: Certificates
    api_port: int = field(default_factory=free_port)
    _etcd_port: int = field(default_factory=free_port)

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    def etcd(self) -> list[str]:
        """Keep the cluster's state; it does not have to survive a power cut."""
        client = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{free_port()}"
        return [
            programs.path("etcd"),
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def api_server(self) -> list[str]:
        """Serve the API, and pass on the external metrics API to KEDA as the front proxy."""
        trust = self.certificates
        return [
            programs.path(generation.kubernetes()["kube-apiserver"]),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.api_port}",
            # Loopback may not be an endpoint of the Service `kubernetes`, which is unused here.
            "--advertise-address=192.0.2.1",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/24",
            f"--tls-cert-file={trust.certificate}",
            f"--tls-private-key-file={trust.key}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            # Pods here have no service account tokens: nothing runs in them.
            "--disable-admission-plugins=ServiceAccount",
            # Pods that ask for GPUs tolerate the taint of the nodes that have them, and no others.
            "--enable-admission-plugins=ExtendedResourceToleration",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={trust.key}",
            f"--service-account-signing-key-file={trust.key}",
            f"--requestheader-client-ca-file={trust.proxy_authority}",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={trust.proxy_certificate}",
            f"--proxy-client-key-file={trust.proxy_key}",
        ]

    def controller_manager(self) -> list[str]:
        """Run the controllers of workloads and HPAs, and the HPA often."""
        return [
            programs.path(generation.kubernetes()["kube-controller-manager"]),
            f"--controllers={','.join(CONTROLLERS)}",
            f"--horizontal-pod-autoscaler-sync-period={HPA_SYNC_SECONDS}s",
            f"--horizontal-pod-autoscaler-downscale-stabilization={DOWNSCALE_STABILIZATION_SECONDS}s",
            # No kubelet renews a node's lease: after the default of 50 s no pod would be Ready.
            "--node-monitor-grace-period=1h",
            "--concurrent-horizontal-pod-autoscaler-syncs=20",
            *self._alone(),
        ]

    def scheduler(self) -> list[str]:
        return [programs.path(generation.kubernetes()["kube-scheduler"]), *self._alone()]

    def _alone(self) -> list[str]:
        """Run without leader election and serving, and with a high limit on API requests."""
        return [
            f"--kubeconfig={self.kubeconfig}",
            "--kube-api-qps=200",
            "--kube-api-burst=300",
            "--leader-elect=false",
            "--secure-port=0",
        ]

    def kwok(self) -> list[str]:
        """Play the kubelet of every node, by the stages next to this file."""
        return [
            programs.path("kwok"),
            f"--kubeconfig={self.kubeconfig}",
            f"--config={Path(__file__).with_name('stages.yaml')}",
            f"--manage-nodes-with-label-selector=!{PROCESSES}",
            f"--server-address=127.0.0.1:{free_port()}",
        ]
