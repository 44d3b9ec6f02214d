"""The ScaledObject that a survey writes for a workload."""

import msgspec
import pytest

from keda_gpu_scaler.workbench import check
from keda_gpu_scaler.workbench.survey.first_object import scaled_object
from keda_gpu_scaler.workbench.survey.usage import Stretch, Usage, Used

STRETCH = Stretch("ib", gpus=60, idle=30, shown=60, pods=60, most_replicas=3, most_gpus=1)


def usage(kind: str, namespace: str = "ml", name: str = "bert", **changes: int) -> Usage:
    return Usage(Used(namespace, kind, name), [msgspec.structs.replace(STRETCH, **changes)])


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Rollout"])
@pytest.mark.parametrize("source", ["default", "other", "2"])
def test_check_has_nothing_against_it(kind: str, source: str) -> None:
    text = scaled_object(usage(kind), source)
    assert text is not None
    report = check.check({"bert.yaml": text}, "default")
    assert not report.findings

    assert (f'source: "{source}"' in text) is (source != "default")
    assert "maxReplicaCount: 3" in text


@pytest.mark.parametrize("name", ["123", "1e3", "true", "on"])
def test_a_name_that_yaml_would_read_as_something_else_stays_a_name(name: str) -> None:
    text = scaled_object(usage("Deployment", name, name), "default")
    assert text is not None
    (manifest,), problems = check.read_objects({"bert.yaml": text}, "default")
    assert (str(manifest.scaled_object), problems) == (f"{name}/{name}", [])
    assert not check.check({"bert.yaml": text}, "default").findings


@pytest.mark.parametrize("text", ["a\nspec: {}", 'a"', "a: b"])
def test_what_is_no_name_in_kubernetes_gets_none(text: str) -> None:
    assert scaled_object(usage("Deployment", namespace=text), "default") is None
    assert scaled_object(usage("Deployment", name=text), "default") is None


def test_what_keda_cannot_scale_or_nobody_knows_gets_none() -> None:
    assert scaled_object(usage("CronJob"), "default") is None
    assert scaled_object(usage("Deployment", shown=20), "default") is None
