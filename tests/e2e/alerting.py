"""A scaler with a webhook, and alerts about its workloads."""

import grpc

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from tests.e2e import alertmanager, router
from tests.e2e.alertmanager import Alertmanager, Rule
from tests.e2e.lab import Lab
from tests.e2e.manifests import Manifest
from tests.e2e.product import Scaler

TOKEN = "of-the-webhook"  # noqa: S105 - of a scaler on loopback that lives for minutes
REQUESTS = "requests"
"""Load offered under this name raises alerts; no workload has the name."""


async def open_webhook(lab: Lab, **settings: str) -> None:
    """Give the lab's scaler a webhook."""
    await lab.scaler.restart(WEBHOOK_TOKEN=TOKEN, **settings)


def url(scaler: Scaler) -> str:
    """Return the address to which a scaler's alerts are sent."""
    return f"http://{scaler.http_address}/webhook"


def on_requests(lab: Lab, name: str, **labels: str) -> Rule:
    """Return a rule that raises an alert while there are requests."""
    return alertmanager.rule(name, f"{router.offered(lab.name, REQUESTS)} > 0", **labels)


def about(workload: str) -> dict[str, str]:
    """Return the labels by which an alert about the lab is about a workload there."""
    return {"scaled_object": workload}


async def judge(lab: Lab, told: Alertmanager, *rules: Rule) -> None:
    """Have Prometheus evaluate only these rules, and send the alerts."""
    lab.prometheus.sections = told.sections(rules)
    await lab.prometheus.reload(lab.prometheus.scrape_configs)


async def is_active(lab: Lab, scaler: Scaler, workload: str, trigger: Manifest) -> bool | None:
    """Ask one scaler directly what KEDA asks at the trigger's address; None: an error."""
    reference = pb.ScaledObjectRef(
        namespace=lab.name, name=workload, scalerMetadata=trigger["metadata"]
    )
    async with grpc.aio.insecure_channel(scaler.address) as channel:
        try:
            answer = await externalscaler_pb2_grpc.ExternalScalerStub(channel).IsActive(reference)
        except grpc.RpcError:
            return None
    return bool(answer.result)
