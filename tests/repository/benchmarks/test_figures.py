"""The pages have the committed figures, and no other ones."""

import dataclasses
import re
from xml.etree import ElementTree as ET

import pytest

from benchmarks import page, plots, quotes, registry, results, tables
from benchmarks.comparison import Goal, Row
from tests.repository.benchmarks.test_comparison import row
from tests.repository.test_docs import ROOT

DASH = "\N{EN DASH}"
COMMITTED = results.committed()
LARGEST_BYTES = 60_000
FILES = page.files(COMMITTED)


@pytest.mark.parametrize("path", FILES)
def test_what_follows_from_the_committed_figures_is_what_is_there(path: str) -> None:
    """`python -m benchmarks.page` writes it again."""
    assert (ROOT / path).read_text(encoding="utf-8") == FILES[path]


def test_figures_are_of_benchmarks_that_there_are() -> None:
    assert COMMITTED.keys() <= {*registry.BENCHMARKS, "wake"}


def test_every_row_has_a_key_of_its_own_and_of_its_benchmark() -> None:
    keys = [one.key for one in results.rows(COMMITTED)]
    assert len(keys) == len(set(keys))
    for name, found in COMMITTED.items():
        assert {one.key.partition(".")[0] for one in found.rows} <= {name}


def test_figures_are_the_same_after_a_file() -> None:
    assert results.parse(results.text(COMMITTED, {"raw": [1]})) == COMMITTED


def test_what_a_shorter_run_leaves_out_stays() -> None:
    name, one = next(iter(COMMITTED.items()))
    first, *others = one.rows
    newer = dataclasses.replace(first, measured=[9.0], reference=[3.0])
    run = {name: dataclasses.replace(one, rows=[newer], details=[])}
    found = results.merged(COMMITTED, run)
    assert found[name].rows == [newer, *others]
    assert found[name].details == one.details
    assert found.keys() == COMMITTED.keys()
    new = {"another": one}
    assert results.merged(COMMITTED, new)["another"] == one


@pytest.mark.parametrize("name", plots.PLOTS)
def test_a_plot_is_small_stands_alone_and_says_in_words_what_it_shows(name: str) -> None:
    text = FILES[f"{page.IMAGES}/{name}"]
    assert len(text.encode()) <= LARGEST_BYTES
    root = ET.fromstring(text)  # noqa: S314 - our own file
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert title.text
    assert "prefers-color-scheme:dark" in text
    assert re.findall(r"<script|(?:href|src|url|@import)\W", text) == []
    (words,) = re.findall(rf"!\[([^\]]+)\]\(images/{name}\)", FILES[page.PAGE])
    assert len(words.split()) > 3


def with_row(one: Row) -> results.Results:
    """Return the committed figures with one row in the place of that of the same key."""
    name = one.key.partition(".")[0]
    rows = [one if other.key == one.key else other for other in COMMITTED[name].rows]
    return {**COMMITTED, name: dataclasses.replace(COMMITTED[name], rows=rows)}


def test_a_page_that_quotes_a_figure_follows_it() -> None:
    bill = quotes.row(COMMITTED, "polling.bill")
    others = with_row(dataclasses.replace(bill, measured=[9.0], reference=[1.0]))
    assert "1,000 take 9 times the CPU time" in page.files(others)["README.md"]


def test_a_quote_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"README\.md: 0 times, and not once"):
        quotes.QUOTES[0].put("another text", COMMITTED)


def test_figures_without_a_place_on_the_page_or_with_two_are_an_error() -> None:
    text = "<!-- figures-goals -->\n<!-- /figures-goals -->\n"
    assert page.put_blocks(text, {"figures-goals": "x\n"}).count("x\n") == 1
    assert "Not measured yet" in page.put_blocks(text, {})
    with pytest.raises(ValueError, match="these marks once: figures-other"):
        page.put_blocks(text, {"figures-goals": "x\n", "figures-other": "y\n"})
    with pytest.raises(ValueError, match="these marks once: figures-goals"):
        page.put_blocks(text + text, {"figures-goals": "x\n"})


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (
            row([1.0, 1.2], goal=Goal.RATIO_AT_MOST, limit=1.15),
            ["1.10", "1.00 to 1.20", "≤ 1.15", "no"],
        ),
        (row([0.9], goal=Goal.RATIO_AT_LEAST, limit=0.85), ["0.90", DASH, "≥ 0.85", "yes"]),
        (
            row([0.5, 0.6], [0.0, 0.0], Goal.FIGURE_AT_MOST, 0.8),
            [DASH, "0.50 to 0.60 ms", "≤ 0.8 ms", "yes"],
        ),
        (row([0.5, 0.6]), ["0.55", "0.50 to 0.60", DASH, DASH]),
    ],
    ids=["missed", "a count", "a figure", "without a goal"],
)
def test_a_row_is_shown_with_its_ratio_interval_and_goal(one: Row, shown: list[str]) -> None:
    (line,) = tables.cells([one])
    assert line[4:] == shown
    assert len(line) == len(tables.HEAD)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (7215.4, "7,215"),
        (17.83, "17.8"),
        (1.304, "1.30"),
        (0.1, "0.10"),
        (0.0234, "0.023"),
        (0, "0"),
    ],
)
def test_a_number_has_as_many_digits_as_it_deserves(value: float, shown: str) -> None:
    assert tables.number(value) == shown


def test_a_run_has_what_is_chosen_or_all_but_what_takes_longer() -> None:
    every = set(registry.BENCHMARKS)
    long = {name for name, one in registry.BENCHMARKS.items() if one.is_full_only}
    assert set(registry.chosen([], is_full=False)) == every - long
    assert set(registry.chosen([], is_full=True)) == every
    assert set(registry.chosen(["plan"], is_full=False)) == {"plan"}
    with pytest.raises(ValueError, match="no benchmark other"):
        registry.chosen(["other"], is_full=False)
