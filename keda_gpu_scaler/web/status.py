"""The status page: every trigger, and one with everything behind its decision, for people.

Rendered here, without a build step and without a script that the page would need. Nothing comes
from another host, and no text becomes markup: names, queries and reasons are tenants' words.

A page that is not requested costs nothing. One is rendered at a time, in slices between which calls
are answered, and serves for five seconds all who ask for the same.
"""

import asyncio
import contextlib
import functools
import hashlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson
from cachetools import TTLCache
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from keda_gpu_scaler import __version__
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.record.record import Gpu, Pod, Record, Summary
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry.history import Change
from keda_gpu_scaler.web import drawing, triggers
from keda_gpu_scaler.web.triggers import Shown

if TYPE_CHECKING:
    from jinja2 import Environment, Template

ROWS = 1000
"""The most triggers on one page: 60 ms of work, and a bit more than 1 MiB."""
GPUS = 16
"""The most GPUs of one pod on a page; no machine has more."""
NEWEST = 10
"""The changes that are shown at once; the older ones are folded away."""
HISTORY_SECONDS = 6 * 3600.0
"""What a timeline shows at the most."""
KEPT_SECONDS = 5.0
"""How long a page serves. A source has nothing new within that time, unless its step is shorter."""
KEPT_BYTES = 8 * 2**20
"""Room for six pages of a thousand triggers, and for hundreds of usual ones."""
SLICE_BYTES = 32 * 1024
"""About two milliseconds of work; whatever else there is to do comes between two slices."""
REASON_CHARACTERS = 400
"""Of a reason in a row; the page of the trigger has all of it."""
FRESH_SECONDS = 60
"""KEDA asks about a trigger at least so often by default; an older answer has its age beside it."""
GRID_SECONDS = 60.0
"""A curve ends at the end of a minute, so that a page is the same until something changes."""
_NAME_LIMIT = 253
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
_ACTIVE = {True: "active", False: "inactive", None: "not known"}
_GONE = frozenset(state for state in State if state.is_gone)


class Standing(StrEnum):
    """What becomes of a workload, in one word."""

    ACTIVE = "active"
    HELD = "held"
    """Its load is not known well enough: the HPA gets no number, or KEDA an error."""
    IDLE = "idle"


class _Column(NamedTuple):
    """A column of the list."""

    name: str
    sort: str = ""
    """Its word in an address; empty: it cannot be sorted by."""
    key: Callable[[Summary], Any] = lambda _summary: None
    """Returns what to sort by; None: it is not known, and comes last."""
    is_number: bool = False
    """Numbers begin with the largest."""


_ORDER = (Standing.HELD, Standing.ACTIVE, Standing.IDLE)
_COLUMNS = (
    _Column("ScaledObject", "name", lambda one: one.scaled_object.split("/")),
    _Column("Now", "now", lambda one: _ORDER.index(standing(one))),
    _Column("Load", "average", lambda one: one.average, is_number=True),
    _Column("Value", "value", lambda one: one.value, is_number=True),
    _Column("Asks for", "recommended", lambda one: one.recommended, is_number=True),
    _Column("Pods", "pods", lambda one: one.replicas, is_number=True),
    _Column("Last half hour"),
    _Column("Why"),
    _Column("Asked", "age", lambda one: one.answered_seconds_ago, is_number=True),
)
_SORTS = {column.sort: column for column in _COLUMNS if column.sort}


class _Asked(NamedTuple):
    """What the list is asked to show; the names are those in its address."""

    name: str
    show: str
    """A standing; empty: every one."""
    state: str
    sort: str
    """The word of a column, with a dash before it for the opposite order."""

    @property
    def query(self) -> str:
        """The address of the same list."""
        given = {key: text for key, text in self._asdict().items() if text}
        return "?" + urlencode(given)

    @property
    def column(self) -> _Column:
        """The column to sort by."""
        return _SORTS[self.sort.removeprefix("-")]

    @property
    def is_descending(self) -> bool:
        """Whether the largest comes first."""
        return self.column.is_number != self.sort.startswith("-")

    def found(self, known: Iterable[Summary]) -> list[Summary]:
        """Return what it asks for, in its order; what is not known comes last."""
        key = self.column.key
        fitting = [
            one
            for one in known
            if self.name in one.scaled_object
            and self.state in {"", one.state}
            and self.show in {"", standing(one)}
        ]
        told = [one for one in fitting if key(one) is not None]
        untold = [one for one in fitting if key(one) is None]
        return sorted(told, key=key, reverse=self.is_descending) + untold


