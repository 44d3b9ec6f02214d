"""Asks a running scaler for the records of a ScaledObject, and writes records for people.

A record is read into the same values that the scaler wrote it from, so that the text needs no
knowledge of JSON. Nothing in `serve` imports this.
"""

import asyncio
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
from keda_gpu_scaler.record.record import Activation, Metric, Pod, Record, Says
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.transport import client

LIMIT_BYTES = 32 * 2**20
_STATUSES = {
    401: "it wants a token: name the file that holds it with --token-file",
    503: "it cannot read its own token",
}
_NOT_FOUND = 404
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


def ask(asked: Asked) -> list[Record]:
    """Return the records of a ScaledObject's triggers.

    Raises:
        ExplainError: the scaler cannot be asked, or it knows no such ScaledObject.
    """
    return decoded(body(asked), _Answer).triggers


def body(asked: Asked, below: str = "") -> bytearray | bytes:
    """Return what a scaler answers about a ScaledObject.

    Args:
        asked: the scaler and the ScaledObject.
        below: the path below that of the ScaledObject.

    Raises:
        ExplainError: the scaler cannot be asked, or it knows no such ScaledObject.
    """
    try:
        token = None if asked.token_file is None else asked.token_file.read_text().strip()
        answer = asyncio.run(_asked(asked, below, token))
    except (errors.SourceError, OSError, UnicodeError) as error:
        raise ExplainError(str(error)) from error
    if answer.status != client.OK:
        said = client.printable(bytes(answer.body).decode(errors="replace"))
        known = said if answer.status == _NOT_FOUND else _STATUSES.get(answer.status)
        raise ExplainError(known or f"HTTP {answer.status}: {said}")
    return answer.body


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


def write(found: Sequence[Record], output: str) -> None:
    """Write records to the standard output.

    Args:
        found: the records.
        output: text, json or yaml.
    """
    if output == "json":
        sys.stdout.write(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() + "\n")
    elif output == "yaml":
        plain = orjson.loads(orjson.dumps(found))
        yaml.safe_dump(plain, sys.stdout, sort_keys=False, allow_unicode=True)
    else:
        console = Console(highlight=False, markup=False, emoji=False)
        if not console.is_terminal:
            console = Console(highlight=False, markup=False, emoji=False, width=WIDTH)
        for number, record in enumerate(found):
            if number:
                console.rule()
            _show(console, record)


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
        _titled(console, f"Pods ({len(record.pods)})", _pods(record))
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
        ("asks for", "-" if record.recommended is None else f"{record.recommended} replicas"),
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
    for pod in sorted(record.pods, key=lambda pod: (pod.load is None, pod.load or 0.0)):
        load = "-" if pod.load is None else f"{pod.load:g} {record.unit}".rstrip()
        table.add_row(pod.name, pod.state, load, _gpus(pod), pod.reason)
    return table


def _gpus(pod: Pod) -> str:
    return ", ".join("?" if gpu.value is None else f"{gpu.value:g}" for gpu in pod.gpus) or "-"


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
