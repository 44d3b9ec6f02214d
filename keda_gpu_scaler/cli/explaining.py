"""What `explain` does: gets the records of a ScaledObject, and writes them for people.

A running scaler's record is read into the same values that the scaler wrote it from, so that the
text needs no knowledge of JSON.
"""

import asyncio
import datetime as dt
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import msgspec
import orjson
import typer
from rich.console import Console
from rich.table import Table

from keda_gpu_scaler import errors
from keda_gpu_scaler.autoscaling import gates
from keda_gpu_scaler.cli import arguments, files
from keda_gpu_scaler.cli.explain import Options
from keda_gpu_scaler.record.drain import drain
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.record.why_not import WhyNot, why_not
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.transport import client

_STATUSES = {
    401: "it requires a token: name its file with --token-file",
    503: "it cannot read its own token",
}
_NOT_FOUND = 404
_REACH_IT = "; to reach it:\n  kubectl port-forward -n keda service/keda-gpu-scaler-http 8080"
_REASON_SHOWN = 8192
"""Characters: every mistake of a trigger that was refused."""
_SIGNAL = {
    "signal": "signal",
    "says": "says",
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
    "asks for": "desired",
    "why": "reason",
}
"""The columns of a table, each with what its cells show."""
WIDTH = 100
"""Columns of a text that is not shown in a terminal."""


async def explain_running(options: Options, scaled_object: ScaledObject, server: str) -> None:
    records, behind, failure = [], None, None
    try:
        records = await _fetch_records(f"{server}/api/v1/triggers/{scaled_object}", options)
    except (errors.SourceError, OSError, UnicodeError) as error:
        is_closed = isinstance(error, errors.SourceUnreachableError) and options.server is None
        shown = re.sub("//.*@", "//", server)  # without a password
        failure = arguments.failure(f"{shown}: {error}{_REACH_IT if is_closed else ''}")
    if options.cluster and options.why_not is None and not options.drain:
        from keda_gpu_scaler.cli import cluster  # noqa: PLC0415 - it loads what speaks to Kubernetes

        try:
            behind = await cluster.fetch_gates(
                scaled_object, records, options.kubeconfig, options.context, options.timeout
            )
        except errors.SourceError as error:
            arguments.failure(
                "cannot show what holds the replicas (--no-cluster leaves it out): "
                f"{errors.without_controls(str(error))}"
            )
    if records or behind is not None:
        _show(records, options, behind)
    if failure is not None:
        raise failure


async def explain_file(options: Options, file: str) -> None:
    """Decide the triggers of a file here; a source that gives nothing is a failure."""
    from keda_gpu_scaler.cli import local  # noqa: PLC0415 - it loads all that `serve` does

    is_past = options.at is not None
    try:
        at = None if options.at is None else local.instant(options.at, time.time())
        settings = local.source_settings(options.prometheus_url, is_past=is_past)
        texts = {file: files.read(file)}
        triggers = local.given(texts, options.namespace, settings.access, options.scaled_object)
        specs = [trigger.spec for trigger in triggers]
        async with local.open_evaluator(
            specs, settings, slow_seconds=options.timeout, at=at
        ) as evaluator:
            records = await asyncio.gather(*(evaluator.record(*trigger) for trigger in triggers))
    except (errors.SettingsError, OSError, ValueError) as error:
        raise arguments.failure(error, status=2) from error
    _show(records, options)
    sources = [record.source for record in records]
    troubles = {source.trouble: None for source in sources if source.snapshot_at is None}
    for trouble in filter(None, troubles):
        arguments.failure(trouble)
    if troubles:
        raise typer.Exit(1)


def _show(records: Sequence[Record], options: Options, behind: gates.Gates | None = None) -> None:
    answers = None
    if options.why_not is not None:
        answers = [why_not(record, options.why_not) for record in records]
    if options.drain:  # one pod has one cost: that of the first trigger
        first = {record.scaled_object: record for record in reversed(records)}
        for record in reversed(first.values()):
            typer.echo("\n".join(drain(record)))
    elif options.output == "json":
        values = {"triggers": records, "gates": behind} if answers is None else answers
        typer.echo(orjson.dumps(values, option=orjson.OPT_INDENT_2))
    elif answers is None:
        _write(records, behind)
    else:
        _write_why_not(answers)


@dataclass(frozen=True)
class _Records:
    triggers: list[Record]


async def _fetch_records(url: str, options: Options) -> list[Record]:
    token = None
    if options.token_file is not None:
        token = options.token_file.read_text(errors="replace").strip()
    requests = client.of_one_server(
        url, None if token is None else lambda: token, options.ca_file, options.timeout
    )
    try:
        answer = await requests.fetch(url)
    finally:
        await requests.close()
    if answer.status != client.OK:
        text = bytes(answer.body).decode(errors="replace")
        message = _STATUSES.get(answer.status) or f"HTTP {answer.status}: {client.printable(text)}"
        if answer.status == _NOT_FOUND:
            message = client.printable(text, _REASON_SHOWN)
        raise errors.SourceRefusedError(message)
    try:
        return msgspec.json.decode(answer.body, type=_Records).triggers
    except msgspec.MsgspecError as error:
        why = client.error_text(error)
        message = f"no records: is this the HTTP port of a scaler of this version? ({why})"
        raise errors.SourceMalformedError(message) from error


def _write(records: Sequence[Record], behind: gates.Gates | None) -> None:
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


def _write_why_not(answers: Sequence[WhyNot]) -> None:
    console = _console()
    for number, answer in enumerate(answers):
        if number:
            console.rule()
        question = f"does {answer.metric_name} ask for {answer.wanted}?"
        if answer.wanted == 0:
            question = "is the trigger inactive, so that KEDA goes to zero?"
        replicas = gates.replicas_in_words(answer.replicas)
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
        ("What says active, in this order", _SIGNAL, record.activation),
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
    yield "replicas asked for", _number(record.recommended)
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
        gpus = ["?" if gpu.value is None else f"{gpu.value:g}" for gpu in pod.gpus]
        if pod.gpus_left_out:
            gpus.append(f"and {pod.gpus_left_out} more")
        gpu_values = ", ".join(gpus) or "-"
        yield pod.name, pod.state, _number(pod.load, record.gpu_unit), gpu_values, pod.reason


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:g} {unit}".rstrip()


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
