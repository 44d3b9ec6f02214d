"""What we show is clean."""

import re
from pathlib import Path

import pytest

from tests.workbench.check.cases import report

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^( *)```yaml\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def names(text: str) -> set[str]:
    return {one.rule.name for one in report(text).findings}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_example_is_clean(path: Path) -> None:
    assert names(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_yaml_of_a_page_is_clean(page: Path) -> None:
    found = [
        one
        for _, text in BLOCK.findall(page.read_text(encoding="utf-8"))
        for one in report(text).findings
    ]
    if page.name == "keda-prometheus.md":  # it shows the recipe that people come from
        found = [one for one in found if one.rule.name != "average-recipe"]
    assert found == []
