"""The alerts: each fires when it should and not a minute sooner, and leads to its runbook."""

import functools
import re
import subprocess
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.repository.chart import charts
from tests.repository.test_docs import ROOT

ALERTS = charts.CHART / "files" / "alerts.yaml"
CASES = ROOT / "tests" / "data" / "alerts.test.yaml"
RUNBOOKS = ROOT / "docs" / "observability.md"
_ALERT = re.compile(r'alertname="(\w+)"')


@functools.cache
def rules() -> dict[str, dict[str, Any]]:
    """Return every alert of the file by its name."""
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    found = [rule for group in groups for rule in group["rules"]]
    named = {rule["alert"]: rule for rule in found}
    assert len(named) == len(found), "an alert's name is there twice"
    return named


def promtool(*words: str | Path) -> None:
    """Run promtool; fail with what it says if it does not accept something."""
    try:
        charts.run("promtool", *map(str, words))
    except subprocess.CalledProcessError as error:
        pytest.fail(f"{error.stdout}{error.stderr}")


class Expected(NamedTuple):
    """What one check of a case expects: an alert in a state at some minute, or None for neither."""

    alert: str
    minute: int
    state: str | None


def expected(check: Mapping[str, Any]) -> Expected:
    (alert,) = _ALERT.findall(check["expr"])
    samples = check["exp_samples"]
    labels = dict(re.findall(r'(\w+)="([^"]*)"', samples[0]["labels"])) if samples else {}
    minute = int(check["eval_time"].removesuffix("m"))
    return Expected(alert, minute, labels.get("alertstate"))


@functools.cache
def cases() -> list[list[Expected]]:
    tests = yaml.safe_load(CASES.read_text())["tests"]
    return [[expected(check) for check in test["promql_expr_test"]] for test in tests]


@pytest.mark.needs("promtool")
def test_promtool_accepts_the_file() -> None:
    promtool("check", "rules", "--lint-fatal", ALERTS)


@pytest.mark.needs("promtool")
def test_every_case_comes_out_as_it_says() -> None:
    promtool("test", "rules", CASES)


def test_an_alert_has_a_case_in_which_it_fires_and_not_a_minute_sooner() -> None:
    edges: dict[str, set[tuple[str | None, str | None, int]]] = {alert: set() for alert in rules()}
    for before, after in (pair for case in cases() for pair in pairwise(case)):
        if before.alert == after.alert:
            edge = (before.state, after.state, after.minute - before.minute)
            edges[after.alert].add(edge)
    assert edges == {
        alert: {(None if rule["for"] == "0m" else "pending", "firing", 1)}
        for alert, rule in rules().items()
    }


def test_an_alert_has_a_case_in_which_it_never_fires(subtests: pytest.Subtests) -> None:
    for alert, rule in rules().items():
        minutes = int(rule["for"].replace("1h", "60m").removesuffix("m"))
        silent = [
            case
            for case in cases()
            if all((each.alert, each.state) == (alert, None) for each in case)
        ]
        with subtests.test(alert):
            assert any(each.minute > minutes for case in silent for each in case)


def test_an_alert_leads_to_its_runbook(subtests: pytest.Subtests) -> None:
    sections = RUNBOOKS.read_text().splitlines()
    for alert, rule in rules().items():
        page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        with subtests.test(alert):
            (severity,) = rule["labels"].values()
            assert severity in {"critical", "warning", "info"}
            assert ROOT / page == RUNBOOKS
            assert anchor == alert.lower()
            assert f"### {alert}" in sections
