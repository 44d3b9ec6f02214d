"""InfluxQL texts: the points of all pods, their last hour, and where GPUs are.

Pure text. Every name and every string in a text went through `influxql.text`. Times are whole
milliseconds, as answers show them.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from keda_gpu_scaler.influxql import text
from keda_gpu_scaler.influxql.schema import Schema


class Span(NamedTuple):
    """The times after `since_ms`, up to `until_ms` and with it."""

    since_ms: int
    until_ms: int


def policies(database: str) -> str:
    """Return a question that costs nothing, and fails where samples could not be read either."""
    return f"SHOW RETENTION POLICIES ON {text.name(database)}"


def points(schema: Schema, metrics: Collection[str], names: Iterable[str], span: Span) -> str:
    """Return the question for every point of the pods of these namespaces."""
    fields = ", ".join(map(text.name, schema.fields(metrics)))
    where = _of_pods(schema, names)
    return f"SELECT {fields} {_from(schema, metrics)} {_where(span, where)} GROUP BY *"


def newest(
    schema: Schema, metrics: Collection[str], names: Iterable[str], span: Span, each_ms: int
) -> str:
    """Return the question for the newest points of the same in each of many equal times.

    What is found in one of them has the time at which that one begins.
    """
    fields = ", ".join(f"last({name}) AS {name}" for name in map(text.name, schema.fields(metrics)))
    where = _where(span, _of_pods(schema, names))
    return (
        f"SELECT {fields} {_from(schema, metrics)} {where} GROUP BY time({each_ms}ms), * fill(none)"
    )


def gpus(schema: Schema, metrics: Collection[str], uuids: Iterable[str], span: Span) -> str:
    """Return the question for every point of these GPUs, with whatever pod or none."""
    fields = ", ".join(map(text.name, schema.fields(metrics)))
    where = _one_of(schema.gpu_tag, uuids)
    return f"SELECT {fields} {_from(schema, metrics)} {_where(span, where)} GROUP BY *"


def _from(schema: Schema, metrics: Collection[str]) -> str:
    return f"FROM {', '.join(map(text.name, schema.measurements(metrics)))}"


def _where(span: Span, condition: str) -> str:
    return f"WHERE time > {span.since_ms}ms AND time <= {span.until_ms}ms AND {condition}"


def _of_pods(schema: Schema, namespaces: Iterable[str]) -> str:
    named = f"{text.name(schema.pod_tag)} != ''"
    return f"{named} AND {_one_of(schema.namespace_tag, namespaces)}"


def _one_of(tag: str, values: Iterable[str]) -> str:
    options = " OR ".join(f"{text.name(tag)} = {text.string(value)}" for value in sorted(values))
    return f"({options})"
