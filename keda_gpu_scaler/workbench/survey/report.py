"""The result of a survey: a table for people, Markdown, JSON, and a page with bars."""

import sys
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from keda_gpu_scaler import errors
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.workbench.backtest.advice import percent
from keda_gpu_scaler.workbench.backtest.output import Result, json_of
from keda_gpu_scaler.workbench.backtest.page import STYLE, cells
from keda_gpu_scaler.workbench.survey.usage import Usage

WIDTH = 140
_BAR_PIXELS = 400


class Survey(NamedTuple):
    """What was found."""

    usages: Sequence[Usage]
    """The most idle workloads first."""
    seconds: float
    """How much of the past was read."""
    price: float | None
    """Of a GPU for an hour."""
    notes: Sequence[str] = ()
    """What the source has of exporters, in sentences."""

    @property
    def days(self) -> float:
        return self.seconds / durations.DAY_SECONDS

    @property
    def sentences(self) -> Iterator[str]:
        """What it comes to, in sentences."""
        hours = sum(usage.gpu_hours for usage in self.usages)
        idle = sum(usage.idle_hours for usage in self.usages)
        if not hours:
            yield "No exporter shows a GPU of a pod."
            yield from self.notes
            return
        cost = "" if self.price is None else f", {idle * self.price:,.2f} at {self.price:g} an hour"
        yield (
            f"{len(self.usages)} workloads held GPUs for {hours:,.0f} hours in "
            f"{self.days:.3g} days, idle for {idle:,.0f} of them "
            f"({percent(idle / hours)}{cost})."
        )
        if unknown := [usage for usage in self.usages if not usage.is_judged]:
            yield (
                f"Not judged: {len(unknown)}, whose pods no exporter showed for more than half of "
                "their time."
            )
        yield from self.notes


def write(survey: Survey, form: str, replays: Sequence[Result] = ()) -> None:
    """Write it to the standard output, as `text`, `markdown` or `json`, which has the replays."""
    if form == "json":
        values = {
            "seconds": survey.seconds,
            "workloads": [_as_json(usage, survey.price) for usage in survey.usages],
            "sentences": list(survey.sentences),
            "replays": [json_of(result, survey.price) for result in replays],
        }
        typer.echo(msgspec.json.format(msgspec.json.encode(values)))
        return
    heads, rows = _table(survey)
    if form == "markdown":
        lines = [heads, ["---", *["---:"] * (len(heads) - 2), "---"], *rows]
        escaped = ([cell.replace("|", r"\|") for cell in line] for line in lines)
        typer.echo("\n".join(f"| {' | '.join(line)} |" for line in escaped))
        typer.echo("\n" + "\n".join(survey.sentences))
        return
    console = Console(
        highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else WIDTH
    )
    table = Table()
    for number, head in enumerate(heads):
        is_text = number in {0, len(heads) - 1}
        table.add_column(head, justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for sentence in survey.sentences:
        console.print(sentence, style="bold")


def page(survey: Survey) -> str:
    """Return a page that loads nothing: the table, and the idle hours of each workload as a bar."""
    heads, rows = _table(survey)
    most = max((usage.gpu_hours for usage in survey.usages), default=0) or 1
    bars = [
        f'<td><svg width="{_BAR_PIXELS}" height="14" style="width:{_BAR_PIXELS}px">'
        f'<rect width="{_BAR_PIXELS * usage.gpu_hours / most:.1f}" height="14" fill="#1a7f37"/>'
        f'<rect width="{_BAR_PIXELS * usage.idle_hours / most:.1f}" height="14" fill="#bc4c00"/>'
        "</svg></td>"
        for usage in survey.usages
    ]
    lines = [f"<tr>{cells('td', row)}{bar}</tr>" for row, bar in zip(rows, bars, strict=True)]
    return "\n".join(
        [
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>survey</title>',
            f"<style>{STYLE}</style><h1>GPUs of {survey.days:.3g} days</h1>",
            *(f"<p>{escape(sentence)}</p>" for sentence in survey.sentences),
            f"<table><tr>{cells('th', heads)}<th>GPU-hours, idle ones in front</th></tr>",
            *lines,
            "</table></html>\n",
        ]
    )


def _table(survey: Survey) -> tuple[list[str], list[list[str]]]:
    price = survey.price
    costs = [] if price is None else ["cost of idle"]
    heads = ["workload", "replicas", "GPUs of each", "GPU-hours", "idle", *costs, "all full"]
    rows = [
        [
            errors.without_controls(str(usage.used)),
            str(usage.replicas),
            str(usage.gpus or "?"),
            f"{usage.gpu_hours:,.1f}",
            f"{usage.idle_hours:,.1f}",
            *([] if price is None else [f"{usage.idle_hours * price:,.2f}"]),
            durations.text(usage.full_seconds),
            percent(usage.known),
            usage.verdict,
        ]
        for usage in survey.usages
    ]
    return [*heads, "known", "what to do"], rows


def _as_json(usage: Usage, price: float | None) -> dict[str, Any]:
    return {
        "namespace": usage.used.namespace,
        "kind": usage.used.kind,
        "name": usage.used.name,
        "replicas": usage.replicas,
        "gpus_per_replica": usage.gpus or None,
        "gpu_hours": usage.gpu_hours,
        "idle_gpu_hours": usage.idle_hours,
        "idle_cost": None if price is None else usage.idle_hours * price,
        "full_seconds": usage.full_seconds,
        "known_share": usage.known,
        "longest_idle_seconds": usage.longest_idle_seconds,
        "verdict": usage.verdict,
    }
