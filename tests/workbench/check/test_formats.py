"""What other programs read of a report: JSON and SARIF 2.1.0."""

import json
import re

from keda_gpu_scaler import __version__
from keda_gpu_scaler.workbench.check import RULES, Report, check, formats
from keda_gpu_scaler.workbench.check.documents import Position
from keda_gpu_scaler.workbench.check.findings import Finding
from tests.workbench.check.cases import FAILS

REPORT = check({f"{rule}.yaml": source for rule, source in FAILS.items()}, "x")


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


def test_sarif_is_as_its_schema_demands() -> None:
    """A URI reference has no spaces, and no colon that would make its first part a scheme."""
    strange = Finding(RULES["unknown-key"], "C: é.yaml", Position(3, 7), "", "So it is", "Do it.")
    log = json.loads(formats.as_sarif(Report((*REPORT.findings, strange), ())))
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert (log["version"], driver["version"]) == ("2.1.0", __version__)
    assert set(run) == {"tool", "columnKind", "results"}
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    assert [one["ruleId"] for one in run["results"][:-1]] == [
        one.rule.name for one in REPORT.findings
    ]
    for result in run["results"]:
        assert set(result) == {"ruleId", "level", "message", "locations"}
        assert result["level"] in {"note", "warning", "error"}
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", physical["artifactLocation"]["uri"])
        assert min(physical["region"].values()) >= 1
    assert run["results"][-1]["message"]["text"] == "So it is. Do it."
    assert physical["region"] == {"startLine": 3, "startColumn": 7}
