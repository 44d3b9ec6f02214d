"""What goes wrong: with servers' HTTP APIs, with exporters, and with whole servers."""

import asyncio
import gzip
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from starlette.responses import JSONResponse, PlainTextResponse, Response

from tests.support.http_replies import (
    CHUNKED,
    Reply,
    Request,
    api,
    closes,
    cuts,
    drips,
    endless,
    hangs,
    says,
    stalls,
    success,
)

_LONG_WORDS = 'cannot evaluate "" for (' * 60_000


async def _resets(_: Request, writer: asyncio.StreamWriter) -> None:
    """Cut the connection in the middle of the head."""
    writer.write(b"HTTP/1.1 200 O")
    await writer.drain()
    writer.transport.abort()


def _error(words: str, status: int, kind: str) -> Reply:
    return says(json.dumps({"status": "error", "errorType": kind, "error": words}), status)


def _matrix(*points: object) -> Reply:
    metric = {"exported_namespace": "team-a", "exported_pod": "model-4", "__name__": "x"}
    return api("matrix", [{"metric": metric, "values": points}])


_BOMB = gzip.compress(b" " * 200_000_000, 9)

REPLIES: Mapping[str, Reply] = {
    "closes": closes,
    "resets": _resets,
    "hangs": hangs,
    "stalls": stalls,
    "drips": drips,
    "endless heads": endless(b"x-more: " + b"x" * 1000 + b"\r\n", pause_seconds=0.01),
    "endless body": endless(b"1000\r\n" + b"[" * 4096 + b"\r\n", CHUNKED, pause_seconds=0.001),
    "500 with a page": says("<html>oops</html>", 500, "text/html"),
    "503 in JSON": _error("the server is shutting down", 503, "unavailable"),
    "429": says("slow down", 429, "text/plain"),
    "422": _error("query timed out in expression evaluation", 422, "execution"),
    "401": says("who are you", 401, "text/plain"),
    "redirects": says("", 302, "text/plain", location="/api/v1/query"),
    "a page": says("<html>log in</html>", 200, "text/html"),
    "nothing": says(b""),
    "cut JSON": cuts(b'{"status":"success","data":{"resultType":"matrix","result":['),
    "no UTF-8": says(b'{"status":"success","data":"\xff\xfe"}'),
    "a list": says("[]"),
    "deep JSON": says("[" * 100_000 + "]" * 100_000),
    "another type": api("string", [1, "x"]),
    "a warning": api("matrix", [], warnings=["receive series from Addr: connection error"]),
    "a part": api("vector", [], isPartial=True),
    "NaN times": _matrix(["NaN", "1"], ["NaN", "2"]),
    "infinite times": _matrix([1e400, "1"]),
    "labels of numbers": api("vector", [{"metric": {"pod": 5}, "value": [1, "1"]}]),
    "a long error": _error(_LONG_WORDS, 422, "execution"),
    "many rows": says(b'{"status":"success","data":{"resultType":"vector","result":['
                      + b",".join([b"{}"] * 2_000_000) + b"]}}"),
    "a gzip bomb": says(_BOMB, content_encoding="gzip"),
}  # fmt: skip
"""What a source's API answers to half of the queries, in place of an answer."""

CLOCKS: Mapping[str, float] = {"a clock 20 s late": -20, "a clock an hour early": 3600}
"""By how many seconds the source's clock is wrong."""


def with_clock(shift_seconds: float, body: bytes) -> bytes:
    """Return the answer to `time()` by a clock that is wrong."""
    seconds = json.loads(body)["data"]["result"][0] + shift_seconds
    return json.dumps(success("scalar", [seconds, str(seconds)])).encode()


Lines = Iterable[str]


def _without_pods(lines: Lines) -> Iterator[str]:
    for line in lines:
        head, _, rest = line.partition(",namespace=")
        yield f"{head}}}{rest.partition('}')[2]}"


def _with(number: str, lines: Lines) -> Iterator[str]:
    return (f"{line.rpartition(' ')[0]} {number}" for line in lines)


def _with_strangers(lines: Lines) -> Iterator[str]:
    yield from lines
    for number in range(30_000):
        yield f'stranger_total{{number="{number}",pod="model-1",namespace="team-a"}} 1'


PAGES: Mapping[str, Callable[[Lines], Iterable[str]]] = {
    "exporters without pods": _without_pods,
    "exporters with NaN": partial(_with, "NaN"),
    "exporters with infinity": partial(_with, "+Inf"),
    "exporters with blanks": partial(_with, "2147483632"),
    "exporters with garbage": lambda lines: [*lines, "}{ not a line \x00"],
    "exporters that are empty": lambda _: (),
    "exporters with strangers": _with_strangers,
}
"""What two of the nodes' exporters show in place of their page."""

CLUSTER: Mapping[str, Response] = {
    "an API server that is down": PlainTextResponse("upstream connect error", 503),
    "an API server that forbids": JSONResponse({"kind": "Status", "code": 403}, 403),
    "an API server that forgets": JSONResponse({"kind": "Status", "code": 410}, 410),
    "an API server with garbage": PlainTextResponse("}{\x00" * 1000),
}
"""What the Kubernetes API answers to every list and watch; the watches that are open are cut."""

KILLED = "Prometheus is killed"
OTHERS = (
    "exporters that are down",
    "exporters that hang",
    KILLED,
)

NAMES = (*REPLIES, *CLOCKS, *PAGES, *CLUSTER, *OTHERS)
"""Every fault, each of which lasts a while."""


LARGE = ("a gzip bomb", "a long error", "deep JSON", "endless body", "exporters with strangers",
         "many rows")  # fmt: skip
"""What takes much memory for a while, of which Python gives a part back to the system only when its
neighbours go. They come first: what grows after them grows for another reason."""


def order(seed: int) -> Iterator[str]:
    """Yield faults for ever: each once, in a random order, again and again."""
    chance = random.Random(seed)
    yield from chance.sample(LARGE, len(LARGE))
    yield from chance.sample([name for name in NAMES if name not in LARGE], len(NAMES) - len(LARGE))
    while True:
        yield from chance.sample(NAMES, len(NAMES))