class _Page(NamedTuple):
    """A page as it is sent."""

    body: bytes
    media_type: str
    tag: str


class _Pages:
    """The pages that were requested recently; one is made at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._kept: TTLCache[str, _Page] = TTLCache(
            KEPT_BYTES, KEPT_SECONDS, getsizeof=lambda page: len(page.body)
        )

    async def answer(
        self, request: Request, begin: Callable[[], Awaitable[AsyncIterator[str]]]
    ) -> Response:
        """Return a page: one that was made just now for the same address, or a new one.

        Args:
            request: what is asked for.
            begin: finds what to show, and returns the text in parts, between which other work
                goes on. The first of them is not made before it is this page's turn.
        """
        address = f"{_root(request)} {request.url.path}?{request.url.query}"
        page = self._kept.get(address)
        if page is None:
            parts = await begin()
            await asyncio.sleep(0)  # what was decided for it may have taken as long as a slice
            async with self._turn:
                page = self._kept.get(address) or await self._made(address, request, parts)
        headers = {**_HEADERS, "etag": page.tag}
        if request.headers.get("if-none-match") == page.tag:
            return Response(status_code=304, headers=headers)
        return Response(page.body, media_type=page.media_type, headers=headers)

    async def _made(self, address: str, request: Request, parts: AsyncIterator[str]) -> _Page:
        body = "".join([part async for part in parts]).encode()
        media_type = "application/json" if _is_json(request) else "text/html"
        page = _Page(body, media_type, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
        with contextlib.suppress(ValueError):  # it is larger than all that is kept
            self._kept[address] = page
        return page


def routes(shown: Shown) -> list[Route | Mount]:
    """Return the routes of the pages."""
    pages = _Pages()

    async def every(request: Request) -> Response:
        async def begin() -> AsyncIterator[str]:
            return _list(request, shown)

        return await pages.answer(request, begin)

    async def one(request: Request) -> Response:
        scaled_object = ScaledObject(**request.path_params)

        async def begin() -> AsyncIterator[str]:
            records = await shown.records(scaled_object)
            return _object(request, shown, scaled_object, records)

        return await pages.answer(request, begin)

    static = StaticFiles(packages=[("keda_gpu_scaler.web", "static")])
    return [
        Route("/", every),
        Route("/triggers/{namespace}", every),
        Route("/triggers/{namespace}/{name}", one),
        Mount("/static", static),
    ]


async def _list(request: Request, shown: Shown) -> AsyncIterator[str]:
    namespace, asked = request.path_params.get("namespace"), _asked(request)
    known = await triggers.listed(shown.decisions.summaries(namespace))
    found = asked.found(known)
    if _is_json(request):
        yield _json({"triggers": found[:ROWS], "left_out": len(found[ROWS:])})
        return
    now = _minute(shown.clock())
    async for part in _rendered(
        "index.html",
        root=_root(request),
        refresh_seconds=shown.decisions.step_seconds,
        asked=asked,
        tiles=list(_tiles(known, asked)),
        states=list(State),
        columns=list(_heads(asked)),
        sorts=list(_SORTS.values()),
        rows=(_row(one, shown, now, _root(request)) for one in found[:ROWS]),
        known=len(known),
        shown=min(len(found), ROWS),
        left_out=len(found[ROWS:]),
    ):
        yield part


async def _object(
    request: Request,
    shown: Shown,
    scaled_object: ScaledObject,
    records: Sequence[Record],
) -> AsyncIterator[str]:
    changes, since = shown.changes.of(scaled_object), shown.changes.since
    if not records and not changes:
        raise shown.missing(scaled_object)
    if _is_json(request):
        yield _json({"triggers": records, "since": since, "changes": changes})
        return
    async for part in _rendered(
        "trigger.html",
        root=_root(request),
        refresh_seconds=shown.decisions.step_seconds,
        scaled_object=str(scaled_object),
        sections=list(_sections(records, changes, since, _minute(shown.clock()))),
        since=_when(since),
        newest=[_change(change) for change in changes[: -NEWEST - 1 : -1]],
        older=[_change(change) for change in changes[:-NEWEST][::-1]],
    ):
        yield part


@functools.cache
def _templates() -> "Environment":
    """Return what makes templates; most processes are never asked for a page."""
    from jinja2 import (  # noqa: PLC0415 - it loads much that is for pages only
        Environment,
        PackageLoader,
        StrictUndefined,
        select_autoescape,
    )

    templates = Environment(
        loader=PackageLoader("keda_gpu_scaler.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {"version": __version__}
    return templates


def _template(name: str) -> "Template":
    """Return a template; the first time takes tens of milliseconds, and not of the event loop."""
    return _templates().get_template(name)


async def _rendered(name: str, **values: object) -> AsyncIterator[str]:
    """Yield a page in slices. Not in a thread: the loop would wait for it at each step."""
    template = await asyncio.to_thread(_template, name)
    parts: list[str] = []
    size = 0
    for part in template.generate(**values):
        parts.append(part)
        size += len(part)
        if size >= SLICE_BYTES:
            yield "".join(parts)
            parts, size = [], 0
            await asyncio.sleep(0)
    yield "".join(parts)


def _json(found: Mapping[str, object]) -> str:
    return orjson.dumps(found).decode()


def _is_json(request: Request) -> bool:
    return request.query_params.get("format") == "json"


def _root(request: Request) -> str:
    """Return the path of the list, also behind a proxy that puts one before it."""
    return f"{request.scope['root_path']}/"


def _asked(request: Request) -> _Asked:
    given = request.query_params
    sort = given.get("sort", "")
    return _Asked(
        given.get("name", "")[:_NAME_LIMIT],
        given.get("show", "") if given.get("show") in set(Standing) else "",
        given.get("state", "") if given.get("state") in set(State) else "",
        sort if sort.removeprefix("-") in _SORTS else "now",
    )


def standing(one: Summary | Record) -> Standing:
    """Return what becomes of a workload; an empty one that is active is about to be woken."""
    if one.active is None or (one.value is None and one.state not in _GONE):
        return Standing.HELD
    return Standing.ACTIVE if one.active else Standing.IDLE


def _tiles(known: Sequence[Summary], asked: _Asked) -> Iterator[dict[str, object]]:
    """Yield how many there are of each standing, and where they are listed."""
    counts = dict.fromkeys(("", *_ORDER), 0)
    for one in known:
        counts[standing(one)] += 1
    counts[""] = len(known)
    for show, count in counts.items():
        yield {
            "show": show,
            "count": count,
            "url": asked._replace(show=show).query,
            "is_chosen": show == asked.show,
        }


def _heads(asked: _Asked) -> Iterator[dict[str, object]]:
    for column in _COLUMNS:
        is_sorted = column is asked.column
        turned = f"-{column.sort}" if asked.sort == column.sort else column.sort
        yield {
            "name": column.name,
            "url": asked._replace(sort=turned).query if column.sort else "",
            "is_number": column.is_number,
            "is_sorted": is_sorted,
            "direction": "descending" if asked.is_descending else "ascending",
        }


def _row(one: Summary, shown: Shown, now: float, root: str) -> dict[str, object]:
    namespace, _, name = one.scaled_object.partition("/")
    changes = shown.changes.of(ScaledObject(namespace, name))
    return {
        "namespace": namespace,
        "name": name,
        "workload": one.workload,
        "url": f"{root}triggers/{quote(namespace, safe='')}/{quote(name, safe='')}",
        "standing": standing(one),
        "state": one.state,
        "by": one.active_by or "",
        "bar": _bar(one.average, one.threshold, one.unit),
        "average": _load(one.average, one.unit),
        "threshold": _load(one.threshold, one.unit),
        "value": _value(one.value),
        "recommended": _asked_for(one.recommended),
        "measured": one.measured,
        "replicas": one.replicas,
        "age": _age(one.answered_seconds_ago),
        "reason": _cut(one.reason),
        "spark": drawing.spark(
            _until(now, _steps(changes, (one.metric_name, one.workload), _values), one.value), now
        ),
    }


def _bar(value: float | None, threshold: float, unit: str) -> Markup:
    """Return a load beside its threshold; where there is no natural whole, twice the threshold."""
    if value is None:
        return Markup()
    whole = 100.0 if unit == "%" else max(2 * threshold, value)
    return drawing.bar(value, whole, threshold)


def _cut(text: str) -> str:
    return text if len(text) <= REASON_CHARACTERS else f"{text[:REASON_CHARACTERS]}…"


def _age(seconds: float) -> str:
    """Return how long ago something was, if that is long: what is fresh stays the same text."""
    return "now" if seconds < FRESH_SECONDS else f"{seconds // 60:.0f} min ago"


def _minute(now: float) -> float:
    """Return the end of this minute."""
    return (now // GRID_SECONDS + 1) * GRID_SECONDS


def _values(change: Change) -> float | None:
    return change.value


def _steps(
    changes: Iterable[Change], trigger: tuple[str, str], pick: Callable[[Change], float | None]
) -> list[drawing.Step]:
    return [(each.at, pick(each)) for each in changes if each.trigger == trigger]


def _until(now: float, steps: list[drawing.Step], value: float | None) -> list[drawing.Step]:
    """Add the present value: small changes are not in the history, which may be of this minute."""
    return [*steps, (max([now - GRID_SECONDS, *(at for at, _ in steps[-1:])]), value)]


def _sections(
    records: Sequence[Record], changes: Sequence[Change], since: float, now: float
) -> Iterator[dict[str, object]]:
    """Yield each trigger of the ScaledObject; one that KEDA asks about no more has its history."""
    decided = {(record.metrics[0].name, record.workload): record for record in records}
    period = drawing.Period(max(since, now - HISTORY_SECONDS), now)
    for trigger in dict.fromkeys((*decided, *(change.trigger for change in changes))):
        record = decided.get(trigger)
        yield {
            "name": trigger[0],
            "view": None if record is None else _view(record),
            "timeline": _timeline(changes, trigger, record, period),
        }


def _timeline(
    changes: Sequence[Change],
    trigger: tuple[str, str],
    record: Record | None,
    period: drawing.Period,
) -> dict[str, object] | None:
    """Return activity, load, value and replicas over the same time; None: nothing is known."""
    steps = {
        "Active": _steps(changes, trigger, lambda change: change.active),
        "Average load": _steps(changes, trigger, lambda change: change.average),
        "Value": _steps(changes, trigger, _values),
        "Replicas": _steps(changes, trigger, lambda change: change.replicas),
        "Replicas asked for": _steps(changes, trigger, lambda change: change.recommended),
    }
    if not steps["Value"]:
        return None
    if record is not None:
        replicas = record.metrics[0].replicas
        present = record.active, record.average, record.value, replicas, record.recommended
        for title, value in zip(steps, present, strict=True):
            steps[title] = _until(period.now, steps[title], value)
    target, unit = (None, "") if record is None else (record.metrics[0].target, record.unit)
    units = {"Average load": unit, "Value": unit, "Replicas": "", "Replicas asked for": ""}
    levels = {"Average load": target}
    return {
        "ribbon": drawing.ribbon(steps["Active"], period),
        "curves": [
            {
                "title": title,
                "said": _range([value for _, value in steps[title]], unit),
                "level": _load(levels.get(title), unit) if levels.get(title) else "",
                "svg": drawing.curve(steps[title], period, levels.get(title)),
            }
            for title, unit in units.items()
        ],
        "ticks": [_hour(at) for at in period.ticks],
    }


def _range(values: Sequence[float | None], unit: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "not known"
    last = "not known" if values[-1] is None else _load(values[-1], unit)
    return f"{last} now, {_load(min(known), unit)} to {_load(max(known), unit)}"


def _view(record: Record) -> dict[str, object]:
    pods = sorted(record.pods, key=lambda pod: (pod.load is None, pod.load or 0.0, pod.name))
    metric = record.metrics[0]
    counts = {one.state: one.pods for one in record.pod_counts}
    return {
        "record": record,
        "standing": standing(record),
        "active": _ACTIVE[record.active],
        "by": next((one.signal for one in record.activation if one.says == "active"), ""),
        "value": _value(record.value),
        "recommended": _asked_for(record.recommended),
        "replicas": metric.replicas,
        "average": _load(record.average, record.unit),
        "threshold": _load(metric.target, record.unit),
        "bar": _bar(record.average, metric.target, record.unit),
        "facts": list(_facts(record)),
        "counted": counts.get("measured", 0),
        "pods": (_pod(pod, record.unit) for pod in pods),
        "pods_known": sum(counts.values()),
        "pods_counted": ", ".join(f"{number} {state}" for state, number in counts.items()),
        "activation": [
            (one.signal, one.says, _number(one.value), _number(one.threshold), one.reason)
            for one in record.activation
        ],
        "metrics": [
            (
                one.name,
                one.metric_type,
                _value(one.value),
                _number(one.target),
                one.replicas,
                "-" if one.desired is None else one.desired,
                one.reason,
            )
            for one in record.metrics
        ],
        "settings": [(one.key, one.origin, one.value) for one in record.settings],
    }


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    source = record.source
    yield (
        "Samples of",
        "no time: there are none" if source.snapshot_at is None else _when(source.snapshot_at),
    )
    yield "Source", source.name
    yield "Profile", source.profile
    yield "Pods are known from", source.evidence or "nothing"
    if source.trouble is not None:
        yield "Trouble", source.trouble
    if source.lag_seconds:
        yield "All samples are late by", f"{source.lag_seconds:.0f} s"
    if record.remembered is not None:
        yield "Known last", record.remembered


def _pod(pod: Pod, unit: str) -> dict[str, object]:
    return {
        "pod": pod,
        "load": _load(pod.load, unit),
        "gpus": [_gpu(gpu, unit) for gpu in pod.gpus[:GPUS]],
        "gpus_left_out": max(0, len(pod.gpus) - GPUS),
        "ready": "-" if pod.ready_since is None else _when(pod.ready_since),
        "seen": "never" if pod.last_seen is None else _when(pod.last_seen),
    }


def _gpu(gpu: Gpu, unit: str) -> dict[str, object]:
    """Return a GPU; a number from before the activation window is no load of now."""
    is_old = gpu.busiest is None
    value = "not known" if gpu.value is None else _load(gpu.value, unit)
    has_bar = unit == "%" and gpu.value is not None and not is_old
    return {
        "name": gpu.gpu,
        "value": f"not known, last {value}" if is_old and gpu.value is not None else value,
        "busiest": "" if is_old else f"up to {_load(gpu.busiest, unit)}, ",
        "bar": drawing.bar(gpu.value or 0.0, 100.0) if has_bar else "",
    }


def _change(change: Change) -> tuple[str, ...]:
    return (
        _when(change.at),
        change.metric_name,
        change.state,
        _ACTIVE[change.active],
        _value(change.value),
        _number(change.average),
        str(change.replicas),
        _asked_for(change.recommended),
        change.reason,
    )


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _hour(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M")


def _value(value: float | None) -> str:
    return "hold" if value is None else _number(value)


def _asked_for(replicas: int | None) -> str:
    return "hold" if replicas is None else str(replicas)


def _load(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.4g} {unit}".rstrip()


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
