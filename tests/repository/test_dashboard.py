"""The dashboard: Grafana can import it anywhere, and Prometheus can read its queries."""

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.spec.spec import Signal
from testbed import charts

DASHBOARD = charts.CHART / "files" / "dashboard.json"
EXAMPLES = {"$namespace": "ml", "$scaled_object": "bert", "$__rate_interval": "5m"}
"""What Grafana inserts for the variables; several choices become a regular expression."""
SIGNALS = {
    "gpu_utilization": Signal.UTILIZATION,
    "gpu_memory": Signal.MEMORY,
    "gpu_temperature": Signal.TEMPERATURE,
    "gpu_power": Signal.POWER,
}
"""What the constants measure: the series of every exporter that has such a signal."""


@functools.cache
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def constants() -> dict[str, str]:
    """Return the variables that nobody chooses: parts of queries."""
    listed = dashboard()["templating"]["list"]
    return {one["name"]: one["query"] for one in listed if one["type"] == "constant"}


def filled(query: str) -> str:
    """Return a query as Grafana sends it."""
    parts = {f"${{{name}:raw}}": part for name, part in constants().items()}
    for variable, example in {**parts, **EXAMPLES}.items():
        query = query.replace(variable, example)
    return query


def queries() -> Iterator[tuple[str, str]]:
    """Yield each panel's title with one of its queries."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], filled(target["expr"])


def test_a_query_is_promql_once_its_variables_are_replaced(subtests: pytest.Subtests) -> None:
    for title, query in queries():
        with subtests.test(title):
            assert not re.search(r"\$(?!1\")", query), "of label_replace there is one group"
            promql_parser.parse(query)


@pytest.mark.parametrize(("name", "signal"), SIGNALS.items())
def test_gpus_are_read_by_metrics_of_the_profiles(name: str, signal: Signal) -> None:
    found = [
        metric.name
        for profile in profiles.PROFILES.values()
        for convention in profile.conventions
        if signal in convention.measures
        for metric in convention.measures[signal].metrics
    ]
    assert constants().keys() == SIGNALS.keys()
    assert set(re.findall(r"[A-Za-z_]{6,}(?!\w*=)", constants()[name])) <= set(found)


def test_it_names_no_data_source_of_a_particular_grafana() -> None:
    sources = [panel["datasource"] for panel in panels()]
    sources += [target["datasource"] for panel in panels() for target in panel["targets"]]
    assert {source["uid"] for source in sources} == {"${datasource}"}
