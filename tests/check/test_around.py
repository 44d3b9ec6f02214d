"""KEDA's other fields beside a trigger, and the way to the scaler."""

import re

import pytest

from tests.check.cases import SLEEPS, STAYS, Place, changed, found, text

TYPE = "    - type: external\n"
ADDRESS = "keda-gpu-scaler.keda.svc:6000"
FALLBACK = "  fallback:\n    failureThreshold: 3\n    replicas: {}\n  triggers:\n"
SERVICE = text("cluster-ip-address", "fail")
HEADED = SERVICE.replace("  # finds cluster-ip-address", "")


def rules(source: str) -> set[str]:
    return {place.rule for place in found(source)}


def test_a_polling_interval_counts_where_keda_polls() -> None:
    polled = changed(STAYS, ("  minReplicaCount", "  pollingInterval: 5\n  minReplicaCount"))
    assert rules(polled) == {"polling-without-effect"}
    cached = changed(polled, (TYPE, f"{TYPE}      useCachedMetrics: true\n"))
    assert rules(cached) == {"cached-metrics"}
    formula = "  advanced: {scalingModifiers: {formula: a, target: '1'}}\n  triggers:\n"
    assert rules(changed(polled, ("  triggers:\n", formula))) == set()


def test_a_fallback_is_for_errors_of_another_trigger_as_well() -> None:
    cron = "    - type: cron\n      metadata: {timezone: UTC}\n"
    cpu = "    - type: cpu\n      metadata: {value: '50'}\n"
    source = changed(STAYS, ("  triggers:\n", FALLBACK.format(4)))
    assert rules(source + cron) == set()
    assert rules(source + cpu) == {"unused-fallback"}
    assert rules(source + "        onUnknown: zero\n") == {"unused-fallback"}


@pytest.mark.parametrize("unknown", ["hold", "zero"])
def test_a_fallback_of_no_replicas_lets_a_workload_go_while_no_scaler_answers(unknown: str) -> None:
    """KEDA's part of it is tested with KEDA itself."""
    sleeps = changed(SLEEPS, ("  triggers:\n", FALLBACK.format(0)))
    asked = f"        onUnknown: {unknown}\n"
    assert "fallback-to-zero" in rules(sleeps + asked)
    assert "unused-fallback" not in rules(sleeps + asked)
    stays = changed(STAYS, ("  triggers:\n", FALLBACK.format(0)))
    assert rules(stays + asked) == {"unused-fallback"}
    idles = changed(stays, ("  minReplicaCount", "  idleReplicaCount: 0\n  minReplicaCount"))
    assert "fallback-to-zero" in rules(idles + asked)


def test_a_fallback_whose_errors_the_environment_decides_is_judged_by_its_replicas() -> None:
    from_env = "        onUnknownFromEnv: ON_UNKNOWN\n"
    assert rules(changed(STAYS, ("  triggers:\n", FALLBACK.format(8))) + from_env) == set()
    assert found(changed(STAYS, ("  triggers:\n", FALLBACK.format(4))) + from_env) == [
        Place(11, "fallback-scales-in")
    ]


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("10.0.0.7:6000", {"cluster-ip-address"}),
        ("'[fd00::7]:6000'", {"cluster-ip-address"}),
        (ADDRESS, {"cluster-ip-address"}),
        ("dns:///keda-gpu-scaler.keda:6000", {"cluster-ip-address"}),
        ("keda-gpu-scaler.keda.svc.cluster.local:6000", {"cluster-ip-address"}),
        ("keda-gpu-scaler.keda.example.com:6000", set()),
        ("keda-gpu-scaler:6000", set()),
        ("keda-gpu-scaler.other:6000", set()),
    ],
)
def test_an_address_is_that_of_a_service_in_the_texts(address: str, rule: set[str]) -> None:
    assert rules(changed(HEADED, (ADDRESS, address))) == rule


def test_a_service_with_one_replica_or_another_name_behind_it_is_left_alone() -> None:
    assert rules(changed(HEADED, ("replicas: 2", "replicas: 1"))) == set()
    assert rules(changed(HEADED, ("  replicas: 2\n", ""))) == set()
    external = changed(HEADED, ("  selector:", "  type: ExternalName\n  selector:"))
    assert rules(external) == set()


def test_a_service_whose_replicas_are_not_in_the_texts_may_have_several() -> None:
    before, _, _ = HEADED.rpartition("---\n")
    assert rules(before) == {"cluster-ip-address"}
    selector = "  selector:\n    app: keda-gpu-scaler\n"
    assert rules(changed(before, (selector, "  type: ClusterIP\n"))) == {"cluster-ip-address"}


def test_authentication_that_no_trigger_of_ours_uses_is_left_alone() -> None:
    half = text("half-client-certificate", "fail")
    assert rules(half) == {"half-client-certificate"}
    assert rules(changed(half, ("        name: gpu-scaler-tls", "        name: another"))) == set()
    elsewhere = "name: gpu-scaler-tls\n  namespace: elsewhere\nspec:"
    now = "name: gpu-scaler-tls\n  namespace: inference\nspec:"
    assert rules(changed(half, (now, elsewhere))) == set()


def test_an_authentication_of_the_cluster_is_used_from_everywhere() -> None:
    half = changed(
        text("half-client-certificate", "fail"),
        ("kind: TriggerAuthentication", "kind: ClusterTriggerAuthentication"),
        ("  name: gpu-scaler-tls\n  namespace: inference\n", "  name: gpu-scaler-tls\n"),
    )
    assert rules(half) == set()
    reference = "        name: gpu-scaler-tls\n"
    kind = "        kind: ClusterTriggerAuthentication\n"
    assert rules(changed(half, (reference, reference + kind))) == {"half-client-certificate"}


def test_every_trigger_of_a_job_that_is_ours_is_found() -> None:
    job = text("scaled-job", "fail")
    _, _, trigger = job.partition("  triggers:\n")
    assert [place.rule for place in found(job + trigger)] == ["scaled-job", "scaled-job"]


def test_the_other_half_of_a_certificate_is_missing_too() -> None:
    half = text("half-client-certificate", "fail")
    key = half.replace("tlsClientCert  #", "tlsClientKey  #")
    assert rules(key) == {"half-client-certificate"}


@pytest.mark.parametrize("key", ["demandPreset", "demandPresetFromEnv", "demandQueryFromEnv"])
def test_a_formula_ignores_every_kind_of_demand(key: str) -> None:
    source = changed(text("modifiers-with-demand", "fail"), ("demandQuery: sum", f"{key}: sum"))
    assert "modifiers-with-demand" in {place.rule for place in found(source)}


def test_the_other_half_may_come_from_a_vault() -> None:
    half = text("half-client-certificate", "fail")
    assert rules(f"{half}  hashiCorpVault: {{address: http://vault}}\n") == set()
    assert rules(f"{half}  podIdentity: {{provider: aws}}\n") == {"half-client-certificate"}


def test_parameters_that_a_trigger_of_kedas_own_uses_too_are_used() -> None:
    unused = text("unused-authentication", "fail")
    before, _, rest = unused.partition("  triggers:\n")
    (name,) = re.findall(r"authenticationRef:\s+name: (\S+)", unused)
    other = (
        f"    - type: prometheus\n      authenticationRef: {{name: {name}}}\n      metadata: {{}}\n"
    )
    assert rules(unused) == {"unused-authentication"}
    assert rules(f"{before}  triggers:\n{other}{rest}") == set()
