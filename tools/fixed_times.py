"""The table of the fixed times in the page on settings, from `keda_gpu_scaler/times.py`."""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from keda_gpu_scaler.spec import durations
from testbed.programs import ROOT

PAGE = ROOT / "docs" / "settings.md"
MINUTE_SECONDS = 60
_SAID = re.compile(r"(.*) Shorter: (.*?) Longer: (.*)", re.DOTALL)


def table() -> Iterator[str]:
    """Yield the lines; ValueError: a time does not say what it is for, or what others would do."""
    yield "| time | value | what it is for |"
    yield "| --- | --- | --- |"
    path = ROOT / "keda_gpu_scaler" / "times.py"
    for assigned, following in itertools.pairwise(ast.parse(path.read_text()).body):
        if isinstance(assigned, ast.Assign):
            name, value = ast.unparse(assigned.targets[0]), ast.literal_eval(assigned.value)
            said = ast.literal_eval(following.value) if isinstance(following, ast.Expr) else ""
            parts = _SAID.fullmatch(" ".join(said.split()))
            if parts is None:
                raise ValueError(f"{path.name}: {name}: expected its meaning, Shorter: and Longer:")
            unit = "s" if name.endswith("_SECONDS") else "steps"
            length = durations.text(value) if value >= MINUTE_SECONDS else f"{value:g} {unit}"
            yield f"| `{name}` | {length} | {parts[1].rstrip('.')} |"


def page() -> dict[Path, str]:
    """Return the page with the table in it."""
    lines = "\n".join(("<!-- times -->", *table(), "<!-- /times -->"))
    pattern = re.compile("<!-- times -->.*<!-- /times -->", re.DOTALL)
    return {PAGE: pattern.sub(lambda _: lines, PAGE.read_text())}
