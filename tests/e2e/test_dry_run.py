"""The real API server takes every object that is shipped, and its pods where pods are restricted.

A server-side dry run goes through schemas, defaults, validation and admission, and stores nothing.
The resources of cert-manager and of the Prometheus operator are defined as their projects publish
them; their operators do not run.
"""

import json
import subprocess
from pathlib import Path

import pytest

from tests.chart import charts
from tests.e2e.programs import BUILT

_SECONDS = 120
_FOREIGN = ("cert-manager-crds.yaml", "prometheus-operator-crds.yaml")
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
EXAMPLES = charts.ROOT / "examples"
DEPLOY = charts.ROOT / "deploy"
VALUES = "values.yaml"
"""What Helm reads and no API server does."""


def kubectl(kubeconfig: Path, *words: str, manifests: str = "") -> str:
    """Run kubectl to its end, and return what it says; fail with its complaint if it has one."""
    finished = subprocess.run(
        [charts.built("kubectl"), f"--kubeconfig={kubeconfig}", *words],
        input=manifests,
        capture_output=True,
        check=False,
        text=True,
        timeout=_SECONDS,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout + finished.stderr


def dry_run(kubeconfig: Path, *objects: charts.Object) -> str:
    """Return what the API server says to these objects without storing them."""
    words = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return kubectl(kubeconfig, *words, manifests=json.dumps(listed))


@pytest.fixture(scope="session")
def defined(kubeconfig: Path) -> Path:
    """The cluster, once it knows the resources of others' operators."""
    for name in _FOREIGN:
        kubectl(kubeconfig, "apply", "--server-side", "--force-conflicts", "-f", str(BUILT / name))
    words = ("wait", "--for=condition=Established", "--timeout=60s", "crd")
    kubectl(
        kubeconfig, *words, "certificates.cert-manager.io", "prometheusrules.monitoring.coreos.com"
    )
    return kubeconfig


@pytest.fixture
def restricted(defined: Path, lab_name: str) -> str:
    """A namespace in which only restricted pods may run."""
    labels = {"name": lab_name, "labels": _RESTRICTED}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": labels}
    kubectl(defined, "apply", "-f", "-", manifests=json.dumps(namespace))
    return lab_name


def placed(one: charts.Object, namespace: str) -> charts.Object:
    """Return an object in a namespace that exists, if it is in one."""
    metadata = dict(one["metadata"])
    if "namespace" in metadata:
        metadata["namespace"] = namespace
    return {**one, "metadata": metadata}


def pod(one: charts.Object, namespace: str) -> charts.Object:
    """Return a pod as a workload's controller makes it, or the object itself if it is one."""
    made = one if one["kind"] == "Pod" else one["spec"]["template"]
    metadata = {"namespace": namespace, "name": "made"}
    spec = {key: value for key, value in made["spec"].items() if key != "priorityClassName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("case", charts.cases())
def test_every_object_of_the_chart_is_taken_and_its_pods_are_admitted(
    defined: Path, restricted: str, case: str
) -> None:
    found = charts.objects(charts.rendered(case))
    said = dry_run(defined, *(placed(one, restricted) for one in found))
    assert said.count("serverside-applied (server dry run)") == len(found)
    assert "Warning" not in said
    pods = [pod(one, restricted) for one in found if one["kind"] in ("Deployment", "Pod")]
    assert len(pods) == 2, "the scaler's and the one of helm test"
    for each in pods:
        assert "Warning" not in dry_run(defined, each)


def test_a_pod_that_is_not_restricted_is_refused_there(defined: Path, restricted: str) -> None:
    found = charts.objects(charts.rendered("default"))
    (deployment,) = (one for one in found if one["kind"] == "Deployment")
    loose = pod(deployment, restricted)
    loose["spec"]["securityContext"]["runAsNonRoot"] = False
    with pytest.raises(AssertionError, match='violates PodSecurity "restricted:latest"'):
        dry_run(defined, loose)


def test_every_object_of_the_base_is_taken(defined: Path, restricted: str) -> None:
    found = charts.objects(charts.kustomized())
    said = dry_run(defined, *(placed(one, restricted) for one in found))
    assert said.count("serverside-applied (server dry run)") == len(found)
    assert "Warning" not in said


@pytest.mark.parametrize(
    "path",
    sorted(
        path for path in (*EXAMPLES.rglob("*.yaml"), *DEPLOY.glob("*.yaml")) if path.name != VALUES
    ),
    ids=lambda path: path.stem,
)
def test_every_other_file_is_taken(defined: Path, restricted: str, path: Path) -> None:
    """What is of KEDA's HTTP add-on, whose resources are not here, is left out."""
    found = charts.objects(path.read_text())
    known = [one for one in found if not one["apiVersion"].startswith("http.keda.sh/")]
    assert known
    said = dry_run(defined, *(placed(one, restricted) for one in known))
    assert said.count("serverside-applied (server dry run)") == len(known)
