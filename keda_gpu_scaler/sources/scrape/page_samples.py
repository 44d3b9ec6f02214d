"""An exporter's text → samples. A text that is cut, or is none of Prometheus', is refused entirely.

Pure. The format's parser is prometheus-client's own; it is slow, and reads only the lines that may
be of a GPU metric. Each line means the same alone as among others: what HELP and TYPE lines say
does not matter here.
"""

import io
import math
import re
from array import array
from collections.abc import Iterable
from typing import NamedTuple, Self

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample as ParsedSample

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles

_READ = profiles.KNOWN_LABELS | {"__name__"}


class PageSeries(NamedTuple):
    """The labels of one series, and what each round reads from them."""

    pairs: frozenset[tuple[str, str]]
    """Those that a profile reads. The labels of the target take the place of the page's own `job`
    and `instance`, as they do in a Prometheus."""
    name: str
    """The metric: `__name__`, which is among the pairs too."""
    pod: tuple[str, str] | None
    """The namespace and the name of the pod that it is about."""
    board: str
    """The UUID of its GPU; empty: it has none."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        kept = frozenset(pair for pair in pairs if pair[0] in _READ)
        labels = dict(kept)
        return cls(kept, labels["__name__"], profiles.pod_of(labels), profiles.board_of(labels))


class PageSamples(NamedTuple):
    """The samples of GPU metrics of one page, in the page's order."""

    series: tuple[PageSeries, ...]
    values: "array[float]"
    """One for each series; NaN: it is shown, but with no usable number."""


MOST_LINES = 10_000
"""The lines of GPU metrics of a thousand GPUs, which no node has; they take the parser a second."""
LONGEST_LINE_BYTES = 16 * 2**10
"""Real lines have a few hundred bytes; the parser's time grows faster than a line's length."""
CURRENT_SECONDS = 60.0
"""How far a sample's own timestamp may be from now: a silent pod is missing after as long."""

_OTHER_LINE = re.compile(
    rb"""
    [ \t]* (?![ \t])
    (?: \#[^\n]*
      | (?! (?:%b) (?![a-zA-Z0-9_:]) ) [a-zA-Z_:][a-zA-Z0-9_:]*
        (?: [ \t]* \{ [^\n]* \} )?
        [ \t]+ [+-]? (?:[0-9]+ (?:\.[0-9]*)? (?:[eE][+-]?[0-9]+)? | [Nn]a[Nn] | [Ii]nf)
        (?: [ \t]+ -?[0-9]+ )?
    )?
    [ \t\r]* \n
    """
    % b"|".join(sorted(name.encode() for name in profiles.KNOWN_METRICS)),
    re.VERBOSE,
)
"""A line that is surely of no GPU metric: a comment, a blank line, or what looks like a sample of
another name, with whatever labels. The time is linear: no blank at the start is given back, and
only behind the last brace can the rest match."""


def parse(text: bytes | bytearray, now: float, before: tuple[PageSeries, ...] = ()) -> PageSamples:
    """Return the samples of GPU metrics in the text of a scrape at `now`, in Unix seconds.

    `before` are the series of the page before: those that stay are the same objects again, and so
    is the tuple if all do.
    """
    if not text.endswith(b"\n"):
        raise errors.SourceMalformedError("the text is cut: its last line has no end")
    known = {labels: labels for labels in before}
    series: list[PageSeries] = []
    values, parsed_lines = array("d"), 0
    for line in io.BytesIO(text):
        if _OTHER_LINE.fullmatch(line):
            continue
        parsed_lines += 1
        if parsed_lines > MOST_LINES:
            raise errors.SourceMalformedError(f"more than {MOST_LINES} lines of GPU metrics")
        if len(line) > LONGEST_LINE_BYTES:
            raise errors.SourceMalformedError(f"a line of more than {LONGEST_LINE_BYTES} bytes")
        try:
            for family in text_string_to_metric_families(line.decode("utf-8")):
                for sample in family.samples if family.name in profiles.KNOWN_METRICS else ():
                    labels = PageSeries.of({**sample.labels, "__name__": family.name}.items())
                    series.append(known.get(labels, labels))
                    values.append(_current(sample, now))
        except (ValueError, KeyError, IndexError, OverflowError) as error:
            raise errors.SourceMalformedError("not Prometheus' exposition text") from error
    return PageSamples(before if before == tuple(series) else tuple(series), values)


def _current(sample: ParsedSample, now: float) -> float:
    """Return a sample's value; NaN if it has none, or has one of another time."""
    at = sample.timestamp
    is_current = at is None or abs(float(at) - now) <= CURRENT_SECONDS
    return float(sample.value) if is_current and math.isfinite(sample.value) else math.nan
