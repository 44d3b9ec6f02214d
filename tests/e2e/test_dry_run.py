"""The real API server takes every object that is shipped, and its pods where pods are restricted.

A server-side dry run goes through schemas, defaults, validation and admission, and stores nothing.
The resources of cert-manager and of the Prometheus operator are defined as their projects publish
them; their operators do not run. All objects of one claim go in one call, each source's in a file
of its name: kubectl goes on after a refusal, and names each object that is refused.
"""

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from testbed import charts, programs
from tests.repository.test_docs_snippets import SCALED_OBJECTS
from tests.workbench.check.cases import changed
from tests.workbench.check.test_schema import OF_THE_HPA, OTHERS, REFUSED

pytestmark = [pytest.mark.xdist_group("dry-run"), pytest.mark.usefixtures("helm")]
_SECONDS = 120
_FOREIGN = {
    "cert-manager-crds.yaml": ("certificates.cert-manager.io",),
    "prometheus-operator-crds.yaml": tuple(
        f"{kind}.monitoring.coreos.com"
        for kind in ("podmonitors", "prometheusrules", "servicemonitors")
    ),
}
"""Other projects' resources that the chart uses. All of theirs would keep an API server busy for
half a minute."""
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_TAKEN = "serverside-applied (server dry run)"
EXAMPLES = charts.ROOT / "examples"
DEPLOY = charts.ROOT / "deploy"
VALUES = "values.yaml"
"""Files that Helm reads and no API server does."""
EPISODES = "episodes"
"""The folder of files that `backtest` reads and no API server does."""
HPA = """apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {}}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  maxReplicas: 2
  behavior: {{{}}}
"""
Objects = Mapping[str, Iterable[charts.Object]]
"""Objects by the name of what they come from."""


