"""What the chart makes for Prometheus and Grafana; the golden files show the rest."""

import pytest
import yaml

from testbed import charts
from testbed.charts import Object
from tests.repository import test_alerts, test_dashboard
from tests.repository.chart import shapes

pytestmark = pytest.mark.needs("helm")

RULE = "metrics.prometheusRule"


def made(*values: str) -> shapes.Release:
    """Return a release with all of `metrics` enabled but the PodMonitor, and these values."""
    kinds = ("metrics.serviceMonitor", RULE, "metrics.dashboard")
    on = [f"{kind}.enabled=true" for kind in kinds]
    flags = [word for each in (*on, *values) for word in ("--set", each)]
    return shapes.Release(tuple(charts.objects(charts.template(*flags))))


def alerts(release: shapes.Release) -> dict[str, Object]:
    groups = release.the("PrometheusRule")["spec"]["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_the_service_monitor_finds_the_http_service_and_no_other() -> None:
    release = made()
    wanted = release.the("ServiceMonitor")["spec"]["selector"]["matchLabels"].items()
    found = [each for each in release.of("Service") if wanted <= each["metadata"]["labels"].items()]
    assert found == [release.the("Service", "-http")]


def test_a_pod_monitor_finds_the_scaler_s_pods_and_a_port_of_theirs() -> None:
    release = shapes.Release(
        tuple(charts.objects(charts.template("--set=metrics.podMonitor.enabled=true")))
    )
    spec = release.the("PodMonitor")["spec"]
    assert spec["selector"]["matchLabels"].items() <= release.pod["metadata"]["labels"].items()
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["port"] in {port["name"] for port in release.container["ports"]}


def test_the_rule_has_the_alerts_of_the_file_as_they_are() -> None:
    assert alerts(made(f"{RULE}.runbookBaseUrl=")) == test_alerts.rules()


def test_alerts_can_be_left_out_labelled_and_linked() -> None:
    page = "https://docs.example.com/observability/"
    found = alerts(
        made(
            f"{RULE}.disabledAlerts={{KedaGpuScalerDown}}",
            f"{RULE}.alertLabels.team=gpu",
            f"{RULE}.runbookBaseUrl={page}",
        )
    )
    assert found.keys() == test_alerts.rules().keys() - {"KedaGpuScalerDown"}
    source = found["KedaGpuScalerSourceDown"]
    assert source["labels"] == {"severity": "critical", "team": "gpu"}
    assert source["annotations"]["runbook_url"] == f"{page}#kedagpuscalersourcedown"


def test_to_leave_out_an_alert_that_does_not_exist_is_refused() -> None:
    flags = (f"--set={RULE}.enabled=true", f"--set={RULE}.disabledAlerts={{KedaGpuScalerDow}}")
    told = charts.refusal(*flags)
    assert "disabledAlerts: KedaGpuScalerDow is no alert; there are KedaGpuScalerDown," in told


def test_the_dashboard_is_the_file() -> None:
    found = made().the("ConfigMap", "-dashboard")
    assert yaml.safe_load(found["data"]["keda-gpu-scaler.json"]) == test_dashboard.dashboard()
