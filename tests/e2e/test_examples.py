"""The real API server and KEDA's webhook take every example, and it becomes the HPA it promises.

The files are used as they are. What differs here is where things are: the namespace, and the
addresses of the scaler and of Prometheus.
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

from tests.e2e.lab import Lab
from tests.test_examples import EXAMPLES, EXTERNAL, every_example, read

Target = tuple[str, str, Decimal]
"""A metric's name, the type of its target, and the target."""


def placed(lab: Lab, document: dict[str, Any]) -> dict[str, Any]:
    """Return an example with the addresses of a lab."""
    here = copy.deepcopy(document)
    here["metadata"]["namespace"] = lab.name
    addresses = {"scalerAddress": lab.scaler.address, "serverAddress": lab.prometheus.url}
    for trigger in here["spec"]["triggers"]:
        metadata = trigger["metadata"]
        metadata |= {key: value for key, value in addresses.items() if key in metadata}
    return here


async def deploy_target(lab: Lab, document: dict[str, Any]) -> None:
    """Create what an example scales."""
    target = document["spec"]["scaleTargetRef"]
    await lab.deploy(target["name"], kind=target.get("kind", "Deployment"), replicas=1)


async def autoscaler(lab: Lab, name: str) -> HorizontalPodAutoscalerSpec:
    """Wait until KEDA has made the HPA of a ScaledObject."""

    async def exists() -> bool:
        return lab.timeline.last(name, "hpa target 0") is not None

    await lab.wait(exists, 30, f"{name} has an HPA")
    found = await lab.client.get(HorizontalPodAutoscaler, f"keda-hpa-{name}", namespace=lab.name)
    assert found.spec is not None
    return found.spec


def promised(document: dict[str, Any]) -> list[Target]:
    """Return the metrics that a file asks for: KEDA counts its triggers from 0."""
    return [
        (
            f"s{index}-{_metric(trigger)}",
            trigger.get("metricType", "AverageValue"),
            Decimal(trigger["metadata"]["threshold"]),
        )
        for index, trigger in enumerate(document["spec"]["triggers"])
    ]


def _metric(trigger: dict[str, Any]) -> str:
    if trigger["type"] not in EXTERNAL:
        return str(trigger["type"])
    return f"gpu-{trigger['metadata'].get('signal', 'utilization')}"


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
    await lab.apply(placed(lab, document))
    found = await autoscaler(lab, document["metadata"]["name"])
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
