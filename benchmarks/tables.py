"""What was measured, as tables for people."""

from collections.abc import Sequence
from statistics import median

from rich.table import Table

from benchmarks import ghz, schedule, throughput, waking
from benchmarks.comparison import Ratio
from benchmarks.evidence import Asked
from benchmarks.ghz import Run
from benchmarks.looked import Looked
from benchmarks.queries import Cost
from benchmarks.streams import Held
from benchmarks.tls import Secured
from benchmarks.waking import Woken

_MIB = 1024 * 1024


def of_throughput(runs: dict[str, list[Run]]) -> Table:
    """Return how GetMetrics compares with a server that only answers."""
    title = f"GetMetrics, {ghz.CONCURRENCY} at once on one connection: scaler ÷ echo server"
    table = Table("asked about", "requests per second", "p99", title=title)
    for name, one in throughput.compare(runs).items():
        table.add_row(name, _text(one.requests_per_second), _text(one.p99))
    return table


def of_tls(secured: Secured) -> Table:
    """Return what mutual TLS costs."""
    title = "GetMetrics, mutual TLS ÷ plaintext"
    table = Table("requests per second", "p99", "the scaler's CPU time", title=title)
    found = secured.compared
    rates = _text(found.requests_per_second), _text(found.p99)
    table.add_row(*rates, f"{secured.cpu_ratio:.2f}")
    return table


def of_queries(costs: Sequence[Cost]) -> Table:
    """Return how often Prometheus was asked."""
    table = Table(
        *("triggers", "polls", "queries", "per second", "KEDA's own trigger", "ratio"),
        "KEDA's own trigger, no polls",
        title="Queries that Prometheus counted",
    )
    for cost in costs:
        own = schedule.queries_per_second(cost.triggers)
        of_hpa = schedule.queries_per_second(cost.triggers, polls_values=False)
        counted = (f"{cost.queries}", f"{cost.queries_per_second:.3f}", f"{own:g}")
        compared = (f"{cost.ratio:.4f}", f"{of_hpa:.3g}")
        table.add_row(f"{cost.triggers}", f"{cost.asks}", *counted, *compared)
    return table


def of_processors(costs: Sequence[Cost], own_trigger: Cost) -> Table:
    """Return what CPU time polls used, the scaler's and those of KEDA's own trigger."""
    table = Table(
        *("triggers", "asked by", "seconds", "Prometheus", "scaler"),
        title="Processor seconds used meanwhile",
    )
    asked = [("the scaler", cost) for cost in costs]
    for who, cost in [*asked, ("KEDA's own trigger", own_trigger)]:
        used = cost.scaler_cpu_seconds
        scaler = "-" if used is None else f"{used:.2f}"
        shown = (f"{cost.seconds:.0f}", f"{cost.prometheus_cpu_seconds:.2f}", scaler)
        table.add_row(f"{cost.triggers}", who, *shown)
    return table


def of_sizes(costs: Sequence[Cost]) -> Table:
    """Return the resources that one scaler uses."""
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
        if cost.memory is None or cost.start_cpu_seconds is None:
            raise ValueError(f"the scaler was not measured for {cost.triggers} triggers")
        sizes = (cost.memory.resident_bytes, cost.memory.peak_bytes)
        needs = (f"{cost.scaler_percent:.1f}", *(f"{size / _MIB:.0f}" for size in sizes))
        table.add_row(f"{cost.triggers}", *needs, f"{cost.start_cpu_seconds:.1f}")
    return table


def of_evidence(asked: Asked) -> Table:
    """Return what questions about pods cost."""
    title = f"What kube-state-metrics is asked about {asked.pods} pods ÷ the snapshot of them"
    table = Table("", "time to answer", "Prometheus' CPU time", title=title)
    table.add_row("ratio", _text(asked.seconds), _text(asked.cpu))
    for name, spent in {"seconds": asked.usual, "seconds, the first time": asked.first}.items():
        table.add_row(name, f"{spent.seconds:.2f}", f"{spent.prometheus_cpu_seconds:.2f}")
    return table


def of_streams(held: Held, costs: Sequence[Cost]) -> Table:
    """Return what open streams cost."""
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
        polled = f"the scaler, polled about {cost.triggers}"
        asked = f"{60 * cost.queries_per_second:.0f}"
        table.add_row(polled, "0", f"{cost.scaler_percent:.2f}", asked)
    return table


def of_looks(looked: Looked) -> Table:
    """Return what a look at the status page costs."""
    table = Table(
        *("shown", "ms of CPU time", "MiB", "÷ a scrape of /metrics"),
        title=f"What one look at {looked.triggers} triggers costs the scaler",
    )
    for name, seconds in looked.cpu_seconds.items():
        figures = f"{1000 * median(seconds):.0f}", f"{looked.bytes_sent[name] / _MIB:.1f}"
        table.add_row(name, *figures, _text(looked.ratio(name)))
    return table


def of_waking(woken: Woken) -> Table:
    """Return how long waking a workload took."""
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
