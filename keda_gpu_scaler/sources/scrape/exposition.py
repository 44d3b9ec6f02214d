"""An exporter's text → samples, part by part as it arrives. A text that is cut is refused entirely.

Pure. The format's parser is prometheus-client's own; it is slow, and reads only the lines that may
be of a GPU metric. Each line means the same alone as among others: what HELP and TYPE lines say
does not matter here.
"""

import math
import re

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample as ParsedSample

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles

Sample = tuple[dict[str, str], float]
"""Labels, with `__name__` among them, and value; NaN: it is shown, but with no usable number."""

MOST_SAMPLES = 10_000
"""Those of a thousand GPUs; a direct source is for hundreds."""
MOST_PARSED_BYTES = 4 * 2**20
"""The lines of as many samples, which take the parser a second."""
LONGEST_LINE_BYTES = 64 * 2**10
"""Real lines have a few hundred bytes; the parser's time grows faster than a line's length."""

_NAMES = b"|".join(sorted(name.encode() for name in profiles.KNOWN_METRICS))
_LABEL = (
    rb"""[ \t]*+ [a-zA-Z_][a-zA-Z0-9_]*+ [ \t]*+ = [ \t]*+ "(?:[^"\\\n]++|\\[^\n])*+" [ \t]*+"""
)
_NUMBER = rb"[+-]?+ (?:[0-9]++ (?:\.[0-9]*+)?+ (?:[eE][+-]?+[0-9]++)?+ | [Nn]a[Nn] | [Ii]nf)"
_OTHER_LINES = re.compile(
    rb"""
    (?: ^[ \t]*+
        (?: \#[^\n]*+
          | (?! (?:%(names)b) (?![a-zA-Z0-9_:]) ) [a-zA-Z_:][a-zA-Z0-9_:]*+
            (?: [ \t]*+ \{ (?:%(label)b (?:,%(label)b)*+ ,?+)?+ [ \t]*+ \} )?+
            [ \t]++ %(number)b (?:[ \t]++ -?+[0-9]++)?+
        )?+
        [ \t\r]*+ \n
    )++
    """
    % {b"names": _NAMES, b"label": _LABEL, b"number": _NUMBER},
    re.MULTILINE | re.VERBOSE,
)
"""Whole lines that are surely well formed and surely of no GPU metric: comments, blank lines, and
samples of other names. Nothing in it can be matched in two ways, so that the time is linear."""


class Page:
    """The GPU samples of one scrape."""

    def __init__(self) -> None:
        """Begin with the first part of the text."""
        self._samples: list[Sample] = []
        self._parsed_bytes = 0
        self._rest = bytearray()
        """A line whose end has not arrived."""
        self._is_whole = False

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
            self._read(_OTHER_LINES.sub(b"", lines))
        if len(self._rest) > LONGEST_LINE_BYTES:
            raise errors.SourceMalformedError(f"a line of more than {LONGEST_LINE_BYTES} bytes")

    def samples(self) -> list[Sample]:
        """Return the samples of the text, which has ended.

        Raises:
            errors.SourceMalformedError: the text is cut.
        """
        if not self._is_whole:
            raise errors.SourceMalformedError("the text is cut: its last line has no end")
        return self._samples

    def _read(self, lines: bytes) -> None:
        self._parsed_bytes += len(lines)
        if self._parsed_bytes > MOST_PARSED_BYTES:
            message = f"more than {MOST_PARSED_BYTES} bytes of lines that may be of GPU metrics"
            raise errors.SourceMalformedError(message)
        try:
            for line in lines.decode("utf-8").split("\n"):
                self._samples += _samples(line)
        except (ValueError, KeyError, IndexError, OverflowError) as error:
            raise errors.SourceMalformedError("not Prometheus' exposition text") from error
        if len(self._samples) > MOST_SAMPLES:
            message = f"more than {MOST_SAMPLES} samples of GPU metrics"
            raise errors.SourceMalformedError(message)


def _samples(line: str) -> list[Sample]:
    """Return the sample of a line, if it has one of a GPU metric."""
    return [
        ({**sample.labels, "__name__": family.name}, _finite(sample))
        for family in text_string_to_metric_families(line)
        if family.name in profiles.KNOWN_METRICS
        for sample in family.samples
    ]


def _finite(sample: ParsedSample) -> float:
    """Return a sample's value; NaN if it has none, or was taken at no time."""
    is_finite = math.isfinite(sample.value) and math.isfinite(float(sample.timestamp or 0))
    return float(sample.value) if is_finite else math.nan
