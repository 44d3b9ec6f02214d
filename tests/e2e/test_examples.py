"""The real API server and KEDA's webhook take every example, and it becomes the HPA it promises.

The files are used as they are. What differs here is where things are: the namespace, and the
addresses of the scaler and of Prometheus. KEDA's HTTP add-on is not here: neither the kind of its
routes, nor its scaler, so that its trigger has no metric.
"""

import copy
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from lightkube import ApiError
from lightkube.models.autoscaling_v2 import HorizontalPodAutoscalerSpec, MetricTarget
from lightkube.resources.autoscaling_v2 import HorizontalPodAutoscaler
from lightkube.utils.quantity import parse_quantity

from tests.e2e import resources
from tests.e2e.lab import Lab
from tests.test_examples import ADDRESS, EXAMPLES, every_example, is_ours, objects, read

Target = tuple[str, str, Decimal]
"""A metric's name, the type of its target, and the target."""
PROMETHEUS = "http://prometheus.monitoring.svc:9090"
"""Where the examples reach Prometheus, if KEDA's own trigger asks it."""
SECRETS = {"rabbitmq": {"management-url": "http://worker:password@127.0.0.1:9/"}}
"""What the examples ask their readers to have. Nobody listens there."""


def placed(lab: Lab, document: dict[str, Any]) -> dict[str, Any]:
    """Return an object of an example with the addresses of a lab."""
    here = copy.deepcopy(document)
    here["metadata"]["namespace"] = lab.name
    addresses = {ADDRESS: lab.scaler.address, PROMETHEUS: lab.prometheus.url}
    for trigger in here["spec"].get("triggers", []):
        metadata = trigger["metadata"]
        metadata |= {key: addresses.get(value, value) for key, value in metadata.items()}
    return here


async def apply_what_belongs_to_it(lab: Lab, path: Path) -> None:
    """Create what an example has beside its ScaledObject, as far as the cluster knows its kind."""
    for document in objects(path):
        if document["kind"] == resources.TriggerAuthentication.__name__:
            for reference in document["spec"]["secretTargetRef"]:
                name = reference["name"]
                await lab.apply(secret(lab.name, name, SECRETS[name]))
            await lab.apply(placed(lab, document))


def secret(namespace: str, name: str, texts: dict[str, str]) -> dict[str, Any]:
    """Return a Secret."""
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": texts}


async def deploy_target(lab: Lab, document: dict[str, Any]) -> None:
    """Create what an example scales."""
    target = document["spec"]["scaleTargetRef"]
    await lab.deploy(target["name"], kind=target.get("kind", "Deployment"), replicas=1)


async def autoscaler(lab: Lab, document: dict[str, Any]) -> HorizontalPodAutoscalerSpec:
    """Wait until KEDA has made the HPA of a ScaledObject."""
    name, target = document["metadata"]["name"], document["spec"]["scaleTargetRef"]["name"]

    async def exists() -> bool:
        return lab.timeline.last(target, "hpa target 0") is not None

    await lab.wait(exists, 30, f"{name} has an HPA")
    found = await lab.client.get(HorizontalPodAutoscaler, f"keda-hpa-{name}", namespace=lab.name)
    assert found.spec is not None
    return found.spec


def promised(document: dict[str, Any]) -> list[Target]:
    """Return the metrics that a file asks for: KEDA counts its triggers from 0."""
    return sorted(
        (f"s{index}-{name}", trigger.get("metricType", "AverageValue"), Decimal(target))
        for index, trigger in enumerate(document["spec"]["triggers"])
        for name, target in _metrics(trigger)
    )


def _metrics(trigger: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the names of a trigger's metrics, each with its target."""
    metadata = trigger["metadata"]
    if is_ours(trigger):
        load = (f"gpu-{metadata.get('signal', 'utilization')}", metadata["threshold"])
        demand = [("gpu-demand", metadata[key]) for key in ["demandThreshold"] if key in metadata]
        return [load, *demand]
    match trigger["type"]:
        case "prometheus":
            return [("prometheus", metadata["threshold"])]
        case "rabbitmq":
            return [(f"rabbitmq-{metadata['queueName']}", metadata["value"])]
        case "cron":
            # Its metric counts replicas, and is called after its hours.
            return [("cron-Europe-Berlin-457xx1-5-018xx1-5", "1")]
        case _:
            return []


def had(spec: HorizontalPodAutoscalerSpec) -> list[Target]:
    """Return the metrics that an HPA has."""
    externals = [metric.external for metric in spec.metrics or () if metric.external]
    return sorted((each.metric.name, each.target.type, _number(each.target)) for each in externals)


def _number(target: MetricTarget) -> Decimal:
    number = parse_quantity(target.averageValue or target.value)
    assert number is not None
    return number


@every_example
async def test_an_example_becomes_the_autoscaler_that_it_promises(lab: Lab, path: Path) -> None:
    document = read(path)
    wanted = document["spec"]
    await deploy_target(lab, document)
    await apply_what_belongs_to_it(lab, path)
    await lab.apply(placed(lab, document))
    found = await autoscaler(lab, document)
    assert had(found) == promised(document), lab.story()
    assert found.minReplicas == max(1, wanted["minReplicaCount"])
    assert found.maxReplicas == wanted["maxReplicaCount"]


def _twice_the_same_name(document: dict[str, Any]) -> None:
    first, *_ = document["spec"]["triggers"]
    document["spec"]["triggers"] = [first | {"name": "gpu"}, first | {"name": "gpu"}]


def _another_object_of_the_workload(document: dict[str, Any]) -> None:
    document["metadata"]["name"] = "another"


def _a_misspelt_field(document: dict[str, Any]) -> None:
    document["spec"]["minReplicas"] = 1


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        pytest.param(_twice_the_same_name, "must be unique", id="webhook-names"),
        pytest.param(_another_object_of_the_workload, "already managed", id="webhook-workload"),
        pytest.param(_a_misspelt_field, "field not declared in schema", id="schema"),
    ],
)
async def test_an_example_that_is_spoilt_is_refused(
    lab: Lab, spoil: Callable[[dict[str, Any]], None], why: str
) -> None:
    document = placed(lab, read(EXAMPLES[0]))
    await deploy_target(lab, document)
    await lab.apply(document)
    spoil(document)
    with pytest.raises(ApiError, match=why):
        await lab.apply(document)
