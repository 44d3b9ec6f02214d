"""What other charts have as well does here what it does there."""

import subprocess
from collections.abc import Iterable
from typing import Any

import pytest

from tests.repository.chart import charts, shapes
from tests.repository.chart.charts import Object

pytestmark = pytest.mark.needs("helm")


def _release(*values: str, namespace: str = charts.NAMESPACE) -> shapes.Release:
    flags = [word for value in values for word in ("--set-json", value)]
    return shapes.Release(tuple(charts.objects(charts.template(*flags, namespace=namespace))))


def _pods(release: shapes.Release) -> list[Object]:
    """Return the specifications of the scaler's pods and of that of `helm test`."""
    return [release.pod["spec"], release.the("Pod")["spec"]]


def _images(release: shapes.Release) -> set[str]:
    return {one["image"] for spec in _pods(release) for one in spec["containers"]}


def _fixed(specs: Iterable[Object]) -> set[str]:
    """Name what gives a user or a group to a pod or to one of its containers."""
    contexts: list[dict[str, Any]] = []
    for spec in specs:
        contexts += [
            spec["securityContext"],
            *(one["securityContext"] for one in spec["containers"]),
        ]
    return {key for one in contexts for key in one if key.startswith(("runAsU", "runAsG", "fsG"))}


def test_without_an_image_the_chart_says_how_to_get_one() -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        charts.run("helm", "template", charts.RELEASE, str(charts.CHART))
    told = refused.value.stderr
    assert "image.repository is empty, and no registry has the image: build it with `make" in told
    assert "set it to keda-gpu-scaler" in told


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ([], "keda-gpu-scaler"),
        (['image.registry="a.example"'], "a.example/keda-gpu-scaler"),
        (['image.registry="a.example/"'], "a.example/keda-gpu-scaler"),
        (['image.registry="a.example"', 'global.imageRegistry="b"'], "b/keda-gpu-scaler"),
    ],
)
def test_a_registry_goes_in_front_and_the_global_one_wins(values: list[str], image: str) -> None:
    (found,) = _images(_release(*values))
    assert found.partition(":")[0] == image


def test_pull_secrets_are_names_or_objects_and_each_is_named_once() -> None:
    release = _release(
        'imagePullSecrets=["a",{"name":"b"}]', 'global.imagePullSecrets=[{"name":"a"},"c"]'
    )
    for spec in _pods(release):
        assert spec["imagePullSecrets"] == [{"name": "a"}, {"name": "c"}, {"name": "b"}]


def test_a_cluster_can_assign_the_users() -> None:
    """As OpenShift does; tests/e2e/test_dry_run.py proves that Pod Security admits such pods."""
    assert _fixed(_pods(shapes.release("default"))) == {"runAsUser", "runAsGroup", "fsGroup"}
    assigned = _pods(shapes.release("openshift"))
    assert _fixed(assigned) == set()
    for spec in assigned:
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True


def test_common_labels_and_annotations_are_on_every_object_and_in_no_selector() -> None:
    release = shapes.release("everything")
    own = [one for one in release.objects if one["metadata"]["name"] != "as-it-is"]
    own = [one for one in own if not one["metadata"]["name"].endswith("-more")]
    assert len(own) > 15
    for one in own:
        assert one["metadata"]["labels"]["example.com/team"] == "platform", one["kind"]
        assert one["metadata"]["annotations"]["example.com/contact"] == "platform", one["kind"]
    assert release.pod["metadata"]["labels"]["example.com/team"] == "platform"
    assert "example.com/team" not in release.the("Deployment")["spec"]["selector"]["matchLabels"]


def test_a_value_s_own_label_and_annotation_win_over_the_common_ones() -> None:
    release = _release(
        'commonLabels={"a":"1"}',
        'commonAnnotations={"a":"1"}',
        'service.labels={"a":"2"}',
        'service.annotations={"a":"2"}',
        'podLabels={"a":"3"}',
    )
    metadata = release.the("Service", "scaler")["metadata"]
    assert (metadata["labels"]["a"], metadata["annotations"]["a"]) == ("2", "2")
    assert release.the("Service", "-http")["metadata"]["labels"]["a"] == "1"
    assert release.pod["metadata"]["labels"]["a"] == "3"


