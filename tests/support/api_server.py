"""An API server on a real port, as far as lists, watches and scales go, scripted by tests."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from keda_gpu_scaler.workbench.world import web

Json = dict[str, Any]
Owner = tuple[str, str] | None
"""A kind and a name."""
Labels = Mapping[str, str] | None
PODS = "/api/v1/pods"
REPLICA_SETS = "/apis/apps/v1/replicasets"
JOBS = "/apis/batch/v1/jobs"
SCALED_OBJECTS = "/apis/keda.sh/v1alpha1/scaledobjects"
PATHS = (PODS, REPLICA_SETS, JOBS, SCALED_OBJECTS)
"""What the scaler follows."""
NODES = "/api/v1/nodes"
TOKEN = "only-for-tests"


_LISTED = (*PATHS, NODES)


class Asked(NamedTuple):
    """One request."""

    path: str
    query: dict[str, str]
    accept: str

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "true"


def metadata(name: str, owner: Owner = None, **more: Any) -> Json:
    """Return the metadata of an object in the namespace ml."""
    found: Json = {"namespace": "ml", "name": name, "resourceVersion": "5", **more}
    if owner is not None:
        kind, controller = owner
        known = {"apiVersion": "apps/v1", "uid": "r"}
        found["ownerReferences"] = [
            known | {"kind": "Other", "name": "not-the-controller"},
            known | {"kind": kind, "name": controller, "controller": True},
        ]
    return found


def pod(name: str, owner: Owner = None, labels: Labels = None, *, ready: bool = True) -> Json:
    """Return a pod with a GPU, created and started at 12:00:00, Ready or not since 12:00:30."""
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": CHANGED}
    container = {"name": "model", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return {
        "metadata": metadata(name, owner, creationTimestamp=BEGUN, labels=labels or {}),
        "spec": {"containers": [container]},
        "status": {"phase": "Running", "startTime": BEGUN, "conditions": [condition]},
    }


def placed(name: str, node: str, workload: str, *, namespace: str = "team-a") -> Json:
    """Return a pod of a Deployment on a node, with what the simulator shows of it."""
    found = pod(name, ("ReplicaSet", f"{workload}-5d4f8"))
    labels = {"pod-template-hash": "5d4f8"}
    found["metadata"] |= {"namespace": namespace, "uid": f"pod-{name}", "labels": labels}
    found["spec"]["nodeName"] = node
    return found


def node(name: str, **labels: str) -> Json:
    allocatable = {"cpu": "8", "nvidia.com/gpu": "2"}
    metadata = {"name": name, "uid": f"node-{name}", "labels": labels}
    return {"metadata": metadata, "status": {"allocatable": allocatable}}


def status(code: int, message: str) -> Json:
    """Return the object that the API server writes about a failure, also as a line of a watch."""
    written = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return written | {"message": message, "code": code}


def failure(code: int, message: str) -> Response:
    return JSONResponse(status(code, message), code)


BEGUN, CHANGED = "2026-01-01T12:00:00Z", "2026-01-01T12:00:30Z"
NOON = 1767268800.0


def scaled_object(name: str, /, **reference: str) -> Json:
    """Return a ScaledObject as far as its scale target goes."""
    return {"metadata": metadata(name), "spec": {"scaleTargetRef": reference}}


@dataclass(slots=True)
class ApiServer:
    """What the server has, and what was asked of it."""

    objects: dict[str, list[Json]] = field(default_factory=lambda: {path: [] for path in _LISTED})
    trouble: dict[tuple[str, str], Response] = field(default_factory=dict)
    """Answered to a `list` or a `watch` of a path, in place of one."""
    selectors: dict[str, str | Response] = field(default_factory=dict)
    """What the scale subresource of a path says, or what is answered in its place."""
    held: set[str] = field(default_factory=set)
    """Lists of these paths are not answered."""
    asked: list[Asked] = field(default_factory=list)
    page_objects: int = 2
    """How many objects of a list are in one answer, where a limit is asked for."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Until then nothing is answered that is held."""
    port: int = 0
    _watches: dict[str, list[asyncio.Queue[str]]] = field(
        default_factory=lambda: {path: [] for path in _LISTED}
    )

    def application(self) -> Starlette:
        lists = [Route(path, self._answer) for path in _LISTED]
        of_namespace = Route("/api/v1/namespaces/{namespace}/pods", self._answer)
        scales = Route("/{rest:path}/scale", self._scale)
        return Starlette(routes=[*lists, of_namespace, scales])

    def kubeconfig(self, directory: Path, **user: str) -> str:
        """Write the way to the server into a file and return its path."""
        path = directory / "kubeconfig"
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}
        context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
        parts: Json = {"clusters": [cluster], "contexts": [context], "current-context": "x"}
        known = user or {"token": TOKEN}
        path.write_text(json.dumps(parts | {"users": [{"name": "u", "user": known}]}))
        return str(path)

    def of(self, path: str, *, watches: bool) -> list[Asked]:
        return [each for each in self.asked if each.path == path and each.is_watch is watches]

    def watched(self, path: str) -> bool:
        return bool(self._watches[path])

    def tell(self, path: str, kind: str, item: Json) -> None:
        for watch in self._watches[path]:
            # Not all in ASCII: as the API server writes it, which escapes no more than it must.
            line = json.dumps({"type": kind, "object": item}, ensure_ascii=False)
            watch.put_nowait(f"{line}\n")

    def end(self, path: str, last: str = "end") -> None:
        """End every watch of a resource: as it should end, or by a `cut`."""
        for watch in self._watches[path]:
            watch.put_nowait(last)

    async def _answer(self, request: Request) -> Response:
        path, query = request.url.path, dict(request.query_params)
        asked = Asked(path, query, request.headers["accept"])
        self.asked.append(asked)
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        if path in self.held:
            await self.ended.wait()
        trouble = self.trouble.get((path, "watch" if asked.is_watch else "list"))
        if trouble is not None:
            return trouble
        if asked.is_watch:
            return StreamingResponse(self._lines(path), media_type="application/json")
        return self._page(asked, request.path_params.get("namespace"))

    async def _scale(self, request: Request) -> Response:
        path = request.url.path
        self.asked.append(Asked(path, dict(request.query_params), request.headers["accept"]))
        if path in self.held:
            await self.ended.wait()
        selector = self.selectors.get(path, JSONResponse({"message": "not found"}, 404))
        if isinstance(selector, Response):
            return selector
        status = {"replicas": 1} | ({"selector": selector} if selector else {})
        return JSONResponse({"kind": "Scale", "status": status})

    def _page(self, asked: Asked, namespace: str | None) -> Response:
        query = asked.query
        labels = [tuple(one.split("=")) for one in query.get("labelSelector", "").split(",") if one]
        there = [
            item
            for item in self.objects[PODS if namespace else asked.path]
            if namespace in {None, item["metadata"].get("namespace")}
            and item["metadata"].get("labels", {}).items() >= set(labels)
        ]
        begin = int(query.get("continue", "0"))
        end = begin + self.page_objects if "limit" in query else len(there)
        following = {"continue": str(end)} if end < len(there) else {}
        # As a list of metadata is answered that has none.
        items = there[begin:end] or (None if "as=Partial" in asked.accept else [])
        return JSONResponse({"metadata": {"resourceVersion": "7", **following}, "items": items})

    async def _lines(self, path: str) -> AsyncIterator[str]:
        lines: asyncio.Queue[str] = asyncio.Queue()
        self._watches[path].append(lines)
        try:
            while (line := await lines.get()) != "end":
                if line == "cut":
                    raise ConnectionAbortedError
                yield line
        finally:
            self._watches[path].remove(lines)


@contextlib.asynccontextmanager
async def serving(api: ApiServer) -> AsyncIterator[ApiServer]:
    """Serve on a free port, or on the one the server had before, until its watches have ended."""
    server = web.server(api.application(), port=api.port)
    api.port = await server.start()
    try:
        yield api
    finally:
        for path in PATHS:
            api.end(path)
        api.ended.set()
        await server.stop()
