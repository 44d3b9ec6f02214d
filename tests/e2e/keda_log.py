"""What KEDA's operator says about one scenario, from its log of JSON lines."""

import json
from typing import Any

from tests.e2e.lab import Lab


def errors(lab: Lab) -> list[dict[str, Any]]:
    """Return every error in this lab's namespace, oldest first."""
    log = lab.kubeconfig.with_name("keda-operator.log").read_text(errors="replace")
    lines = (line for line in log.splitlines() if line.startswith("{") and f'"{lab.name}"' in line)
    return [found for found in map(json.loads, lines) if found["level"] == "error"]
