"""InfluxDB's answers, as 1.6 gives them: read whole, or refused with its own message."""

import json

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.sources import influxdb
from keda_gpu_scaler.sources.influxdb import Field
from keda_gpu_scaler.transport.client import Answer

UTIL = "DCGM_FI_DEV_GPU_UTIL"
TAGS = {"UUID": "GPU-1", "namespace": "ml", "pod": "bert-0", "container": ""}
TABLE = {
    "name": UTIL,
    "tags": TAGS,
    "columns": ["time", "gauge"],
    "values": [[1_700_000_000_000, 90], [1_700_000_015_250, 7.5]],
}


def answer(content: object, status: int = 200, date: str = "") -> Answer:
    return Answer(status, "application/json", json.dumps(content).encode(), date)


def result(*tables: object, **more: object) -> Answer:
    given = {"statement_id": 0, **({"series": tables} if tables else {}), **more}
    return answer({"results": [given]})


SEVERAL = {
    "name": "prometheus",
    "columns": ["time", "used", "free", "nothing"],
    "values": [[1000, 1, None, None], [2000, 2, 3, None]],
}


def test_every_field_is_a_series_with_its_tags_and_one_without_a_value_is_none() -> None:
    assert influxdb.parse_fields(result()) == []
    named = {"UUID": "GPU-1", "namespace": "ml", "pod": "bert-0"}
    assert influxdb.parse_fields(result(TABLE, SEVERAL)) == [
        Field(UTIL, named, "gauge", [(1_700_000_000.0, 90.0), (1_700_000_015.25, 7.5)]),
        Field("prometheus", {}, "used", [(1.0, 1.0), (2.0, 2.0)]),
        Field("prometheus", {}, "free", [(2.0, 3.0)]),
    ]


def numbers(*values: list[float | None]) -> dict[str, object]:
    return {"name": UTIL, "columns": ["time", "mean"], "values": values}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param([numbers([2000, 5], [1000, 4])], 5, id="descending"),
        pytest.param([numbers([1000, 4], [2000, None])], 4, id="a null is no number"),
        pytest.param([numbers([1000, None])], None, id="nulls alone"),
    ],
)
def test_a_number_is_the_newest_value(tables: list[object], expected: float | None) -> None:
    assert influxdb.parse_number(result(*tables)) == expected


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        pytest.param([TABLE, {**TABLE, "tags": {}}], "2 series instead of one", id="two tags"),
        pytest.param(
            [{"name": UTIL, "columns": ["time", "a", "b"], "values": [[1000, 1, 2]]}],
            "2 series instead of one number",
            id="two fields",
        ),
        pytest.param([numbers([1000, -1])], "instead of a number from 0 to below", id="negative"),
    ],
)
def test_what_is_not_one_number_is_none(tables: list[object], words: str) -> None:
    with pytest.raises(errors.SourceMalformedError, match=words):
        influxdb.parse_number(result(*tables))


def test_the_clock_is_the_date_of_the_answer_and_without_one_there_is_none() -> None:
    dated = answer({"results": [{}]}, date="Tue, 14 Nov 2023 22:13:20 GMT")
    assert influxdb.parse_clock(dated) == 1_700_000_000
    for date in ("", "yesterday"):
        with pytest.raises(errors.SourceMalformedError, match="without its date"):
            influxdb.parse_clock(answer({"results": [{}]}, date=date))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (answer({"error": "authorization failed"}, 401), "HTTP 401: authorization failed"),
        (answer({}, 503), "HTTP 503: no reason given"),
        (result(error="database not found: x"), "HTTP 200: database not found: x"),
        (result(TABLE, error="query interrupted"), "HTTP 200: query interrupted"),
        (
            Answer(502, "text/html", b"<h1>Bad Gateway</h1>"),
            "HTTP 502 with text/html instead of InfluxDB's JSON: <h1>Bad Gateway",
        ),
    ],
    ids=["status", "no reason", "database", "with series", "a proxy"],
)
def test_a_refusal_is_in_the_words_of_the_server(given: Answer, words: str) -> None:
    for read in (influxdb.parse_fields, influxdb.parse_number, influxdb.parse_clock):
        with pytest.raises(errors.SourceRefusedError, match=words):
            read(given)


CUT = Answer(200, "application/json", b'{"results":[{"series":[{"na')
WRONG_SHAPES: dict[str, object] = {
    "no object": [],
    "results no list": {"results": {}},
    "no table": {"results": [{"series": ["x"]}]},
}
WRONG_TABLES: dict[str, object] = {
    "text": {**TABLE, "values": [[1000, "90"]]},
    "no time": {**TABLE, "values": [[None, 1]]},
    "a short row": {**TABLE, "values": [[1000]]},
    "no rows": {**TABLE, "values": None},
    "no time column": {**TABLE, "columns": ["gauge"]},
    "tags no object": {**TABLE, "tags": ["pod"]},
    "no name": {"columns": ["time", "a"]},
}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(result(TABLE, partial=True), "an incomplete answer", id="partial result"),
        pytest.param(result({**TABLE, "partial": True}), "an incomplete answer", id="partial"),
        pytest.param(CUT, "instead of InfluxDB's JSON", id="cut"),
        pytest.param(answer({}), "without its one result", id="no results"),
        pytest.param(answer({"results": [{}, {}]}), "without its one result", id="two results"),
        *(pytest.param(answer(WRONG_SHAPES[of]), "wrong shape", id=of) for of in WRONG_SHAPES),
        *(pytest.param(result(WRONG_TABLES[of]), "wrong shape", id=of) for of in WRONG_TABLES),
    ],
)
def test_what_is_no_whole_answer_is_none(given: Answer, words: str) -> None:
    with pytest.raises(errors.SourceMalformedError, match=words):
        influxdb.parse_fields(given)
