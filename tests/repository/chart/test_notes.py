"""What Helm says after an install can be used as it stands: its addresses and names are right."""

import itertools
import json
import re
import shlex

import pytest
import yaml

from keda_gpu_scaler import trigger
from keda_gpu_scaler.spec.spec import ScaledObject
from tests.repository.chart import charts, shapes
from tests.repository.chart.charts import Object
from tests.support.triggers import access

pytestmark = pytest.mark.needs("helm")

CASES = ["default", "mtls", "cert-manager", "everything"]


def _notes(case: str) -> str:
    return charts.notes("--values", str(charts.values(case)))


def _scaled_object(notes: str) -> Object:
    start = notes.index("  apiVersion: keda.sh")
    text = re.match(r"(?:  .*\n)+", notes[start:])
    assert text
    found: Object = yaml.safe_load(text[0])
    return found


def _commands(notes: str) -> list[list[str]]:
    return [
        shlex.split(line)
        for line in notes.splitlines()
        if line.startswith(("  kubectl", "  grpcurl"))
    ]


def _words(found: shapes.Release) -> set[str]:
    """Return every name that a command may use."""
    named = {one["metadata"]["name"] for one in found.objects}
    auth = found.of("ClusterTriggerAuthentication")
    return named | {ref["name"] for one in auth for ref in one["spec"]["secretTargetRef"]}


@pytest.mark.parametrize("case", CASES)
def test_the_scaled_object_is_one_that_the_scaler_takes_and_keda_finds(case: str) -> None:
    document, found = _scaled_object(_notes(case)), shapes.release(case)
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


@pytest.mark.parametrize("case", CASES)
def test_the_commands_name_what_there_is(case: str) -> None:
    found = shapes.release(case)
    *kubectl, grpcurl = _commands(_notes(case))
    *secrets, forward = kubectl
    assert forward[3] == "port-forward"
    assert forward[4].removeprefix("deployment/") in _words(found)
    assert [one[5] for one in secrets if one[5] not in _words(found)] == []
    files = {one[one.index(">") + 1] for one in secrets}
    flags = dict(itertools.pairwise(grpcurl))
    assert files == {flags[name] for name in ("-cacert", "-cert", "-key") if name in flags}
    assert ("-plaintext" in grpcurl) is (not files)
    assert json.loads(flags["-d"])["scalerMetadata"]["workload"]


def test_helm_says_where_alerts_lead_and_how_to_change_it() -> None:
    rule = "metrics.prometheusRule"
    told = charts.notes("--set", f"{rule}.enabled=true")
    assert "Alerts link to https://" in told
    assert f"set {rule}.runbookBaseUrl" in told
    without = charts.notes("--set", f"{rule}.enabled=true,{rule}.runbookBaseUrl=")
    assert "The runbook_url of the alerts is no URL: set metrics.prometheusRule" in without
    assert "runbook" not in charts.notes()


def test_helm_says_from_where_keda_is_let_in() -> None:
    assert "operator in the namespace keda reach" in charts.notes()
    elsewhere = charts.notes(namespace="autoscaling")
    assert "operator in the namespace autoscaling or keda reach" in elsewhere
    named = charts.notes("--set", "keda.namespace=operators", namespace="autoscaling")
    assert "operator in the namespace operators reach" in named


def test_helm_names_the_prometheus_that_it_chose_by_itself() -> None:
    assert "Samples come from http://prometheus-operated" in _notes("default")
    assert "Samples come from" not in charts.notes("--values", str(charts.values("scrape")))
