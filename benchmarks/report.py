"""The results: printed for people, and everything that was measured in a file."""

import json
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

import keda_gpu_scaler
from benchmarks import tables, throughput, waking
from benchmarks.evidence import Asked
from benchmarks.ghz import Run
from benchmarks.looked import Looked
from benchmarks.queries import Cost
from benchmarks.streams import Held
from benchmarks.tls import Secured
from benchmarks.waking import Woken

DIRECTORY = Path(__file__).parents[1] / ".cache" / "bench"


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that was measured in one run of the benchmarks."""

    runs: dict[str, list[Run]]
    secured: Secured
    costs: list[Cost]
    """Of the scaler, one for each number of triggers."""
    own_trigger: Cost
    """Of KEDA's own trigger, for the largest number of triggers."""
    evidence: Asked
    held: Held
    looked: Looked


def show(results: Results, console: Console) -> None:
    """Print the tables."""
    console.print(_machine_text())
    console.print(tables.of_throughput(results.runs))
    console.print(tables.of_tls(results.secured))
    console.print(tables.of_queries(results.costs))
    console.print(tables.of_processors(results.costs, results.own_trigger))
    console.print(tables.of_sizes(results.costs))
    console.print(tables.of_evidence(results.evidence))
    console.print(tables.of_streams(results.held, results.costs))
    console.print(tables.of_looks(results.looked))


def show_woken(woken: Woken, console: Console) -> None:
    """Print how long it took to wake workloads."""
    console.print(_machine_text())
    console.print(tables.of_waking(woken))


def write(results: Results) -> Path:
    """Write the figures and what was made of them; return the file."""
    return _written(_everything(results))


def write_woken(woken: Woken) -> Path:
    """Write how long it took to wake workloads; return the file."""
    ratios = {kind: woken.ratio(kind) for kind in waking.Kind}
    return _written({"wake": asdict(woken), "ratios": ratios})


def _written(figures: Mapping[str, Any]) -> Path:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    path = DIRECTORY / time.strftime("%Y-%m-%dT%H-%M-%SZ.json", time.gmtime())
    about = {"version": keda_gpu_scaler.__version__, "machine": _machine()}
    path.write_text(json.dumps({**about, **figures}, indent=2) + "\n")
    return path


def _everything(results: Results) -> dict[str, Any]:
    compared = throughput.compare(results.runs)
    return {
        "get_metrics": {name: asdict(one) for name, one in compared.items()},
        "runs": {name: [asdict(run) for run in runs] for name, runs in results.runs.items()},
        "tls": {
            **asdict(results.secured),
            **asdict(results.secured.compared),
            "cpu_ratio": results.secured.cpu_ratio,
        },
        "queries": [_cost(one) for one in results.costs],
        "own_trigger": _cost(results.own_trigger),
        "evidence": {
            **asdict(results.evidence),
            "time_ratio": asdict(results.evidence.seconds),
            "cpu_ratio": asdict(results.evidence.cpu),
        },
        "streams": asdict(results.held),
        "looks": asdict(results.looked),
    }


def _cost(cost: Cost) -> dict[str, Any]:
    rates = {"queries_per_second": cost.queries_per_second, "ratio": cost.ratio}
    return {**asdict(cost), **rates}


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load_average": os.getloadavg(),
    }


def _machine_text() -> str:
    machine = _machine()
    loads = ", ".join(f"{load:.1f}" for load in machine.pop("load_average"))
    return ", ".join(f"{key} {value}" for key, value in machine.items()) + f", load {loads}"
