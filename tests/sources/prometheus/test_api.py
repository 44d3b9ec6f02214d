"""Answers of Prometheus and its relatives: recorded ones, and ones that must be refused."""

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources.prometheus import api
from keda_gpu_scaler.sources.prometheus.api import Clock
from keda_gpu_scaler.spec import demand
from keda_gpu_scaler.transport.client import Answer
from tests.support import http_replies as web

LABELS = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "exported_pod": "bert-0"}
KINDS: dict[str, Callable[[Answer], object]] = {
    "matrix": api.matrix,
    "vector": api.vector,
    "scalar or vector": api.clock,
}
PARSERS = [*KINDS.values(), api.number]


def answer(content: object, status: int = 200) -> Answer:
    return Answer(status, "application/json", json.dumps(content).encode())


def matrix(*series: object, **more: object) -> Answer:
    return answer(web.success("matrix", list(series), **more))


def vector(*elements: object, **more: object) -> Answer:
    return answer(web.success("vector", list(elements), **more))


# Whole answers


def test_a_matrix_becomes_rows() -> None:
    series = {"metric": LABELS, "values": [[1700000000, "87"], [1700000015.5, "1e1"]]}

    assert api.matrix(matrix(series)) == [Row(LABELS, [(1700000000.0, 87.0), (1700000015.5, 10.0)])]


def test_a_vector_becomes_rows_of_one_point() -> None:
    element = {"metric": LABELS, "value": [1700000000.123, "0.5"]}

    assert api.vector(vector(element)) == [Row(LABELS, [(1700000000.123, 0.5)])]


def test_a_clock_is_a_scalar() -> None:
    given = answer(web.success("scalar", [1700000000.2, "1700000000.1"]))

    assert api.clock(given) == Clock(1700000000.1, takes_long_queries=True)


def test_the_clock_of_victoria_metrics_is_a_vector() -> None:
    given = vector({"metric": {}, "value": [1700000030, "1700000000.1"]})

    assert api.clock(given) == Clock(1700000000.1, takes_long_queries=False)


def test_an_empty_answer_is_no_rows() -> None:
    assert api.matrix(matrix()) == []
    assert api.vector(vector()) == []


def test_a_series_without_points_is_no_row() -> None:
    assert api.matrix(matrix({"metric": LABELS, "values": []})) == []


@pytest.mark.parametrize(
    ("spelled", "value"), [("NaN", math.nan), ("+Inf", math.inf), ("-Inf", -math.inf)]
)
def test_numbers_json_lacks_are_read(spelled: str, value: float) -> None:
    series = {"metric": LABELS, "values": [[0, spelled]]}
    ((_, [(_, found)]),) = api.matrix(matrix(series))

    assert found == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize("spelled", ["NaN", "+Inf", "-Inf"])
def test_a_scalar_that_is_no_number_is_refused(spelled: str) -> None:
    given = answer(web.success("scalar", [0, spelled]))
    with pytest.raises(errors.SourceMalformedError, match="instead of one number of seconds"):
        api.clock(given)


def test_one_number_is_a_scalar_or_the_only_element() -> None:
    scalar = answer(web.success("scalar", [1700000000, "0.25"]))
    element = {"metric": LABELS, "value": [1700000000, "1e3"]}

    assert api.number(scalar) == 0.25
    assert api.number(vector(element)) == 1000
    assert api.number(vector()) is None


@pytest.mark.parametrize("text", ["0", "-0", "5e-324", "9007199254740991"])
def test_a_number_that_can_be_counted_with_is_taken(text: str) -> None:
    assert api.number(vector({"metric": {}, "value": [0, text]})) == float(text)


def test_a_number_that_cannot_be_counted_with_is_never_another_one(
    subtests: pytest.Subtests,
) -> None:
    for text in ("NaN", "+Inf", "-Inf", "-0.001", "-1e300", "9007199254740992", "1e300"):
        point = [0, text]
        for kind, given_one in {
            "scalar": point,
            "vector": [{"metric": {}, "value": point}],
        }.items():
            told = r"instead of a number from 0 to below 2\^53"
            with (
                subtests.test(f"{kind} {text}"),
                pytest.raises(errors.SourceMalformedError, match=told),
            ):
                api.number(answer(web.success(kind, given_one)))


def test_two_numbers_are_none_also_where_they_are_the_same() -> None:
    element = {"metric": LABELS, "value": [0, "1"]}
    with pytest.raises(
        errors.SourceMalformedError, match=r"2 elements instead of one number; sum\(\.\.\.\)"
    ):
        api.number(vector(element, element))


