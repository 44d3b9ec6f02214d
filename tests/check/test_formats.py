"""What other programs read of a report: JSON, SARIF 2.1.0 and GitHub's annotations."""

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import __version__
from keda_gpu_scaler.check import Report, check, formats
from keda_gpu_scaler.check.catalog import LIVE, RULES
from keda_gpu_scaler.check.findings import Finding, Position
from keda_gpu_scaler.check.objects import Terms
from tests.check.cases import text

OF_TEXTS = [rule for rule in RULES if rule not in LIVE]
REPORT = check({f"{rule}.yaml": text(rule, "fail") for rule in OF_TEXTS}, Terms())
EMPTY = Report((), 0)
ANNOTATION = re.compile(
    r"::(error|warning|notice) file=([^,:]+),line=(\d+),col=(\d+),title=([a-z-]+)::(.+)"
)


def finding(file: str, why: str, replacement: str = "") -> Finding:
    rule = RULES["unknown-key"]
    return Finding(rule, file, Position(3, 7), "ScaledObject a/b", why, "Do it.", replacement)


def test_json_has_every_finding_and_how_many_there_are() -> None:
    shown = json.loads(formats.as_json(REPORT))
    assert (shown["version"], shown["checked"]) == (1, REPORT.checked)
    assert len(shown["findings"]) == len(REPORT.findings) == sum(shown["counts"].values())
    assert {one["rule"] for one in shown["findings"]} == set(OF_TEXTS)
    (recipe,) = [one for one in shown["findings"] if one["rule"] == "average-recipe"]
    assert recipe | {"why": "", "fix": "", "replacement": ""} == {
        "rule": "average-recipe",
        "severity": "error",
        "file": "average-recipe.yaml",
        "line": 12,
        "column": 7,
        "object": "ScaledObject inference/bert",
        "why": "",
        "fix": "",
        "replacement": "",
    }
    assert recipe["replacement"].startswith("type: external\n      metadata:\n")
    assert json.loads(formats.as_json(EMPTY))["counts"] == {"error": 0, "warning": 0, "note": 0}


def check_sarif(log: dict[str, Any]) -> None:
    """Check what the schema of SARIF 2.1.0 requires of what we write."""
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert set(run) <= {"tool", "columnKind", "results"}
    assert run["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
    driver = run["tool"]["driver"]
    assert set(driver) <= {"name", "version", "informationUri", "rules"}
    assert driver["name"]
    assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
    for rule in driver["rules"]:
        assert set(rule) <= {"id", "shortDescription", "helpUri", "defaultConfiguration"}
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in {"none", "note", "warning", "error"}
        assert rule["helpUri"].startswith("https://")
    for result in run["results"]:
        assert set(result) <= {"ruleId", "ruleIndex", "level", "message", "locations"}
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"none", "note", "warning", "error"}
        assert result["message"]["text"]
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        # A URI reference: no spaces, and no colon that would make its first part a scheme.
        assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", physical["artifactLocation"]["uri"])
        region = physical["region"]
        assert set(region) == {"startLine", "startColumn"}
        assert min(region.values()) >= 1


def test_sarif_is_as_its_schema_demands() -> None:
    log = json.loads(formats.as_sarif(REPORT))
    check_sarif(log)
    assert len(log["runs"][0]["results"]) == len(REPORT.findings)
    assert log["runs"][0]["tool"]["driver"]["version"] == __version__
    check_sarif(json.loads(formats.as_sarif(EMPTY)))


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_file_and_sentence_goes_into_each_format(file: str, why: str) -> None:
    file, why = (each.encode(errors="replace").decode() for each in (file, why))
    report = Report((finding(file, why),), 1)
    check_sarif(json.loads(formats.as_sarif(report)))
    assert json.loads(formats.as_json(report))["findings"][0]["why"] == why
    assert len(re.split(r"\r\n|\r|\n", formats.as_github(report))) == 1


def test_github_is_told_of_each_finding_in_one_line() -> None:
    lines = formats.as_github(REPORT).splitlines()
    assert len(lines) == len(REPORT.findings)
    found = [ANNOTATION.fullmatch(line) for line in lines]
    assert {match[5] for match in found if match} == set(OF_TEXTS)
    assert all(found)
    assert formats.as_github(EMPTY) == ""


def test_what_would_end_a_command_is_escaped() -> None:
    report = Report((finding("a,b:c%.yaml", "50 %\r\nof it: all,", "- x\n  y"),), 1)
    assert formats.as_github(report) == (
        "::error file=a%2Cb%3Ac%25.yaml,line=3,col=7,title=unknown-key::"
        "ScaledObject a/b: 50 %25%0D%0Aof it: all,. Do it.%0A- x%0A  y"
    )


def test_a_message_without_an_object_is_the_sentence_alone() -> None:
    (one,) = check({"one.yaml": "a: *b"}, Terms()).findings
    assert formats.message(one).startswith("an alias stands for nothing")
