"""What the chart installs fits together, and fits the scaler."""

import re
import tomllib

import pytest
import typer
from prometheus_client import CollectorRegistry
from starlette.routing import Route
from typer.core import TyperCommand, TyperGroup

from keda_gpu_scaler import cli, settings, web
from keda_gpu_scaler.sources.kubernetes import following
from tests.repository.chart import charts, shapes
from tests.repository.chart.charts import ROOT, Object

pytestmark = pytest.mark.needs("helm")

EACH_CASE = pytest.mark.parametrize("case", charts.cases())
OWN = ["tls.existingSecret=a", "tls.client.existingSecret=b"]
MANAGED = ["tls.certManager.enabled=true", "tls.certManager.issuerRef.name=ca"]


def _labels(template: Object) -> set[tuple[str, str]]:
    return set(template["metadata"]["labels"].items())


@EACH_CASE
def test_every_selector_finds_the_scaler_s_pods_and_not_the_test_s(case: str) -> None:
    found = shapes.release(case)
    (test,) = found.of("Pod")
    selectors = [one["spec"]["selector"] for one in found.of("Service")]
    budget, policy = found.of("PodDisruptionBudget"), found.of("NetworkPolicy")
    selectors += [
        one["spec"]["selector"]["matchLabels"] for one in (*budget, found.the("Deployment"))
    ]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for one in policy]
    assert len(selectors) == 5
    for selector in selectors:
        assert set(selector.items()) <= _labels(found.pod)
        assert not set(selector.items()) <= _labels(test)


@EACH_CASE
def test_ports_are_those_that_the_scaler_listens_on(case: str) -> None:
    found = shapes.release(case)
    ports = {one["name"]: one["containerPort"] for one in found.container["ports"]}
    fields = settings.Settings.model_fields
    assert ports == {name: fields[f"{name}_address"].default.port for name in ("grpc", "http")}
    for service in found.of("Service"):
        (port,) = service["spec"]["ports"]
        assert (port["targetPort"], port["port"]) == (port["name"], ports[port["name"]])
    asked = found.the("Service", "scaler")["spec"]
    headless = {"clusterIP": "None"} if case != "everything" else {"type": "LoadBalancer"}
    assert headless.items() <= asked.items()
    assert asked["ports"][0]["name"] == "grpc"


