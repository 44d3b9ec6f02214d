"""The files about the chart that follow from the rest: some from its values, some by Helm."""

import re
import textwrap
from pathlib import Path

from testbed import charts, programs
from tools.chart import comments, kustomized, schema

PAGE = charts.CHART / "README.md"


def of_values() -> dict[Path, str]:
    """Return the schema of the settings, and the README with the table of the values."""
    mark = comments.PAGE_MARK
    table = "\n".join((f"<!-- {mark} -->", *comments.table(), f"<!-- /{mark} -->"))
    pattern = f"<!-- {mark} -->.*<!-- /{mark} -->"
    page = re.sub(pattern, lambda _: table, PAGE.read_text(), flags=re.DOTALL)
    return {schema.SCHEMA: schema.text(), PAGE: page}


def rendered() -> dict[Path, str]:
    """Return the golden manifests and the Kustomize base; Helm holds the cases to the schema."""
    programs.build(("helm",))
    golden = {charts.GOLDEN / f"{case}.yaml": _manifests(case) for case in charts.cases()}
    return golden | kustomized.files()


def _manifests(case: str) -> str:
    """Return what a case renders; the dashboard, two thousand lines, by its name."""
    dashboard = (charts.CHART / "files" / "dashboard.json").read_text().rstrip("\n")
    whole = textwrap.indent(dashboard, "    ")
    return charts.rendered(case).replace(whole, "    (files/dashboard.json)")
