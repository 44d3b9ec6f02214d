"""InfluxQL: the scaler's own queries, their literals, and the check of users' queries. Pure.

Every name and every string gets into a text by one of two functions, which follow the rules of
InfluxDB's own scanner. Times are whole milliseconds, as in answers. Exporters' metrics are usually
stored in an InfluxDB in one of two ways: a measurement for each metric, or one measurement with a
field for each. Where neither names the metric, the numbers are utilization in percent.

InfluxDB executes any statement, even a DROP sent by GET: it only warns. So a user's text that is
not plainly one SELECT is refused. The check does not parse the text, because our parser could read
it differently than the server does. A statement ends at a semicolon and writes with the word INTO;
neither is allowed anywhere, not even in quotes.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles import model
from keda_gpu_scaler.query.profiles.model import Labels

METRIC = "{metric}"
"""Placeholder for the name of an exporter's metric."""
UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
"""The assumed metric where neither a measurement nor a field names it."""


@dataclass(frozen=True, slots=True)
class Schema:
    """How samples are laid out."""

    measurement: str = METRIC
    """A name, or `METRIC`: there is a measurement for each metric."""
    field: str = "gauge"
    """A name, or `METRIC`: there is a field for each metric."""
    namespace_tag: str = "namespace"
    pod_tag: str = "pod"
    gpu_tag: str = "UUID"

    @property
    def names_metrics(self) -> bool:
        return METRIC in (self.measurement, self.field)

    @property
    def knows_uuids(self) -> bool:
        """Whether a GPU's name is unique and does not change with the pod that holds it."""
        return self.gpu_tag in profiles.BOARD_LABELS

    def metric(self, measurement: str, field: str) -> str:
        """Return the metric that a field of a measurement holds."""
        if not self.names_metrics:
            return UTILIZATION
        return measurement if self.measurement == METRIC else field

    def labels(self, tags: Mapping[str, str], labels: Labels) -> dict[str, str]:
        """Return the tags, renamed to an exporter's label names.

        Other tags that could name a pod are left out: Telegraf adds the exporter's own pod.
        """
        renamed = {
            labels.gpu[0]: tags.get(self.gpu_tag),
            model.NAMESPACE: tags.get(self.namespace_tag),
            model.POD: tags.get(self.pod_tag),
        }
        others = {name: text for name, text in tags.items() if name not in _NAMING}
        return others | {name: text for name, text in renamed.items() if text}


_NAMING = frozenset({*profiles.NAMESPACE_LABELS, *profiles.POD_LABELS})
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "'": r"\'", "\n": r"\n"})
_UNSPEAKABLE = frozenset("\r\0")
"""The scanner reads a carriage return as the end of a line and NUL as the end of the text."""


def is_speakable(text: str) -> bool:
    return _UNSPEAKABLE.isdisjoint(text)


def quoted_string(text: str, quote: str = "'") -> str:
    """Return a string literal; ValueError if InfluxQL cannot express it."""
    if not is_speakable(text):
        raise ValueError("a text without carriage returns and NUL")
    return f"{quote}{text.translate(_ESCAPES)}{quote}"


def quoted_name(text: str) -> str:
    return quoted_string(text, quote='"')


LONGEST_CHARACTERS = 4096
_SELECT = re.compile(r"[ \t\n]*select\b", re.ASCII | re.IGNORECASE)
# A number ends where a letter begins: in `1.0into` InfluxDB reads two words.
_INTO = re.compile(r"(?<![a-z_])into\b", re.ASCII | re.IGNORECASE)
_NOW = re.compile(r"\bnow[ \t\n]*\(", re.ASCII | re.IGNORECASE)


def selection(text: str) -> str:
    """Return the text of a query that only reads, and that is about now; refuse any other."""
    if len(text) > LONGEST_CHARACTERS:
        raise ValueError(f"InfluxQL of at most {LONGEST_CHARACTERS} characters")
    if not all(char.isprintable() or char in "\t\n" for char in text):
        raise ValueError("InfluxQL without control characters")
    if _SELECT.match(text) is None:
        raise ValueError("InfluxQL that begins with SELECT")
    if ";" in text:
        raise ValueError("a single statement of InfluxQL, without a semicolon, also in quotes")
    if _INTO.search(text):
        raise ValueError("InfluxQL that writes nothing: without the word INTO, also in quotes")
    if _NOW.search(text) is None:
        raise ValueError(
            "InfluxQL with a time range such as WHERE time > now() - 1m: without one, a number of "
            "last week looks like one of now"
        )
    return text


class Span(NamedTuple):
    """The times after `since_ms`, up to and including `until_ms`."""

    since_ms: int
    until_ms: int
    each_ms: int | None = None
    """Only the newest point of each series in each of many intervals of this length; such a point
    gets the time at which its interval begins."""


def policies(database: str) -> str:
    """Return a cheap query that fails where samples could not be read either."""
    return f"SHOW RETENTION POLICIES ON {quoted_name(database)}"


def points_text(
    schema: Schema,
    metrics: Iterable[str],
    span: Span,
    names: Iterable[str],
    *,
    names_gpus: bool = False,
) -> str:
    """Return the query for the points of the pods of some namespaces.

    With `names_gpus`, the names are UUIDs of GPUs, and the points those of these GPUs with any pod
    or none.
    """
    measurements = sorted(metrics) if schema.measurement == METRIC else [schema.measurement]
    names_of_fields = sorted(metrics) if schema.field == METRIC else [schema.field]
    fields = [quoted_name(name) for name in names_of_fields]
    groups = "*"
    if span.each_ms is not None:
        fields = [f"last({name}) AS {name}" for name in fields]
        groups = f"time({span.each_ms}ms), * fill(none)"
    tag = quoted_name(schema.gpu_tag if names_gpus else schema.namespace_tag)
    named = [f"{tag} = {quoted_string(name)}" for name in sorted(names)]
    conditions = [
        f"time > {span.since_ms}ms",
        f"time <= {span.until_ms}ms",
        *([] if names_gpus else [f"{quoted_name(schema.pod_tag)} != ''"]),
        f"({' OR '.join(named)})",
    ]
    clauses = {
        "SELECT": ", ".join(fields),
        "FROM": ", ".join(map(quoted_name, measurements)),
        "WHERE": " AND ".join(conditions),
        "GROUP BY": groups,
    }
    return " ".join(f"{keyword} {text}" for keyword, text in clauses.items())
