"""An exporter's text → samples, part by part as it arrives. A text that is cut is refused entirely.

Pure. The format's parser is prometheus-client's own; it is slow, and reads only the lines that may
be of a GPU metric and that the page before did not have with another number. Each line means the
same alone as among others: what HELP and TYPE lines say does not matter here.
"""

import math
import re
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Self

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample as ParsedSample

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.snapshot.observation import Target


class Labels(NamedTuple):
    """The labels of one series, and what is asked of them at each round."""

    pairs: frozenset[tuple[str, str]]
    """All of them but those that name the target."""
    name: str
    """The metric: `__name__`, which is among the pairs too."""
    pod: tuple[str, str] | None
    """The namespace and the name of the pod that it is about."""
    board: str
    """The UUID of its GPU; empty: it has none."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Return the labels of a series, which has a `__name__`."""
        # The target's own labels take the place of these, as they do in a Prometheus.
        kept = frozenset(pair for pair in pairs if pair[0] not in Target._fields)
        labels = dict(kept)
        board = next((labels[name] for name in profiles.BOARD_LABELS if labels.get(name)), "")
        return cls(kept, labels["__name__"], profiles.pod_of(labels), board)


class Samples(NamedTuple):
    """The samples of GPU metrics of one page, in the page's order."""

    series: tuple[Labels, ...]
    """The same object as that of the page before, if the series are the same."""
    values: "array[float]"
    """One for each series; NaN: it is shown, but with no usable number."""


MOST_SAMPLES = 10_000
"""Those of a thousand GPUs, which no node has."""
MOST_PARSED_BYTES = 4 * 2**20
"""The lines of as many samples, which take the parser a second."""
LONGEST_LINE_BYTES = 64 * 2**10
"""Real lines have a few hundred bytes; the parser's time grows faster than a line's length."""
CURRENT_SECONDS = 60.0
"""How far a sample's own timestamp may be from now: a silent pod is missing after as long."""

_KNOWN_METRICS = frozenset(name.encode() for name in profiles.KNOWN_METRICS)
_NAMES = b"|".join(sorted(_KNOWN_METRICS))
_LABEL = (
    rb"""[ \t]*+ [a-zA-Z_][a-zA-Z0-9_]*+ [ \t]*+ = [ \t]*+ "(?:[^"\\\n]++|\\[^\n])*+" [ \t]*+"""
)
_LABELS = rb"\{ (?:%(label)b (?:,%(label)b)*+ ,?+)?+ [ \t]*+ \}" % {b"label": _LABEL}
_NUMBER = rb"[+-]?+ (?:[0-9]++ (?:\.[0-9]*+)?+ (?:[eE][+-]?+[0-9]++)?+ | [Nn]a[Nn] | [Ii]nf)"
_OTHER = rb"""
    [ \t]*+
    (?: \#[^\n]*+
      | (?! (?:%(names)b) (?![a-zA-Z0-9_:]) ) [a-zA-Z_:][a-zA-Z0-9_:]*+
        (?: [ \t]*+ %(labels)b )?+
        [ \t]++ %(number)b (?:[ \t]++ -?+[0-9]++)?+
    )?+
    [ \t\r]*+
    """ % {b"names": _NAMES, b"labels": _LABELS, b"number": _NUMBER}
_OTHER_LINE = re.compile(_OTHER, re.VERBOSE)
"""A line that is surely well formed and surely of no GPU metric: a comment, a blank line, or a
sample of another name. Nothing in it can be matched in two ways, so that the time is linear."""
_OTHER_LINES = re.compile(rb"(?: ^ %b \n )++" % _OTHER, re.VERBOSE | re.MULTILINE)
SHORT_LINE_BYTES = 64
"""Lines of GPU metrics are longer. Of so short ones there can be millions, and taking them out
together is quicker than looking at each."""
_NAME = re.compile(rb"[a-zA-Z_:][a-zA-Z0-9_:]*+")
_BRACES = re.compile(_LABELS, re.VERBOSE)
_PLAIN_NUMBER = re.compile(
    rb"NaN | (?:[0-9]|-[1-9]) [0-9]{0,19} (?:\.[0-9]{0,19})? (?:e[+-]?[0-9]{1,2})?", re.VERBOSE
)
"""What exporters usually write, without what the parser refuses (`_`) or reads otherwise (-0)."""


class Seen(NamedTuple):
    """What the page before showed: a line that differs from it in its number alone is known."""

    labels: Mapping[bytes, Mapping[bytes, Labels]] = MappingProxyType({})
    """The labels of its samples, by the braces of their lines and by their name; at most
    MOST_PARSED_BYTES of braces."""
    series: tuple[Labels, ...] = ()


