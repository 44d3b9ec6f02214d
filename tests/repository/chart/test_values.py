"""Values that do not work are refused, by a message that names them and says what to do."""

import json

import pytest
import yaml

from tests.repository.chart import charts, comments, schema

TLS = ["tls.enabled=true", "tls.existingSecret=a", "tls.client.existingSecret=b"]
A = "settings.sources.a"
MANAGED = ["tls.enabled=true", "tls.certManager.enabled=true"]


def _set(*values: str) -> list[str]:
    return [word for value in values for word in ("--set", value)]


@pytest.mark.needs("helm")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("replicacount=2", "additional properties 'replicacount' not allowed"),
        ("image.tagg=1", "at '/image': additional properties 'tagg' not allowed"),
        ("image.digest=latest", "at '/image/digest': 'latest' does not match pattern"),
        ("replicaCount=two", "at '/replicaCount': got string, want integer"),
        ("tls.certmanager.enabled=true", "at '/tls': additional properties 'certmanager'"),
        ("tls.certManager.issuerRef.nam=ca", "additional properties 'nam' not allowed"),
        ("networkPolicy.egres.enabled=true", "additional properties 'egres' not allowed"),
        (
            "prometheus.url=prometheus:9090",
            "at '/prometheus/url': 'prometheus:9090' does not match",
        ),
        ("settings.log_levl=debug", "at '/settings': additional properties 'log_levl' not allowed"),
        ("settings.log_level=loud", "must be one of 'debug', 'info', 'warning', 'error'"),
        ("settings.sources.edge.url=http://a", "'/settings/sources/edge': missing property 'type'"),
        ("settings.sources.edge.type=thanos", "one of 'prometheus', 'scrape', 'influxdb'"),
        ("settings.sources.edge.type=prometheus", "missing property 'url'"),
        ("keda.podSelector.app=1", "at '/keda/podSelector/app': got number, want string"),
    ],
)
def test_a_typo_is_refused_by_a_message_that_names_it(value: str, message: str) -> None:
    assert message in charts.refusal("--set", value)


@pytest.mark.needs("helm")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (TLS[:1], "tls.enabled needs a certificate: set tls.existingSecret"),
        (TLS[:2], "a Secret in the namespace keda with ca.crt, tls.crt and tls.key"),
        ([*TLS[:2], "tls.clientCertificates=false"], "the namespace keda with ca.crt\n"),
        (
            TLS[1:2],
            "tls.enabled is false, and other values of tls are set: set tls.enabled to true",
        ),
        ([f"{MANAGED[0]}", "tls.certManager.client.duration=1y"], "does not match pattern"),
        (MANAGED, "needs an issuer: set tls.certManager.issuerRef.name"),
        ([*TLS, *MANAGED], "leave out tls.existingSecret and tls.client.existingSecret, or"),
        (
            [*MANAGED, "tls.certManager.issuerRef.kind=Issuer", "keda.namespace=other"],
            "the certificates are for keda and other: use a ClusterIssuer",
        ),
        (
            [*TLS, "keda.namespace=other"],
            "the CA of the scaler's certificate, and tls.crt and tls.key, a pair",
        ),
        (
            [*TLS, "keda.namespace=other", "tls.clientCertificates=false"],
            "with ca.crt, the CA of the scaler's certificate\n",
        ),
        (["test.clientSecret=a"], "test.clientSecret is set, and tls.enabled is false"),
        (
            ["http.namespaceTokensSecret=a"],
            "http.namespaceTokensSecret needs a token for everything else: set http.tokenSecret",
        ),
        (["webhook.enabled=true"], "webhook.enabled needs a token: set webhook.tokenSecret.name"),
        (["webhook.tokenSecret.name=a"], "and webhook.enabled is false: set it to true"),
        (
            ["metrics.serviceMonitor.enabled=true", "metrics.podMonitor.enabled=true"],
            "both would scrape every replica",
        ),
        (["traces.enabled=true"], "traces.enabled needs a collector: set traces.endpoint"),
        (["traces.endpoint=http://a:4317"], "traces.enabled is false: set it to true"),
        (["networkPolicy.egress.enabled=true"], "set networkPolicy.egress.to to the sources"),
        (
            ["networkPolicy.egress.enabled=true", "networkPolicy.enabled=false"],
            "networkPolicy.enabled is false: set both, or none",
        ),
        (
            ["kubernetesApi.enabled=true", "serviceAccount.create=false"],
            "its role to the service account `default`: set serviceAccount.name",
        ),
        (
            ["settings.prometheus_headers=Authorization=Basic eA=="],
            "which may be a secret, and a ConfigMap shows it to many: give the variable KEDA_GPU",
        ),
        (
            [
                "settings.sources.a.type=prometheus",
                "settings.sources.a.url=http://a",
                "settings.sources.a.headers.authorization=x",
            ],
            "settings.sources.a.headers has the header authorization, which may be a secret, and a",
        ),
        (["settings.log_level=debug", "settingsSecret.name=a"], "there is one settings file"),
        (["extraEnv[0].name=KEDA_GPU_SCALER_CONFIG"], "itself: leave it out, and set settings,"),
        (
            ["extraEnv[0].name=KEDA_GPU_SCALER_SHUTDOWN_GRACE"],
            "itself: set shutdownGraceSeconds, which",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_with_what_to_do(
    values: list[str], message: str
) -> None:
    assert message in charts.refusal(*_set(*values))


@pytest.mark.needs("helm")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (TLS, "is in the namespace of the release: set keda.namespace to that of KEDA"),
        (["admissionPolicy.enabled=true"], "which addresses are the scaler's: set keda.namespace"),
    ],
    ids=["test", "policy"],
)
def test_the_namespace_of_keda_is_asked_for_where_the_wrong_one_would_break_something(
    values: list[str], message: str
) -> None:
    assert message in charts.refusal(*_set(*values), namespace="scaler")
    assert charts.template(*_set(*values))
    for namespace in ("keda", "scaler"):
        given = _set(*values, f"keda.namespace={namespace}")
        assert charts.template(*given, namespace=namespace)


