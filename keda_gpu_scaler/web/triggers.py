"""`/api/v1/triggers`: what this process decides of each trigger, for people and their tools.

The lists show what was answered last, and cost no query. One ScaledObject is decided again, and
shown with everything that its decision was made of.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import NamedTuple

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keda_gpu_scaler.decision.summary import Summary
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry.history import History

PATH = "/api/v1/triggers"
AT_ONCE = 1000
"""The triggers in one answer, about half a MiB; `after` asks for the next ones."""
SLICE = 300
"""So many summaries are made at a time: about four milliseconds of work."""
CHANGE_KEYS = (
    "metric_name",
    "workload",
    "state",
    "value",
    "active",
    "average",
    "replicas",
    "recommended",
    "reason",
)
"""What the history shows of a summary, after the time."""
UNKNOWN = (
    "KEDA has not asked this replica about such a ScaledObject within ten minutes: ask the other "
    "replicas, and see whether the ScaledObject is Ready"
)


class Shown(NamedTuple):
    """What people are shown of triggers."""

    evaluator: Evaluator
    history: History
    clock: Callable[[], float] = time.time
    """Returns Unix seconds, as for the history."""

    async def summaries(self, namespace: str | None) -> AsyncIterator[Summary]:
        """Yield the recent answers; calls are answered in between, as there may be thousands."""
        for count, summary in enumerate(self.evaluator.summaries(namespace)):
            if count % SLICE == 0:
                await asyncio.sleep(0)
            yield summary

    async def records(self, scaled_object: ScaledObject) -> list[Record]:
        """Return the records of a ScaledObject's triggers, with a refusal among the warnings."""
        records = await self.evaluator.records(scaled_object)
        refusal = self.history.refusal(scaled_object)
        if refusal is None:
            return [*records]
        return [replace(record, warnings=(refusal, *record.warnings)) for record in records]

    def missing(self, scaled_object: ScaledObject) -> HTTPException:
        """Return the answer where there is no record; its text says why."""
        return HTTPException(404, self.history.refusal(scaled_object) or UNKNOWN)


def routes(shown: Shown) -> list[Route]:
    async def summaries(request: Request) -> Response:
        after = request.query_params.get("after", "")
        if after.count("/") > 1:
            message = "after: expected namespace/name, as in next of the answer before"
            raise HTTPException(400, message)
        page: list[Summary] = []
        async for summary in shown.summaries(request.path_params.get("namespace")):
            if summary.scaled_object.split("/") <= after.split("/"):
                continue
            # A ScaledObject with several triggers is shown whole, as `next` can only name it.
            if len(page) >= AT_ONCE and summary.scaled_object != page[-1].scaled_object:
                return _json({"triggers": page, "next": page[-1].scaled_object})
            page.append(summary)
        return _json({"triggers": page, "next": None})

    async def records(request: Request) -> Response:
        scaled_object = ScaledObject(**request.path_params)
        scaled_object_records = await shown.records(scaled_object)
        if not scaled_object_records:
            raise shown.missing(scaled_object)
        return _json({"triggers": scaled_object_records})

    async def history(request: Request) -> Response:
        changes = shown.history.of(ScaledObject(**request.path_params))
        told = [
            {"at": change.at} | {key: getattr(change.summary, key) for key in CHANGE_KEYS}
            for change in changes
        ]
        return _json({"since": shown.history.since, "changes": told})

    return [
        Route(PATH, summaries),
        Route(f"{PATH}/{{namespace}}", summaries),
        Route(f"{PATH}/{{namespace}}/{{name}}", records),
        Route(f"{PATH}/{{namespace}}/{{name}}/history", history),
    ]


def _json(content: object) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")
