"""Prometheus' HTTP answers → rows, or an error with the server's own words.

Pure. A partial answer is an error: the pods that are missing from it would seem to be gone. So
warnings and `isPartial` are errors; remarks about a query's style are not.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources.query_client import countable, json_body
from keda_gpu_scaler.transport.client import OK, Answer, printable

WHOLE_ANSWERS = {"partial_response": "false", "deny_partial_response": "1"}
"""Asks Thanos, and VictoriaMetrics' cluster, to refuse a query rather than to answer in part.

They also warn about partial answers, but a proxy may drop the warnings."""
_REMARK = "PromQL info:"
"""Prometheus 2.48 and similar versions put remarks among the warnings; later ones separate them."""
_REPEATED_TEXT = re.compile(
    r'(?:error when executing query=|cannot evaluate )"(?:[^"\\]|\\.)*"(?: for \([^)]*\))?: ',
    re.DOTALL,
)
"""VictoriaMetrics repeats the query before the reason of an error. The reason would be cut off, and
values that a trigger takes from the environment would be shown."""


class Clock(NamedTuple):
    """The time of a server, and what the answer shows about the server."""

    seconds: float
    takes_long_queries: bool
    """VictoriaMetrics does not by default; it is recognised because it has no scalars."""


def matrix(answer: Answer) -> list[Row]:
    """Return the series of a range result.

    Raises:
        errors.SourceRefusedError: the server answered with an error.
        errors.SourceMalformedError: the answer is partial or of the wrong shape.
    """
    series = _result(answer, "matrix")
    try:
        return [
            Row(
                _labels(one["metric"]),
                [(float(time), float(value)) for time, value in one["values"]],
            )
            for one in series
            if one["values"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise errors.SourceMalformedError("a matrix of the wrong shape") from error


def vector(answer: Answer) -> list[Row]:
    """Return the elements of an instant result as rows of one point; raises as `matrix` does."""
    elements = _result(answer, "vector")
    try:
        return [
            Row(_labels(one["metric"]), [(float(one["value"][0]), float(one["value"][1]))])
            for one in elements
        ]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise errors.SourceMalformedError("a vector of the wrong shape") from error


def clock(answer: Answer) -> Clock:
    """Return the result of `time()`; raises as `matrix` does."""
    result = _result(answer, "scalar", "vector")
    try:
        scalar = not isinstance(result[0], dict)
        seconds = float(result[1] if scalar else result[0]["value"][1])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise errors.SourceMalformedError("a scalar of the wrong shape") from error
    if not math.isfinite(seconds):
        raise errors.SourceMalformedError(f"a scalar that is no number: {seconds}")
    return Clock(seconds, takes_long_queries=scalar)


def number(answer: Answer) -> float | None:
    """Return the one number of a result; None: it has no element.

    Raises:
        errors.SourceRefusedError: the server answered with an error.
        errors.SourceMalformedError: the answer is partial, of the wrong shape, or not one number
            that KEDA can count with.
    """
    result = _result(answer, "scalar", "vector")
    if not result:
        return None
    try:
        # A scalar is one point; every element of a vector has one.
        points = [one["value"] for one in result] if isinstance(result[0], dict) else [result]
        values = [float(value) for _, value in points]
    except (KeyError, TypeError, ValueError) as error:
        raise errors.SourceMalformedError("a number of the wrong shape") from error
    if len(values) > 1:
        raise errors.SourceMalformedError(
            f"{len(values)} elements instead of one number; sum(...) or max(...) makes one of them"
        )
    return countable(values[0])


def _labels(metric: Any) -> Mapping[str, str]:  # noqa: ANN401 - JSON is whatever came in
    if not isinstance(metric, dict) or not all(isinstance(text, str) for text in metric.values()):
        raise TypeError(metric)
    return metric


def _result(answer: Answer, *kinds: str) -> Any:  # noqa: ANN401 - JSON is whatever came in
    content = json_body(answer, "Prometheus' JSON")
    if answer.status != OK or content.get("status") != "success":
        raise errors.SourceRefusedError(_refusal(answer, content))
    partial = _warnings(content) or ["the answer is partial"] * bool(content.get("isPartial"))
    if partial:
        raise errors.SourceMalformedError(f"an incomplete answer: {printable(str(partial))}")
    body = content.get("data")
    if not isinstance(body, dict) or body.get("resultType") not in kinds:
        wanted = " or ".join(kinds)
        raise errors.SourceMalformedError(f"an answer without a result of type {wanted}")
    result = body.get("result")
    if not isinstance(result, list):
        raise errors.SourceMalformedError(f"a {body['resultType']} that is no list")
    return result


def _warnings(content: Mapping[str, Any]) -> list[Any]:
    given = content.get("warnings") or []
    warnings = given if isinstance(given, list) else [given]
    return [one for one in warnings if not str(one).startswith(_REMARK)]


def _refusal(answer: Answer, content: Mapping[str, Any]) -> str:
    kind, words = content.get("errorType", "error"), content.get("error", "no reason given")
    return printable(f"HTTP {answer.status}, {kind}: {_REPEATED_TEXT.sub('', str(words))}")
