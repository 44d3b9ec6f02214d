"""Answers of Prometheus, Thanos, Mimir, VictoriaMetrics and InfluxDB: read whole, or refused.

Those that name a server are recorded from issue trackers and from the servers' own tests, shortened
where they list stores. None of them may look like a smaller sum or like no pods. That no bytes at
all break a reader is the fuzzer's claim, in `tests/fuzz`.
"""

import json
import math
from collections.abc import Callable, Sequence

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources import influxdb
from keda_gpu_scaler.sources.influxdb import Field
from keda_gpu_scaler.sources.prometheus import client
from keda_gpu_scaler.transport.http_client import HttpAnswer
from tests.support import http_replies as web
from tests.support.computing import MOST_SECONDS, cpu_seconds

Reader = Callable[[HttpAnswer], object]
MATRIX, VECTOR = client.parse_matrix, client.parse_vector
CLOCK, NUMBER = client.parse_clock, client.parse_number
PROMETHEUS: tuple[Reader, ...] = (MATRIX, VECTOR, CLOCK, NUMBER)
FIELDS, DATE, NEWEST = influxdb.parse_fields, influxdb.parse_clock, influxdb.parse_number
INFLUXDB: tuple[Reader, ...] = (FIELDS, DATE, NEWEST)


JSON = "application/json"


def answer(content: object, status: int = 200, date: str = "") -> HttpAnswer:
    return HttpAnswer(status, JSON, json.dumps(content).encode(), date)


def result(kind: str, value: object, **more: object) -> HttpAnswer:
    """Return an answer of Prometheus."""
    return answer(web.success(kind, value, **more))


def elements(*values: str) -> HttpAnswer:
    return result("vector", [{"metric": {}, "value": [0, value]} for value in values])


def failed(status: int, words: str) -> HttpAnswer:
    return answer({"status": "error", "errorType": "execution", "error": words}, status)


def column(*values: list[float | None]) -> dict[str, object]:
    return {"name": UTIL, "columns": ["time", "mean"], "values": values}


def tables(*shown: object, **more: object) -> HttpAnswer:
    """Return an answer of InfluxDB."""
    given = {"statement_id": 0, **({"series": shown} if shown else {}), **more}
    return answer({"results": [given]})


UTIL = "DCGM_FI_DEV_GPU_UTIL"
LABELS = {"__name__": UTIL, "exported_pod": "bert-0"}
ROW = {"metric": LABELS, "values": [[1_700_000_000, "87"], [1_700_000_015.5, "1e1"]]}
INFINITE = {"metric": {}, "values": [[0, "+Inf"], [1, "-Inf"]]}
WITHOUT = {"metric": LABELS, "values": []}
READ_ROW = Row.of(LABELS, [(1_700_000_000.0, 87.0), (1_700_000_015.5, 10.0)])
TAGS = {"UUID": "GPU-1", "namespace": "ml", "pod": "bert-0"}
TABLE = {
    "name": UTIL,
    "tags": {**TAGS, "container": ""},
    "columns": ["time", "gauge"],
    "values": [[1_700_000_000_000, 90], [1_700_000_015_250, 7.5]],
}
SEVERAL = {
    "name": "prometheus",
    "columns": ["time", "used", "free", "nothing"],
    "values": [[1000, 1, None, None], [2000, 2, 3, None]],
}
READ_FIELDS = [
    Field(UTIL, "gauge", Row.of(TAGS, [(1_700_000_000.0, 90.0), (1_700_000_015.25, 7.5)])),
    Field("prometheus", "used", Row.of({}, [(1.0, 1.0), (2.0, 2.0)])),
    Field("prometheus", "free", Row.of({}, [(2.0, 3.0)])),
]


Case = tuple[Reader, HttpAnswer, object]
WHOLE: list[Case] = [
    (MATRIX, result("matrix", []), []),
    (
        MATRIX,
        result("matrix", [ROW, INFINITE, WITHOUT]),
        [READ_ROW, Row.of({}, [(0.0, math.inf), (1.0, -math.inf)])],
    ),
    (VECTOR, elements("0.5"), [Row.of({}, [(0.0, 0.5)])]),
    (CLOCK, result("scalar", [0, "17.1"]), client.Clock(17.1, takes_long_queries=True)),
    (CLOCK, elements("17.1"), client.Clock(17.1, takes_long_queries=False)),  # VictoriaMetrics
    (NUMBER, elements(), None),
    (NUMBER, elements("5e-324"), 5e-324),
    (NUMBER, result("scalar", [0, "9007199254740991"]), 2.0**53 - 1),
    (NUMBER, result("scalar", [0, "-0"]), 0),
    # Remarks of Prometheus 3 and 2.48; VictoriaMetrics' cluster; Thanos.
    (MATRIX, result("matrix", [ROW], infos=["PromQL info: x"]), [READ_ROW]),
    (MATRIX, result("matrix", [ROW], warnings=["PromQL info: x"]), [READ_ROW]),
    (MATRIX, result("matrix", [ROW], isPartial=False), [READ_ROW]),
    (MATRIX, result("matrix", [ROW], warnings=None, analysis={}), [READ_ROW]),
    (FIELDS, tables(TABLE, SEVERAL), READ_FIELDS),
    (FIELDS, tables(), []),
    (NEWEST, tables(), None),
    (NEWEST, tables(column([2000, 5], [1000, 4])), 5),
    (NEWEST, tables(column([1000, 4], [2000, None])), 4),
    (NEWEST, tables(column([1000, None])), None),
    (DATE, answer({"results": [{}]}, date="Tue, 14 Nov 2023 22:13:20 GMT"), 1_700_000_000),
]


