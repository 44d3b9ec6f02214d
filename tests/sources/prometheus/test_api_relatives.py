"""Thanos, Mimir and VictoriaMetrics' cluster: their answers when a part of them fails.

Recorded from their issue trackers and from the tests of their own sources, shortened where they
list stores. Each goes over a real socket, and none may look like a smaller sum or like no pods.
"""

import asyncio
import json

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.spec.spec import Signal
from tests.support import http_replies as web
from tests.support.clocks import Clock
from tests.support.http_replies import HttpServer

AT = 1_700_000_100.0
NEED = SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({"ml"}), 300, 120)
ROW = {
    "metric": {
        "__name__": "DCGM_FI_DEV_GPU_UTIL",
        "exported_namespace": "ml",
        "exported_pod": "bert-0",
        "UUID": "GPU-0",
        "job": "dcgm-exporter",
        "instance": "10.0.0.1:9400",
    },
    "values": [[AT, "90"]],
}


def refused(kind: str, words: str) -> str:
    return json.dumps({"status": "error", "errorType": kind, "error": words})


def answered(**more: object) -> str:
    return json.dumps(web.success("matrix", [ROW], **more))


STORE_IS_DOWN = (
    'receive series from Addr: 10.96.192.138:10901 LabelSets: {prometheus_replica="prometheus-0"}'
    " Mint: 1689235200000 Maxt: 9223372036854775807: rpc error: code = Unavailable desc ="
    " connection error"
)
NO_STORE = (
    "expanding series: proxy Series(): rpc error: code = Aborted desc = No StoreAPIs matched for"
    " this query"
)
TOO_MANY_SERIES = (
    "expanding series: the query exceeded the maximum number of series (limit: 100000 series)"
    " (err-mimir-max-series-per-query). Consider reducing the time range and/or number of series"
    " selected by the query."
)
INFO = "PromQL info: metric might not be a counter, name does not end in _total: "
UNKNOWN = {
    "thanos, a store is down": (
        web.says(answered(warnings=[STORE_IS_DOWN])),
        "an incomplete answer: ['receive series from Addr: 10.96.192.138:10901",
    ),
    "thanos, a store is down, partial responses refused": (
        web.says(refused("execution", f"expanding series: proxy Series(): {STORE_IS_DOWN}"), 422),
        "HTTP 422, execution: expanding series: proxy Series(): receive series from Addr",
    ),
    "thanos, no store for this time": (
        web.says(refused("execution", NO_STORE), 422),
        "No StoreAPIs matched for this query",
    ),
    "mimir, no tenant": (
        web.says("no org id\n", 401, "text/plain; charset=utf-8"),
        "HTTP 401 with text/plain; charset=utf-8 instead of Prometheus' JSON: no org id",
    ),
    "mimir, a limit of the tenant": (
        web.says(refused("execution", TOO_MANY_SERIES), 422),
        "(err-mimir-max-series-per-query)",
    ),
    "mimir, queue full": (
        web.says(refused("too_many_requests", "too many outstanding requests"), 429),
        "HTTP 429, too_many_requests: too many outstanding requests",
    ),
    "mimir, a store-gateway is lost on the way": (
        web.says(
            refused("execution", "attempted to read series at index 0 from store-gateway"), 422
        ),
        "HTTP 422, execution: attempted to read series",
    ),
    "victoria-metrics cluster, a vmstorage is down": (
        web.says(answered(isPartial=True)),
        "an incomplete answer: the answer is partial",
    ),
    "victoria-metrics, text too long": (
        web.says(
            refused(
                "422",
                "too long query; got 16394 bytes; mustn't exceed `-search.maxQueryLen=16384` bytes",
            ),
            422,
        ),
        "-search.maxQueryLen=16384",
    ),
    "prometheus, histograms left out": (
        web.says(
            answered(warnings=["PromQL warning: encountered a mix of histograms and floats (1:1)"])
        ),
        "encountered a mix of histograms and floats",
    ),
    "prometheus 2.48, a remark and a warning": (
        web.says(answered(warnings=[f'{INFO}"x" (1:6)', "remote read: store-2 is down"])),
        "an incomplete answer: ['remote read: store-2 is down']",
    ),
    "a warning that is no list": (
        web.says(answered(warnings="store-3 is down")),
        "Prometheus' JSON of the wrong shape: Expected `array | null`, got `str` - at `$.warnings`",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
async def test_an_answer_in_part_or_a_refusal_is_no_answer(name: str) -> None:
    reply, words = UNKNOWN[name]
    async with HttpServer(reply) as server:
        source = _source(server)
        with pytest.raises(errors.SourceError) as raised:
            await source.fetch(NEED, AT)
        await source.close()

    assert words in str(raised.value)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"infos": [f'{INFO}"x" (1:6)']}, id="prometheus 3"),
        pytest.param({"warnings": [f'{INFO}"x" (1:6)']}, id="prometheus 2.48"),
        pytest.param({"isPartial": False}, id="victoria-metrics cluster"),
        pytest.param({"warnings": None, "analysis": {}}, id="thanos"),
    ],
)
async def test_a_remark_makes_no_answer_incomplete(more: dict[str, object]) -> None:
    async def reply(request: web.Request, writer: asyncio.StreamWriter) -> None:
        matrix = request.form["query"].endswith("s]")
        body = answered(**more) if matrix else json.dumps(web.success("vector", [], **more))
        await web.says(body)(request, writer)

    async with HttpServer(reply) as server:
        source = _source(server)
        observation = await source.fetch(NEED, AT)
        await source.close()

    assert [(gpu.pod, gpu.values) for gpu in observation.series] == [("bert-0", (90.0,))]


async def test_a_tenant_is_named_in_every_request() -> None:
    async def reply(request: web.Request, writer: asyncio.StreamWriter) -> None:
        matrix = request.form["query"].endswith("s]")
        await web.api("matrix" if matrix else "vector", [])(request, writer)

    async with HttpServer(reply) as server:
        source = _source(server, headers={"X-Scope-OrgID": "team-a|team-b"})
        await source.fetch(NEED, AT)
        await source.kube_state_metrics.evidence({"ml"}, AT, AT)
        await source.close()

    assert len(server.requests) >= 3
    assert {request.headers["x-scope-orgid"] for request in server.requests} == {"team-a|team-b"}


def _source(server: HttpServer, **given: object) -> PrometheusSource:
    values = PrometheusSettings.model_validate({"url": server.url, **given})
    return PrometheusSource("default", values, clock=Clock())
