"""The dashboard: what Grafana requires of it, and what its readers require."""

import functools
import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import promql_parser
import pytest

from tests.repository.chart import charts

DASHBOARD = charts.CHART / "files" / "dashboard.json"
EXAMPLES = {"$namespace": "ml", "$scaled_object": "bert", "$__rate_interval": "5m"}
"""What Grafana inserts for the variables; several choices become a regular expression."""
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


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


def test_a_panel_says_what_it_shows_and_in_which_unit(subtests: pytest.Subtests) -> None:
    for panel in panels():
        with subtests.test(panel["title"]):
            assert panel["description"].endswith(".")
            assert panel["fieldConfig"]["defaults"]["unit"]
            assert panel["targets"]
            assert [panel["datasource"]] == [DATASOURCE]
            assert all(target["datasource"] == DATASOURCE for target in panel["targets"])


def test_a_query_is_promql_once_its_variables_are_replaced(subtests: pytest.Subtests) -> None:
    for title, query in queries():
        with subtests.test(title):
            assert "$" not in query
            promql_parser.parse(query)


def test_panels_have_names_and_numbers_of_their_own_and_do_not_overlap() -> None:
    everything = dashboard()["panels"]
    for key in ("id", "title"):
        assert len({panel[key] for panel in everything}) == len(everything)
    for one, other in combinations((panel["gridPos"] for panel in everything), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in everything)


def test_it_can_be_imported_anywhere() -> None:
    """It names no data source, folder or dashboard of a particular Grafana."""
    whole = dashboard()
    variables = [variable["name"] for variable in whole["templating"]["list"]]
    assert variables == ["datasource", "namespace", "scaled_object"]
    assert "id" not in whole
    assert "__inputs" not in whole
    assert not whole["links"]
    assert "://" not in DASHBOARD.read_text()
