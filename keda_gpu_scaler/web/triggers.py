"""`/api/v1/triggers`: what this process decides of each trigger, for people and their tools.

The lists show what was answered last, and cost no query. One ScaledObject is decided again, and
shown with everything that its decision was made of.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keda_gpu_scaler.record.record import Record, Summary
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry.history import Change

PATH = "/api/v1/triggers"
AT_ONCE = 1000
"""The most triggers in one answer, about half a MiB; `after` asks for the next ones."""
SLICE = 300
"""So many summaries are made at a time: about four milliseconds of work."""
_LIMIT = re.compile(r"[1-9][0-9]{0,3}")
UNKNOWN = (
    "KEDA has not asked this replica about such a ScaledObject within ten minutes: ask the other "
    "replicas, and see whether the ScaledObject is Ready"
)


class Decisions(Protocol):
    """Knows which triggers KEDA asks about, and what is decided of them."""

    @property
    def step_seconds(self) -> float:
        """How often there can be something new."""

    def summaries(self, namespace: str | None, /) -> Iterable[Summary]:
        """Yield the recent answers of one namespace or of all."""

    async def records(self, scaled_object: ScaledObject, /) -> Sequence[Record]:
        """Decide each trigger of a ScaledObject within a few seconds; that is no call about it."""


class Changes(Protocol):
    """Knows how the decisions changed since the process began."""

    @property
    def since(self) -> float:
        """When it began, in Unix seconds."""

    def of(self, scaled_object: ScaledObject, /) -> Sequence[Change]:
        """Return the changes of a ScaledObject's triggers, the oldest first."""


class Shown(NamedTuple):
    """What people are shown of triggers."""

    decisions: Decisions
    changes: Changes
    refusal: Callable[[ScaledObject], str | None] = lambda _: None
    """Says when and why a trigger of a ScaledObject was refused recently, if one was."""
    clock: Callable[[], float] = time.time
    """Returns Unix seconds, as for the changes."""

    async def records(self, scaled_object: ScaledObject) -> list[Record]:
        """Return the records of a ScaledObject's triggers, with a refusal among the warnings."""
        found = await self.decisions.records(scaled_object)
        refusal = self.refusal(scaled_object)
        if refusal is None:
            return [*found]
        return [replace(one, warnings=(refusal, *one.warnings)) for one in found]

    def missing(self, scaled_object: ScaledObject) -> HTTPException:
        """Return the answer where there is no record; its text says why."""
        return HTTPException(404, self.refusal(scaled_object) or UNKNOWN)


def routes(shown: Shown) -> list[Route]:
    """Return the routes of the API."""

    async def summaries(request: Request) -> Response:
        found = await listed(shown.decisions.summaries(request.path_params.get("namespace")))
        return _json(_page(found, _after(request), _limit(request)))

    async def records(request: Request) -> Response:
        scaled_object = ScaledObject(**request.path_params)
        found = await shown.records(scaled_object)
        if not found:
            raise shown.missing(scaled_object)
        return _json({"triggers": found})

    async def history(request: Request) -> Response:
        found = shown.changes.of(ScaledObject(**request.path_params))
        return _json({"since": shown.changes.since, "changes": found})

    return [
        Route(PATH, summaries),
        Route(f"{PATH}/{{namespace}}", summaries),
        Route(f"{PATH}/{{namespace}}/{{name}}", records),
        Route(f"{PATH}/{{namespace}}/{{name}}/history", history),
    ]


async def listed(summaries: Iterable[Summary]) -> list[Summary]:
    """Return all summaries; calls are answered in between, as there may be thousands."""
    found = []
    for count, one in enumerate(summaries):
        if count % SLICE == 0:
            await asyncio.sleep(0)
        found.append(one)
    return found


def _page(found: Sequence[Summary], after: str, limit: int) -> dict[str, object]:
    """Return those after a name, and the name to go on from; None: that is all."""
    left = [one for one in found if _order(one.scaled_object) > _order(after)]
    last = left[limit - 1].scaled_object if limit < len(left) else None
    # A ScaledObject with several triggers is shown whole, or the next answer would skip the rest.
    shown = [one for one in left if last is None or _order(one.scaled_object) <= _order(last)]
    return {"triggers": shown, "next": last if len(shown) < len(left) else None}


def _order(scaled_object: str) -> list[str]:
    return scaled_object.split("/")


def _json(found: object) -> Response:
    return Response(orjson.dumps(found), media_type="application/json")


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(AT_ONCE))
    if not _LIMIT.fullmatch(text) or int(text) > AT_ONCE:
        raise HTTPException(400, f"limit: expected a number from 1 to {AT_ONCE}")
    return int(text)


def _after(request: Request) -> str:
    text = request.query_params.get("after", "")
    if text.count("/") > 1:
        raise HTTPException(400, "after: expected namespace/name, as in next of the answer before")
    return text
