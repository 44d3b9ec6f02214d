"""The pages in other languages, beside the English pages that they translate.

`docs/zh/NAME.md` and `docs/ja/NAME.md` translate `docs/NAME.md`. The quick starts lie
beside theirs.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from tests.support import guides

DOCS = guides.DOCS
ROOT = DOCS.parent
LANGUAGES = {"zh": "简体中文", "ja": "日本語"}
"""The folders, and what the site calls the languages."""
_FENCED = re.compile(r"^( *)```(.*?)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4,}\S[^\n]*\n)+")
_COMMENT = re.compile(r"<!-- .*? -->", re.DOTALL)
_WORD = re.compile(r"`([^`]+)`")
_TARGET = re.compile(r"\]\(([^)\s]+)\)")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)


class Link(NamedTuple):
    """An address, or a file with the place of a heading, an anchor or none."""

    to: str
    part: int | str | None


class Page:
    """A page in whatever language, taken apart."""

    def __init__(self, text: str) -> None:
        """Take a page's text."""
        self.blocks = [part.groups() for part in _FENCED.finditer(text)]
        outside = _FENCED.sub("", text)
        self.comments = _COMMENT.findall(outside)
        outside = _COMMENT.sub("", outside)
        self.indented = _INDENTED.findall(outside)
        outside = _INDENTED.sub("", outside)
        self.words = Counter(" ".join(word.split()) for word in _WORD.findall(outside))
        self._headings = _HEADING.findall(outside)
        self.targets = _TARGET.findall(outside)
        self.prose = _TARGET.sub("]", _WORD.sub("``", outside))
        """What is left to read: without code and without the targets of links."""

    @cached_property
    def numbers(self) -> Counter[str]:
        """The numbers in what is to be read."""
        return Counter(_NUMBER.findall(self.prose))

    @cached_property
    def emphasized(self) -> list[str]:
        """What is set in italics: words of the program, as it says them, among others."""
        return [" ".join(words.split()) for words in re.findall(r"\*([^*]+)\*", self.prose)]

    @cached_property
    def unseen(self) -> list[str]:
        """Emphasis that CommonMark shows as asterisks: a sign within it meets a letter outside."""
        found = re.finditer(r"(\w?)(\*{1,2})([^*]+)\2(\w?)", self.prose)
        return [
            one[0]
            for one in found
            if (one[1] and not one[3][0].isalnum()) or (one[4] and not one[3][-1].isalnum())
        ]

    @cached_property
    def levels(self) -> list[int]:
        """The order of each heading."""
        return [len(marks) for marks, _ in self._headings]

    @cached_property
    def anchors(self) -> list[str]:
        """The anchor of each heading, as the repository's view gives it."""
        return [
            re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-") for _, words in self._headings
        ]

    @cached_property
    def rows(self) -> list[list[list[str]]]:
        """The numbers in each cell of each row of each table, sorted as texts."""
        rows = re.findall(r"^\|(.*)\|$", self.prose, re.MULTILINE)
        cells = [re.split(r"(?<!\\)\|", row) for row in rows]
        return [[sorted(_NUMBER.findall(cell)) for cell in row] for row in cells]

    @cached_property
    def items(self) -> int:
        """How many items its lists have."""
        return len(re.findall(r"^ *(?:-|\*|\d+\.) ", self.prose, re.MULTILINE))


@dataclass(frozen=True)
class Translation:
    """A page of another language and the English page that it translates."""

    language: str
    path: Path
    original: Path

    @property
    def name(self) -> str:
        """What tests call it."""
        return str(self.path.relative_to(DOCS))

    @property
    def in_tree(self) -> bool:
        """Tell whether it lies in its language's folder."""
        return self.path.is_relative_to(DOCS / self.language)

    @property
    def head(self) -> str:
        """The first paragraph, which a page of a tree has for what it translates."""
        return self.path.read_text(encoding="utf-8").split("\n\n", 2)[1]

    @property
    def body(self) -> str:
        """Everything but that paragraph."""
        text = self.path.read_text(encoding="utf-8")
        return text.replace(f"{self.head}\n\n", "", 1) if self.in_tree else text


def _translations() -> Iterator[Translation]:
    for language in LANGUAGES:
        for name in guides.TRANSLATED:
            yield Translation(language, guides.page(name, f".{language}"), guides.page(name))
        folder = DOCS / language
        for path in sorted(folder.rglob("*.md")):
            yield Translation(language, path, DOCS / path.relative_to(folder))


ALL = list(_translations())
TREES = [one for one in ALL if one.in_tree]
_TRANSLATED = frozenset(one.path for one in ALL)
_BY_ORIGINAL = {(one.language, one.original): one for one in ALL}


@cache
def read(path: Path) -> Page:
    """Return a page, taken apart."""
    return Page(path.read_text(encoding="utf-8"))


def links(page: Page, path: Path) -> list[Link]:
    """Return where a page leads to, but for its own other languages."""
    return [link for target in page.targets for link in _led(target, path)]


def expected(translation: Translation) -> list[Link]:
    """Return where a translation has to lead to: to translated pages where there are any."""
    found = links(read(translation.original), translation.original)
    return [_in(translation.language, link) for link in found]


def _led(target: str, path: Path) -> Iterator[Link]:
    if "://" in target:
        yield Link(target, None)
        return
    name, _, anchor = target.partition("#")
    file = (path.parent / name).resolve() if name else path
    if file != path and _source(file) == _source(path):
        return
    anchors = read(file).anchors if file.suffix == ".md" and file.is_file() else []
    part = anchors.index(anchor) if anchor in anchors else anchor or None
    yield Link(str(file.relative_to(ROOT)), part)


def _source(path: Path) -> Path:
    """Return the English page of a page."""
    (*found,) = (one.original for one in ALL if one.path == path)
    return found[0] if found else path


def _in(language: str, link: Link) -> Link:
    """Return a link of an English page as a page of this language has it."""
    there = _BY_ORIGINAL.get((language, ROOT / link.to))
    return link if there is None else Link(str(there.path.relative_to(ROOT)), link.part)
