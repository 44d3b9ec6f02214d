"""Asks a running scaler for the records of a ScaledObject, and writes records for people.

A record is read into the same values that the scaler wrote it from, so that the text needs no
knowledge of JSON. Nothing in `serve` imports this.
"""

import datetime as dt
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
import orjson
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keda_gpu_scaler import errors
from keda_gpu_scaler.autoscaling import gates
from keda_gpu_scaler.record import drain
from keda_gpu_scaler.record.drain import Drain
from keda_gpu_scaler.record.record import Activation, Metric, Pod, Record, Says
from keda_gpu_scaler.record.why_not import WhyNot
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.transport import client

LIMIT_BYTES = 32 * 2**20
_STATUSES = {
    401: "it wants a token: name the file that holds it with --token-file",
    503: "it cannot read its own token",
}
_NOT_FOUND = 404
_REASON_SHOWN = 8192
"""Characters: every mistake of a trigger that was refused."""
Found = TypeVar("Found")
WIDTH = 100
"""Columns of a text that is not shown in a terminal."""


class ExplainError(Exception):
    """There is no record; the message says why, for people."""


class Asked(NamedTuple):
    """Which scaler to ask, and about what."""

    server: str
    scaled_object: str
    """namespace/name"""
    token_file: Path | None
    ca_file: Path | None
    timeout_seconds: float


@dataclass(frozen=True)
class _Answer:
    triggers: list[Record]


async def ask(asked: Asked) -> list[Record]:
    """Return the records of a ScaledObject's triggers.

    Raises:
        ExplainError: the scaler cannot be asked, or it knows no such ScaledObject.
    """
    return decoded(await body(asked), _Answer).triggers


async def body(asked: Asked, below: str = "") -> bytearray | bytes:
    """Return what a scaler answers about a ScaledObject.

    Args:
        asked: the scaler and the ScaledObject.
        below: the path below that of the ScaledObject.

    Raises:
        ExplainError: the scaler cannot be asked, or it knows no such ScaledObject.
    """
    try:
        answer = await _asked(asked, below, _token(asked))
    except (errors.SourceError, OSError, UnicodeError) as error:
        raise ExplainError(str(error)) from error
    if answer.status != client.OK:
        text = bytes(answer.body).decode(errors="replace")
        if answer.status == _NOT_FOUND:
            raise ExplainError(client.printable(text, _REASON_SHOWN))
        known = _STATUSES.get(answer.status)
        raise ExplainError(known or f"HTTP {answer.status}: {client.printable(text)}")
    return answer.body


def _token(asked: Asked) -> str | None:
    return None if asked.token_file is None else asked.token_file.read_text().strip()


def decoded(answer: bytearray | bytes, wanted: type[Found]) -> Found:
    """Return an answer as a value.

    Raises:
        ExplainError: it is another one.
    """
    try:
        return msgspec.json.decode(answer, type=wanted)
    except msgspec.MsgspecError as error:
        message = f"no records, is that the HTTP port of a scaler of this version? ({error})"
        raise ExplainError(message) from error


async def _asked(asked: Asked, below: str, token: str | None) -> client.Answer:
    url = f"{asked.server}/api/v1/triggers/{asked.scaled_object}{below}"
    requests = client.of_one_server(
        None if token is None else lambda: token, asked.ca_file, asked.timeout_seconds
    )
    try:
        return await requests.get(url)
    finally:
        await requests.close()


@dataclass(frozen=True)
class _Explained:
    triggers: Sequence[Record]
    gates: gates.Gates | None


def write(
    found: Sequence[Record | WhyNot | Drain], output: str, behind: gates.Gates | None = None
) -> None:
    """Write records, or what was made of them, to the standard output.

    Args:
        found: what to write, one for each trigger.
        output: text, json or yaml.
        behind: the gates between records and the replicas; None: not known.
    """
    records = [one for one in found if isinstance(one, Record)]
    # What was made of records answers another question, of which Kubernetes says nothing.
    explained = found if len(records) < len(found) else _Explained(records, behind)
    if output == "json":
        sys.stdout.write(orjson.dumps(explained, option=orjson.OPT_INDENT_2).decode() + "\n")
    elif output == "yaml":
        plain = orjson.loads(orjson.dumps(explained))
        yaml.safe_dump(plain, sys.stdout, sort_keys=False, allow_unicode=True)
    else:
        console = Console(highlight=False, markup=False, emoji=False)
        if not console.is_terminal:
            console = Console(highlight=False, markup=False, emoji=False, width=WIDTH)
        for number, one in enumerate(found):
            if isinstance(one, Drain):
                # Not wrapped: it is there to be run.
                sys.stdout.write("".join(f"{line}\n" for line in drain.script(one)))
                continue
            if number:
                console.rule()
            if isinstance(one, WhyNot):
                _show_why_not(console, one)
            else:
                _show(console, one)
        if behind is not None:
            if found:
                console.rule()
            _show_gates(console, behind)


def _show_gates(console: Console, behind: gates.Gates) -> None:
    there = gates.replicas_in_words(behind.replicas)
    console.print(f"From the value to {there}, by {behind.cluster}", style="bold")
    said = behind.reason if behind.first is None else f"{behind.first}: {behind.reason}"
    console.print(said, soft_wrap=not console.is_terminal)
    console.print()
    table = _table("gate", "holds", "why")
    table.add_column("condition", overflow="fold", min_width=38)
    for gate in behind.gates:
        holds = Text("yes", "yellow") if gate.holds else Text("no")
        table.add_row(gate.name, holds, gate.reason, gate.condition or "-")
    console.print(table)