@pytest.mark.needs("helm")
def test_every_mistake_is_told_at_once() -> None:
    told = charts.refusal(*_set("webhook.enabled=true", "traces.enabled=true", TLS[0]))
    assert told.count("\n- ") == 4


@pytest.mark.needs("helm")
def test_a_release_inside_a_bigger_chart_takes_what_helm_hands_to_all() -> None:
    assert charts.template("--set", "global.region=eu")


def _set_in(value: object, path: str) -> bool:
    for step in path.split("."):
        if not isinstance(value, dict) or step not in value:
            return False
        value = value[step]
    return True


def test_the_cases_leave_no_value_out() -> None:
    given = [yaml.safe_load(charts.values(case).read_text()) for case in charts.cases()]
    paths = [one.path for one in comments.values()]
    without = {"serviceAccount.create", "settingsSecret.name", "settingsSecret.key"}
    only_on = {path for path in paths if path.endswith(("podDisruptionBudget.enabled",))}
    only_on |= {"networkPolicy.enabled"}
    left = [path for path in paths if not any(_set_in(one, path) for one in given)]
    assert set(left) == without | only_on


@pytest.mark.needs("helm")
def test_what_can_be_left_out_is_left_out() -> None:
    off = ("serviceAccount.create=false", "podDisruptionBudget.enabled=false")
    secret = (
        "settingsSecret.name=file",
        "settingsSecret.key=all.yaml",
        "networkPolicy.enabled=false",
    )
    found = charts.objects(charts.template(*_set(*off, *secret)))
    assert [one["kind"] for one in found] == ["Service", "Service", "Deployment", "Pod"]
    (deployment,) = (one for one in found if one["kind"] == "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "default"
    assert spec["volumes"][0]["secret"]["secretName"] == "file"
    config, *_ = spec["containers"][0]["env"]
    assert config["value"] == "/etc/keda-gpu-scaler/settings/all.yaml"


def _open(part: object, path: str = "") -> list[str]:
    """Name the maps of a schema that know some of their names and take any other as well."""
    if isinstance(part, list):
        return [name for one in part for name in _open(one, path)]
    if not isinstance(part, dict):
        return []
    is_open = part.get("type") == "object" and "properties" in part
    found = [path] if is_open and "additionalProperties" not in part else []
    return found + [name for key, one in part.items() for name in _open(one, f"{path}/{key}")]


def test_no_map_with_known_names_takes_others() -> None:
    """But Kubernetes' own forms, sources, which are judged by kind, and what other charts share."""
    left = _open(json.loads(schema.SCHEMA.read_text()))
    assert sorted(left) == [
        "/$defs/settings/properties/sources/additionalProperties/allOf",
        "/$defs/variables/items",
        "/properties/global",
    ]
