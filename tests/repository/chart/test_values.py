"""Values that do not work are refused, by a message that names them and says what to do."""

import pytest

from testbed import charts

pytestmark = pytest.mark.needs("helm")

TLS = ["tls.enabled=true", "tls.existingSecret=a", "tls.client.existingSecret=b"]
MANAGED = ["tls.enabled=true", "tls.certManager.enabled=true"]
ISSUED = [*MANAGED, "tls.certManager.issuerRef.name=ca"]
LABEL = r"podLabels.app\.kubernetes\.io/"


def _set(*values: str) -> list[str]:
    return [word for value in values for word in ("--set", value)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("replicacount=2", "additional properties 'replicacount' not allowed"),
        ("image.tagg=1", "at '/image': additional properties 'tagg' not allowed"),
        ("image.digest=latest", "at '/image/digest': 'latest' does not match pattern"),
        ("replicaCount=two", "at '/replicaCount': got string, want integer"),
        ("tls.certmanager.enabled=true", "at '/tls': additional properties 'certmanager'"),
        ("tls.certManager.issuerRef.nam=ca", "additional properties 'nam' not allowed"),
        ("settings.log_levl=debug", "at '/settings': additional properties 'log_levl' not allowed"),
        ("settings.log_level=loud", "must be one of 'debug', 'info', 'warning', 'error'"),
        ("settings.sources.edge.url=http://a", "'/settings/sources/edge': missing property 'type'"),
        ("settings.sources.edge.type=thanos", "one of 'prometheus', 'scrape', 'influxdb'"),
        ("settings.sources.edge.type=prometheus", "missing property 'url'"),
        ("keda.podSelector.app=1", "at '/keda/podSelector/app': got number, want string"),
        ("settings.prometheus_step=15", "'/settings/prometheus_step': got number, want string"),
        ("settings.webhook_lifetime=1y", "'/settings/webhook_lifetime': '1y' does not match"),
        ("settings.sources.Edge.type=scrape", "invalid propertyName 'Edge'"),
        ("settings.prometheus_namespace_parameter=query", "/prometheus_namespace_parameter'"),
    ],
)
def test_a_typo_is_refused_by_a_message_that_names_it(value: str, message: str) -> None:
    assert message in charts.refusal("--set", value)


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
        ([TLS[0], "tls.certManager.client.duration=1y"], "does not match pattern"),
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
        ([f"{LABEL}name=x"], "podLabels has app.kubernetes.io/name, by which the Deployment"),
        (["podAnnotations.checksum/settings=x"], "podAnnotations has checksum/settings, by which"),
        (
            ["admissionPolicy.validationActions={Deny,Warn}"],
            "admissionPolicy.validationActions has Deny and Warn, which would say everything twice",
        ),
        (
            [*ISSUED, "tls.certManager.renewBefore=2160h"],
            "tls.certManager.renewBefore is 2160h, which is not before a certificate of 2160h is",
        ),
        (
            [*ISSUED, "tls.certManager.duration=90m", "tls.certManager.renewBefore=1h31m"],
            "set it to less than tls.certManager.duration, such as a third of it",
        ),
        (
            [*ISSUED, "tls.certManager.client.duration=1h"],
            "tls.certManager.client.renewBefore is 4380h, which is not before a certificate of 1h",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_with_what_to_do(
    values: list[str], message: str
) -> None:
    assert message in charts.refusal(*_set(*values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (TLS, "is in the namespace of the release: set keda.namespace to that of KEDA"),
        (["admissionPolicy.enabled=true"], "which addresses are the scaler's: set keda.namespace"),
        (ISSUED, "makes a certificate in the namespace of KEDA: set keda.namespace to it"),
    ],
    ids=["test", "policy", "certificate"],
)
def test_the_namespace_of_keda_is_asked_for_where_the_wrong_one_would_break_something(
    values: list[str], message: str
) -> None:
    assert message in charts.refusal(*_set(*values), namespace="scaler")
    assert charts.template(*_set(*values))
    assert charts.template(*_set(*values, "keda.namespace=scaler"), namespace="scaler")


NO_SCHEME = "which has no scheme: expected http:// or https:// in front of the host; set it to"
MALFORMED = "a host, and an optional port and path, without a space"
BASE = "expected the base URL, as the scaler adds the path of each query; set it to"
EITHER = "http://, https://, dns+http:// or dns+https://"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["prometheus.url=prometheus:9090"], f'prometheus.url is "prometheus:9090", {NO_SCHEME} h'),
        (
            ["prometheus.url="],
            "prometheus.url is empty: expected a URL that begins with http:// or",
        ),
        (["prometheus.url=https:/a"], f'prometheus.url is "https:/a", {NO_SCHEME} https://a\n'),
        (
            ["settings.prometheus_url=a/b"],
            f'settings.prometheus_url is "a/b", {NO_SCHEME} http://a',
        ),
        (
            ["settings.prometheus_url=ftp://a"],
            f"expected http:// or https://, {MALFORMED}, a query",
        ),
        (["settings.prometheus_url=http://a?b=c"], 'settings.prometheus_url is "http://a?***": ex'),
        (["prometheus.url=http://a:9090/api/v1/query/"], f'/query/": {BASE} http://a:9090\n'),
        (
            ["settings.prometheus_url=https://a/b/graph"],
            f'"https://a/b/graph": {BASE} https://a/b\n',
        ),
        (
            [
                *("settings.sources.a.type=influxdb", "settings.sources.a.database=b"),
                "settings.sources.a.url=http://a/graph",
            ],
            f'settings.sources.a.url is "http://a/graph": {BASE} http://a\n',
        ),
        (["settings.prometheus_url=ann:pass@a"], f'"***@a", {NO_SCHEME} http://a\n'),
        (
            ["settings.scrape_targets=http://a:9400\\,b:9400"],
            f'settings.scrape_targets is "b:9400", which has no scheme: expected {EITHER} in front',
        ),
        (["settings.scrape_targets={http://a,b}"], 'settings.scrape_targets[1] is "b", which has'),
        (
            ["settings.sources.a.type=scrape", "settings.sources.a.targets="],
            f"settings.sources.a.targets is empty: expected a URL that begins with {EITHER}; set",
        ),
        (
            ["extraEnv[0].name=KEDA_GPU_SCALER_SCRAPE_TARGETS", "extraEnv[0].value=a:9400"],
            'extraEnv: KEDA_GPU_SCALER_SCRAPE_TARGETS is "a:9400", which has no scheme',
        ),
        (
            ["traces.enabled=true", "traces.endpoint=collector:4317"],
            f'traces.endpoint is "collector:4317", {NO_SCHEME} http://collector:4317',
        ),
    ],
)
def test_a_url_that_is_none_is_refused_with_the_right_one(values: list[str], message: str) -> None:
    told = charts.refusal(*_set(*values))
    assert message in told
    assert "pass" not in told