@EACH_CASE
def test_probes_ask_for_pages_that_exist_on_the_port_as_it_is(case: str) -> None:
    found = shapes.release(case)
    routes = web.create_app(CollectorRegistry(), is_ready=lambda: True).routes
    pages = {one.path for one in routes if isinstance(one, Route)}
    probes = [found.container[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")]
    asked = [probe["httpGet"] for probe in probes if "httpGet" in probe]
    assert {one["path"] for one in asked} <= pages
    scheme = "HTTPS" if "KEDA_GPU_SCALER_HTTP_CERT_FILE" in found.variables else "HTTP"
    assert {one["scheme"] for one in asked} <= {scheme}
    # The kubelet's gRPC probe speaks no TLS.
    by_grpc = "KEDA_GPU_SCALER_GRPC_CERT_FILE" not in found.variables
    assert ["grpc" in probe for probe in probes] == [by_grpc] * 3


@EACH_CASE
def test_commands_are_the_scaler_s(case: str) -> None:
    found = shapes.release(case)
    (test,) = found.of("Pod")
    (prober,) = test["spec"]["containers"]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    for container, command in ((found.container, "serve"), (prober, "probe")):
        assert [name for name in container["command"] if name not in scripts] == []
        assert container["args"][0] == command
        assert command in cli.COMMANDS
    known = {name for parameter in _command("probe").params for name in parameter.opts}
    flags = {word.partition("=")[0] for word in prober["args"] if word.startswith("--")}
    assert flags <= known
    # No workload has been measured yet, and no source is needed for a release to be well.
    assert "--spec-only" in flags


def _command(name: str) -> TyperCommand:
    group = typer.main.get_command(cli.app)
    assert isinstance(group, TyperGroup)
    _, found, _ = group.resolve_command(typer.Context(group), [name])
    assert isinstance(found, TyperCommand)
    return found


@EACH_CASE
def test_a_pod_is_given_longer_to_end_than_the_scaler_takes(case: str) -> None:
    found = shapes.release(case)
    grace = int(found.variables["KEDA_GPU_SCALER_SHUTDOWN_GRACE"].removesuffix("s"))
    assert found.pod["spec"]["terminationGracePeriodSeconds"] > grace + 5


@EACH_CASE
def test_a_token_is_there_only_where_the_kubernetes_api_is_asked(case: str) -> None:
    found = shapes.release(case)
    asks = "KEDA_GPU_SCALER_KUBERNETES" in found.variables
    assert found.pod["spec"]["automountServiceAccountToken"] is asks
    assert found.the("ServiceAccount")["automountServiceAccountToken"] is (case == "everything")
    assert [bool(found.of(kind)) for kind in ("ClusterRole", "ClusterRoleBinding")] == [asks] * 2
    assert found.pod["spec"]["enableServiceLinks"] is False


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
    (subject,) = found.the("ClusterRoleBinding")["subjects"]
    account = found.the("ServiceAccount")["metadata"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])


@pytest.mark.parametrize("case", ["mtls", "cert-manager", "everything"])
def test_keda_is_given_the_pair_that_is_made_for_it_and_the_scaler_its_own(case: str) -> None:
    found = shapes.release(case)
    secrets = found.the("ClusterTriggerAuthentication")["spec"]["secretTargetRef"]
    assert {one["parameter"]: one["key"] for one in secrets} == {
        "caCert": "ca.crt",
        "tlsClientCert": "tls.crt",
        "tlsClientKey": "tls.key",
    }
    made = {one["spec"]["secretName"]: one for one in found.of("Certificate")}
    volumes = {one["name"]: one for one in found.pod["spec"]["volumes"]}
    own, its = volumes["grpc-tls"]["secret"]["secretName"], secrets[0]["name"]
    assert own != its
    if case == "mtls":
        assert not made
        return
    assert made.keys() == {own, its}
    hours = {name: _hours(one["spec"]) for name, one in made.items()}
    assert all(renewed < whole for whole, renewed in hours.values())
    # KEDA's streams take up a renewed one only when the operator restarts.
    assert hours[its] > hours[own]
    host, _ = _address(found).split(":")
    assert host in made[own]["spec"]["dnsNames"]
    assert made[its]["metadata"]["namespace"] == (
        "keda" if case == "cert-manager" else "autoscaling"
    )


def _hours(certificate: Object) -> tuple[int, int]:
    whole, renewed = (certificate[key] for key in ("duration", "renewBefore"))
    return int(whole.removesuffix("h")), int(renewed.removesuffix("h"))


def _address(found: shapes.Release) -> str:
    (test,) = found.of("Pod")
    address: str = test["spec"]["containers"][0]["args"][1]
    return address


@pytest.mark.parametrize(
    ("values", "secret"),
    [
        (OWN, "b"),
        ([*OWN, "keda.namespace=other", "test.clientSecret=c"], "c"),
        (MANAGED, "scaler-client"),
        ([*MANAGED, "keda.namespace=other"], "scaler-tls"),
    ],
)
def test_the_test_knows_the_scaler_by_the_ca_of_its_certificate(
    values: list[str], secret: str
) -> None:
    flags = [f"--set={value}" for value in ("tls.enabled=true", *values)]
    (test,) = (one for one in charts.objects(charts.template(*flags)) if one["kind"] == "Pod")
    (volume,) = test["spec"]["volumes"]
    assert volume["secret"]["secretName"].endswith(secret)


@EACH_CASE
def test_the_test_asks_where_keda_asks(case: str) -> None:
    found = shapes.release(case)
    service = found.the("Service", "scaler")
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    assert _address(found) == f"{name}.{namespace}.svc:{service['spec']['ports'][0]['port']}"


def test_a_changed_setting_rolls_the_pods_out_and_another_value_does_not() -> None:
    def checksum(*flags: str) -> str:
        (deployment,) = (
            one for one in charts.objects(charts.template(*flags)) if one["kind"] == "Deployment"
        )
        annotations: dict[str, str] = deployment["spec"]["template"]["metadata"]["annotations"]
        return annotations["checksum/settings"]

    assert checksum() == checksum("--set", "service.annotations.a=b")
    assert checksum() != checksum("--set", "settings.log_level=debug")


def test_a_label_of_keda_s_operator_can_be_taken_away() -> None:
    (policy,) = (
        one
        for one in charts.objects(charts.template("--set", "keda.podSelector.app=null"))
        if one["kind"] == "NetworkPolicy"
    )
    assert policy["spec"]["ingress"][0]["from"][0].keys() == {"namespaceSelector"}


def test_names_stay_short_enough_for_services() -> None:
    found = charts.objects(charts.template(release="r" * 53))
    names = [one["metadata"]["name"] for one in found]
    assert max(map(len, names)) <= 63
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) for name in names)


def test_two_releases_of_one_name_share_nothing_of_the_whole_cluster_but_what_triggers_name() -> (
    None
):
    def made(namespace: str) -> set[tuple[str, str]]:
        values = str(charts.values("everything"))
        name = ("--set", "fullnameOverride=gpu-scaler", "--set", "keda.namespace=autoscaling")
        at_home = [
            f"--set=metrics.{one}.namespace=" for one in ("serviceMonitor", "prometheusRule")
        ]
        flags = ("--values", values, *name, *at_home)
        found = charts.objects(charts.template(*flags, namespace=namespace))
        return {
            (one["kind"], one["metadata"]["name"])
            for one in found
            if one["metadata"].get("namespace") != namespace and one["kind"] != "ConfigMap"
        }

    shared = {("ClusterTriggerAuthentication", "gpu-scaler"), ("Certificate", "gpu-scaler-client")}
    assert made("one") & made("two") == shared


@EACH_CASE
def test_names_are_known_to_be_of_one_namespace(case: str) -> None:
    """Objects without a namespace of their own take the one given to kubectl apply."""
    found = shapes.release(case)
    everywhere = {"ClusterRole", "ClusterRoleBinding", "ClusterTriggerAuthentication"}
    everywhere |= {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    without = {one["kind"] for one in found.objects if "namespace" not in one["metadata"]}
    extra = {"ConfigMap"} if case == "everything" else set()
    assert without <= everywhere | extra
