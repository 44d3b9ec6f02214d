"""The status page: every trigger, and one with everything behind its decision, for people.

Rendered here, without a build step and without a script that the page would need. Nothing comes
from another host, and no text becomes markup: names, queries and reasons are tenants' words.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from keda_gpu_scaler import __version__
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.record.record import Pod, Record, Summary
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry.history import Change
from keda_gpu_scaler.web import drawing, triggers
from keda_gpu_scaler.web.triggers import Shown

ROWS = 1000
"""The most triggers on one page: about a quarter of a second of work, and 1 MiB."""
REFRESH_SECONDS = 15
"""The usual step of a source: nothing new comes faster."""
HISTORY_SECONDS = 6 * 3600.0
"""What a timeline shows at the most."""
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


class _Column(NamedTuple):
    """A column of the list; one without a key cannot be sorted by."""

    name: str
    key: Callable[[Summary], object] | None
    sort: str = ""
    is_number: bool = False


_COLUMNS = (
    _Column("ScaledObject", lambda one: one.scaled_object.split("/"), "name"),
    _Column("State", lambda one: list(State).index(State(one.state)), "state"),
    _Column("Active", lambda one: str(one.active), "active"),
    _Column("Average", lambda one: -(one.average or 0.0), "average", is_number=True),
    _Column("Threshold", lambda one: one.threshold, "threshold", is_number=True),
    _Column("Value", lambda one: -(one.value or 0.0), "value", is_number=True),
    _Column("Replicas", lambda one: -one.replicas, "replicas", is_number=True),
    _Column("Asks for", lambda one: -(one.recommended or 0), "recommended", is_number=True),
    _Column("Last half hour", None),
    _Column("Age", lambda one: -one.answered_seconds_ago, "age", is_number=True),
    _Column("Why", None),
)
_SORTS = {column.sort: column.key for column in _COLUMNS if column.key is not None}


class _Asked(NamedTuple):
    """What the list is asked to show."""

    name: str
    state: str
    sort: str


def routes(shown: Shown, clock: Callable[[], float] = time.time) -> list[Route | Mount]:
    """Return the routes of the pages.

    Args:
        shown: what people are shown of triggers.
        clock: returns Unix seconds, as for the history.
    """
    pages = Environment(
        loader=PackageLoader("keda_gpu_scaler.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.globals |= {"version": __version__, "refresh_seconds": REFRESH_SECONDS}
    index, trigger = pages.get_template("index.html"), pages.get_template("trigger.html")

    async def every(request: Request) -> Response:
        if request.query_params.get("format") == "json":
            path = "/".join((triggers.PATH, *request.path_params.values()))
            return RedirectResponse(f"{request.scope['root_path']}{path}")
        namespace = request.path_params.get("namespace")
        known, asked = shown.decisions.summaries(namespace), _asked(request)
        found = sorted(
            (one for one in known if asked.name in one.scaled_object and _is(asked.state, one)),
            key=_SORTS[asked.sort],  # type: ignore[arg-type]  # each key sorts its own kind
        )
        before = "triggers/" if namespace is None else ""  # the path of the rows, seen from here
        rows = [_row(one, shown, clock(), before) for one in found[:ROWS]]
        return _answer(
            request,
            index.render(
                root=_root(request),
                asked=asked,
                states=list(State),
                columns=list(_heads(asked)),
                rows=rows,
                known=len(known),
                shown=len(rows),
                left_out=len(found) - len(rows),
            ),
        )

    async def one(request: Request) -> Response:
        scaled_object = ScaledObject(**request.path_params)
        if request.query_params.get("format") == "json":
            path = f"{triggers.PATH}/{scaled_object}"
            return RedirectResponse(f"{request.scope['root_path']}{path}")
        records = await shown.records(scaled_object)
        changes = shown.changes.of(scaled_object)
        if not records and not changes:
            raise shown.missing(scaled_object)
        now = clock()
        since = max(shown.changes.since, now - HISTORY_SECONDS)
        return _answer(
            request,
            trigger.render(
                root=_root(request),
                scaled_object=str(scaled_object),
                records=[_view(record) for record in records],
                since=_when(shown.changes.since),
                timeline=drawing.timeline(_curves(changes), since, now) if changes else "",
                changes=[_change(change) for change in reversed(changes)],
            ),
        )

    static = StaticFiles(packages=[("keda_gpu_scaler.web", "static")])
    return [
        Route("/", every),
        Route("/triggers/{namespace}", every),
        Route("/triggers/{namespace}/{name}", one),
        Mount("/static", static),
    ]


def _root(request: Request) -> str:
    """Return the path of the list, also behind a proxy that puts one before it."""
    return f"{request.scope['root_path']}/"


def _answer(request: Request, text: str) -> Response:
    body = text.encode()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {**_HEADERS, "etag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="text/html", headers=headers)


def _asked(request: Request) -> _Asked:
    given = request.query_params
    sort = given.get("sort", "name")
    return _Asked(
        given.get("name", "")[:_NAME_LIMIT],
        given.get("state", ""),
        sort if sort in _SORTS else "name",
    )


def _is(state: str, one: Summary) -> bool:
    return state in {"", one.state}


def _heads(asked: _Asked) -> Iterator[dict[str, object]]:
    for column in _COLUMNS:
        url = "?" + urlencode(asked._replace(sort=column.sort)._asdict()) if column.key else ""
        yield {
            "name": column.name,
            "url": url,
            "is_number": column.is_number,
            "is_sorted": column.sort == asked.sort,
            "direction": "descending" if column.is_number else "ascending",
        }


def _row(one: Summary, shown: Shown, now: float, before: str) -> dict[str, object]:
    namespace, _, name = one.scaled_object.partition("/")
    changes = shown.changes.of(ScaledObject(namespace, name))
    return {
        "trigger": one,
        "url": f"{before}{one.scaled_object}",
        "active": _ACTIVE[one.active],
        "average": _load(one.average, one.unit),
        "threshold": _load(one.threshold, one.unit),
        "value": "hold" if one.value is None else f"{one.value:.6g}",
        "recommended": _number(one.recommended),
        "age": f"{one.answered_seconds_ago:.0f} s",
        "spark": drawing.spark(_steps(changes, one.metric_name), now),
    }


def _steps(changes: Iterable[Change], metric_name: str) -> list[drawing.Step]:
    return [(each.at, each.value) for each in changes if each.metric_name == metric_name]


def _curves(changes: Sequence[Change]) -> Iterator[drawing.Curve]:
    """Yield what was decided of the first metric; another trigger's is in the table below."""
    first = [each for each in changes if each.metric_name == changes[0].metric_name]
    yield drawing.Curve("average load", [(each.at, each.average) for each in first])
    yield drawing.Curve("value", [(each.at, each.value) for each in first])
    yield drawing.Curve("replicas", [(each.at, float(each.replicas)) for each in first])
    yield drawing.Curve("replicas asked for", [(each.at, each.recommended) for each in first])