def kubectl(kubeconfig: Path, *words: str, manifests: str = "") -> str:
    """Run kubectl to its end, and return its output; fail with its errors if it has any."""
    finished = subprocess.run(
        [programs.path("kubectl"), f"--kubeconfig={kubeconfig}", *words],
        input=manifests,
        capture_output=True,
        check=False,
        text=True,
        timeout=_SECONDS,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout + finished.stderr


def dry_run(kubeconfig: Path, directory: Path, objects: Objects) -> str:
    """Return the API server's answer to objects without storing them: it accepts every one."""
    for source, found in objects.items():
        listed = {"apiVersion": "v1", "kind": "List", "items": list(found)}
        assert listed["items"], source
        (directory / f"{source.replace('/', '-')}.json").write_text(json.dumps(listed))
    words = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f")
    said = kubectl(kubeconfig, *words, str(directory))
    assert said.count(_TAKEN) == sum(len(list(found)) for found in objects.values()), said
    return said


@pytest.fixture(scope="session")
def defined(kubeconfig: Path) -> Path:
    """The cluster, once it knows the resources of other operators."""
    for file, names in _FOREIGN.items():
        definitions = Path(programs.path(file)).read_text().split("\n---\n")
        wanted = [one for one in definitions if any(f"\n  name: {name}\n" in one for name in names)]
        assert len(wanted) == len(names), file
        apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        kubectl(kubeconfig, *apply, manifests="\n---\n".join(wanted))
        kubectl(kubeconfig, "wait", "--for=condition=Established", "--timeout=60s", "crd", *names)
    return kubeconfig


@pytest.fixture
def restricted(defined: Path, lab_name: str) -> str:
    """A namespace in which only restricted pods may run."""
    labels = {"name": lab_name, "labels": _RESTRICTED}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": labels}
    kubectl(defined, "apply", "-f", "-", manifests=json.dumps(namespace))
    return lab_name


def placed(found: Iterable[charts.Object], namespace: str) -> list[charts.Object]:
    """Return objects in a namespace that exists, those that are in one."""
    return [
        {**one, "metadata": one["metadata"] | {"namespace": namespace}}
        if "namespace" in one["metadata"]
        else one
        for one in found
    ]


def pods(found: Iterable[charts.Object], namespace: str) -> Iterator[charts.Object]:
    """Yield the pods among objects, and those that a Deployment's controller makes."""
    for one in found:
        if one["kind"] in {"Deployment", "Pod"}:
            made = one if one["kind"] == "Pod" else one["spec"]["template"]
            metadata = {"namespace": namespace, "name": f"made-of-{one['metadata']['name']}"}
            spec = {key: value for key, value in made["spec"].items() if key != "priorityClassName"}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.core
def test_every_object_of_the_chart_and_of_the_base_is_taken_and_its_pods_are_admitted(
    defined: Path, restricted: str, tmp_path: Path
) -> None:
    found = {case: charts.objects(charts.rendered(case)) for case in charts.cases()}
    made = {f"{case}-pods": list(pods(one, restricted)) for case, one in found.items()}
    counts = {case.removesuffix("-pods"): len(each) for case, each in made.items()}
    expected = {case: 2 + (case == "everything") for case in found}
    assert counts == expected, "the scaler's, the one of helm test, and that of deletion-cost"
    found["base"] = charts.objects(charts.kustomized())
    here = {source: placed(one, restricted) for source, one in found.items()}
    assert "Warning" not in dry_run(defined, tmp_path, here | made)


def test_a_pod_that_is_not_restricted_is_refused_there(
    defined: Path, restricted: str, tmp_path: Path
) -> None:
    loose, *_ = pods(charts.objects(charts.rendered("default")), restricted)
    loose["spec"]["securityContext"]["runAsNonRoot"] = False
    with pytest.raises(AssertionError, match='violates PodSecurity "restricted:latest"'):
        dry_run(defined, tmp_path, {"loose": [loose]})


@pytest.mark.core
def test_every_other_file_and_every_scaled_object_in_a_page_is_taken(
    defined: Path, restricted: str, tmp_path: Path
) -> None:
    """Objects of the HTTP add-on, and of scale targets that no CRD here defines, are left out.

    So are episodes, which only `backtest` reads.
    """
    files = *EXAMPLES.rglob("*.yaml"), *DEPLOY.glob("*.yaml")
    found = {
        str(path.relative_to(charts.ROOT)): [
            one
            for one in charts.objects(path.read_text())
            if not one["apiVersion"].startswith("http.keda.sh/")
        ]
        for path in files
        if path.name != VALUES and path.parent.name != EPISODES
    }
    # A page may have several of one name.
    found |= {
        f"{one.name}-{index}": [one.document]
        for index, one in enumerate(SCALED_OBJECTS)
        if one.document["spec"]["scaleTargetRef"].get("apiVersion", "apps/v1") == "apps/v1"
    }
    here = {source: placed(one, restricted) for source, one in found.items()}
    dry_run(defined, tmp_path, here)


def test_what_check_says_that_the_api_server_refuses_is_refused(kubeconfig: Path) -> None:
    """Kubectl goes on after a refusal, so the last two, which are right, are taken alone.

    It ends at a document that it cannot read itself.
    """
    wrong = [
        changed(OTHERS, (before, after))
        for rule, before, after, _ in REFUSED
        if rule in {"unknown-field", "wrong-type", "refused-value"}
        and after not in {"", "null", ".inf"}
    ]
    named = [text.replace("name: web\n", f"name: w{n}\n", 1) for n, text in enumerate(wrong)]
    named += [HPA.format(f"h{n}", behavior) for n, (_, behavior, _) in enumerate(OF_THE_HPA)]
    right = HPA.format("right", "scaleDown: {stabilizationWindowSeconds: 3600}")
    done = subprocess.run(
        [
            programs.path("kubectl"),
            f"--kubeconfig={kubeconfig}",
            "apply",
            "--dry-run=server",
            "-f-",
        ],
        input="\n---\n".join([*named, right, OTHERS]),
        capture_output=True,
        check=False,
        text=True,
        timeout=_SECONDS,
    )
    assert done.stdout.splitlines() == [
        "horizontalpodautoscaler.autoscaling/right created (server dry run)",
        "scaledobject.keda.sh/web created (server dry run)",
    ]
