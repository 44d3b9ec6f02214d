"""What the chart makes for Prometheus and Grafana: monitors, alerts, the dashboard."""

import tomllib

import pytest
import yaml

from tests.repository import test_alerts, test_dashboard
from tests.repository.chart import charts, shapes
from tests.repository.chart.charts import Object

pytestmark = pytest.mark.needs("helm")

MONITORS = {"ServiceMonitor": "endpoints", "PodMonitor": "podMetricsEndpoints"}
SERVICE_MONITOR, POD_MONITOR = MONITORS
EACH_MONITOR = pytest.mark.parametrize("kind", MONITORS)


def value(kind: str) -> str:
    """Return the value of the chart that makes objects of a kind."""
    return f"metrics.{kind[0].lower()}{kind[1:]}"


def made(*values: str, monitor: str = SERVICE_MONITOR) -> shapes.Release:
    """Return a release with all of `metrics` enabled, one of the monitors, and these values."""
    kinds = (value(monitor), "metrics.prometheusRule", "metrics.dashboard")
    on = [f"{kind}.enabled=true" for kind in kinds]
    flags = [word for each in (*on, *values) for word in ("--set", each)]
    return shapes.Release(tuple(charts.objects(charts.template(*flags))))


def endpoint(monitor: Object) -> Object:
    (found,) = monitor["spec"][MONITORS[monitor["kind"]]]
    scraped: Object = found
    return scraped


def alerts(release: shapes.Release) -> dict[str, Object]:
    groups = release.the("PrometheusRule")["spec"]["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_nothing_is_made_unless_it_is_wanted() -> None:
    kinds = {each["kind"] for each in charts.objects(charts.template())}
    assert not kinds & {*MONITORS, "PrometheusRule"}
    assert "grafana_dashboard" not in charts.template()


@EACH_MONITOR
def test_a_monitor_scrapes_the_http_port_and_keeps_the_scaler_s_own_labels(kind: str) -> None:
    scraped = endpoint(made(monitor=kind).the(kind))
    assert scraped == {"port": "http", "path": "/metrics", "scheme": "http", "honorLabels": True}


def test_the_service_monitor_finds_the_http_service_and_no_other() -> None:
    release = made()
    wanted = release.the("ServiceMonitor")["spec"]["selector"]["matchLabels"].items()
    found = [each for each in release.of("Service") if wanted <= each["metadata"]["labels"].items()]
    assert found == [release.the("Service", "-http")]


def test_the_pod_monitor_finds_the_scaler_s_pods_and_a_port_of_theirs() -> None:
    release = made(monitor=POD_MONITOR)
    monitor = release.the(POD_MONITOR)
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert wanted <= release.pod["metadata"]["labels"].items()
    ports = {port["name"] for port in release.container["ports"]}
    assert endpoint(monitor)["port"] in ports


@EACH_MONITOR
def test_a_monitor_trusts_the_ca_beside_the_certificate_and_sends_the_token(kind: str) -> None:
    secrets = ("http.tls.existingSecret=web", "http.tokenSecret.name=bearer")
    release = made(*secrets, monitor=kind)
    scraped = endpoint(release.the(kind))
    service = release.the("Service", "-http")["metadata"]
    assert scraped["scheme"] == "https"
    assert scraped["tlsConfig"] == {
        "serverName": f"{service['name']}.{service['namespace']}.svc",
        "ca": {"secret": {"name": "web", "key": "ca.crt"}},
    }
    assert scraped["authorization"] == {"credentials": {"name": "bearer", "key": "token"}}


@EACH_MONITOR
def test_how_the_certificate_is_checked_can_be_said_otherwise(kind: str) -> None:
    release = made(
        "http.tls.existingSecret=web",
        f"{value(kind)}.tlsConfig.serverName=scaler.example.com",
        f"{value(kind)}.interval=15s",
        f"{value(kind)}.labels.release=prometheus",
        monitor=kind,
    )
    scraped = endpoint(release.the(kind))
    assert scraped["tlsConfig"] == {"serverName": "scaler.example.com"}
    assert scraped["interval"] == "15s"
    assert release.the(kind)["metadata"]["labels"]["release"] == "prometheus"


def test_the_rule_has_the_alerts_of_the_file_as_they_are() -> None:
    assert alerts(made("metrics.prometheusRule.runbookBaseUrl=")) == test_alerts.rules()


def test_by_default_alerts_link_to_the_page_of_the_project() -> None:
    project = tomllib.loads((charts.ROOT / "pyproject.toml").read_text())["project"]
    page = f"{project['urls']['Source']}/blob/main/docs/observability.md"
    links = {name: rule["annotations"]["runbook_url"] for name, rule in alerts(made()).items()}
    assert links == {name: f"{page}#{name.lower()}" for name in links}


def test_alerts_can_be_left_out_labelled_and_linked() -> None:
    rule = "metrics.prometheusRule"
    found = alerts(
        made(
            f"{rule}.disabledAlerts={{KedaGpuScalerDown}}",
            f"{rule}.alertLabels.team=gpu",
            f"{rule}.runbookBaseUrl=https://docs.example.com/observability/",
        )
    )
    assert found.keys() == test_alerts.rules().keys() - {"KedaGpuScalerDown"}
    source = found["KedaGpuScalerSourceDown"]
    assert source["labels"] == {"severity": "critical", "team": "gpu"}
    page = "https://docs.example.com/observability/"
    assert source["annotations"]["runbook_url"] == f"{page}#kedagpuscalersourcedown"


def test_a_severity_of_your_own_replaces_the_alert_s() -> None:
    found = alerts(made("metrics.prometheusRule.alertLabels.severity=page"))
    assert {rule["labels"]["severity"] for rule in found.values()} == {"page"}


def test_to_leave_out_an_alert_that_does_not_exist_is_refused() -> None:
    rule = "metrics.prometheusRule"
    flags = (
        "--set",
        f"{rule}.enabled=true",
        "--set",
        f"{rule}.disabledAlerts={{KedaGpuScalerDow}}",
    )
    told = charts.refusal(*flags)
    assert "disabledAlerts: KedaGpuScalerDow is no alert; there are KedaGpuScalerDown," in told


def test_the_dashboard_is_the_file_in_a_config_map_that_the_sidecar_finds() -> None:
    release = made("metrics.dashboard.annotations.grafana_folder=GPUs")
    found = release.the("ConfigMap", "-dashboard")
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["metadata"]["annotations"] == {"grafana_folder": "GPUs"}
    assert found["data"] == {"keda-gpu-scaler.json": test_dashboard.DASHBOARD.read_text()[:-1]}
    assert yaml.safe_load(found["data"]["keda-gpu-scaler.json"]) == test_dashboard.dashboard()
