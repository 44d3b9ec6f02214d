"""KEDA's three programs, their command lines, and the cluster objects they rely on."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed import programs
from testbed.cluster import generation
from testbed.cluster.certificates import Certificates
from testbed.processes import free_port

NAMESPACE = "keda"


def _program(part: str) -> str:
    return programs.path(generation.keda()[part])


def resource_definitions() -> str:
    return Path(_program("keda-crds.yaml")).read_text()


@dataclass(frozen=True, slots=True)
class Keda:
    """The commands of the KEDA that this run is about, in one cluster."""

    certificates: Certificates
    kubeconfig: Path
    proxy: str | None = None
    """The URL of the proxy that reaches Services by name, where pods run."""
    _metrics_service: int = field(default_factory=free_port)
    _operator_metrics: int = field(default_factory=free_port)
    _adapter: int = field(default_factory=free_port)
    _webhooks: int = field(default_factory=free_port)

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self._operator_metrics}/metrics"

    def environment(self) -> dict[str, str]:
        """Return what KEDA's Deployment would set."""
        deployment = {
            "KUBECONFIG": str(self.kubeconfig),
            "POD_NAMESPACE": NAMESPACE,
            "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE,
            "WATCH_NAMESPACE": "",
        }
        # gRPC passes a name to a proxy unresolved; loopback is never reached through one.
        proxies = ("HTTPS_PROXY", "HTTP_PROXY") if self.proxy else ()
        return deployment | dict.fromkeys(proxies, self.proxy or "")

    def operator(self) -> list[str]:
        """Ask the scalers, scale from and to zero, keep the HPAs."""
        return [
            _program("keda-operator"),
            f"--cert-dir={self.certificates.directory}",
            "--enable-cert-rotation=false",
            "--leader-elect=false",
            f"--metrics-service-bind-address=127.0.0.1:{self._metrics_service}",
            f"--metrics-bind-address=127.0.0.1:{self._operator_metrics}",
            f"--health-probe-bind-address=127.0.0.1:{free_port()}",
            "--kube-api-qps=200",
            "--kube-api-burst=300",
            "--zap-log-level=info",
        ]

    def adapter(self) -> list[str]:
        """Serve external.metrics.k8s.io from what the operator answers."""
        trust = self.certificates
        return [
            _program("keda-adapter"),
            f"--lister-kubeconfig={self.kubeconfig}",
            f"--authentication-kubeconfig={self.kubeconfig}",
            f"--authorization-kubeconfig={self.kubeconfig}",
            f"--metrics-service-address=127.0.0.1:{self._metrics_service}",
            f"--cert-dir={trust.directory}",
            f"--client-ca-file={trust.authority}",
            f"--tls-cert-file={trust.certificate}",
            f"--tls-private-key-file={trust.key}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._adapter}",
            f"--port={free_port()}",
        ]

    def webhooks(self) -> list[str] | None:
        """Validate ScaledObjects before the API server accepts them; the oldest KEDA has none."""
        if generation.KEDA_IS_OLDEST:
            return None
        return [
            _program("keda-webhooks"),
            f"--cert-dir={self.certificates.directory}",
            f"--port={self._webhooks}",
            f"--metrics-bind-address=127.0.0.1:{free_port()}",
            f"--health-probe-bind-address=127.0.0.1:{free_port()}",
        ]

    def objects(self) -> list[dict[str, Any]]:
        """Return what makes the API server send metrics requests and ScaledObjects to KEDA."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        found = [namespace, self._service(), self._api_service()]
        return found if generation.KEDA_IS_OLDEST else [*found, self._webhook()]

    def _service(self) -> dict[str, Any]:
        """Name this machine: an APIService takes no address, only a Service."""
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "keda-metrics-apiserver", "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }

    def _api_service(self) -> dict[str, Any]:
        return {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
            "spec": {
                "group": "external.metrics.k8s.io",
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {
                    "name": "keda-metrics-apiserver",
                    "namespace": NAMESPACE,
                    "port": self._adapter,
                },
            },
        }

    def _webhook(self) -> dict[str, Any]:
        url = f"https://127.0.0.1:{self._webhooks}/validate-keda-sh-v1alpha1-scaledobject"
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "keda-admission"},
            "webhooks": [
                {
                    "name": "vscaledobject.kb.io",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {
                        "url": url,
                        "caBundle": self.certificates.authority_base64(),
                    },
                    # KEDA ships `Ignore`; tests of the webhook have to see its refusals.
                    "failurePolicy": "Fail",
                    "sideEffects": "None",
                    "rules": [
                        {
                            "apiGroups": ["keda.sh"],
                            "apiVersions": ["v1alpha1"],
                            "operations": ["CREATE", "UPDATE"],
                            "resources": ["scaledobjects"],
                        }
                    ],
                }
            ],
        }
