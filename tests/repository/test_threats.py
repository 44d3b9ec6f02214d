"""The page of threats: every test that it names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/threats.md").read_text()


def rows() -> list[str]:
    """Return the rows of the tables that say what a test shows."""
    tables = re.findall(r"^\|.*\| shown by \|\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [row for table in tables for row in table.splitlines()]


def test_every_row_names_a_test_that_is_there() -> None:
    assert len(rows()) > 20
    for row in rows():
        named = re.findall(r"`(tests/[\w/.]+\.py)`", row.rsplit("|", 2)[1])
        assert named, row
        assert [name for name in named if not (ROOT / name).is_file()] == [], row
