"""What Helm says after an install can be used as it stands: its addresses and names are right."""

import re
import shlex

import pytest
import yaml

from keda_gpu_scaler import trigger
from keda_gpu_scaler.spec.spec import ScaledObject
from tests.repository.chart import charts, shapes
from tests.support.triggers import access

pytestmark = pytest.mark.needs("helm")

EACH_CASE = pytest.mark.parametrize("case", ["default", "mtls", "cert-manager", "everything"])


def _notes(case: str) -> str:
    return charts.notes("--values", str(charts.values(case)))


@EACH_CASE
def test_the_scaled_object_is_one_that_the_scaler_takes_and_keda_finds(case: str) -> None:
    notes, found = _notes(case), shapes.release(case)
    text = re.match(r"(?:  .*\n)+", notes[notes.index("  apiVersion: keda.sh") :])
    assert text
    document = yaml.safe_load(text[0])
    (external,) = document["spec"]["triggers"]
    named = ScaledObject(document["metadata"]["namespace"], document["metadata"]["name"])
    assert not trigger.parse(named, external["metadata"], access()).warnings
    (test,) = found.of("Pod")
    assert external["metadata"]["scalerAddress"] == test["spec"]["containers"][0]["args"][1]
    is_encrypted = "KEDA_GPU_SCALER_GRPC_CERT_FILE" in found.variables
    assert (external["metadata"].get("enableTLS") == "true") is is_encrypted
    auth = [one["metadata"]["name"] for one in found.of("ClusterTriggerAuthentication")]
    assert [external["authenticationRef"]["name"] for _ in auth] == auth
    assert ("authenticationRef" in external) is is_encrypted


@EACH_CASE
def test_the_commands_name_what_there_is(case: str) -> None:
    found = shapes.release(case)
    named = {one["metadata"]["name"] for one in found.objects}
    auth = found.of("ClusterTriggerAuthentication")
    named |= {ref["name"] for one in auth for ref in one["spec"]["secretTargetRef"]}
    lines = [line for line in _notes(case).splitlines() if line.startswith("  kubectl")]
    *secrets, forward = map(shlex.split, lines)
    assert forward[4].removeprefix("deployment/") in named
    assert [one[5] for one in secrets if one[5] not in named] == []


def test_helm_says_from_where_keda_is_let_in() -> None:
    assert "operator in the namespace keda reach" in charts.notes()
    elsewhere = charts.notes(namespace="autoscaling")
    assert "operator in the namespace autoscaling or keda reach" in elsewhere


def test_helm_names_the_prometheus_that_it_chose_by_itself() -> None:
    assert "Samples come from http://prometheus-operated" in _notes("default")
    assert "Samples come from" not in _notes("scrape")
