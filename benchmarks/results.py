"""What a run found, as JSON and back; and what is committed of it. Pure, but for the files."""

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import keda_gpu_scaler
from benchmarks.comparison import Detail, Goal, Measured, Row

ROOT = Path(__file__).parents[1]
RUNS = ROOT / ".cache" / "bench"
FIGURES = ROOT / "benchmarks" / "figures.json"
"""What is committed, and what the page shows."""


@dataclass(frozen=True, slots=True)
class About:
    """When and on what one benchmark ran."""

    version: str
    measured: str
    """The month."""
    cores: int
    architecture: str
    system: str
    python: str
    load: float
    """How much waited for a core before it began, as the system counts it over a minute."""

    @classmethod
    def now(cls) -> "About":
        """Return what is true of this machine at present."""
        return cls(
            keda_gpu_scaler.__version__,
            time.strftime("%B %Y", time.gmtime()),
            os.cpu_count() or 1,
            platform.machine(),
            platform.system(),
            platform.python_version(),
            round(os.getloadavg()[0], 1),
        )


@dataclass(frozen=True, slots=True)
class Found:
    """What one benchmark found."""

    about: About
    rows: list[Row]
    details: list[Detail]


Keyed = TypeVar("Keyed", Row, Detail)
Results = dict[str, Found]
"""Of each benchmark, by its name."""


def found(about: About, measured: Measured) -> Found:
    """Return what is kept of one benchmark."""
    return Found(about, list(measured.rows), list(measured.details))


def text(results: Results, raw: Mapping[str, object] | None = None) -> str:
    """Return the JSON of results.

    Args:
        results: of each benchmark.
        raw: everything else that a run measured, by the same names.
    """
    more = {} if raw is None else {"raw": raw}
    every = {**{name: asdict(result) for name, result in results.items()}, **more}
    return json.dumps(every, indent=2, default=asdict)


def parse(text: str) -> Results:
    """Return the results of such a JSON."""
    said: dict[str, Any] = json.loads(text)
    said.pop("raw", None)
    return {name: _found(result) for name, result in said.items()}


def _found(said: Mapping[str, Any]) -> Found:
    rows = [_row(row) for row in said["rows"]]
    return Found(About(**said["about"]), rows, [Detail(**detail) for detail in said["details"]])


def _row(said: Mapping[str, Any]) -> Row:
    return Row(**{**said, "goal": Goal(said["goal"])})


def committed() -> Results:
    """Return what is committed."""
    return parse(FIGURES.read_text(encoding="utf-8"))


def commit(results: Results) -> None:
    """Put results in the place of what is committed."""
    FIGURES.write_text(text(merged(committed(), results)) + "\n", encoding="utf-8")


def merged(before: Results, now: Results) -> Results:
    """Return both, and of rows and details with the same key those of now.

    What a shorter run leaves out stays: other benchmarks, and larger sizes of the same one.
    """
    return before | {
        name: Found(
            result.about,
            _merged(before[name].rows, result.rows) if name in before else result.rows,
            _merged(before[name].details, result.details) if name in before else result.details,
        )
        for name, result in now.items()
    }


def _merged(before: Sequence[Keyed], now: Sequence[Keyed]) -> list[Keyed]:
    return list(({one.key: one for one in before} | {one.key: one for one in now}).values())


def write(results: Results, raw: Mapping[str, object]) -> Path:
    """Write everything that a run measured; return the file."""
    RUNS.mkdir(parents=True, exist_ok=True)
    path = RUNS / time.strftime("%Y-%m-%dT%H-%M-%SZ.json", time.gmtime())
    path.write_text(text(results, raw) + "\n", encoding="utf-8")
    return path


def rows(results: Results) -> list[Row]:
    """Return the rows of all benchmarks, in their order."""
    return [row for result in results.values() for row in result.rows]
