"""The pictures are those of runs, and say what the README says of them."""

import re
from xml.etree import ElementTree as ET

import pytest

from tests.repository import pictures
from tests.repository.test_docs import ROOT

pytestmark = pytest.mark.slow

LARGEST_BYTES = 120_000
README = (ROOT / "README.md").read_text(encoding="utf-8")


def stored(name: str) -> str:
    """Return a picture as it is in the repository."""
    return (pictures.IMAGES / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_what_its_run_draws(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the terminal is; `python -m tests.repository.pictures` draws them anew."""
    for variable, value in (("COLUMNS", "40"), ("NO_COLOR", "1"), ("TERM", "dumb")):
        monkeypatch.setenv(variable, value)
    assert pictures.PICTURES[name]() == stored(name)


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_small_stands_alone_and_says_in_words_what_it_shows(name: str) -> None:
    text = stored(name)
    assert len(text.encode()) <= LARGEST_BYTES
    root = ET.fromstring(text)  # noqa: S314 - our own file
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert title.text
    assert re.findall(r"(?:href|src|url|@import)\W", text) == []
    assert f"](docs/images/{name})" in README


def test_the_picture_of_replicas_has_the_figures_of_the_readme() -> None:
    ours, average = pictures.beside()
    assert (max(ours.sizes), max(average.sizes)) == (7, 2)
    assert "asks for **7** replicas" in README
    assert f"{ours.overloaded_seconds / 60:.0f} minutes" in README
    assert f"{average.overloaded_seconds / 60:.0f} minutes" in README


def test_the_recording_shows_seven_beside_two_where_nothing_moves() -> None:
    text = stored("demo.svg")
    hidden = set(re.findall(r"}\.(s\d+-\d+)\{visibility:hidden", text))
    groups = re.findall(r'^<g(?: class="(s\d+-\d+)")?>(.*)</g>$', text, re.MULTILINE)
    drawn = "".join(body for name, body in groups if name not in hidden)
    placed = re.findall(r'<text x="([\d.]+)" y="(\d+)"[^>]*>([^<]+)<', drawn)
    read = sorted((int(y), float(x), word) for x, y, word in placed)
    still = " ".join(word for _, _, word in read)
    assert "needs 7 replicas" in still
    assert "HPA: 480 over a target of 70 per replica" in still
    assert "HPA: 100 over a target of 70 per replica asks for 2" in still