def test_a_strategy_replaces_the_pods_as_it_says() -> None:
    default = _release().the("Deployment")["spec"]
    assert default["revisionHistoryLimit"] == 10
    assert default["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    recreated = _release('deploymentStrategy.type="Recreate"').the("Deployment")["spec"]
    assert recreated["strategy"] == {"type": "Recreate"}


def test_a_probe_keeps_what_it_asks_unless_its_value_says_what_to_ask() -> None:
    own = _release().container
    changed = _release("livenessProbe.periodSeconds=3", "readinessProbe.exec.command=[]").container
    assert changed["livenessProbe"] == {**own["livenessProbe"], "periodSeconds": 3}
    assert changed["readinessProbe"].keys() == {"exec", "periodSeconds", "timeoutSeconds"}
    assert own["livenessProbe"]["grpc"] == own["readinessProbe"]["grpc"] == {"port": 6000}
    assert changed["startupProbe"] == own["startupProbe"]


def test_a_service_that_is_not_headless_has_its_type() -> None:
    release = _release('service.type="LoadBalancer"', 'service.http.type="NodePort"')
    asked = release.the("Service", "scaler")["spec"]
    assert (asked["type"], "clusterIP" in asked) == ("LoadBalancer", False)
    assert release.the("Service", "-http")["spec"]["type"] == "NodePort"


def test_a_budget_has_one_of_the_two() -> None:
    def budget(*values: str) -> Object:
        found: Object = _release(*values).the("PodDisruptionBudget")["spec"]
        return {key: found[key] for key in found if key.startswith(("min", "max"))}

    assert budget() == {"maxUnavailable": 1}
    assert budget("podDisruptionBudget.minAvailable=1") == {"minAvailable": 1}
    assert budget("podDisruptionBudget.minAvailable=0") == {"minAvailable": 0}
    assert budget('podDisruptionBudget.minAvailable="50%"') == {"minAvailable": "50%"}


def test_an_account_s_token_is_mounted_where_it_is_wanted_without_a_role() -> None:
    release = _release("serviceAccount.automount=true")
    assert release.pod["spec"]["automountServiceAccountToken"] is True
    assert release.the("ServiceAccount")["automountServiceAccountToken"] is True
    assert not release.of("ClusterRole")


@pytest.mark.parametrize("monitor", ["serviceMonitor", "podMonitor"])
def test_a_monitor_in_another_namespace_finds_the_release(monitor: str) -> None:
    release = _release(f"metrics.{monitor}.enabled=true", f'metrics.{monitor}.namespace="mon"')
    found = release.the(f"{monitor[0].upper()}{monitor[1:]}")
    assert found["metadata"]["namespace"] == "mon"
    assert found["spec"]["namespaceSelector"] == {"matchNames": [charts.NAMESPACE]}


def _let_in(*values: str, namespace: str) -> list[str]:
    (policy,) = _release(*values, namespace=namespace).of("NetworkPolicy")
    peers = policy["spec"]["ingress"][0]["from"]
    named = [one["namespaceSelector"]["matchLabels"] for one in peers if "namespaceSelector" in one]
    operators = [one["podSelector"]["matchLabels"] for one in peers if "namespaceSelector" in one]
    assert operators == [{"app": "keda-operator"}] * len(named)
    return [one["kubernetes.io/metadata.name"] for one in named]


def test_keda_is_let_in_from_the_release_s_namespace_and_from_its_old_default() -> None:
    """Else an upgrade of a release in another namespace would cut KEDA off."""
    assert _let_in(namespace="keda") == ["keda"]
    assert _let_in(namespace="autoscaling") == ["autoscaling", "keda"]
    assert _let_in('keda.namespace="operators"', namespace="autoscaling") == ["operators"]


def test_a_certificate_is_not_made_in_a_namespace_that_was_not_named() -> None:
    manager = (
        "--set=tls.enabled=true,tls.certManager.enabled=true,tls.certManager.issuerRef.name=ca"
    )
    told = charts.refusal(manager, namespace="autoscaling")
    assert "makes a certificate in the namespace of KEDA: set keda.namespace to it" in told
    assert charts.template(manager, namespace="keda")
    assert charts.template(manager, "--set=keda.namespace=keda", namespace="autoscaling")
