"""The alerts: each fires when it should and not a minute sooner, and leads to its runbook."""

import functools
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import charts
from tests.repository.test_docs import ROOT

ALERTS = charts.CHART / "files" / "alerts.yaml"
CASES = ROOT / "tests" / "data" / "alerts.test.yaml"
RUNBOOKS = ROOT / "docs" / "observability.md"


@functools.cache
def rules() -> dict[str, dict[str, Any]]:
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


@pytest.mark.needs("promtool")
def test_promtool_accepts_the_file() -> None:
    promtool("check", "rules", "--lint-fatal", ALERTS)


@pytest.mark.needs("promtool")
def test_every_case_comes_out_as_it_says() -> None:
    promtool("test", "rules", CASES)


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
