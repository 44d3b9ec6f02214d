"""The real API server and KEDA's webhook accept every example, and it becomes the HPA it promises.

The files are used as they are. Only locations differ: the namespace, a unique name for each
in it, and the addresses of the scaler and of Prometheus. KEDA's HTTP add-on is
not here: neither the kind of its routes, nor its scaler, so that its trigger has no metric.
"""

import copy
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from lightkube.models.autoscaling_v2 import HorizontalPodAutoscalerSpec
from lightkube.resources.autoscaling_v2 import HorizontalPodAutoscaler
from lightkube.utils.quantity import parse_quantity

from tests.e2e import manifests, resources
from tests.e2e.lab import Lab
from tests.repository.test_examples import ADDRESS, EXAMPLES, INFLUXDB, is_ours, objects, read

Target = tuple[str, str, Decimal]
"""A metric's name, the type of its target, and the target."""
PROMETHEUS = "http://prometheus.monitoring.svc:9090"
"""The Prometheus address in the examples that use KEDA's own trigger."""
SECRETS = {"rabbitmq": {"management-url": "http://worker:password@127.0.0.1:9/"}}
"""What the examples ask their readers to have. Nothing listens there."""


def placed(lab: Lab, document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a ScaledObject of an example with a lab's addresses and a name of its own there."""
    here = copy.deepcopy(document)
    here["metadata"] |= {"namespace": lab.name, "name": name}
    here["spec"]["scaleTargetRef"]["name"] = name
    addresses = {ADDRESS: lab.scaler.address, PROMETHEUS: lab.prometheus.url}
    for trigger in here["spec"]["triggers"]:
        metadata = trigger["metadata"]
        metadata |= {key: addresses.get(value, value) for key, value in metadata.items()}
    return here


async def apply_what_belongs_to_it(lab: Lab, path: Path) -> None:
    """Create what an example has beside its ScaledObject, as far as the cluster knows its kind."""
    for document in objects(path):
        if document["kind"] == resources.TriggerAuthentication.__name__:
            for reference in document["spec"]["secretTargetRef"]:
                name = reference["name"]
                await lab.apply(manifests.secret(lab.name, name, SECRETS[name]))
            document["metadata"]["namespace"] = lab.name
            await lab.apply(document)


async def autoscaler(lab: Lab, name: str) -> HorizontalPodAutoscalerSpec:
    async def exists() -> bool:
        return lab.timeline.last(name, "hpa target 0") is not None

    await lab.wait(exists, f"{name} has an HPA")
    found = await lab.client.get(HorizontalPodAutoscaler, f"keda-hpa-{name}", namespace=lab.name)
    assert found.spec is not None
    return found.spec


def promised(document: dict[str, Any]) -> list[Target]:
    """Return the metrics that a file asks us for: KEDA counts all triggers from 0."""
    return sorted(
        (f"s{index}-{name}", trigger.get("metricType", "AverageValue"), Decimal(target))
        for index, trigger in enumerate(document["spec"]["triggers"])
        if is_ours(trigger)
        for name, target in _metrics(trigger)
    )


def _metrics(trigger: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the names of a trigger's metrics, each with its target."""
    metadata = trigger["metadata"]
    name = f"gpu-{metadata.get('signal', 'utilization')}"
    load = [(name, metadata[key]) for key in ["threshold"] if key in metadata]
    demand = [("gpu-demand", metadata[key]) for key in ["demandThreshold"] if key in metadata]
    return [*load, *demand]


@pytest.mark.core
async def test_every_example_becomes_the_autoscaler_that_it_promises(lab: Lab) -> None:
    # Nothing listens at the source's address: which metrics a trigger has, its text alone says.
    source = {"type": INFLUXDB, "url": "http://127.0.0.1:9", "database": "telegraf"}
    config = lab.directory / "settings.yaml"
    config.write_text(json.dumps({"sources": {INFLUXDB: source}}))
    await lab.scaler.restart(CONFIG=str(config), OWN_PROMQL="allow")
    documents = {path: placed(lab, read(path), path.stem) for path in EXAMPLES}
    for path, document in documents.items():
        target = document["spec"]["scaleTargetRef"]
        await lab.deploy(target["name"], kind=target.get("kind", "Deployment"), replicas=1)
        await apply_what_belongs_to_it(lab, path)
        await lab.apply(document)
    for path, document in documents.items():
        wanted, became = document["spec"], await autoscaler(lab, path.stem)
        bounds = became.minReplicas, became.maxReplicas
        assert bounds == (max(1, wanted["minReplicaCount"]), wanted["maxReplicaCount"]), path.stem
        found = [metric.external for metric in became.metrics or () if metric.external]
        assert promised(read(path)) == sorted(
            (
                each.metric.name,
                each.target.type,
                parse_quantity(each.target.averageValue or each.target.value),
            )
            for each in found
            if "-gpu-" in each.metric.name
        ), path.stem
