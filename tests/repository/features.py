"""What this scaler and its peers can do, counted from the tests that prove ours.

    python -m tests.repository.features  # writes docs/compare.md

`features.toml` has the rows. How far ours goes is not written there: a row is "yes" if it names
tests and nothing that is missing, "partly" if it names both, and "no" if it names no test.
"""

import itertools
import re
import tomllib
from collections import Counter
from dataclasses import dataclass

from tests.support.go_modules import ROOT

PAGE = ROOT / "docs" / "compare.md"
PEERS = (
    "KEDA prometheus",
    "prometheus-adapter",
    "ACK adapter",
    "pmady",
    "otel-add-on",
    "http-add-on",
)
WORDS = {"Y": "yes", "P": "partly", "N": "no", "-": "n/a", "?": "?"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One row."""

    section: str
    name: str
    peers: str
    """One letter of WORDS for each of PEERS."""
    proof: list[str]
    """The tests that prove it here."""
    missing: str = ""
    """What we lack, and why."""

    @property
    def ours(self) -> str:
        """How far this scaler has it: yes, partly or no."""
        if not self.proof:
            return "no"
        return "partly" if self.missing else "yes"


FEATURES = tuple(
    Feature(**row)
    for row in tomllib.loads((ROOT / "tests/repository/features.toml").read_text())["feature"]
)


def table() -> str:
    """Return the table of all rows, and below it what is missing and why."""
    head = ["#", "feature", "**keda-gpu-scaler**", *PEERS]
    lines = [head, ["---"] * len(head)]
    missing: list[str] = []
    numbered = enumerate(FEATURES, 1)
    for section, rows in itertools.groupby(numbered, lambda each: each[1].section):
        lines.append(["", f"**{section}**", *[""] * (len(head) - 2)])
        for number, row in rows:
            peers = [WORDS[letter] for letter in row.peers]
            lines.append([str(number), row.name, f"**{row.ours}**", *peers])
            if row.missing:
                missing.append(f"- {number}, {row.name}: {row.missing}.\n")
    cells = "".join(f"| {' | '.join(each)} |\n" for each in lines)
    count = Counter(row.ours for row in FEATURES)
    sums = (
        f"Of {len(FEATURES)} rows, {count['yes']} are yes, {count['partly']} partly,"
        f" {count['no']} no."
    )
    return f"{sums}\n\n{cells}\nWhat is missing here, and why:\n\n{''.join(missing)}"


def text() -> str:
    """Return the page as it should be."""
    return re.sub(
        "(?<=<!-- features -->\n).*?(?=<!-- /features -->)",
        lambda _: f"\n{table()}\n",
        PAGE.read_text(),
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    PAGE.write_text(text())
