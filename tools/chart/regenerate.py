"""`make chart`: write everything about the chart that follows from the rest.

The schema's settings, the golden manifests, the Kustomize base, and the table of values in the
chart's README. Look at what changed before you commit it.
"""

import re
import textwrap
from pathlib import Path

from testbed import charts, programs
from tools.chart import comments, kustomized, schema

PAGE = charts.CHART / "README.md"


def page() -> str:
    """Return the page with the table of the values that there are now."""
    mark = comments.PAGE_MARK
    table = "\n".join((f"<!-- {mark} -->", *comments.table(), f"<!-- /{mark} -->"))
    pattern = f"<!-- {mark} -->.*<!-- /{mark} -->"
    return re.sub(pattern, lambda _: table, PAGE.read_text(), flags=re.DOTALL)


def manifests(case: str) -> str:
    """Return what a case renders; the dashboard, two thousand lines, by its name."""
    dashboard = (charts.CHART / "files" / "dashboard.json").read_text().rstrip("\n")
    whole = textwrap.indent(dashboard, "    ")
    return charts.rendered(case).replace(whole, "    (files/dashboard.json)")


def golden(case: str) -> Path:
    """Return the file with the manifests of a case."""
    return charts.GOLDEN / f"{case}.yaml"


def main() -> None:
    """Write the files; the schema first, since Helm holds the cases to it."""
    programs.build(("helm", "kubectl"))
    schema.SCHEMA.write_text(schema.text())
    for case in charts.cases():
        golden(case).write_text(manifests(case))
    for path, text in kustomized.files().items():
        path.write_text(text)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
