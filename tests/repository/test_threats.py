"""The page of threats: every test that it names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/threats.md").read_text()


def test_every_row_names_a_test_that_is_there() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
    facts = [row for row in rows if not row.endswith("| shown by |")]
    assert len(facts) > 20
    for row in facts:
        named = re.findall(r"`(tests/[\w/.]+\.py)`", row.rsplit("|", 2)[1])
        assert named, row
        assert [name for name in named if not (ROOT / name).is_file()] == [], row
