"""Answers of Prometheus, Thanos, Mimir and VictoriaMetrics: what is read, and what is refused.

Those that name a server are recorded from issue trackers and from the servers' own tests, shortened
where they list stores. None of them may look like a smaller sum or like no pods. That no bytes at
all break a reader is the fuzzer's claim, in `tests/fuzz`.
"""

import json
import math
from collections.abc import Callable

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources.prometheus import client
from keda_gpu_scaler.sources.prometheus.client import Clock
from keda_gpu_scaler.transport.client import Answer
from tests.support import http_replies as web

LABELS = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "exported_pod": "bert-0"}
ROW = {"metric": LABELS, "values": [[1_700_000_000, "90"]]}
READERS: dict[str, tuple[Callable[[Answer], object], str]] = {
    "matrix": (client.parse_matrix, "matrix"),
    "vector": (client.parse_vector, "vector"),
    "clock": (client.parse_clock, "scalar or vector"),
    "number": (client.parse_number, "scalar or vector"),
}
"""Each with the types of result that it reads."""


def answer(content: object, status: int = 200) -> Answer:
    return Answer(status, "application/json", json.dumps(content).encode())


def result(kind: str, value: object, **more: object) -> Answer:
    return answer(web.success(kind, value, **more))


def refused(status: int, kind: str, words: str) -> Answer:
    return answer({"status": "error", "errorType": kind, "error": words}, status)


def partial(**more: object) -> Answer:
    return result("matrix", [ROW], **more)


# What is read


def test_a_matrix_becomes_rows_of_the_series_that_have_points() -> None:
    shown = {"metric": LABELS, "values": [[1700000000, "87"], [1700000015.5, "1e1"]]}
    odd = {"metric": {}, "values": [[0, "+Inf"], [1, "-Inf"]]}
    without = {"metric": LABELS, "values": []}
    assert client.parse_matrix(result("matrix", [shown, odd, without])) == [
        Row(LABELS, [(1700000000.0, 87.0), (1700000015.5, 10.0)]),
        Row({}, [(0.0, math.inf), (1.0, -math.inf)]),
    ]
    assert client.parse_matrix(result("matrix", [])) == []


def test_a_vector_becomes_rows_of_one_point() -> None:
    element = {"metric": LABELS, "value": [1700000000.123, "0.5"]}
    assert client.parse_vector(result("vector", [element])) == [
        Row(LABELS, [(1700000000.123, 0.5)])
    ]
    ((_, [(_, value)]),) = client.parse_vector(
        result("vector", [{"metric": {}, "value": [0, "NaN"]}])
    )
    assert math.isnan(value)


def test_a_clock_is_a_scalar_or_where_it_is_victoria_metrics_a_vector() -> None:
    scalar = result("scalar", [1700000000.2, "1700000000.1"])
    assert client.parse_clock(scalar) == Clock(1700000000.1, takes_long_queries=True)
    vector = result("vector", [{"metric": {}, "value": [1700000030, "1700000000.1"]}])
    assert client.parse_clock(vector) == Clock(1700000000.1, takes_long_queries=False)


@pytest.mark.parametrize("text", ["0", "-0", "5e-324", "9007199254740991", "1e3"])
def test_one_number_is_a_scalar_or_the_only_element(text: str) -> None:
    assert client.parse_number(result("scalar", [0, text])) == float(text)
    assert client.parse_number(result("vector", [{"metric": LABELS, "value": [0, text]}])) == float(
        text
    )
    assert client.parse_number(result("vector", [])) is None


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"infos": ["PromQL info: metric might not be a counter"]}, id="prometheus 3"),
        pytest.param({"warnings": ["PromQL info: metric might not"]}, id="prometheus 2.48"),
        pytest.param({"isPartial": False}, id="victoria-metrics cluster"),
        pytest.param({"warnings": None, "analysis": {}}, id="thanos"),
    ],
)
def test_a_remark_makes_no_answer_incomplete(more: dict[str, object]) -> None:
    assert len(client.parse_matrix(partial(**more))) == 1


# What every reader refuses, in the server's words

