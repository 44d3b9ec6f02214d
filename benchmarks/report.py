"""The results: tables for people, and everything that was measured in a file."""

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import keda_gpu_scaler
from benchmarks import ghz, schedule, throughput, waking
from benchmarks.comparison import Ratio
from benchmarks.evidence import Asked
from benchmarks.ghz import Run
from benchmarks.processes import Memory
from benchmarks.queries import Cost
from benchmarks.streams import Held
from benchmarks.tls import Secured
from benchmarks.waking import Woken

_MIB = 1024 * 1024
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


def show(results: Results, console: Console) -> None:
    """Print the tables."""
    console.print(_machine_text())
    console.print(_throughput(results.runs))
    console.print(_tls(results.secured))
    console.print(_queries(results.costs))
    console.print(_processors(results))
    console.print(_sizes(results.costs))
    console.print(_evidence(results.evidence))
    console.print(_streams(results.held, results.costs))


def show_woken(woken: Woken, console: Console) -> None:
    """Print how long it took to wake workloads."""
    console.print(_machine_text())
    console.print(_waking(woken))


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


def _throughput(runs: dict[str, list[Run]]) -> Table:
    title = f"GetMetrics, {ghz.CONCURRENCY} at once on one connection: scaler ÷ echo server"
    table = Table("asked about", "requests per second", "p99", title=title)
    for name, one in throughput.compare(runs).items():
        table.add_row(name, _text(one.requests_per_second), _text(one.p99))
    return table


def _tls(secured: Secured) -> Table:
    title = "GetMetrics, mutual TLS ÷ plaintext"
    table = Table("requests per second", "p99", "the scaler's processor time", title=title)
    found = secured.compared
    rates = _text(found.requests_per_second), _text(found.p99)
    table.add_row(*rates, f"{secured.cpu_ratio:.2f}")
    return table


def _queries(costs: Sequence[Cost]) -> Table:
    table = Table(
        *("triggers", "polls", "queries", "per second", "KEDA's own trigger", "ratio"),
        title="Queries that Prometheus counted",
    )
    for cost in costs:
        own = schedule.queries_per_second(cost.triggers)
        counted = (f"{cost.queries}", f"{cost.queries_per_second:.3f}", f"{own:g}")
        table.add_row(f"{cost.triggers}", f"{cost.asks}", *counted, f"{cost.ratio:.4f}")
    return table


def _processors(results: Results) -> Table:
    table = Table(
        *("triggers", "asked by", "seconds", "Prometheus", "scaler"),
        title="Processor seconds used meanwhile",
    )
    asked = [("the scaler", cost) for cost in results.costs]
    for who, cost in [*asked, ("KEDA's own trigger", results.own_trigger)]:
        used = cost.scaler_cpu_seconds
        scaler = "-" if used is None else f"{used:.2f}"
        shown = (f"{cost.seconds:.0f}", f"{cost.prometheus_cpu_seconds:.2f}", scaler)
        table.add_row(f"{cost.triggers}", who, *shown)
    return table


def _sizes(costs: Sequence[Cost]) -> Table:
    table = Table(
        *(
            "triggers",
            "percent of one core",
            "MiB resident",
            "MiB at most",
            "core seconds to start",
        ),
        title="What one scaler needs",
    )
    for cost in costs:
        percent = 100 * (cost.scaler_cpu_seconds or 0) / cost.seconds
        memory = cost.memory or Memory(0, 0)
        sizes = (f"{size / _MIB:.0f}" for size in (memory.resident_bytes, memory.peak_bytes))
        start = f"{cost.start_cpu_seconds or 0:.1f}"
        table.add_row(f"{cost.triggers}", f"{percent:.1f}", *sizes, start)
    return table


def _evidence(asked: Asked) -> Table:
    title = f"What kube-state-metrics is asked about {asked.pods} pods ÷ the snapshot of them"
    table = Table("", "time to answer", "Prometheus' processor time", title=title)
    table.add_row("ratio", _text(asked.seconds), _text(asked.cpu))
    for name, spent in {"seconds": asked.usual, "seconds, the first time": asked.first}.items():
        table.add_row(name, f"{spent.seconds:.2f}", f"{spent.prometheus_cpu_seconds:.2f}")
    return table


def _streams(held: Held, costs: Sequence[Cost]) -> Table:
    table = Table(
        *("server", "streams", "percent of one core", "queries per minute"),
        title="What open streams cost",
    )
    for name, streams, used in (
        ("the scaler", held.streams, held.scaler),
        ("the scaler", 0, held.without),
        ("a bare server", held.streams, held.bare),
    ):
        asked = f"{60 * used.queries / used.seconds:.0f}"
        table.add_row(name, f"{streams}", f"{used.percent:.2f}", asked)
    for cost in costs:
        percent = 100 * (cost.scaler_cpu_seconds or 0) / cost.seconds
        asked = f"{60 * cost.queries_per_second:.0f}"
        table.add_row(f"the scaler, polled about {cost.triggers}", "0", f"{percent:.2f}", asked)
    return table


def _waking(woken: Woken) -> Table:
    rounds = len(woken.seconds[waking.Kind.PROMETHEUS])
    table = Table(
        *("trigger", "median, s", "longest, s", "median ÷ KEDA's own"),
        title=f"From the demand to the first replica, {rounds} rounds",
    )
    for kind, seconds in woken.seconds.items():
        figures = f"{woken.median(kind):.1f}", f"{max(seconds):.1f}", f"{woken.ratio(kind):.2f}"
        table.add_row(kind, *figures)
    return table


def _text(ratio: Ratio) -> str:
    return f"{ratio.median:.2f}  ({ratio.lowest:.2f} to {ratio.highest:.2f})"
