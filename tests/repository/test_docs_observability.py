"""The page on observability: what it names exists, and what it shows is accepted."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.repository import test_alerts, test_dashboard, test_docs
from tests.repository.chart import charts, comments
from tests.support.exposed import exposed

PAGE = test_alerts.RUNBOOKS
OTHERS = {"Dashboards", "New", "Import", "Targets"}
"""Labels of the user interfaces of Grafana and Prometheus."""
FOREIGN = {"ca.crt", "prometheus.operator.enabled"}
"""A key of a Secret, and a value of KEDA's own chart."""


def block(key: str) -> dict[str, Any]:
    """Return the YAML on the page that begins with a key."""
    (text,) = re.findall(rf"```yaml\n({key}:.*?)```", PAGE.read_text(), re.DOTALL)
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_it_has_a_section_for_each_alert_and_for_no_other() -> None:
    sections = re.findall(r"^### (\w+)$", PAGE.read_text(), re.MULTILINE)
    assert sections == list(test_alerts.rules())


def test_every_section_says_what_it_means_where_to_look_and_what_to_do() -> None:
    _, *sections = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)
    for section in sections:
        said = re.findall(r"^\*\*(\w+)", section, re.MULTILINE)
        assert said in (["Means", "Look", "Do"], ["Means", "Look"]), section


def test_every_panel_it_names_is_on_the_dashboard() -> None:
    text = PAGE.read_text().replace("**", "")
    named = set(re.findall(r"(?<!\w)\*([A-Z][^*]+)\*", text))
    titles = {panel["title"] for panel in test_dashboard.panels()}
    assert named - titles == OTHERS


def dotted() -> set[str]:
    """Return what is written on the page as code and has a dot in it: events, and values."""
    code = re.findall(r"`([a-z]\w+(?:\.\w+)+)`", PAGE.read_text())
    greps = re.findall(r"\| grep (?:-E )?\"?([a-z_.|]+)", PAGE.read_text())
    return {word for word in (*code, *"|".join(greps).split("|")) if "." in word}


def test_every_event_and_every_value_of_the_chart_it_names_exists() -> None:
    values = [one.path for one in comments.values()]
    left = dotted() - test_docs.events() - FOREIGN
    assert not {word for word in left if not any(path.startswith(word) for path in values)}
    assert {"source.down", "rpc.failed", "networkPolicy.http.from"} <= dotted()


def test_every_metric_it_names_exists() -> None:
    named = set(re.findall(r"\bkeda_gpu_scaler_\w+", PAGE.read_text()))
    assert named
    assert named <= {metric.name for metric in exposed()}


@pytest.mark.needs("helm")
def test_helm_takes_the_values_on_it(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(block("metrics")))
    kinds = {one["kind"] for one in charts.objects(charts.template("--values", str(values)))}
    assert {"ServiceMonitor", "PrometheusRule", "ConfigMap"} <= kinds


@pytest.mark.needs("helm", "promtool")
def test_prometheus_takes_the_rules_about_the_certificate_that_the_chart_makes_for_keda(
    tmp_path: Path,
) -> None:
    rules = block("groups")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    assert "2 rules found" in charts.run("promtool", "check", "rules", str(tmp_path / "rules.yaml"))
    made = charts.objects(charts.rendered("cert-manager"))
    (its,) = (
        one["metadata"]
        for one in made
        if one["kind"] == "Certificate" and one["metadata"]["name"].endswith("-client")
    )
    chosen = f'{{namespace="{its["namespace"]}", name="{its["name"]}"}}'
    (group,) = rules["groups"]
    assert all(chosen in rule["expr"] for rule in group["rules"])


@pytest.mark.needs("helm")
def test_what_is_scraped_without_the_operator_is_the_http_service_of_the_chart() -> None:
    (job,) = block("scrape_configs")["scrape_configs"]
    (kept,) = job["relabel_configs"]
    services = [one for one in charts.objects(charts.template()) if one["kind"] == "Service"]
    ports = {
        f"{each['metadata']['name']};{port['name']}"
        for each in services
        for port in each["spec"]["ports"]
    }
    assert job["honor_labels"] is True
    assert kept["regex"] in ports


def kept(alert: str) -> set[str]:
    """Return the labels that every message of an alert has from its series."""
    first = re.search(r"\bby \(([^)]+)\)", str(test_alerts.rules()[alert]["expr"]))
    return set(first[1].split(", ")) if first else set()


def inhibitions() -> list[tuple[str, str, set[str]]]:
    """Return which alert silences which other one, and the labels they have to share."""
    return [
        (source.removeprefix("alertname = "), begin + end, set(rule["equal"]))
        for rule in block("inhibit_rules")["inhibit_rules"]
        for (source,), (target,) in [(rule["source_matchers"], rule["target_matchers"])]
        for begin, choice in re.findall(r'"(\w+)\((.+)\)"', target)
        for end in choice.split("|")
    ]


def test_alerts_that_make_others_superfluous_exist_as_do_the_others() -> None:
    named = {name for source, target, _ in inhibitions() for name in (source, target)}
    assert len(named) == 10
    assert named <= test_alerts.rules().keys()


def test_no_alert_silences_another_cluster_or_another_source() -> None:
    for source, target, equal in inhibitions():
        both = kept(source) & kept(target)
        assert equal >= {"cluster"}
        assert equal - {"cluster"} <= both
        assert "source" not in both - equal


def test_only_a_rule_that_is_for_one_source_silences_what_says_no_source() -> None:
    text = PAGE.read_text().partition("inhibit_rules:")[2].partition("```")[0]
    _, single = text.split("# Only where the scaler has a single source.")
    of_sources = {
        target
        for source, target, equal in inhibitions()
        if "source" in kept(source) and "source" not in equal
    }
    assert of_sources == {"KedaGpuScalerLoadUnknown", "KedaGpuScalerRpcErrors"}
    assert all(target.removeprefix("KedaGpuScaler") in single for target in of_sources)


def test_the_log_of_a_workload_is_that_of_its_namespace_too() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if 'grep \'"scaled_object"' in line]
    assert lines
    assert [line for line in lines if '"namespace": "inference"' not in line] == []