def test_a_password_is_not_shown_for_the_sake_of_what_follows_the_base_url() -> None:
    told = charts.refusal(*_set("settings.prometheus_url=http://ann:hunter2@a/graph"))
    assert "before the @, which the scaler refuses" in told
    assert "hunter2" not in told


def test_a_url_that_no_source_is_asked_by_may_be_empty() -> None:
    elsewhere = charts.template(*_set("prometheus.url=", "settings.scrape_targets=http://a:9400"))
    assert "prometheus_url" not in elsewhere
    anywhere = charts.template(*_set("prometheus.url=", "extraEnvFrom[0].secretRef.name=source"))
    assert "prometheus_url" not in anywhere
    variable = _set("extraEnv[0].name=KEDA_GPU_SCALER_PROMETHEUS_URL", "extraEnv[0].value=$(URL)")
    assert "$(URL)" in charts.template(*variable)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["maxUnavailable=2"],
            "maxUnavailable is 2, which lets a drain stop all 2 replicas at once",
        ),
        (["maxUnavailable=51%"], "at once: expected fewer than replicaCount; set it to 1"),
        (
            ["minAvailable=0"],
            "minAvailable is 0, which lets a drain stop all 2 replicas at once: ex",
        ),
    ],
)
def test_a_budget_that_lets_all_replicas_go_is_refused(values: list[str], message: str) -> None:
    assert message in charts.refusal(*_set(*(f"podDisruptionBudget.{one}" for one in values)))


@pytest.mark.parametrize(
    "values",
    [
        ["podDisruptionBudget.maxUnavailable=50%"],
        ["podDisruptionBudget.minAvailable=1%"],
        ["podDisruptionBudget.minAvailable=1", "podDisruptionBudget.maxUnavailable=100%"],
        ["podDisruptionBudget.maxUnavailable=2", "replicaCount=3"],
        ["podDisruptionBudget.maxUnavailable=2", "podDisruptionBudget.enabled=false"],
        ["replicaCount=1"],
    ],
)
def test_a_budget_that_keeps_a_replica_or_has_only_one_is_taken(values: list[str]) -> None:
    assert charts.template(*_set(*values))


def test_every_mistake_is_told_at_once() -> None:
    told = charts.refusal(*_set("webhook.enabled=true", "traces.enabled=true", TLS[0]))
    assert told.count("\n- ") == 4


def test_a_certificate_of_the_longest_names_has_no_name_that_is_too_long() -> None:
    """X.509 ends a common name at 64 characters, and cert-manager refuses a longer one."""
    longest = charts.template(
        *_set(*ISSUED, "keda.namespace=keda"), release="a" * 50, namespace="b" * 63
    )
    found = [one for one in charts.objects(longest) if one["kind"] == "Certificate"]
    assert len(found) == 2
    assert all(len(one["spec"].get("commonName", "")) <= 64 for one in found)
    assert f"{'a' * 50}-keda-gpu-scaler"[:50] + f".{'b' * 63}.svc" in found[0]["spec"]["dnsNames"]


def test_a_cluster_without_admission_policies_is_not_given_one() -> None:
    flags = ("--set=admissionPolicy.enabled=true", "--kube-version")
    told = charts.refusal(*flags, "1.29.14")
    assert "admissionPolicy.enabled needs Kubernetes 1.30, and this cluster has v1.29.14" in told
    assert "ValidatingAdmissionPolicy" in charts.template(*flags, "1.30.0-eks-1")