def _view(record: Record) -> dict[str, object]:
    pods = sorted(record.pods, key=lambda pod: (pod.load is None, pod.load or 0.0, pod.name))
    return {
        "record": record,
        "active": _ACTIVE[record.active],
        "facts": list(_facts(record)),
        "pods": [_pod(pod, record.unit) for pod in pods],
        "pods_counted": ", ".join(f"{one.pods} {one.state}" for one in record.pod_counts),
        "activation": [
            (one.signal, one.says, _number(one.value), _number(one.threshold), one.reason)
            for one in record.activation
        ],
        "metrics": [
            (
                one.name,
                one.metric_type,
                "hold" if one.value is None else _number(one.value),
                _number(one.target),
                one.replicas,
                "-" if one.desired is None else one.desired,
                one.reason,
            )
            for one in record.metrics
        ],
        "settings": [(one.key, one.value, one.origin) for one in record.settings],
    }


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    source = record.source
    held = "no value: the HPA holds the replicas"
    yield "GetMetrics answers", held if record.value is None else _number(record.value)
    yield "Average load", _load(record.average, record.unit)
    yield "Replicas it asks for", _number(record.recommended)
    age = "no samples" if source.age_seconds is None else f"{source.age_seconds:.0f} s old"
    yield "Source", f"{source.name}, {age}"
    yield "Which pods there are, says", source.evidence or "nothing"
    if source.trouble is not None:
        yield "Trouble", source.trouble
    if source.lag_seconds:
        yield "All samples are late by", f"{source.lag_seconds:.0f} s"
    if record.remembered is not None:
        yield "Known last", record.remembered


def _pod(pod: Pod, unit: str) -> tuple[str, str, str, str, str]:
    gpus = ", ".join(_number(gpu.value) for gpu in pod.gpus) or "-"
    return pod.name, pod.state, _load(pod.load, unit), gpus, pod.reason


def _change(change: Change) -> tuple[str | Markup, ...]:
    return (
        _when(change.at),
        change.metric_name,
        change.state,
        _ACTIVE[change.active],
        "hold" if change.value is None else _number(change.value),
        _number(change.average),
        str(change.replicas),
        _number(change.recommended),
        change.reason,
    )


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _load(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.4g} {unit}".rstrip()


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