# Partial answers


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"warnings": ["No StoreAPIs matched for this query"]}, "No StoreAPIs matched"),
        ({"warnings": ["one"], "isPartial": True}, "one"),
        ({"isPartial": True}, "the answer is partial"),
    ],
)
def test_a_partial_answer_is_no_answer(more: dict[str, object], words: str) -> None:
    for parse in (api.matrix, api.vector, api.number):
        kind = "matrix" if parse is api.matrix else "vector"
        with pytest.raises(errors.SourceMalformedError, match=f"an incomplete answer: .*{words}"):
            parse(answer(web.success(kind, [], **more)))


# Refusals


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (400, "bad_data", '1:5: parse error: unexpected "}"'),
        (422, "execution", "query timed out in expression evaluation: context deadline exceeded"),
        (422, "422", "error when executing query: cannot find tenant"),
        (503, "timeout", "query timed out in query execution"),
        (429, "too_many_requests", "too many outstanding requests"),
        (200, "internal", "an error in spite of its status"),
    ],
)
def test_an_error_is_told_in_the_servers_own_words(status: int, kind: str, words: str) -> None:
    given = answer({"status": "error", "errorType": kind, "error": words}, status)
    for parse in PARSERS:
        with pytest.raises(errors.SourceRefusedError) as raised:
            parse(given)

        assert str(raised.value) == f"HTTP {status}, {kind}: {words}", parse


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
    given_one = answer({"status": "error", "errorType": "422", "error": words}, 422)
    with pytest.raises(errors.SourceRefusedError) as raised:
        api.number(given_one)
    assert str(raised.value) == f"HTTP 422, 422: {told}"


def test_an_error_without_words_still_names_its_status() -> None:
    for parse in PARSERS:
        with pytest.raises(errors.SourceRefusedError, match="HTTP 500, error: no reason given"):
            parse(answer({}, 500))


@pytest.mark.parametrize("status", [206, 404, 503])
def test_a_success_under_another_status_is_no_success(status: int) -> None:
    with pytest.raises(errors.SourceRefusedError, match=f"HTTP {status}"):
        api.vector(answer(web.success("vector", []), status))


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (200, errors.SourceMalformedError),
        (302, errors.SourceRefusedError),
        (401, errors.SourceRefusedError),
        (500, errors.SourceRefusedError),
        (502, errors.SourceRefusedError),
    ],
)
def test_a_page_for_people_is_quoted(status: int, fault: type[errors.SourceError]) -> None:
    page = b"<html>\n  <title>Bad\tGateway\xff</title>" + b"." * 10_000
    beginning = f"HTTP {status} with text/html? instead of Prometheus' JSON: <html> <title>Bad Gat"
    for parse in PARSERS:
        with pytest.raises(fault) as raised:
            parse(Answer(status, "text/html\x1b", page))

        assert str(raised.value).startswith(beginning), parse
        assert len(str(raised.value)) < 400, parse


# Wrong shapes


def test_what_is_no_json_object_is_malformed(subtests: pytest.Subtests) -> None:
    no_json = [b"", b"{", b'{"status":"success","data":{"res', b"\xff\xfe{}", b'{"status":"\xff']
    told = dict.fromkeys(no_json, "HTTP 200 with application/json instead of Prometheus' JSON")
    told |= dict.fromkeys([b"[]", b"null", b"1", b'""'], "Prometheus' JSON of the wrong shape")
    for parse, body in itertools.product(PARSERS, told):
        with (
            subtests.test(f"{parse.__name__} {body!r}"),
            pytest.raises(errors.SourceMalformedError, match=told[body]),
        ):
            parse(Answer(200, "application/json", body))


def test_another_result_type_is_malformed(subtests: pytest.Subtests) -> None:
    shape = "Prometheus' JSON of the wrong shape"
    told: list[tuple[object, str]] = [
        (None, "without a result of type {kind}"),
        ({"resultType": "string", "result": [0, "x"]}, "without a result of type {kind}"),
        ([], shape),
        ({}, shape),
    ]
    for (kind, parse), (data, words) in itertools.product(KINDS.items(), told):
        with (
            subtests.test(f"{kind} {data}"),
            pytest.raises(errors.SourceMalformedError, match=words.format(kind=kind)),
        ):
            parse(answer({"status": "success", "data": data}))


def test_a_result_that_is_no_list_is_malformed(subtests: pytest.Subtests) -> None:
    results: list[object] = [None, {}, "x", 1]
    for (kind, parse), result in itertools.product(KINDS.items(), results):
        shown, *_ = kind.split()
        with (
            subtests.test(f"{kind} {result}"),
            pytest.raises(errors.SourceMalformedError, match=f"a {shown} of the wrong shape"),
        ):
            parse(answer(web.success(shown, result)))


