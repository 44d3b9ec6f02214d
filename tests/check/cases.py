"""A passing and a failing text for each rule, as files; comments say what is found where."""

import re
from pathlib import Path
from typing import NamedTuple

from keda_gpu_scaler.check import Report, check
from keda_gpu_scaler.check.objects import Terms

FOLDER = Path(__file__).parent / "cases"
_FINDS = re.compile(r"# finds ([a-z-]+)")


class Place(NamedTuple):
    """A line, and the rule that finds something in it."""

    line: int
    rule: str


def marked(text: str) -> list[Place]:
    """Return what the comments of a text say is found in it."""
    return [
        Place(number, rule)
        for number, line in enumerate(text.splitlines(), 1)
        for rule in _FINDS.findall(line)
    ]


def found(text: str, terms: Terms = Terms()) -> list[Place]:  # noqa: B008 - it is immutable
    """Return what is found in a text."""
    return [Place(one.position.line, one.rule.name) for one in report(text, terms).findings]


def report(text: str, terms: Terms = Terms()) -> Report:  # noqa: B008 - it is immutable
    """Return the report about one text."""
    return check({"one.yaml": text}, terms)


def text(rule: str, outcome: str = "pass") -> str:
    """Return the text of a rule that passes, or that fails."""
    return (FOLDER / rule / f"{outcome}.yaml").read_text(encoding="utf-8")


def changed(source: str, *changes: tuple[str, str]) -> str:
    """Return a text with some pieces replaced, each of which has to be there."""
    for before, after in changes:
        assert before in source, before
        source = source.replace(before, after, 1)
    return source


STAYS = text("unknown-key")
"""A ScaledObject with one replica at the least, in which nothing is found."""
SLEEPS = text("nothing-wakes")
"""One that a demand wakes from zero, in which nothing is found."""
