"""Records of decisions as text for people: what `explain` prints."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from rich.console import Console
from rich.table import Table

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision import reasons
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.workbench.explain import gates
from keda_gpu_scaler.workbench.explain.drain import costs_of
from keda_gpu_scaler.workbench.explain.why_not import WhyNot

_SIGNAL = {
    "input": "signal",
    "is": "says",
    "value": "value",
    "above": "threshold",
    "why": "reason",
}
_METRIC = {
    "metric": "name",
    "type": "metric_type",
    "value": "value",
    "target": "target",
    "replicas": "replicas",
    "wants": "desired",
    "why": "reason",
}
"""The columns of a table, each with what its cells show."""
WIDTH = 100
"""Columns of a text that is not shown in a terminal."""


def write(records: Sequence[Record], behind: gates.Gates | None) -> None:
    console = _console()
    for number, record in enumerate(records):
        if number:
            console.rule()
        _write_record(console, record)
    if behind is not None:
        if records:
            console.rule()
        replicas = gates.replicas_in_words(behind.replicas)
        console.print(f"From the value to {replicas}, in {behind.cluster}", style="bold")
        if not behind.gates:
            _print_line(console, behind.reason)
        for gate in behind.gates:
            shown_by = "" if gate.condition is None else f" ({gate.condition})"
            _print_line(console, f"{gate.name}: {gate.reason}{shown_by}")


def write_why_not(answers: Sequence[WhyNot]) -> None:
    console = _console()
    for number, answer in enumerate(answers):
        if number:
            console.rule()
        question = f"does {answer.metric_name} want {answer.wanted}?"
        if answer.wanted == 0:
            question = "is the trigger inactive, so that KEDA goes to zero?"
        replicas = durations.counted(answer.replicas, "replica")
        yes_or_no = "yes" if answer.is_so else "no"
        heading = f"{answer.scaled_object} at {replicas}: {question} {yes_or_no}"
        console.print(errors.without_controls(heading), style="bold")
        for reason in answer.reasons:
            console.print(errors.without_controls(f"- {reason}"))
        if answer.ways:
            console.print("What would change it:", style="bold")
        for way in answer.ways:
            console.print(errors.without_controls(f"- {way.text}"))


def _console() -> Console:
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def _print_line(console: Console, text: str, style: str | None = None) -> None:
    """Write a whole line where a program or a search reads it, and a wrapped one for a person."""
    console.print(errors.without_controls(text), style=style, soft_wrap=not console.is_terminal)


def _write_record(console: Console, record: Record) -> None:
    active = {True: "active", False: "inactive", None: "activity unknown"}[record.active]
    style = {True: "bold green", False: "bold", None: "bold yellow"}[record.active]
    heading = f"{record.scaled_object}: {record.workload} is {record.state}, {active}"
    _print_line(console, heading, style)
    _print_line(console, record.reason)
    for warning in record.warnings:
        _print_line(console, f"warning: {warning}")
    _print_table(console, "", (), _facts(record))
    if record.pods:
        title = f"Pods ({sum(count.pods for count in record.pod_counts)})"
        _print_table(console, title, ("pod", "state", "load", "GPUs", "why"), _pods(record))
    if record.pods_left_out:
        counts = ", ".join(f"{count.pods} {count.state}" for count in record.pod_counts)
        console.print(errors.without_controls(f"and {record.pods_left_out} more: {counts} in all"))
    for title, columns, items in (
        ("Activation inputs (the first active one wins)", _SIGNAL, record.activation),
        ("What the HPA makes of it", _METRIC, record.metrics),
    ):
        _print_table(console, title, [*columns], map(attrgetter(*columns.values()), items))
    settings = map(attrgetter("key", "value", "origin"), record.settings)
    _print_table(console, "Trigger", (), settings)
    for query in record.queries:
        console.print()
        console.print(errors.without_controls(f"PromQL: {query.name}"), style="bold")
        # Not wrapped: it is there to be pasted.
        console.print(errors.without_controls(query.text, kept="\n"), soft_wrap=True)


def _facts(record: Record) -> Iterator[Sequence[str]]:
    source = record.source
    age = "no samples" if source.age_seconds is None else f"{source.age_seconds:.0f} s old"
    pods = "none" if source.evidence is None else f"from {source.evidence}"
    holds = "no value, which holds the replicas"
    try:
        decided_at = dt.datetime.fromtimestamp(record.at, dt.UTC).isoformat(" ", "seconds")
    except (ValueError, OverflowError, OSError):  # a server may answer any number
        decided_at = f"{record.at:g} s since 1970"
    yield "decided at", decided_at
    yield "GetMetrics", holds if record.value is None else _number(record.value)
    yield "average", _number(record.average, record.unit)
    yield "replicas wanted", _number(record.recommended)
    costs = costs_of(record) if record.workload.startswith("deployment/") else {}
    if len(costs) > 1:
        yield "least busy", f"{next(iter(costs))}, which would go first by deletion costs"
    yield "source", f"{source.name}, {age}; list of pods: {pods}"
    if shown_by := {metric for pod in record.pods for metric in pod.shown_by}:
        yield "metrics", "; ".join(sorted(shown_by))
    if source.trouble is not None:
        yield "trouble", source.trouble
    if source.lag_seconds:
        yield "lag", f"all samples arrive {durations.text(source.lag_seconds)} late"
    if record.remembered is not None:
        yield "last known", record.remembered


def _pods(record: Record) -> Iterator[Sequence[str]]:
    for pod in record.pods:
        gpus = ["?" if gpu.value is None else reasons.rounded(gpu.value) for gpu in pod.gpus]
        if pod.gpus_left_out:
            gpus.append(f"and {pod.gpus_left_out} more")
        gpu_values = ", ".join(gpus) or "-"
        yield pod.name, pod.state, _number(pod.load, record.gpu_unit), gpu_values, pod.reason


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{reasons.rounded(value)} {unit}".rstrip()


def _print_table(
    console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    table = Table(*columns, box=None, show_header=bool(columns), pad_edge=False, header_style="dim")
    for row in rows:
        cells = (_number(cell) if isinstance(cell, float | None) else str(cell) for cell in row)
        # A query of several lines is whole below the table.
        table.add_row(*(errors.without_controls(" ".join(cell.split())) for cell in cells))
    console.print()
    if title:
        console.print(title, style="bold")
    console.print(table)
