"""Where the API server fetches what `kubectl logs` shows."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.e2e.kubelet.life import log_path, running_path

_LOOK_EVERY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Logs:
    """The output of every container that ran here, in files of one directory."""

    directory: Path

    async def serve(self, port: int, certificate: Path, key: Path) -> None:
        """Answer until the process ends."""
        route = Route("/containerLogs/{namespace}/{pod}/{container}", self._answer)
        config = uvicorn.Config(
            Starlette(routes=[route]),
            host="127.0.0.1",
            port=port,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            log_level="warning",
            lifespan="off",
        )
        await uvicorn.Server(config).serve()

    async def _answer(self, request: Request) -> Response:
        """Show one container's output as requested: all, its end, or what follows."""
        path = request.path_params
        where = path["namespace"], path["pod"], path["container"]
        asked = request.query_params
        files = self._files(where)
        file = files[-2:-1] if asked.get("previous") == "true" else files[-1:]
        if not file:
            return PlainTextResponse("the container has not written anything", status_code=404)
        lines = file[0].read_bytes().splitlines(keepends=True)
        tail = lines[-int(asked["tailLines"]) :] if int(asked.get("tailLines", 0)) else lines
        if asked.get("follow") != "true":
            return PlainTextResponse(b"".join(tail))
        known = sum(map(len, lines))
        lives = running_path(self.directory, *where)
        more = self._follow(file[0], b"".join(tail), known, lives)
        return StreamingResponse(more, media_type="text/plain")

    def _files(self, where: tuple[str, str, str]) -> list[Path]:
        """Return the files of a container, one for each of its starts."""
        first = log_path(self.directory, *where, 0)
        count = len(list(first.parent.glob(f"{first.stem.removesuffix('0')}*.log")))
        return [first.with_stem(first.stem.removesuffix("0") + str(n)) for n in range(count)]

    async def _follow(
        self, file: Path, begins: bytes, known: int, lives: Path
    ) -> AsyncIterator[bytes]:
        """Go on until the container has ended."""
        yield begins
        while (more := _since(file, known, lives)) is not None:
            known += len(more)
            yield more
            await asyncio.sleep(_LOOK_EVERY_SECONDS)


def _since(file: Path, known: int, lives: Path) -> bytes | None:
    """Return what was written since then; None if nothing was, and nothing will be."""
    over = not lives.exists()
    more = file.read_bytes()[known:]
    return None if over and not more else more
