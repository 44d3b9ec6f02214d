"""The status page: every trigger, and one with everything behind its decision, for people.

Rendered here, without a build step and without a script that the page would need. Nothing comes
from another host, and no text becomes markup: names, queries and reasons are tenants' words.
"""

import asyncio
import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from keda_gpu_scaler import __version__
from keda_gpu_scaler.decision import reasons
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.decision.summary import Summary
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry.history import Change
from keda_gpu_scaler.web import timeline
from keda_gpu_scaler.web.triggers import Shown

if TYPE_CHECKING:
    from jinja2 import Environment

ROWS = 1000
"""The most triggers on one page, about 1 MiB."""
AT_ONCE = 4
"""The most pages that are made at a time, so that what they show stays small in memory."""
REASON_CHARACTERS = 400
"""Of a reason in a row; the page of the trigger has all of it."""
STATIC = "/static"
"""The style of the pages, which contains no data."""
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
_GONE = frozenset(state for state in State if state.is_gone)


class Standing(StrEnum):
    """What becomes of a workload, in one word; a list begins with the first."""

    HELD = "held"
    """Its load is not known well enough: the HPA gets no number, or KEDA an error."""
    ACTIVE = "active"
    IDLE = "idle"


def standing(shown: Summary) -> Standing:
    """Return what becomes of a workload; an empty one that is active is about to be woken."""
    if shown.active is None or (shown.value is None and shown.state not in _GONE):
        return Standing.HELD
    return Standing.ACTIVE if shown.active else Standing.IDLE


def routes(shown: Shown) -> list[Route | Mount]:
    turns = asyncio.Semaphore(AT_ONCE)

    async def page(request: Request, template: str, values: Mapping[str, object]) -> Response:
        """Render in a thread: a page of a thousand rows takes tens of milliseconds."""
        common = {
            "root": f"{request.scope['root_path']}/",  # behind a proxy that puts a path before it
            "refresh_seconds": shown.evaluator.step_seconds,
            "made_at": shown.clock(),
        }

        def render() -> str:
            return _templates().get_template(template).render({**common, **values})

        return HTMLResponse(await asyncio.to_thread(render), headers=_HEADERS)

    async def show_list(request: Request) -> Response:
        async with turns:
            namespace = request.path_params.get("namespace")
            summaries = [summary async for summary in shown.summaries(namespace)]
            query = request.query_params
            values = _list(summaries, query.get("name", ""), query.get("show", ""))
            used = {summary.source_name for summary in summaries}
            down = await shown.evaluator.sources_down()
            values["down"] = [each for each in down if namespace is None or each.name in used]
            return await page(request, "index.html", values)

    async def show_object(request: Request) -> Response:
        async with turns:
            scaled_object = ScaledObject(**request.path_params)
            records = await shown.records(scaled_object)
            changes = shown.history.of(scaled_object)
            if not records and not changes:
                raise shown.missing(scaled_object)
            now, since = shown.clock(), shown.history.since
            period = timeline.Period(max(since, now - timeline.SHOWN_SECONDS), now)
            values = {
                "scaled_object": scaled_object,
                "sections": list(_sections(records, changes, period)),
                "ticks": list(period.ticks()),
                "since": since,
            }
            return await page(request, "trigger.html", values)

    return [
        Route("/", show_list),
        Route("/triggers/{namespace}", show_list),
        Route("/triggers/{namespace}/{name}", show_object),
        Mount(STATIC, StaticFiles(packages=[("keda_gpu_scaler.web", "static")])),
    ]


def _list(summaries: Sequence[Summary], name: str, show: str) -> dict[str, object]:
    """Return what the list shows of the triggers with `name` as a part of namespace/name.

    `show` is a standing; with any other text, triggers of every standing are listed.
    """
    order = list(Standing)
    counts = Counter(standing(summary) for summary in summaries)
    matching = [
        summary
        for summary in summaries
        if name in summary.scaled_object and (show not in order or standing(summary) == show)
    ]
    matching.sort(key=lambda summary: order.index(standing(summary)))
    return {
        "known": len(summaries),
        "holding": Counter(
            each.source_name for each in summaries if standing(each) is Standing.HELD
        ),
        "counts": [("all", len(summaries)), *((word, counts[word]) for word in order)],
        "name": name,
        "show": show if show in order else "all",
        "rows": matching[:ROWS],
        "left_out": len(matching[ROWS:]),
    }


def _sections(
    records: Sequence[Record], changes: Sequence[Change], period: timeline.Period
) -> Iterator[dict[str, object]]:
    """Yield each trigger of the ScaledObject; one that KEDA asks about no more has its history."""
    record_of = {record.trigger: record for record in records[::-1]}
    changed = (change.summary.trigger for change in changes)
    for trigger in dict.fromkeys((*reversed(record_of), *changed)):
        record = record_of.get(trigger)
        own_changes = [change for change in changes if change.summary.trigger == trigger]
        threshold = None if record is None else record.threshold
        yield {
            "name": trigger[0],
            "workload": trigger[1],
            "record": record,
            "changes": own_changes[::-1],
            "rows": timeline.rows(own_changes, period, threshold),
        }


@functools.cache
def _templates() -> "Environment":
    # Imported here, because most processes are never asked for a page.
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - see above

    templates = Environment(
        loader=PackageLoader("keda_gpu_scaler.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {
        "version": __version__,
        "standing": standing,
        "activity": {True: "active", False: "inactive", None: "not known"},
        "reason_characters": REASON_CHARACTERS,
    }
    templates.filters |= {"number": _number, "load": _load, "time": _time}
    return templates


def _number(value: float | None, unknown: str = "-") -> str:
    return unknown if value is None else reasons.rounded(value)


def _load(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{reasons.rounded(value)} {unit}".rstrip()


def _time(at: float | None) -> str:
    return "-" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