@pytest.mark.parametrize(("read", "given", "expected"), WHOLE)
def test_a_whole_answer_is_read(read: Reader, given: HttpAnswer, expected: object) -> None:
    assert read(given) == expected


def test_nan_is_a_value() -> None:
    (row,) = client.parse_vector(elements("NaN"))
    assert list(map(math.isnan, row.values)) == [True]


# What is refused: the readers, the answer, and how the error begins

Refusal = tuple[Sequence[Reader], HttpAnswer, str]
REPEATED = (
    r'error when executing query="a{b!=\"c) d\\\"}" for (time=1, step=300000): '
    r'cannot evaluate "a{b!=\"c\"} * b": duplicate time series on the left: {x="y"}'
)
ERRORS: list[Refusal] = [
    # Thanos, with partial responses refused.
    (PROMETHEUS, failed(422, "proxy Series(): receive series"), "HTTP 422, execution: proxy Ser"),
    # Mimir, without a tenant.
    (
        PROMETHEUS,
        HttpAnswer(401, "text/plain; charset=utf-8", b"no org id\n"),
        "HTTP 401 with text/plain; charset=utf-8 instead of Prometheus' JSON: no org id",
    ),
    # VictoriaMetrics repeats the query, or a part of it.
    (PROMETHEUS, failed(422, REPEATED), "HTTP 422, execution: duplicate time series on the left"),
    (PROMETHEUS, failed(422, 'cannot evaluate "a'), 'HTTP 422, execution: cannot evaluate "a'),
    (PROMETHEUS, answer({}, 500), "HTTP 500, error: no reason given"),
    (PROMETHEUS, answer(web.success("vector", []), 206), "HTTP 206, error: no reason given"),
    (INFLUXDB, answer({"error": "authorization failed"}, 401), "HTTP 401: authorization failed"),
    (INFLUXDB, answer({}, 503), "HTTP 503: no reason given"),
    (INFLUXDB, tables(TABLE, error="query interrupted"), "HTTP 200: query interrupted"),
    (
        INFLUXDB,
        HttpAnswer(502, "text/html", b"<h1>Bad Gateway</h1>"),
        "HTTP 502 with text/html instead of InfluxDB's JSON: <h1>Bad Gateway",
    ),
]
INSTEAD = "HTTP 200 with application/json instead of "
SHAPE = "Prometheus' JSON of the wrong shape"
PARTIAL = "an incomplete answer: "
NO_TYPE = "an answer without a result of type "
HTML = b"<html>\n  <title>Bad\tGateway\xff</title>" + b"." * 10_000
DEEP = b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NO_COUNTS = ["NaN", "+Inf", "-Inf", "-0.001", "9007199254740992", "1e300"]
HALVES: list[object] = [[0], [0, None], [0, "one"]]
"""Values without their numbers."""
SERIES = [{"metric": {}, "values": [half]} for half in HALVES]
ELEMENTS = [{"metric": {}, "value": half} for half in HALVES]
GOOD = {"metric": {}, "value": [0, "1"]}
WRONG: list[Refusal] = [
    # Thanos with a store down, and VictoriaMetrics' cluster with a vmstorage down.
    (PROMETHEUS, result("matrix", [ROW], warnings=["store: x"]), f"{PARTIAL}['store: x']"),
    (PROMETHEUS, result("matrix", [ROW], isPartial=True), f"{PARTIAL}the answer is partial"),
    # Prometheus 2.48, a remark and a warning.
    (PROMETHEUS, result("matrix", [], warnings=["PromQL info: x", "y"]), f"{PARTIAL}['y']"),
    (PROMETHEUS, result("matrix", [ROW], warnings="x"), f"{SHAPE}: Expected `array | null`"),
    (
        PROMETHEUS,
        HttpAnswer(200, "text/html\x1b", HTML),
        "HTTP 200 with text/html? instead of Prometheus' JSON: <html> <title>Bad Gat",
    ),
    (PROMETHEUS, HttpAnswer(200, JSON, b'{"x":"\xff'), f"{INSTEAD}Prometheus' JSON"),
    (PROMETHEUS, HttpAnswer(200, JSON, DEEP), f"{INSTEAD}Prometheus' JSON"),
    (PROMETHEUS, answer(None), SHAPE),
    (PROMETHEUS, answer({"status": "success"}), NO_TYPE),
    ([VECTOR], result("string", [0, "x"]), f"{NO_TYPE}vector"),
    ([CLOCK, NUMBER], result("string", [0, "x"]), f"{NO_TYPE}scalar or vector"),
    ([NUMBER], elements("2147483632"), "2147483632, which is what DCGM shows instead of a number"),
    ([NUMBER], elements("1", "1"), "the query gives 2 elements instead of one number; sum(...)"),
    *(
        ([reader], given, f"{words} instead of {expected}")
        for reader, texts, expected in (
            (NUMBER, NO_COUNTS, "a number from 0 to below 2^53"),
            (CLOCK, NO_COUNTS[:3], "one number of seconds"),
        )
        for text in texts
        for words in (f"{float(text):g}" if reader is NUMBER else f"[{float(text)}]",)
        for given in (elements(text), result("scalar", [0, text]))
    ),
    *(
        ([MATRIX], result("matrix", wrong), "a matrix of the wrong shape")
        for wrong in (
            {},
            [{"metric": {}, "histograms": [[0, {"count": "1"}]]}],
            [{"metric": {"job": None}, "values": [[0, "1"]]}],
            *([ROW, series] for series in SERIES),
        )
    ),
    *(
        ([VECTOR, NUMBER, CLOCK], result("vector", wrong), "a vector of the wrong shape")
        for wrong in (
            {},
            [GOOD, {"metric": {}, "histogram": [0, {"count": "1"}]}],
            [{**GOOD, "metric": {"a": 1}}],
            [GOOD, {"value": [0, "1"]}],
            [GOOD, None],
            *([GOOD, element] for element in ELEMENTS),
        )
    ),
    *(([NUMBER, CLOCK], result("scalar", half), "a scalar of the wrong shape") for half in HALVES),
    (INFLUXDB, tables(TABLE, partial=True), PARTIAL),
    (INFLUXDB, tables({**TABLE, "partial": True}), PARTIAL),
    (INFLUXDB, HttpAnswer(200, JSON, b'{"results":[{"ser'), f"{INSTEAD}InfluxDB's JSON"),
    (INFLUXDB, answer({}), "an answer without its one result"),
    (INFLUXDB, answer({"results": [{}, {}]}), "an answer without its one result"),
    *(
        (INFLUXDB, given, "InfluxDB's JSON of the wrong shape")
        for given in (
            answer([]),
            answer({"results": {}}),
            tables("x"),
            tables({"columns": ["time", "a"]}),
            tables({**TABLE, "tags": ["pod"]}),
        )
    ),
    *(
        ([FIELDS, NEWEST], tables({**TABLE, **wrong}), "a series of the wrong shape")
        for wrong in (
            {"values": [[1000, "90"]]},
            {"values": [[None, 1]]},
            {"values": [[1000]]},
            {"values": None},
            {"columns": ["gauge"]},
            {"name": ""},
        )
    ),
    ([NEWEST], tables(TABLE, {**TABLE, "tags": {}}), "2 series instead of one number"),
    ([NEWEST], tables(SEVERAL), "2 series instead of one number"),
    ([NEWEST], tables(column([1000, -1])), "-1 instead of a number from 0 to below 2^53"),
    ([DATE], answer({"results": [{}]}), "an answer without its date"),
    ([DATE], answer({"results": [{}]}, date="yesterday"), "an answer without its date"),
]


@pytest.mark.parametrize(
    ("error", "readers", "given", "words"),
    [
        *((errors.SourceRefusedError, *refusal) for refusal in ERRORS),
        *((errors.SourceMalformedError, *refusal) for refusal in WRONG),
    ],
)
def test_any_other_answer_is_refused_and_says_why(
    error: type[errors.SourceError], readers: Sequence[Reader], given: HttpAnswer, words: str
) -> None:
    for read in readers:
        with pytest.raises(error) as raised:
            read(given)
        assert str(raised.value).startswith(words), read
        assert len(str(raised.value)) < 400, read


@pytest.mark.parametrize("part", ['cannot evaluate "" for (', 'cannot evaluate "', r"\"", "a"])
def test_the_time_of_an_error_grows_with_its_length(part: str) -> None:
    given = failed(422, f'cannot evaluate "{part * (130_000 // len(part))}')

    def refused() -> None:
        with pytest.raises(errors.SourceRefusedError):
            client.parse_vector(given)

    assert cpu_seconds(refused) < MOST_SECONDS
