"""What other programs read of a report: JSON and SARIF 2.1.0."""

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import __version__
from keda_gpu_scaler.check import Report, check, formats
from keda_gpu_scaler.check.documents import Position
from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.objects import Terms
from keda_gpu_scaler.check.rules import RULES
from tests.check.cases import FAILS

REPORT = check({f"{rule}.yaml": source for rule, source in FAILS.items()}, Terms(namespace="x"))


def test_json_has_every_finding_and_how_many_there_are() -> None:
    shown = json.loads(formats.as_json(REPORT))
    assert (shown["version"], shown["checked"], shown["complete"]) == (1, len(REPORT.objects), True)
    assert len(shown["findings"]) == len(REPORT.findings) == sum(shown["counts"].values())
    assert {one["rule"] for one in shown["findings"]} >= FAILS.keys()
    (recipe,) = [one for one in shown["findings"] if one["rule"] == "average-recipe"]
    assert recipe | {"why": "", "fix": ""} == {
        "rule": "average-recipe",
        "severity": "error",
        "file": "average-recipe.yaml",
        "line": 12,
        "column": 7,
        "object": "ScaledObject inference/bert",
        "why": "",
        "fix": "",
    }
    empty = json.loads(formats.as_json(Report((), (), is_complete=False)))
    assert (empty["counts"], empty["complete"]) == ({"error": 0, "warning": 0, "note": 0}, False)


def check_sarif(log: dict[str, Any]) -> list[str]:
    """Check what the schema of SARIF 2.1.0 requires of what we write; return the rules found."""
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert set(run) == {"tool", "columnKind", "results"}
    assert run["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
    driver = run["tool"]["driver"]
    assert driver["version"] == __version__
    levels = {"note", "warning", "error"}
    for rule in driver["rules"]:
        assert set(rule) == {"id", "shortDescription", "helpUri", "defaultConfiguration"}
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in levels
        assert rule["helpUri"].startswith("https://")
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    for result in run["results"]:
        assert set(result) == {"ruleId", "level", "message", "locations"}
        assert result["ruleId"] in RULES
        assert result["level"] in levels
        assert result["message"]["text"]
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        # A URI reference: no spaces, and no colon that would make its first part a scheme.
        assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", physical["artifactLocation"]["uri"])
        assert set(physical["region"]) == {"startLine", "startColumn"}
        assert min(physical["region"].values()) >= 1
    return [result["ruleId"] for result in run["results"]]


def test_sarif_is_as_its_schema_demands() -> None:
    rules = check_sarif(json.loads(formats.as_sarif(REPORT)))
    assert rules == [one.rule.name for one in REPORT.findings]


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_file_and_sentence_goes_into_each_format(file: str, why: str) -> None:
    file, why = (each.encode(errors="replace").decode() for each in (file, why))
    rule = RULES["unknown-key"]
    found = Finding(rule, file, Position(3, 7), "ScaledObject a/b", why, "Do it.")
    report = Report((found,), ())
    log = json.loads(formats.as_sarif(report))
    assert check_sarif(log) == [rule.name]
    message = log["runs"][0]["results"][0]["message"]["text"]
    assert message == f"ScaledObject a/b: {why}. Do it."
    assert json.loads(formats.as_json(report))["findings"][0]["why"] == why
