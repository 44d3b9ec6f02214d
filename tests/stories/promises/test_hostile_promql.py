"""A tenant's PromQL costs another tenant nothing: asked of a process, over its own ports."""

from collections.abc import Iterator

import grpc
import pytest

from tests.support.serving import Scaler, serving

_WIDE = r'{a=~"\\w{200}"}'
_SLOW = {
    "three patterns and a mistake": f"{'+'.join([_WIDE] * 3)} x y",
    "ten patterns and a mistake": f"{'+'.join([_WIDE] * 10)} x y",
    "many patterns": "+".join([_WIDE] * 66),
    "patterns of every letter": "x{" + ",".join([r"a=~`\pL{9}`"] * 99) + "}",
    "one huge pattern": "x{a=~`" + r"\pL" * 640 + "`}",
    "patterns of a function": "+".join([r'label_replace(x,"a","","b",`\pL{9}`)'] * 30),
    "comments that end with a carriage return": "#\r".join(["x+"] * 390) + "x",
    "minuses": "-" * 399 + "x",
    "quotes": '"\\' * 1000,
}


@pytest.fixture(scope="module")
def scaler() -> Iterator[Scaler]:
    with serving(SCRAPE_TARGETS="", PROMETHEUS_URL="http://127.0.0.1:1") as scaler:
        yield scaler
        assert scaler.end() == 0
        assert scaler.process.stderr is not None
        assert scaler.process.stderr.read() == ""


@pytest.mark.parametrize("query", _SLOW.values(), ids=_SLOW)
def test_no_query_keeps_the_process_from_answering_others(scaler: Scaler, query: str) -> None:
    try:
        scaler.specify(namespace="tenant", query=query, activationThreshold="5")
    except grpc.RpcError as refused:
        assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT  # noqa: PT017 - either is right
    assert scaler.specify("gpt", "other") == 70
    assert scaler.get("/healthz") == "ok\n"