@pytest.mark.parametrize(
    "series",
    [
        pytest.param({"metric": {}, "histograms": [[0, {"count": "1"}]]}, id="native histogram"),
        pytest.param({"values": [[0, "1"]]}, id="no labels"),
        pytest.param({"metric": [], "values": [[0, "1"]]}, id="labels in a list"),
        pytest.param({"metric": {"job": ["x"]}, "values": [[0, "1"]]}, id="a label with a list"),
        pytest.param({"metric": {"job": None}, "values": [[0, "1"]]}, id="a label with null"),
        pytest.param({"metric": {}, "values": [[0]]}, id="half a point"),
        pytest.param({"metric": {}, "values": [[0, "1", "2"]]}, id="too much of a point"),
        pytest.param({"metric": {}, "values": [[0, None]]}, id="a point without a value"),
        pytest.param({"metric": {}, "values": [["x", "1"]]}, id="a point without a time"),
        pytest.param({"metric": {}, "values": [[0, "one"]]}, id="a value in words"),
        pytest.param({"metric": {}, "values": 1}, id="points that are a number"),
        pytest.param([], id="a list"),
        pytest.param(None, id="null"),
        pytest.param("x", id="a string"),
    ],
)
def test_one_wrong_series_makes_the_whole_matrix_malformed(series: object) -> None:
    good = {"metric": LABELS, "values": [[0, "1"]]}
    with pytest.raises(errors.SourceMalformedError, match="a matrix of the wrong shape"):
        api.matrix(matrix(good, series))


@pytest.mark.parametrize(
    "element",
    [
        {"metric": {}, "histogram": [0, {"count": "1"}]},
        {"metric": {}, "value": [0]},
        {"metric": {}, "value": {}},
        {"metric": {}, "value": [0, "one"]},
        {"metric": {"a": 1}, "value": [0, "1"]},
        {"value": [0, "1"]},
        None,
    ],
)
def test_one_wrong_element_makes_the_whole_vector_malformed(element: object) -> None:
    with pytest.raises(errors.SourceMalformedError, match="a vector of the wrong shape"):
        api.vector(vector(element))


def test_a_number_or_clock_of_the_wrong_shape_is_malformed(subtests: pytest.Subtests) -> None:
    results: tuple[object, ...] = (
        [0],
        [0, {}],
        [0, None],
        [0, "one"],
        [0, "1", "2"],
        [[0, "1"], [0, "2"]],
        [{}],
        [{"value": 1}],
        [{"value": [0]}],
        [{"metric": {}, "histogram": [0, {"count": "1"}]}],
        [{"metric": {}, "value": [0, "1"]}, None],
        [{"metric": {"pod": 5}, "value": [0, "1"]}],
        [{"value": [0, "1"]}],
    )
    parsers = api.number, api.clock
    for parse, kind, result in itertools.product(parsers, ("scalar", "vector"), results):
        with (
            subtests.test(f"{parse.__name__} {kind} {result}"),
            pytest.raises(errors.SourceMalformedError, match=f"a {kind} of the wrong shape"),
        ):
            parse(answer(web.success(kind, result)))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metric", "value", "values", "result", "job", "x"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


def is_row(row: Any) -> bool:  # noqa: ANN401 - what came out of arbitrary JSON
    labels = all(isinstance(text, str) for pair in row.labels.items() for text in pair)
    points = all(isinstance(time, float) and isinstance(value, float) for time, value in row.points)
    return labels and points and len(row.points) > 0


@given(kind=st.sampled_from(["matrix", "vector"]), result=json_values, whole=json_values)
def test_any_json_is_rows_or_a_source_error(kind: str, result: object, whole: object) -> None:
    parse = api.matrix if kind == "matrix" else api.vector
    for content in (web.success(kind, result), web.success(kind, [result]), whole):
        try:
            rows = parse(answer(content))
        except errors.SourceError as error:
            assert str(error)  # noqa: PT017 - either is right
        else:
            assert all(is_row(row) for row in rows)


@given(body=st.binary(max_size=60), status=st.sampled_from([200, 500]))
def test_any_bytes_are_an_answer_or_a_source_error(body: bytes, status: int) -> None:
    for parse in PARSERS:
        with pytest.raises(errors.SourceError):
            parse(Answer(status, "text/plain", body))


@given(result=json_values)
def test_any_scalar_is_a_number_or_a_source_error(result: object) -> None:
    try:
        value = api.clock(answer(web.success("scalar", result))).seconds
    except errors.SourceError as error:
        assert str(error)  # noqa: PT017 - either is right
    else:
        assert math.isfinite(value)


@given(kind=st.sampled_from(["scalar", "vector"]), result=json_values)
def test_any_result_is_nothing_one_countable_number_or_a_source_error(
    kind: str, result: object
) -> None:
    for content in (web.success(kind, result), web.success(kind, [result])):
        try:
            value = api.number(answer(content))
        except errors.SourceError as error:
            assert str(error)  # noqa: PT017 - either is right
        else:
            assert value is None or demand.is_countable(value)
