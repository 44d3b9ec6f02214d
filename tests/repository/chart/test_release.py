"""What the chart installs fits the scaler, KEDA and the cluster; the golden files show the rest."""

import re
import subprocess
import tomllib
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry
from starlette.routing import Route

from keda_gpu_scaler import settings, web
from keda_gpu_scaler.evidence.kubernetes import following
from testbed import charts
from testbed.charts import ROOT
from tests.repository.chart import shapes

pytestmark = pytest.mark.needs("helm")

EACH_CASE = pytest.mark.parametrize("case", charts.cases())


@EACH_CASE
def test_every_selector_finds_the_scaler_s_pods_and_not_the_test_s(case: str) -> None:
    found = shapes.release(case)
    selectors = [one["spec"]["selector"] for one in found.of("Service")]
    policies = [one["spec"]["podSelector"] for one in found.of("NetworkPolicy")]
    others = [one["spec"]["selector"] for one in found.of("PodDisruptionBudget")]
    others.append(found.the("Deployment")["spec"]["selector"])
    selectors += [one["matchLabels"] for one in (*policies, *others)]
    # Replicas that exchange alerts behind a LoadBalancer have a Service of their own.
    assert len(selectors) == (6 if case == "everything" else 5)
    for selector in selectors:
        assert selector.items() <= found.pod["metadata"]["labels"].items()
        assert not selector.items() <= found.the("Pod")["metadata"]["labels"].items()


@pytest.mark.parametrize(("case", "service"), [("webhook", "scaler"), ("everything", "peers")])
def test_replicas_find_each_other_by_a_headless_service(case: str, service: str) -> None:
    found = shapes.release(case)
    peers = urlsplit(found.variables["KEDA_GPU_SCALER_WEBHOOK_PEERS"])
    (named,) = (
        one
        for one in found.of("Service")
        if peers.hostname == "{name}.{namespace}.svc".format_map(one["metadata"])
    )
    assert named["metadata"]["labels"]["app.kubernetes.io/component"] == service
    assert named["spec"]["clusterIP"] == "None"


@EACH_CASE
def test_ports_and_probes_are_those_that_the_scaler_has(case: str) -> None:
    found = shapes.release(case)
    ports = {one["name"]: one["containerPort"] for one in found.container["ports"]}
    fields = settings.Settings.model_fields
    assert ports == {name: fields[f"{name}_address"].default.port for name in ("grpc", "http")}
    routes = web.create_app(CollectorRegistry(), is_ready=lambda: True).routes
    pages = {one.path for one in routes if isinstance(one, Route)}
    probes = [found.container[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")]
    assert {probe["httpGet"]["path"] for probe in probes if "httpGet" in probe} <= pages
    # The kubelet's gRPC probe speaks no TLS.
    by_grpc = "KEDA_GPU_SCALER_GRPC_CERT_FILE" not in found.variables
    assert ["grpc" in probe for probe in probes] == [by_grpc] * 3


@EACH_CASE
def test_commands_are_the_scaler_s(case: str) -> None:
    found = shapes.release(case)
    (prober,) = found.the("Pod")["spec"]["containers"]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    for container, command in ((found.container, "serve"), (prober, "probe")):
        assert [name for name in container["command"] if name not in scripts] == []
        assert container["args"][0] == command
    known = {name for parameter in shapes.command("probe").params for name in parameter.opts}
    flags = {word.partition("=")[0] for word in prober["args"] if word.startswith("--")}
    assert flags <= known
    # No workload has been measured yet, and no source is needed for a release to be well.
    assert "--spec-only" in flags


@EACH_CASE
def test_a_pod_is_given_longer_to_end_than_the_scaler_takes(case: str) -> None:
    found = shapes.release(case)
    grace = int(found.variables["KEDA_GPU_SCALER_SHUTDOWN_GRACE"].removesuffix("s"))
    assert found.pod["spec"]["terminationGracePeriodSeconds"] > grace + 5


def test_the_role_reads_what_is_followed_and_the_scale_of_anything_and_no_more() -> None:
    found = shapes.release("kubernetes-evidence")
    rules = found.the("ClusterRole")["rules"]
    allowed = [
        (group, resource, tuple(rule["verbs"]))
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]
    followed = (following.PODS, following.REPLICA_SETS, following.JOBS, following.SCALED_OBJECTS)
    watched = [(one.group, one.plural, ("list", "watch")) for one in followed]
    assert allowed == [*watched, ("*", "*/scale", ("get",))]
    alone = charts.objects((ROOT / "deploy" / "kubernetes-evidence.yaml").read_text())
    assert shapes.Release(tuple(alone)).the("ClusterRole")["rules"] == rules


def test_a_changed_setting_rolls_the_pods_out_and_another_value_does_not() -> None:
    def checksum(*flags: str) -> str:
        made = shapes.Release(tuple(charts.objects(charts.template(*flags))))
        return str(made.pod["metadata"]["annotations"]["checksum/settings"])

    assert checksum() == checksum("--set=service.annotations.a=b")
    assert checksum() != checksum("--set=settings.log_level=debug")


def test_names_stay_short_enough_for_services() -> None:
    found = charts.objects(charts.template(release="r" * 53))
    names = [one["metadata"]["name"] for one in found]
    assert max(map(len, names)) <= 63
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) for name in names)


