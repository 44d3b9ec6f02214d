"""Findings → what other programs read: JSON and SARIF 2.1.0. Pure."""

import json
from collections import Counter
from typing import Any
from urllib.parse import quote

from keda_gpu_scaler import __version__
from keda_gpu_scaler.workbench.check import RULES, Report
from keda_gpu_scaler.workbench.check.findings import Severity

_HOME = "https://github.com/keda-gpu-scaler/keda-gpu-scaler"
_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def as_json(report: Report) -> str:
    """Return one JSON object: every finding, and how many there are of each severity."""
    findings = [
        {
            "rule": finding.rule.name,
            "severity": finding.rule.severity.value,
            "file": finding.file,
            "line": finding.position.line,
            "column": finding.position.column,
            "object": finding.subject,
            "why": finding.why,
            "fix": finding.fix,
        }
        for finding in report.findings
    ]
    fields = {
        "version": 1,
        "checked": len(report.objects),
        "complete": report.is_complete,
        "counts": counts(report),
        "findings": findings,
    }
    return json.dumps(fields, indent=2)


def as_sarif(report: Report) -> str:
    driver = {
        "name": "keda-gpu-scaler",
        "version": __version__,
        "informationUri": _HOME,
        "rules": [
            {
                "id": rule.name,
                "shortDescription": {"text": rule.meaning},
                "helpUri": f"{_HOME}/blob/v{__version__}/docs/check.md#rules",
                "defaultConfiguration": {"level": rule.severity.value},
            }
            for rule in RULES.values()
        ],
    }
    results: list[dict[str, Any]] = []
    for finding in report.findings:
        region = {"startLine": finding.position.line, "startColumn": finding.position.column}
        file = {"uri": quote(finding.file, safe="/", errors="surrogateescape")}
        result = {
            "ruleId": finding.rule.name,
            "level": finding.rule.severity.value,
            "message": {"text": finding.message},
            "locations": [{"physicalLocation": {"artifactLocation": file, "region": region}}],
        }
        results.append(result)
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def counts(report: Report) -> dict[str, int]:
    """Return how many findings there are of each severity, the worst first."""
    by_severity = Counter(finding.rule.severity for finding in report.findings)
    return {severity.value: by_severity[severity] for severity in Severity}
