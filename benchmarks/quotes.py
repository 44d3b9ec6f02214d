"""The figures that other pages quote: where each stands, and what it has to be.

A quote is the text around its figures, in which `{}` stands for each of them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks import decided, results
from benchmarks.comparison import Detail, Row
from benchmarks.results import Results

_FIGURE = r"([\d.,]*\d)"


@dataclass(frozen=True, slots=True)
class Quote:
    """One sentence of a page with figures in it."""

    page: str
    """Its path from the root of the repository."""
    text: str
    """A space stands for a line break as well."""
    figures: Callable[[Results], Sequence[str]]

    def put(self, page: str, found: Results) -> str:
        """Return the page with the figures that were found.

        Raises:
            ValueError: the sentence is not there exactly once.
        """
        pattern = _FIGURE.join(
            r"\s+".join(re.escape(word) for word in part.split(" "))
            for part in self.text.split("{}")
        )
        matches = list(re.finditer(pattern, page))
        if len(matches) != 1:
            raise ValueError(f"{self.page}: {len(matches)} times, and not once: {self.text}")
        for number, figure in reversed(list(enumerate(self.figures(found), 1))):
            page = page[: matches[0].start(number)] + figure + page[matches[0].end(number) :]
        return page


def row(found: Results, key: str) -> Row:
    """Return one row."""
    (one,) = (each for each in results.rows(found) if each.key == key)
    return one


def detail(found: Results, key: str) -> Detail:
    """Return one detail."""
    (one,) = (each for of in found.values() for each in of.details if each.key == key)
    return one


def _cells(found: Results, key: str, first: str) -> Sequence[str]:
    (line,) = (each for each in detail(found, key).cells if each[0] == first)
    return line[1:]


def seconds_to_wake(found: Results) -> Sequence[str]:
    """Return ours by `external-push` and `external`, KEDA's own, and of how many rounds."""
    names = (
        "this scaler, `external-push`",
        "this scaler, `external`",
        "KEDA's own prometheus trigger",
    )
    seconds = [_cells(found, "wake", name)[0].removesuffix(" s") for name in names]
    return (*seconds, *re.findall(r"median of (\d+) rounds", detail(found, "wake").head[1]))


def queries_in_a_minute(found: Results) -> Sequence[str]:
    """Return how many a scaler sends for 1,000 triggers."""
    return _cells(found, "queries", "1,000 triggers")[:1]


def own_queries_in_a_minute(found: Results) -> Sequence[str]:
    """Return how many KEDA's own 1,000 triggers send, and on KEDA 2.21, and a scaler."""
    ours, own, _, fewer, _ = _cells(found, "queries", "1,000 triggers")
    return own, fewer, ours


def size(found: Results) -> Sequence[str]:
    """Return MiB and percent of one core, for 100 and for 1,000 ScaledObjects."""
    few, many = (_cells(found, "sizes", f"{count} ScaledObjects") for count in ("100", "1,000"))
    return few[1], few[0], many[1], many[0]


def bill(found: Results) -> Sequence[str]:
    """Return scaler and Prometheus next to KEDA's own triggers."""
    ratio = row(found, "polling.bill").ratio
    return [] if ratio is None else [f"{ratio.median:.2g}"]


def decided_at_70(_found: Results) -> Sequence[str]:
    """Return hours and overloaded time on public traces at a threshold of 70, way by way."""
    of = {
        (row.way, row.setting, row.loading, row.start_seconds): row for row in decided.committed()
    }
    ways = (decided.OURS, decided.SUM, decided.VALUE, decided.AVERAGE)
    rows = [of[way, 70, 0, None] for way in ways]
    return [text for row in rows for text in (f"{row.hours:.2f}", f"{row.overloaded:.1f}")]


def _queries_and_own(found: Results) -> Sequence[str]:
    own, fewer, ours = own_queries_in_a_minute(found)
    return ours, own, fewer


QUOTES = (
    Quote(
        "README.md",
        "**{} s** with `external-push`, {} s with `external`, {} s with KEDA's own prometheus "
        "trigger ([median of {}]",
        seconds_to_wake,
    ),
    Quote(
        "README.md",
        "each replica of the scaler sends **{}** queries a minute. KEDA's own triggers send {}, or "
        "{} on KEDA 2.21 with `minReplicaCount: 1`",
        _queries_and_own,
    ),
    Quote(
        "README.md",
        "uses {} MiB and {} % of a core for 100 ScaledObjects, {} MiB and {} % for 1,000",
        size,
    ),
    Quote(
        "README.md",
        "For 1,000, the scaler and Prometheus together use {} times the CPU time of KEDA's own "
        "triggers",
        bill,
    ),
    Quote(
        "README.md",
        "this scaler {} and {} %, `sum()` {} and {} %, `avg()` as `Value` {} and {} %, the usual "
        "recipe {} and {} %",
        decided_at_70,
    ),
    Quote("docs/how-it-works.md", "Prometheus answers {} queries a minute", queries_in_a_minute),
    Quote(
        "docs/migrate/keda-prometheus.md",
        "| {}; with KEDA 2.21 and `minReplicaCount: 1`, {} | {} by each replica of the scaler",
        own_queries_in_a_minute,
    ),
)


def pages(found: Results, texts: Mapping[str, str]) -> dict[str, str]:
    """Return every page that quotes figures, with those that were found."""
    written = dict(texts)
    for quote in QUOTES:
        written[quote.page] = quote.put(written[quote.page], found)
    return written
