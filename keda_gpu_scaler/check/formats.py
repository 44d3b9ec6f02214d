"""Findings → what other programs read: JSON, SARIF 2.1.0, GitHub's annotations. Pure."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from keda_gpu_scaler import __version__
from keda_gpu_scaler.check import Report
from keda_gpu_scaler.check.catalog import RULES
from keda_gpu_scaler.check.findings import Finding, Severity

_HOME = "https://github.com/keda-gpu-scaler/keda-gpu-scaler"
_PAGE = f"{_HOME}/blob/v{__version__}/docs/check.md#rules"
_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def as_json(report: Report) -> str:
    """Return one JSON object: every finding, and how many there are of each severity."""
    return json.dumps(
        {
            "version": 1,
            "checked": report.checked,
            "counts": counts(report),
            "findings": [_fields(one) for one in report.findings],
        },
        indent=2,
    )


def as_sarif(report: Report) -> str:
    """Return a log of SARIF 2.1.0 with one run."""
    numbers = {name: number for number, name in enumerate(RULES)}
    driver = {
        "name": "keda-gpu-scaler",
        "version": __version__,
        "informationUri": _HOME,
        "rules": [
            {
                "id": rule.name,
                "shortDescription": {"text": rule.meaning},
                "helpUri": _PAGE,
                "defaultConfiguration": {"level": rule.severity.value},
            }
            for rule in RULES.values()
        ],
    }
    results = [
        {
            "ruleId": one.rule.name,
            "ruleIndex": numbers[one.rule.name],
            "level": one.rule.severity.value,
            "message": {"text": message(one)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(one.file, safe="/")},
                        "region": {
                            "startLine": one.position.line,
                            "startColumn": one.position.column,
                        },
                    }
                }
            ],
        }
        for one in report.findings
    ]
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def as_github(report: Report) -> str:
    """Return one workflow command per finding; GitHub shows them beside the lines of a change."""
    return "\n".join(map(_command, report.findings))


def message(one: Finding) -> str:
    """Return what is wrong and what to do, for readers that have one text only."""
    why = f"{one.subject}: {one.why}" if one.subject else one.why
    instead = f"\n{one.replacement}" if one.replacement else ""
    return f"{why}. {one.fix}{instead}"


def counts(report: Report) -> dict[str, int]:
    """Return how many findings there are of each severity, the worst first."""
    found = Counter(one.rule.severity for one in report.findings)
    return {severity.value: found[severity] for severity in Severity}


def _fields(one: Finding) -> dict[str, Any]:
    return {
        "rule": one.rule.name,
        "severity": one.rule.severity.value,
        "file": one.file,
        "line": one.position.line,
        "column": one.position.column,
        "object": one.subject,
        "why": one.why,
        "fix": one.fix,
        "replacement": one.replacement or None,
    }


def _command(one: Finding) -> str:
    values = {
        "file": one.file,
        "line": one.position.line,
        "col": one.position.column,
        "title": one.rule.name,
    }
    properties = ",".join(f"{key}={_property(str(value))}" for key, value in values.items())
    return f"::{_COMMANDS[one.rule.severity]} {properties}::{_data(message(one))}"


def _data(text: str) -> str:
    return "".join(_escaped(text, "%\r\n"))


def _property(text: str) -> str:
    return "".join(_escaped(text, "%\r\n:,"))


def _escaped(text: str, characters: str) -> Iterator[str]:
    for each in text:
        yield f"%{ord(each):02X}" if each in characters else each
