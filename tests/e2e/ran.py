"""What ran on what: what a run of scenarios says at its end, and what `ran.json` keeps of it."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path(__file__).with_name("ran.json")
"""What `make e2e-all` has seen; docs/versions.md is made from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run of scenarios to its end."""

    keda: str
    kubernetes: str
    """Versions, as the running programs say them."""
    mark: str
    """The mark that chose the scenarios; empty: every one."""
    passed: int
    failed: int
    skipped: int

    @property
    def generation(self) -> tuple[str, str]:
        """The lines of KEDA and of Kubernetes: 2.21 and 1.36."""
        return _line(self.keda), _line(self.kubernetes)

    @property
    def scenarios(self) -> str:
        """Which ones were chosen."""
        return f"those marked `{self.mark}`" if self.mark else "every scenario"

    def __str__(self) -> str:
        """Return one line of a summary."""
        return (
            f"KEDA {self.keda} with Kubernetes {self.kubernetes}, {self.scenarios}: "
            f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"
        )


def _line(version: str) -> str:
    return ".".join(version.split(".")[:2])


def read(file: Path = FILE) -> list[Ran]:
    """Return what a file keeps, if it is there."""
    return [Ran(**one) for one in json.loads(file.read_text())] if file.exists() else []


def write(found: Iterable[Ran], file: Path = FILE) -> None:
    """Keep these."""
    file.write_text(json.dumps([asdict(one) for one in found], indent=2) + "\n")
