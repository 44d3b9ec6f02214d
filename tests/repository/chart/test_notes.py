"""What Helm says after an install can be used as it stands: its addresses and names are right."""

import re
import shlex

import pytest
import yaml

from keda_gpu_scaler import trigger
from keda_gpu_scaler.spec.spec import ScaledObject
from testbed import charts
from testbed.triggers import access
from tests.repository.chart import shapes

pytestmark = pytest.mark.needs("helm")

NOTES = "templates/NOTES.txt"
EACH_CASE = pytest.mark.parametrize(
    "case", ["default", "mtls", "cert-manager", "everything", "webhook"]
)


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
    commands = [shlex.split(line) for line in lines]
    forwards = [one[4].partition("/") for one in commands if one[3] == "port-forward"]
    assert [kind for kind, _, _ in forwards] == ["service", "deployment"]
    inside = [one[4].removeprefix("deployment/") for one in commands if one[3] == "exec"]
    assert len(inside) == ("KEDA_GPU_SCALER_HTTP_CERT_FILE" not in found.variables)
    tokens = [one[-1] for one in commands if one[-2] == "--token-file" and one[3] == "exec"]
    assert {*tokens} <= {found.variables.get("KEDA_GPU_SCALER_HTTP_TOKEN_FILE")}
    named |= {
        one["secret"]["secretName"] for one in found.pod["spec"]["volumes"] if "secret" in one
    }
    secrets = [one[5] for one in commands if one[3:5] == ["get", "secret"]]
    assert {*secrets, *inside, *(name for _, _, name in forwards)} <= named


def test_helm_warns_where_a_cluster_has_no_keda_and_only_there() -> None:
    """Without a cluster Helm knows groups and no kinds, and so nothing of KEDA."""
    shown = 'extraObjects[0]=kind: {{ include "keda-gpu-scaler.withoutKeda" . | quote }}'

    def warning(*served: str) -> str:
        flags = [word for one in served for word in ("--api-versions", one)]
        made = charts.objects(charts.template("--set", shown, *flags))
        (found,) = [one["kind"] for one in made if one.keys() == {"kind"}]
        return str(found)

    told = warning("apps/v1/Deployment")
    assert "this cluster does not serve keda.sh/v1alpha1" in told
    assert warning("apps/v1/Deployment", "keda.sh/v1alpha1") == warning() == ""
    assert 'include "keda-gpu-scaler.withoutKeda"' in (charts.CHART / NOTES).read_text()
    assert "WARNING" not in _notes("default")
