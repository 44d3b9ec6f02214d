"""The pages that a reader follows command by command, read as a reader does.

A page's steps are its fenced blocks: `sh` is what to type, and the `text` that comes next is what
it prints. A comment before a block says what is special about it.
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from testbed.programs import ROOT

DOCS = ROOT / "docs"
QUICK_STARTS = ("quickstart", "quickstart-dcgm")
_PIECE = re.compile(
    r"^<!-- (?P<remark>[^\n]*?) -->$"
    r"|^```(?P<language>\w+)\n(?P<text>.*?)^```$"
    r"|^## (?P<heading>[^\n]*)$",
    re.MULTILINE | re.DOTALL,
)
_FORWARDS = re.compile(r"kubectl port-forward -n (\S+) service/(\S+) (\d+)\n")
NOT_RUN = "not run"
FAILS = "fails"
"""One of its commands ends badly, which is what it is typed for."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment of a page for the program that runs it: `kind`, or `kind: words`."""

    kind: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """Commands that are typed at once, and what they print where the page shows it."""

    commands: str
    remarks: tuple[Remark, ...] = ()
    output: str | None = None
    section: str = ""

    @property
    def forwarded(self) -> tuple[str, str] | None:
        """The address on the reader's machine that it forwards, and the Service's own."""
        found = _FORWARDS.fullmatch(self.commands)
        if found is None:
            return None
        namespace, name, port = found.groups()
        return f"127.0.0.1:{port}", f"{name}.{namespace}.svc:{port}"

    def is_(self, kind: str) -> bool:
        """Tell whether the page remarks this about it."""
        return any(remark.kind == kind for remark in self.remarks)


@dataclass(slots=True)
class _Reading:
    """How far a page has been read."""

    steps: list[Step] = field(default_factory=list)
    remarks: tuple[Remark, ...] = ()
    section: str = ""

    def take(self, piece: re.Match[str]) -> None:
        if piece["remark"] is not None:
            kind, _, words = piece["remark"].partition(": ")
            self.remarks += (Remark(kind, words),)
        elif piece["heading"] is not None:
            self.section = piece["heading"]
        elif piece["language"] == "sh":
            self.steps.append(Step(piece["text"], self.remarks, section=self.section))
            self.remarks = ()
        elif piece["language"] == "text":
            self.steps[-1] = replace(self.steps[-1], output=piece["text"])


def page(name: str) -> Path:
    return DOCS / f"{name}.md"


def steps(path: Path) -> list[Step]:
    reading = _Reading()
    for piece in _PIECE.finditer(path.read_text(encoding="utf-8")):
        reading.take(piece)
    return reading.steps