def _show_why_not(console: Console, found: WhyNot) -> None:
    replicas = "1 replica" if found.replicas == 1 else f"{found.replicas} replicas"
    question = f"does {found.metric_name} ask for {found.wanted}?"
    if found.wanted == 0:
        question = "is the trigger inactive, so that KEDA goes to zero?"
    answer = ("yes", "bold green") if found.is_so else ("no", "bold yellow")
    heading = f"{found.scaled_object} at {replicas}: {question} "
    console.print(Text.assemble((heading, "bold"), answer))
    for reason in found.reasons:
        console.print(f"- {reason}")
    for number, way in enumerate(found.ways):
        console.print("What would do:" if number == 0 else "or", style="bold")
        for change in way:
            console.print(f"- {change.text}")


def _show(console: Console, record: Record) -> None:
    # Whole lines, where a program or a search reads them.
    whole = not console.is_terminal
    console.print(_heading(record), soft_wrap=whole)
    console.print(record.reason, soft_wrap=whole)
    for warning in record.warnings:
        console.print(f"warning: {warning}", soft_wrap=whole)
    console.print()
    console.print(_facts(record))
    if record.pods:
        many = sum(one.pods for one in record.pod_counts)
        _titled(console, f"Pods ({many})", _pods(record))
        if record.pods_left_out:
            console.print(f"and {record.pods_left_out} more: {_counted(record)}")
    _titled(console, "What says active, in this order", _activation(record.activation))
    _titled(console, "What the HPA makes of it", _metrics(record.metrics))
    _titled(console, "Trigger", _rows((one.key, one.value, one.origin) for one in record.settings))
    for query in record.queries:
        console.print()
        console.print(f"PromQL: {query.name}", style="bold")
        # Not wrapped: it is there to be pasted.
        console.print(query.text, soft_wrap=True)


def _heading(record: Record) -> Text:
    active = {True: "active", False: "inactive", None: "activity unknown"}[record.active]
    style = {True: "green", False: "default", None: "yellow"}[record.active]
    heading = Text(f"{record.scaled_object}: {record.workload} is {record.state}, ", style="bold")
    return heading.append(active, style=f"bold {style}")


def _facts(record: Record) -> Table:
    source, unit = record.source, record.unit
    age = "no samples" if source.age_seconds is None else f"{source.age_seconds:.0f} s old"
    known = "nothing" if source.evidence is None else source.evidence
    rows = [
        ("decided as of", _time(record.at)),
        (
            "GetMetrics",
            "no value, which holds the replicas" if record.value is None else f"{record.value:g}",
        ),
        ("average", "-" if record.average is None else f"{record.average:g} {unit}".rstrip()),
        ("replicas asked for", _number(record.recommended)),
        ("source", f"{source.name}, {age}; which pods there are, says {known}"),
    ]
    if shown_by := {metric for pod in record.pods for metric in pod.shown_by}:
        rows.append(("metrics", "; ".join(sorted(shown_by))))
    if source.trouble is not None:
        rows.append(("trouble", source.trouble))
    if source.lag_seconds:
        rows.append(("lag", f"all samples arrive {durations.text(source.lag_seconds)} late"))
    if record.remembered is not None:
        rows.append(("known last", record.remembered))
    return _rows(rows)


def _time(seconds: float) -> str:
    """Return a time in words; a server may answer any number."""
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(" ", "seconds")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s since 1970"


def _pods(record: Record) -> Table:
    table = _table("pod", "state", "load", "GPUs", "why")
    for pod in record.pods:
        load = "-" if pod.load is None else f"{pod.load:g} {record.unit}".rstrip()
        table.add_row(pod.name, pod.state, load, _gpus(pod), pod.reason)
    return table


def _counted(record: Record) -> str:
    return ", ".join(f"{one.pods} {one.state}" for one in record.pod_counts) + " in all"


def _gpus(pod: Pod) -> str:
    shown = ["?" if gpu.value is None else f"{gpu.value:g}" for gpu in pod.gpus]
    if pod.gpus_left_out:
        shown.append(f"and {pod.gpus_left_out} more")
    return ", ".join(shown) or "-"


def _activation(found: Iterable[Activation]) -> Table:
    table = _table("signal", "says", "value", "above", "why")
    for one in found:
        style = "green" if one.says is Says.ACTIVE else ""
        table.add_row(
            one.signal,
            Text(one.says, style),
            _number(one.value),
            _number(one.threshold),
            one.reason,
        )
    return table


def _metrics(found: Iterable[Metric]) -> Table:
    table = _table("metric", "type", "value", "target", "replicas", "asks for", "why")
    for one in found:
        asks = "-" if one.desired is None else str(one.desired)
        table.add_row(
            one.name,
            one.metric_type,
            _number(one.value),
            _number(one.target),
            str(one.replicas),
            asks,
            one.reason,
        )
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _rows(rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column)
    return table


def _titled(console: Console, title: str, table: Table) -> None:
    console.print()
    console.print(title, style="bold")
    console.print(table)
