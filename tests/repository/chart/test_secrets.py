"""A setting that other values decide is refused as a variable, a secret where many can see it."""

import json

import pytest

from testbed import charts

pytestmark = pytest.mark.needs("helm")


def _set(*values: str) -> list[str]:
    return [word for value in values for word in ("--set", value)]


@pytest.mark.parametrize("name", sorted(charts.decided()))
def test_what_other_values_decide_is_no_variable_even_while_they_are_off(name: str) -> None:
    """Else a variable could open a port without TLS, or one that no Service leads to."""
    variable = f"KEDA_GPU_SCALER_{name.upper()}"
    refusal = charts.refusal(*_set(f"extraEnv[0].name={variable}", "extraEnv[0].value=x"))
    assert f"extraEnv has {variable}, which the chart sets itself: " in refusal
    assert f"settings.{name}: " in charts.refusal(*_set(f"settings.{name}=x"))


SHOWN = [
    ("KEDA_GPU_SCALER_PROMETHEUS_PASSWORD", "x", "is a secret, and the Deployment shows it"),
    ("KEDA_GPU_SCALER_PROMETHEUS_BEARER_TOKEN", "x", "is a secret, and the Deployment shows it"),
    ("KEDA_GPU_SCALER_PROMETHEUS_HEADERS", "X-Api-Key=x", "has the header X-Api-Key, which may"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=x", "has the header api-key, which may be a secret"),
    ("KEDA_GPU_SCALER_PROMETHEUS_URL", "http://a:b@c", "has a user or a password before the @"),
    ("KEDA_GPU_SCALER_SCRAPE_TARGETS", "http://a?token=x", "has the query parameter token, which"),
]


@pytest.mark.parametrize(("name", "value", "message"), SHOWN)
def test_a_secret_written_out_in_a_variable_is_refused(name: str, value: str, message: str) -> None:
    flags = _set(f"extraEnv[0].name={name}", f"extraEnv[0].value={value}")
    assert f"extraEnv: {name} {message}" in charts.refusal(*flags)


def test_a_secret_that_a_variable_takes_from_a_secret_is_not_shown() -> None:
    where = "extraEnv[0].valueFrom.secretKeyRef"
    for name, *_ in SHOWN:
        assert charts.template(
            *_set(f"extraEnv[0].name={name}", f"{where}.name=a", f"{where}.key=b")
        )
    made_of_another = _set(
        "extraEnv[0].name=OTEL_EXPORTER_OTLP_HEADERS", "extraEnv[0].value=api-key=$(KEY)"
    )
    assert charts.template(*made_of_another)


@pytest.mark.parametrize(
    "header",
    ["Authorization", "X-Api-Key", "Own"],
)
def test_a_header_is_a_secret_unless_it_is_known_for_none(header: str) -> None:
    told = f"prometheus_headers has the header {header}, which may be a secret"
    for given in (f"X-Scope-OrgID=ml, {header} =x", json.dumps({header: "x"}), {header: "x"}):
        flags = ("--set-json", f"settings.prometheus_headers={json.dumps(given)}")
        assert told in charts.refusal(*flags)


@pytest.mark.parametrize("header", ["X-Scope-OrgID", "THANOS-TENANT"])
def test_a_header_that_names_a_tenant_may_be_in_the_settings(header: str) -> None:
    assert f"{header}: ml" in charts.template(*_set(f"settings.prometheus_headers.{header}=ml"))


@pytest.mark.parametrize(
    "value",
    [
        "prometheus.url=http://ann:pass@prometheus:9090",
        "settings.prometheus_url=https://ann@prometheus",
        "settings.scrape_targets[0]=http://ann:pass@exporter:9400",
    ],
)
def test_a_password_in_an_address_is_refused_with_what_to_do(value: str) -> None:
    name = value.partition("=")[0].partition("[")[0]
    told = f"{name} has a user or a password before the @, which the scaler refuses: leave them"
    assert told in charts.refusal(*_set(value))


ELSEWHERE = [
    ("settings.scrape_targets", "give the variable KEDA_GPU_SCALER_SCRAPE_TARGETS in `extraEnv`"),
    (
        "settings.sources.a.targets",
        "keep the whole settings file in a Secret (settingsSecret.name)",
    ),
]


@pytest.mark.parametrize("name", ["token", "api_key", "Password", "client-secret"])
@pytest.mark.parametrize(("setting", "what_to_do"), ELSEWHERE)
def test_a_secret_in_the_query_of_an_exporter_s_address_is_refused(
    name: str, setting: str, what_to_do: str
) -> None:
    why = f"the query parameter {name}, which may be a secret, and a ConfigMap shows it to many"
    address = f"http://a:9400/metrics?module=gpu&{name}=abc"
    source = ["settings.sources.a.type=scrape"] if "sources" in setting else []
    for given in (f"{setting}=http://b\\,{address}", f"{setting}[0]={address}"):
        told = charts.refusal(*_set(*source, given))
        assert f"{setting} has {why}: {what_to_do}" in told
        assert "abc" not in told


def test_any_other_query_of_an_exporter_s_address_may_be_in_the_settings() -> None:
    target = "http://a:9400/token?module=gpu&target=key"
    assert target in charts.template(*_set(f"settings.scrape_targets={target}"))
