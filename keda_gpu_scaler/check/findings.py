"""What `check` says: rules with stable names, and findings at a place in a text. Values only."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """How bad a finding is, the worst first; SARIF and GitHub have the same three words."""

    ERROR = "error"
    """KEDA, the API server or the scaler refuses it, or it scales wrongly."""
    WARNING = "warning"
    """It works, and likely not as it was meant."""
    NOTE = "note"
    """It may be as it was meant; a reader should know."""

    @property
    def rank(self) -> int:
        """The larger, the worse."""
        return -list(Severity).index(self)


class Position(NamedTuple):
    """A place in a text; lines and columns count from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that `check` looks at; its name never changes once it is released."""

    name: str
    severity: Severity
    meaning: str
    """What it finds, in a few words for a table."""


class Finding(NamedTuple):
    """One thing that is wrong at one place."""

    rule: Rule
    file: str
    position: Position
    subject: str
    """The object, as `ScaledObject namespace/name`; empty if it is about the text itself."""
    why: str
    """What is wrong and what comes of it, in one sentence."""
    fix: str
    """What to write, in one sentence."""
    replacement: str = ""
    """YAML in block style to put in the place of the value that begins at the position, to whose
    column the lines after its first are indented; empty if there is none."""
