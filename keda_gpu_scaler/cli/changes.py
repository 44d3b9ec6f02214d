"""Asks a running scaler how its decisions about a ScaledObject changed, and writes that for people.

Nothing in `serve` imports this.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson
import yaml

from keda_gpu_scaler.cli import explaining
from keda_gpu_scaler.telemetry.history import Change


@dataclass(frozen=True)
class Changes:
    """The changes of one ScaledObject's triggers, the oldest first."""

    since: float
    """When the scaler began to watch, in Unix seconds."""
    changes: list[Change]


async def ask(asked: explaining.Asked) -> Changes:
    """Return what a scaler noted about a ScaledObject.

    Raises:
        explaining.ExplainError: the scaler cannot be asked.
    """
    return explaining.decoded(await explaining.body(asked, "/history"), Changes)


def write(found: Changes, scaled_object: str, output: str) -> None:
    """Write changes to the standard output.

    Args:
        found: the changes.
        scaled_object: whose they are, as namespace/name.
        output: text, json or yaml.
    """
    if output == "json":
        text = orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() + "\n"
    elif output == "yaml":
        text = yaml.safe_dump(
            orjson.loads(orjson.dumps(found)), sort_keys=False, allow_unicode=True
        )
    else:
        text = "".join(f"{line}\n" for line in _lines(found, scaled_object))
    sys.stdout.write(text)


def _lines(found: Changes, scaled_object: str) -> Iterator[str]:
    """Yield a line for each change, which is not wrapped: it is there to be searched."""
    count = len(found.changes)
    changes = {0: "no decision", 1: "1 change"}.get(count, f"{count} changes")
    since = f"since {_time(found.since)}, when this replica of the scaler started"
    yield f"{scaled_object}: {changes} {since}"
    several = len({one.trigger for one in found.changes}) > 1
    for one in found.changes:
        name = f"{one.metric_name} of {one.workload} " if several else ""
        active = {True: "active", False: "inactive", None: "activity unknown"}[one.active]
        value = "no value" if one.value is None else f"value {one.value:g}"
        yield f"{_time(one.at)} {name}{one.state}, {active}, {value}: {one.reason}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
