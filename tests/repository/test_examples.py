"""Every example is a ScaledObject that the scaler accepts and that does what its header says."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from keda_gpu_scaler import trigger
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from tests.support.triggers import access

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "scaledobjects").glob("*.yaml"))
ADDRESS = "keda-gpu-scaler.keda.svc:6000"
"""Where the examples reach the scaler."""
INFLUXDB = "influxdb"
"""The one source that an example names: the others have the source `default`."""

every_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


def read(path: Path) -> dict[str, Any]:
    """Return the ScaledObject of an example, which is the last of its objects."""
    *_, document = objects(path)
    return document


def objects(path: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(path.read_text(), yaml.CSafeLoader))


def is_ours(trigger: dict[str, Any]) -> bool:
    return bool(trigger["metadata"].get("scalerAddress") == ADDRESS)


def ours(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in document["spec"]["triggers"] if is_ours(each)]


def parsed(
    document: dict[str, Any], metadata: dict[str, str], policy: Policy = Policy.NAMESPACED
) -> TriggerSpec:
    named = ScaledObject(document["metadata"]["namespace"], document["metadata"]["name"])
    allowed = access(own_promql=policy)
    if metadata.get("source") == INFLUXDB:
        # As the example's header asks of the operator: InfluxQL cannot be confined.
        allowed = access(INFLUXDB, own_promql=Policy.ALLOW, influxql_sources=frozenset({INFLUXDB}))
    return trigger.parse(named, metadata, allowed)


def wakes(found: TriggerSpec) -> bool:
    """Tell whether a trigger has something that exists without the workload's own pods."""
    has_demand = found.demand is not None and not found.demand.is_of_pods
    return has_demand or found.neighbour is not None


def test_there_is_an_example_of_each_use() -> None:
    names = {path.stem for path in EXAMPLES}
    own_load = {"busiest", "memory", "mig", "own-query", "statefulset", "utilization", "vllm"}
    from_zero = {
        "demand",
        "one-text",
        "two-triggers",
        "router",
        "ingress",
        "queue",
        "pipeline",
        "overflow",
    }
    others = {"business-hours", "http-add-on", "alert", "cluster-average", "llm-d"}
    of_recipes = {"managed-cloud", "duty-cycle", "gpu-exporter", "influxdb"}
    assert names == own_load | from_zero | others | of_recipes


def test_one_text_serves_both_of_the_example_with_placeholders() -> None:
    (path,) = (one for one in EXAMPLES if one.stem == "one-text")
    both = objects(path)
    texts = {one["metadata"]["demandQuery"] for each in both for one in ours(each)}
    assert (len(both), len(texts)) == (2, 1)
    demands = [parsed(each, one["metadata"]).demand for each in both for one in ours(each)]
    names = [each["metadata"]["name"] for each in both]
    for name, demand in zip(names, demands, strict=True):
        assert demand is not None
        assert f'service="{name}"' in demand.text


def test_a_header_says_what_it_is_for(subtests: pytest.Subtests) -> None:
    for path in EXAMPLES:
        with subtests.test(path.stem):
            first, second, *_ = path.read_text().splitlines()
            assert first.startswith("# ")
            assert first.endswith(".")
            assert second == "#"


def test_it_is_a_scaled_object_with_one_trigger_for_the_scaler(subtests: pytest.Subtests) -> None:
    for path in EXAMPLES:
        with subtests.test(path.stem):
            document = read(path)
            assert document["apiVersion"] == "keda.sh/v1alpha1"
            assert document["kind"] == "ScaledObject"
            (one,) = ours(document)
            assert one["type"] in {"external", "external-push"}
            assert "fallback" not in document["spec"], "it cannot work with onUnknown: hold"


def test_what_belongs_to_it_is_in_its_namespace(subtests: pytest.Subtests) -> None:
    for path in EXAMPLES:
        with subtests.test(path.stem):
            namespaces = {each["metadata"]["namespace"] for each in objects(path)}
            assert len(namespaces) == 1


def test_metadata_are_strings_as_kubernetes_demands(subtests: pytest.Subtests) -> None:
    for path in EXAMPLES:
        with subtests.test(path.stem):
            for each in read(path)["spec"]["triggers"]:
                assert {type(value) for value in each["metadata"].values()} == {str}


def test_the_trigger_is_accepted_without_a_warning(subtests: pytest.Subtests) -> None:
    for path in EXAMPLES:
        with subtests.test(path.stem):
            document = read(path)
            for each in ours(document):
                assert parsed(document, each["metadata"]).warnings == ()


def test_it_measures_the_workload_that_it_scales(subtests: pytest.Subtests) -> None:
    for path in EXAMPLES:
        with subtests.test(path.stem):
            document = read(path)
            target = document["spec"]["scaleTargetRef"]
            for each in ours(document):
                found = parsed(document, each["metadata"])
                kind = target.get("kind", "Deployment").lower()
                assert found.workload == f"{kind}/{target['name']}"
                assert found.pods.namespace == document["metadata"]["namespace"]


def test_a_workload_that_may_go_to_zero_has_something_to_wake_it(subtests: pytest.Subtests) -> None:
    for path in EXAMPLES:
        with subtests.test(path.stem):
            document = read(path)
            if document["spec"].get("minReplicaCount", 0) == 0:
                (one,) = ours(document)
                others = len(document["spec"]["triggers"]) > 1
                assert others or wakes(parsed(document, one["metadata"]))


def test_a_demand_of_ours_wakes_within_seconds(subtests: pytest.Subtests) -> None:
    for path in EXAMPLES:
        with subtests.test(path.stem):
            document = read(path)
            for each in ours(document):
                found = parsed(document, each["metadata"])
                assert (each["type"] == "external-push") == wakes(found)


def test_idle_is_judged_over_more_than_one_poll_and_a_scrape(subtests: pytest.Subtests) -> None:
    for path in EXAMPLES:
        with subtests.test(path.stem):
            document = read(path)
            poll_seconds = document["spec"].get("pollingInterval", 30)
            for each in ours(document):
                window = parsed(document, each["metadata"]).activation_window_seconds
                assert window >= poll_seconds + 60
