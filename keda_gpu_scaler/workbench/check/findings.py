"""What `check` reports: findings of a rule at a place in a text. Values only."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

from keda_gpu_scaler.workbench.check.documents import Position
from keda_gpu_scaler.workbench.check.manifests import Manifest


class Severity(StrEnum):
    """How bad a finding is, the worst first; SARIF has the same three words."""

    ERROR = "error"
    """KEDA, the API server or the scaler refuses it, or it scales wrongly."""
    WARNING = "warning"
    """It works, but probably not as intended."""
    NOTE = "note"
    """It may be intended; a reader should check it."""

    @property
    def rank(self) -> int:
        return -list(Severity).index(self)


class Wrong(NamedTuple):
    """What a rule finds wrong at one place of an object."""

    position: Position
    why: str
    """What is wrong and what follows from it, in one sentence."""
    fix: str
    """What to write, in one sentence."""


Check = Callable[[Manifest], Iterator[Wrong]]


class Rule(NamedTuple):
    """One thing that `check` looks at."""

    name: str
    """It never changes once it is released."""
    severity: Severity
    meaning: str
    check: Check | None = None
    """None: the reader of texts finds it, or a look at the source."""


class Finding(NamedTuple):
    """One thing that is wrong, where it is and in which object."""

    rule: Rule
    file: str
    position: Position
    subject: str
    """The object, as `ScaledObject namespace/name`; empty if it is about the text itself."""
    why: str
    fix: str

    @property
    def message(self) -> str:
        """What is wrong and what to do, for readers that have one text only."""
        why = f"{self.subject}: {self.why}" if self.subject else self.why
        return f"{why}. {self.fix}"