def test_without_an_image_the_chart_says_how_to_get_one() -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        charts.run("helm", "template", charts.RELEASE, str(charts.CHART))
    told = refused.value.stderr
    assert "image.repository is empty, and no registry has the image: build it with `make" in told


@pytest.mark.parametrize(
    ("values", "namespaces"),
    [((), ["autoscaling", "keda"]), (("--set=keda.namespace=operators",), ["operators"])],
)
def test_keda_is_let_in_from_its_namespace_if_that_is_set_else_from_the_usual_ones(
    values: tuple[str, ...], namespaces: list[str]
) -> None:
    made = charts.objects(charts.template(*values, namespace="autoscaling"))
    (policy,) = shapes.Release(tuple(made)).of("NetworkPolicy")
    peers = [one for one in policy["spec"]["ingress"][0]["from"] if "namespaceSelector" in one]
    assert peers == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "podSelector": {"matchLabels": {"app": "keda-operator"}},
        }
        for namespace in namespaces
    ]


@EACH_CASE
def test_helm_finds_nothing_to_complain_of(case: str) -> None:
    charts.run("helm", "lint", "--strict", "--values", str(charts.values(case)), str(charts.CHART))


def test_only_the_account_of_deletion_cost_may_patch_and_only_pods_of_its_namespaces() -> None:
    found = shapes.release("everything")
    roles = found.of("Role", costs=True)
    assert [role["metadata"]["namespace"] for role in roles] == ["team-a", "team-b"]
    writing = {
        (resource, verb)
        for role in (*roles, *found.of("Role"), *found.of("ClusterRole"))
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in {"get", "list", "watch"}
    }
    assert writing == {("pods", "patch")}
    (account,) = found.of("ServiceAccount", costs=True)
    subjects = [binding["subjects"] for binding in found.of("RoleBinding", costs=True)]
    assert {one["name"] for (one,) in subjects} == {account["metadata"]["name"]}
    assert found.pod["spec"]["serviceAccountName"] != account["metadata"]["name"]


def test_deletion_cost_runs_once_and_takes_no_call_of_keda() -> None:
    found = shapes.release("everything")
    (deployment,) = found.of("Deployment", costs=True)
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    pod = deployment["spec"]["template"]
    container, *_ = pod["spec"]["containers"]
    known = {name for one in shapes.command("deletion-cost").params for name in one.opts}
    command, *flags = container["args"]
    assert command == "deletion-cost"
    assert {flag.partition("=")[0] for flag in flags} == {"--namespace", "--dry-run"} <= known
    variables = {one["name"] for one in container["env"]}
    assert {name for name in variables if "WEBHOOK" in name} == set()
    labels = pod["metadata"]["labels"].items()
    budgets = [one["spec"]["selector"]["matchLabels"] for one in found.of("PodDisruptionBudget")]
    for selector in (*(one["spec"]["selector"] for one in found.of("Service")), *budgets):
        assert not selector.items() <= labels
    (policy,) = found.of("NetworkPolicy", costs=True)
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ([], "deletionCost.enabled needs the namespaces whose pods it may annotate"),
        (["--set=deletionCost.namespaces={ml}", "--kube-version=1.29"], "needs Kubernetes 1.30"),
    ],
)
def test_deletion_cost_needs_namespaces_and_a_policy(flags: list[str], why: str) -> None:
    assert why in charts.refusal("--set=deletionCost.enabled=true", *flags)
