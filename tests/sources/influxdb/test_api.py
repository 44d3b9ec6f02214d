"""InfluxDB's answers, as 1.6 gives them: read whole, or refused with its own message."""

import json

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.sources.influxdb import api
from keda_gpu_scaler.sources.influxdb.api import Series
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


def test_a_series_has_its_tags_and_times_in_seconds() -> None:
    assert api.series(result(TABLE)) == [
        Series(
            UTIL,
            {"UUID": "GPU-1", "namespace": "ml", "pod": "bert-0"},
            "gauge",
            [(1_700_000_000.0, 90.0), (1_700_000_015.25, 7.5)],
        )
    ]


def test_every_field_is_a_series_and_one_without_a_value_is_none() -> None:
    table = {
        "name": "prometheus",
        "columns": ["time", "used", "free", "nothing"],
        "values": [[1000, 1, None, None], [2000, 2, 3, None]],
    }
    assert api.series(result(table)) == [
        Series("prometheus", {}, "used", [(1.0, 1.0), (2.0, 2.0)]),
        Series("prometheus", {}, "free", [(2.0, 3.0)]),
    ]


def test_nothing_found_is_no_series() -> None:
    assert api.series(result()) == []
    assert api.number(result()) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([[1000, 4], [2000, 5]], 5, id="ascending"),
        pytest.param([[2000, 5], [1000, 4]], 5, id="descending"),
        pytest.param([[1000, 4], [2000, None]], 4, id="a null is no number"),
        pytest.param([[1000, None]], None, id="nulls alone"),
    ],
)
def test_a_number_is_the_newest_value(values: list[list[float]], expected: float | None) -> None:
    table = {"name": UTIL, "columns": ["time", "mean"], "values": values}
    assert api.number(result(table)) == expected


@pytest.mark.parametrize(
    "tables",
    [
        pytest.param([TABLE, {**TABLE, "tags": {"pod": "b"}}], id="two tags"),
        pytest.param(
            [{"name": UTIL, "columns": ["time", "a", "b"], "values": [[1000, 1, 2]]}],
            id="two fields",
        ),
    ],
)
def test_two_series_are_not_one_number(tables: list[object]) -> None:
    with pytest.raises(errors.SourceMalformedError, match="2 series instead of one number"):
        api.number(result(*tables))


@pytest.mark.parametrize("value", [-1, 1e300])
def test_a_number_that_cannot_be_counted_with_is_none(value: float) -> None:
    table = {"name": UTIL, "columns": ["time", "mean"], "values": [[1000, value]]}
    with pytest.raises(errors.SourceMalformedError, match="instead of a number from 0 to below"):
        api.number(result(table))


def test_the_clock_is_the_date_of_the_answer() -> None:
    dated = answer({"results": [{}]}, date="Tue, 14 Nov 2023 22:13:20 GMT")
    assert api.clock(dated) == 1_700_000_000


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_without_a_date_there_is_no_clock(date: str) -> None:
    with pytest.raises(errors.SourceMalformedError, match="without its date"):
        api.clock(answer({"results": [{}]}, date=date))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(
            answer({"error": "authorization failed"}, 401), "HTTP 401: authorization", id="401"
        ),
        pytest.param(answer({"error": "error parsing query: x"}, 400), "error parsing", id="400"),
        pytest.param(answer({}, 503), "HTTP 503: no reason given", id="no reason"),
        pytest.param(result(error="database not found: x"), "database not found: x", id="database"),
        pytest.param(
            result(TABLE, error="query interrupted"),
            "HTTP 200: query interrupted",
            id="with series",
        ),
        pytest.param(
            Answer(502, "text/html", b"<h1>Bad Gateway</h1>"),
            "HTTP 502 with text/html instead of InfluxDB's JSON: <h1>Bad Gateway",
            id="a proxy",
        ),
    ],
)
def test_a_refusal_is_in_the_words_of_the_server(given: Answer, words: str) -> None:
    for read in (api.series, api.number, api.clock):
        with pytest.raises(errors.SourceRefusedError, match=words):
            read(given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(result(TABLE, partial=True), "an incomplete answer", id="partial result"),
        pytest.param(
            result({**TABLE, "partial": True}), "an incomplete answer", id="partial table"
        ),
        pytest.param(
            Answer(200, "application/json", b'{"results":[{"series":[{"na'), "JSON", id="cut"
        ),
        pytest.param(answer([]), "JSON of the wrong shape", id="no object"),
        pytest.param(answer({}), "without its one result", id="no results"),
        pytest.param(answer({"results": {}}), "wrong shape", id="results no list"),
        pytest.param(answer({"results": [{}, {}]}), "without its one result", id="two results"),
        pytest.param(answer({"results": ["x"]}), "wrong shape", id="no result"),
        pytest.param(answer({"results": [{"series": {}}]}), "wrong shape", id="series no list"),
        pytest.param(answer({"results": [{"series": ["x"]}]}), "wrong shape", id="no table"),
        pytest.param(result({**TABLE, "values": [[1000, "90"]]}), "wrong shape", id="text"),
        pytest.param(result({**TABLE, "values": [[1000, True]]}), "wrong shape", id="a flag"),
        pytest.param(result({**TABLE, "values": [[None, 1]]}), "wrong shape", id="no time"),
        pytest.param(result({**TABLE, "values": [[1000]]}), "wrong shape", id="a short row"),
        pytest.param(result({**TABLE, "values": None}), "wrong shape", id="no rows"),
        pytest.param(result({**TABLE, "columns": ["gauge"]}), "wrong shape", id="no time column"),
        pytest.param(result({**TABLE, "columns": []}), "wrong shape", id="no columns"),
        pytest.param(result({**TABLE, "tags": ["pod"]}), "wrong shape", id="tags no object"),
        pytest.param(result({**TABLE, "tags": {"pod": 1}}), "wrong shape", id="a tag no text"),
        pytest.param(result({"columns": ["time", "a"]}), "wrong shape", id="no name"),
    ],
)
def test_what_is_no_whole_answer_is_none(given: Answer, words: str) -> None:
    with pytest.raises(errors.SourceMalformedError, match=words):
        api.series(given)