@dataclass(slots=True)
class Page:
    """The GPU samples of one scrape."""

    seen: Seen = field(default_factory=Seen)
    """What the page before showed; once this one has ended, what it shows."""
    now: float = math.nan
    """Unix seconds of the scrape. Without it, no sample with a timestamp of its own is current."""
    _parsed: list[tuple[bytes, bytes, Labels]] = field(default_factory=list)
    """Name, braces and labels of the lines that were not known."""
    _series: list[Labels] = field(default_factory=list)
    _values: "array[float]" = field(default_factory=lambda: array("d"))
    _pairs: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """Each label once: the metrics of a GPU share most of theirs."""
    _parsed_bytes: int = 0
    _rest: bytearray = field(default_factory=bytearray)
    """A line whose end has not arrived."""
    _is_whole: bool = False

    def take(self, part: bytes) -> None:
        """Read the next part of the text, which takes a time in proportion to its length.

        Raises:
            errors.SourceMalformedError: this is no exposition text, or too much of it is about
                GPUs.
        """
        begin = len(self._rest)
        self._rest += part
        end = self._rest.rfind(b"\n", begin) + 1
        self._is_whole = end == len(self._rest)
        if end:
            lines = bytes(self._rest[:end])
            del self._rest[:end]
            if lines.count(b"\n") * SHORT_LINE_BYTES > len(lines):
                lines = _OTHER_LINES.sub(b"", lines)
            self._read(lines.split(b"\n"))
        if len(self._rest) > LONGEST_LINE_BYTES:
            raise errors.SourceMalformedError(f"a line of more than {LONGEST_LINE_BYTES} bytes")

    def samples(self) -> Samples:
        """Return the samples of the text, which has ended.

        Raises:
            errors.SourceMalformedError: the text is cut.
        """
        if not self._is_whole:
            raise errors.SourceMalformedError("the text is cut: its last line has no end")
        series = tuple(self._series)
        if self._parsed or series != self.seen.series:
            self.seen = Seen(self._known(set(series)), series)
        return Samples(self.seen.series, self._values)

    def _known(self, shown: set[Labels]) -> dict[bytes, dict[bytes, Labels]]:
        """Return the known labels, with those of this page and without those that it lacks."""
        known: dict[bytes, dict[bytes, Labels]] = {}
        for braces, named in self.seen.labels.items():
            if kept := {name: labels for name, labels in named.items() if labels in shown}:
                known[braces] = kept
        for name, braces, labels in self._parsed:
            known.setdefault(braces, {})[name] = labels
        return known

    def _read(self, lines: list[bytes]) -> None:
        known, series, values = self.seen.labels, self._series, self._values
        for line in lines:
            head, _, number = line.rpartition(b" ")
            begin = head.find(b"{")
            named = known.get(head[begin:])
            if named is not None and _PLAIN_NUMBER.fullmatch(number):
                name = head[:begin]
                labels = named.get(name)
                if labels is not None:
                    self._parsed_bytes += len(line) + 1
                    series.append(labels)
                    values.append(float(number))
                    continue
                if name not in _KNOWN_METRICS and _NAME.fullmatch(name):
                    continue
            if not _OTHER_LINE.fullmatch(line):
                self._parse(line, head, number)
        if self._parsed_bytes > MOST_PARSED_BYTES:
            message = f"more than {MOST_PARSED_BYTES} bytes of lines that may be of GPU metrics"
            raise errors.SourceMalformedError(message)
        if len(series) > MOST_SAMPLES:
            message = f"more than {MOST_SAMPLES} samples of GPU metrics"
            raise errors.SourceMalformedError(message)

    def _parse(self, line: bytes, head: bytes, number: bytes) -> None:
        self._parsed_bytes += len(line) + 1
        try:
            families = list(text_string_to_metric_families(line.decode("utf-8")))
            found = [(family.name, sample) for family in families for sample in family.samples]
            values = [_current(sample, self.now) for _, sample in found]
        except (ValueError, KeyError, IndexError, OverflowError) as error:
            raise errors.SourceMalformedError("not Prometheus' exposition text") from error
        for (name, sample), value in zip(found, values, strict=True):
            if name in profiles.KNOWN_METRICS:
                pairs = {**sample.labels, "__name__": name}.items()
                labels = Labels.of(self._pairs.setdefault(pair, pair) for pair in pairs)
                self._series.append(labels)
                self._values.append(value)
                begin = head.find(b"{")
                start, braces = head[:begin], head[begin:]
                if (
                    _NAME.fullmatch(start)
                    and _BRACES.fullmatch(braces)
                    and _PLAIN_NUMBER.fullmatch(number)
                ):
                    self._parsed.append((start, braces, labels))


def _current(sample: ParsedSample, now: float) -> float:
    """Return a sample's value; NaN if it has none, or has one of another time."""
    at = sample.timestamp
    is_current = at is None or abs(float(at) - now) <= CURRENT_SECONDS
    return float(sample.value) if is_current and math.isfinite(sample.value) else math.nan
