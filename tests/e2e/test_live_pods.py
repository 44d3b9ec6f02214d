"""What runs pods in these tests behaves as Kubernetes, where neither chart nor page shows it.

A pod that waits for its ConfigMap, a Service with another port than its pods, logs to the very end,
and a name that is gone.
"""

import pytest
import yaml

from tests.e2e.manifests import Manifest
from tests.e2e.shell import Shell

pytestmark = pytest.mark.xdist_group("live")
NAME, NAMESPACE = "scaler", "default"
ON_IT = f"-n {NAMESPACE}"


def _deployment() -> Manifest:
    container = {
        "name": "scaler",
        "image": "registry.example/somebody/keda-gpu-scaler:1.2.3",
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [
            {"name": "KEDA_GPU_SCALER_CONFIG", "value": "/etc/scaler/config.yaml"},
            {
                "name": "KEDA_GPU_SCALER_LOG_FORMAT",
                "valueFrom": {"configMapKeyRef": {"name": NAME, "key": "format"}},
            },
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/scaler"}],
    }
    volumes = [{"name": "config", "configMap": {"name": NAME}}]
    template = {
        "metadata": {"labels": {"app": NAME}},
        "spec": {"containers": [container], "volumes": volumes},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": NAME}},
            "template": template,
        },
    }


def _config_map() -> Manifest:
    settings = "prometheus_url: http://127.0.0.1:9\nlog_level: debug\n"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "data": {"config.yaml": settings, "format": "json"},
    }


def _service() -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "selector": {"app": NAME},
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        },
    }


async def test_a_deployment_waits_for_its_settings_is_reached_at_a_port_of_its_service_and_goes(
    shell: Shell,
) -> None:
    manifests = [_deployment(), _service()]
    await shell.expect("kubectl apply -f -", typed=yaml.safe_dump_all(manifests))
    missing = f"kubectl wait {ON_IT} --for=jsonpath='{{..reason}}'=CreateContainerConfigError pod"
    await shell.expect(f"{missing} -l app={NAME} --timeout=30s")
    await shell.expect("kubectl apply -f -", typed=yaml.safe_dump(_config_map()))
    await shell.expect(f"kubectl rollout status {ON_IT} deploy/{NAME} --timeout=60s")

    assert await shell.expect(f"curl -sf http://{NAME}.{NAMESPACE}.svc/readyz") == "ready\n"
    said = await shell.keep(f"kubectl port-forward {ON_IT} svc/{NAME} :80")
    port = said.split()[2].rpartition(":")[2]
    assert await shell.expect(f"curl -sf http://127.0.0.1:{port}/readyz") == "ready\n"

    logs = f"kubectl logs {ON_IT} -f -l app={NAME} --max-log-requests 9"
    delete = f"kubectl delete {ON_IT} deploy/{NAME} svc/{NAME} cm/{NAME}"
    gone = f"kubectl wait {ON_IT} --for=delete pod -l app={NAME} --timeout=60s"
    seen = await shell.expect(f"{logs} & {delete}\n{gone}\nwait")
    assert seen.count('"serve.stopped"') == 2, seen
    refused = await shell.run(f"curl -s http://{NAME}.{NAMESPACE}.svc/readyz")
    assert f"there is no Service {NAME} in {NAMESPACE}" in refused.output
