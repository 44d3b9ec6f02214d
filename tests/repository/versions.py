"""`make versions-page`: write into docs/versions.md what `make e2e-all` has run on what."""

import re

from tests.e2e import ran
from tests.support.go_modules import ROOT

PAGE = ROOT / "docs" / "versions.md"
HEAD = ["KEDA", "Kubernetes", "scenarios", "passed", "skipped"]


def rows() -> list[list[str]]:
    """Return the rows of the table of what ran."""
    return [
        [one.keda, one.kubernetes, one.scenarios, str(one.passed), str(one.skipped)]
        for one in ran.read()
    ]


def proved() -> dict[str, str]:
    """Return the versions of KEDA and of Kubernetes that ran, the newest first."""
    found = ran.read()
    return {
        "KEDA": ", ".join(_newest_first({one.keda for one in found})),
        "Kubernetes": ", ".join(_newest_first({one.kubernetes for one in found})),
    }


def _newest_first(versions: set[str]) -> list[str]:
    return sorted(versions, key=lambda one: [int(part) for part in one.split(".")], reverse=True)


def text() -> str:
    """Return the page as it should be."""
    lines = [HEAD, ["---"] * len(HEAD), *rows()]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    page = re.sub(
        "(?<=<!-- ran -->\n).*?(?=<!-- /ran -->)", table, PAGE.read_text(), flags=re.DOTALL
    )
    for what, versions in proved().items():
        cell = rf"^(\| {what} \| )[^|]*(?= \|)"
        page = re.sub(cell, rf"\g<1>{versions}", page, count=1, flags=re.MULTILINE)
    return page


def write() -> None:
    """Write the page."""
    PAGE.write_text(text())


if __name__ == "__main__":
    write()