HTML = b"<html>\n  <title>Bad\tGateway\xff</title>" + b"." * 10_000
NO_JSON = "HTTP 200 with application/json instead of Prometheus' JSON"
SHAPE = "Prometheus' JSON of the wrong shape"
PARTIAL_CONTENT = answer(web.success("vector", []), 206)
REFUSED, MALFORMED = errors.SourceRefusedError, errors.SourceMalformedError
NO_ANSWERS: dict[str, tuple[Answer, type[errors.SourceError], str]] = {
    "thanos, a store is down": (
        partial(warnings=["receive series from Addr: 10.96.192.138:10901: code = Unavailable"]),
        MALFORMED,
        "an incomplete answer: ['receive series from Addr: 10.96.192.138:10901",
    ),
    "thanos, partial responses refused": (
        refused(422, "execution", "expanding series: proxy Series(): receive series from Addr"),
        REFUSED,
        "HTTP 422, execution: expanding series: proxy Series(): receive series from Addr",
    ),
    "mimir, no tenant": (
        Answer(401, "text/plain; charset=utf-8", b"no org id\n"),
        REFUSED,
        "HTTP 401 with text/plain; charset=utf-8 instead of Prometheus' JSON: no org id",
    ),
    "victoria-metrics cluster, a vmstorage is down": (
        partial(isPartial=True),
        MALFORMED,
        "an incomplete answer: the answer is partial",
    ),
    "prometheus 2.48, a remark and a warning": (
        partial(warnings=["PromQL info: x", "remote read: store-2 is down"]),
        MALFORMED,
        "an incomplete answer: ['remote read: store-2 is down']",
    ),
    "a warning that is no list": (
        partial(warnings="store-3 is down"),
        MALFORMED,
        f"{SHAPE}: Expected `array | null`, got `str` - at `$.warnings`",
    ),
    "no words": (answer({}, 500), REFUSED, "HTTP 500, error: no reason given"),
    "a success under another status": (
        PARTIAL_CONTENT,
        REFUSED,
        "HTTP 206, error: no reason given",
    ),
    "a page for people": (
        Answer(200, "text/html\x1b", HTML),
        MALFORMED,
        "HTTP 200 with text/html? instead of Prometheus' JSON: <html> <title>Bad Gat",
    ),
    "a part": (Answer(200, "application/json", b'{"data":{"res'), MALFORMED, NO_JSON),
    "another encoding": (Answer(200, "application/json", b'{"x":"\xff'), MALFORMED, NO_JSON),
    "null": (answer(None), MALFORMED, SHAPE),
    "no data": (answer({"status": "success"}), MALFORMED, "an answer without a result of type "),
    "another type": (result("string", [0, "x"]), MALFORMED, "an answer without a result of type "),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_what_is_no_whole_answer_is_none(name: str) -> None:
    given, fault, words = NO_ANSWERS[name]
    for read, kinds in READERS.values():
        with pytest.raises(fault) as raised:
            read(given)
        told = str(raised.value)
        assert told.startswith(words), read
        assert len(told) < 400, read
        assert not words.endswith("type ") or told == words + kinds


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            (
                r'error when executing query="a{b!=\"c) d\\\\\"}" for (time=1, step=300000): '
                r'cannot evaluate "a{b!=\"c\"} * b": duplicate time series on the left: {x="y"}'
            ),
            'duplicate time series on the left: {x="y"}',
        ),
        ('error when executing query="a', 'error when executing query="a'),
        ('cannot evaluate "a" at all', 'cannot evaluate "a" at all'),
    ],
)
def test_a_question_that_is_repeated_is_no_part_of_the_reason(words: str, told: str) -> None:
    with pytest.raises(errors.SourceRefusedError) as raised:
        client.parse_number(refused(422, "422", words))
    assert str(raised.value) == f"HTTP 422, 422: {told}"


# Results of the wrong shape

POINTS: dict[str, object] = {
    "native histogram": {"metric": {}, "histograms": [[0, {"count": "1"}]]},
    "a label with null": {"metric": {"job": None}, "values": [[0, "1"]]},
    "half a point": {"metric": {}, "values": [[0]]},
    "a point without a value": {"metric": {}, "values": [[0, None]]},
    "a value in words": {"metric": {}, "values": [[0, "one"]]},
}
ELEMENTS: dict[str, object] = {
    "native histogram": {"metric": {}, "histogram": [0, {"count": "1"}]},
    "half a point": {"metric": {}, "value": [0]},
    "a value in words": {"metric": {}, "value": [0, "one"]},
    "no labels": {"value": [0, "1"]},
    "null": None,
}
GOOD = {"metric": {}, "value": [0, "1"]}
HALF_SCALARS: list[object] = [[0], [0, None], [0, "one"]]
NO_LISTS: list[object] = [None, {}]


@pytest.mark.parametrize(
    ("reader", "kind", "wrong"),
    [
        *(("matrix", "matrix", [ROW, series]) for series in POINTS.values()),
        *(("vector", "vector", [GOOD, element]) for element in ELEMENTS.values()),
        *(("number", "vector", [GOOD, element]) for element in ELEMENTS.values()),
        *(
            (kind, "vector", [{**GOOD, "metric": {"a": 1}}])
            for kind in ("vector", "number", "clock")
        ),
        *(("clock", "scalar", half) for half in HALF_SCALARS),
        *(("number", "scalar", half) for half in HALF_SCALARS),
        *((kind, kind, wrong) for kind in ("matrix", "vector") for wrong in NO_LISTS),
    ],
)
def test_one_wrong_part_makes_the_whole_result_malformed(
    reader: str, kind: str, wrong: object
) -> None:
    read, _ = READERS[reader]
    with pytest.raises(errors.SourceMalformedError, match=f"a {kind} of the wrong shape"):
        read(result(kind, wrong))


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "-0.001", "9007199254740992", "1e300"])
def test_a_number_that_cannot_be_counted_with_is_never_another_one(text: str) -> None:
    for given in (
        result("scalar", [0, text]),
        result("vector", [{"metric": {}, "value": [0, text]}]),
    ):
        with pytest.raises(errors.SourceMalformedError, match=r"instead of a number from 0 to bel"):
            client.parse_number(given)
    if not math.isfinite(float(text)):
        with pytest.raises(errors.SourceMalformedError, match="instead of one number of seconds"):
            client.parse_clock(result("scalar", [0, text]))


def test_two_numbers_are_none_also_where_they_are_the_same() -> None:
    expected = r"2 elements instead of one number; sum\(\.\.\.\)"
    with pytest.raises(errors.SourceMalformedError, match=expected):
        client.parse_number(result("vector", [GOOD, GOOD]))
