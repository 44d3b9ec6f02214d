"""The dashboard: Grafana can import it anywhere, and Prometheus can read its queries."""

import functools
import json
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest

from testbed import charts

DASHBOARD = charts.CHART / "files" / "dashboard.json"
EXAMPLES = {"$namespace": "ml", "$scaled_object": "bert", "$__rate_interval": "5m"}
"""What Grafana inserts for the variables; several choices become a regular expression."""


@functools.cache
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def filled(query: str) -> str:
    """Return a query as Grafana sends it."""
    for variable, example in EXAMPLES.items():
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
            assert "$" not in query
            promql_parser.parse(query)


def test_it_names_no_data_source_of_a_particular_grafana() -> None:
    sources = [panel["datasource"] for panel in panels()]
    sources += [target["datasource"] for panel in panels() for target in panel["targets"]]
    assert {source["uid"] for source in sources} == {"${datasource}"}
