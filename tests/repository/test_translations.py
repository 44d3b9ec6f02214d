"""The pages in Chinese and Japanese have the English pages' code, numbers, names and links."""

import re

import pytest
import yaml

from tests.support import translations
from tests.support.translations import Page, Translation

ENGLISH = re.compile(r"(?<![\w`])[A-Za-z][\w'-]*(?:,? [A-Za-z][\w'-]*){4,}")
"""Five words of English in a row, which no name of a program is long enough for."""
BLANK_PERCENT = re.compile(r"\d %")
NARROW = re.compile(r"[\u3041-\u30ff\u4e00-\u9fff][,;:?!.]")
"""A comma or a full stop of English behind a character of these languages."""

every_translation = pytest.mark.parametrize(
    "translation", translations.ALL, ids=lambda one: one.name
)
every_page_of_a_tree = pytest.mark.parametrize(
    "translation", translations.TREES, ids=lambda one: one.name
)


def both(translation: Translation) -> tuple[Page, Page]:
    """Return a translation without what it says of itself, and the English page."""
    return Page(translation.body), translations.read(translation.original)


@every_page_of_a_tree
def test_a_page_names_the_english_page_that_it_translates(translation: Translation) -> None:
    (target, *_) = re.findall(r"\]\(([^)]+)\)", translation.head)
    assert (translation.path.parent / target).resolve() == translation.original
    title, _, _ = translation.original.read_text().partition("\n")
    assert f"[{title.removeprefix('# ')}](" in translation.head


@every_page_of_a_tree
def test_a_page_has_the_code_of_the_english_page_byte_for_byte(translation: Translation) -> None:
    here, english = both(translation)
    assert here.blocks == english.blocks
    assert here.indented == english.indented
    assert here.comments == english.comments


@every_page_of_a_tree
def test_a_page_has_the_numbers_and_names_of_the_english_page(translation: Translation) -> None:
    here, english = both(translation)
    assert here.numbers == english.numbers
    assert here.words == english.words


@every_page_of_a_tree
def test_a_page_has_the_headings_tables_and_lists_of_the_english_page(
    translation: Translation,
) -> None:
    here, english = both(translation)
    assert here.levels == english.levels
    assert here.rows == english.rows
    assert here.items == english.items


@every_translation
def test_a_page_leads_where_the_english_page_does_and_to_translations_where_there_are_any(
    translation: Translation,
) -> None:
    here = translations.links(Page(translation.body), translation.path)
    assert sorted(map(repr, here)) == sorted(map(repr, translations.expected(translation)))


@every_translation
def test_every_link_of_a_page_leads_to_a_file(translation: Translation) -> None:
    for link in translations.links(translations.read(translation.path), translation.path):
        assert "://" in link.to or (translations.ROOT / link.to).exists(), link


@every_translation
def test_no_english_sentence_is_left(translation: Translation) -> None:
    here, english = both(translation)
    prose = " ".join(here.prose.split())
    for quoted in english.emphasized:
        prose = prose.replace(f"*{quoted}*", "")
    assert ENGLISH.findall(prose) == []


@every_translation
def test_signs_are_set_as_the_language_sets_them(translation: Translation) -> None:
    prose = Page(translation.body).prose
    assert BLANK_PERCENT.findall(prose) == []
    assert NARROW.findall(prose) == []


@every_translation
def test_emphasis_is_seen_in_the_repository_s_view_as_well(translation: Translation) -> None:
    assert Page(translation.body).unseen == []


def paths(entry: object) -> list[str]:
    """Return the pages of an entry of the navigation, in their order."""
    match entry:
        case str():
            return [entry]
        case dict():
            return [path for each in entry.values() for path in paths(each)]
        case list():
            return [path for each in entry for path in paths(each)]
        case _:
            raise TypeError(entry)


@pytest.mark.parametrize("language", translations.LANGUAGES)
def test_the_site_has_all_pages_of_a_language_in_a_section_of_its_own(language: str) -> None:
    navigation = yaml.safe_load((translations.ROOT / "mkdocs.yml").read_text())["nav"]
    sections = {name: entry for each in navigation for name, entry in each.items()}
    own = paths(sections.pop(translations.LANGUAGES[language]))
    pages = [one.path for one in translations.ALL if one.language == language]
    assert sorted(own) == sorted(str(page.relative_to(translations.ROOT)) for page in pages)
    assert not set(own) & set(paths(sections))


# What these tests would find

ORIGINAL = """\
# Replicas

Two words and `a key`, 70 % of 2.5, see [there](there.md).

<!-- not run: no cluster -->
```sh
kubectl get hpa
```

- an item

| a | b |
|---|---|
| 1 | 2 |
"""
SLIPS = {
    "blocks": ("get hpa", "get hpas"),
    "comments": ("no cluster", "a reason"),
    "words": ("`a key`", "`the key`"),
    "numbers": ("70 %", "7 %"),
    "levels": ("# Replicas", "## Replicas"),
    "rows": ("| 1 | 2 |", "| 2 | 1 |"),
    "items": ("- an item", "an item"),
    "targets": ("there.md", "here.md"),
}


@pytest.mark.parametrize("part", SLIPS)
def test_a_slip_in_a_page_is_seen(part: str) -> None:
    before, after = SLIPS[part]
    slipped = ORIGINAL.replace(before, after)
    assert getattr(Page(ORIGINAL), part) == getattr(Page(f"{ORIGINAL}\nNothing else.\n"), part)
    assert getattr(Page(slipped), part) != getattr(Page(ORIGINAL), part)


def test_code_and_addresses_are_not_taken_for_words_to_read() -> None:
    text = "# 一\n\n`kubectl get pods of it`、[二](a-9.md)\n\n    keda-gpu-scaler serve\n\n三\n"
    page = Page(text)
    assert not page.numbers
    assert ENGLISH.findall(page.prose) == []
    assert page.indented == ["    keda-gpu-scaler serve\n"]
    assert ENGLISH.findall("这里 this is a sentence, of English 留下了")


def test_signs_of_english_are_seen_behind_characters_of_the_language() -> None:
    assert NARROW.findall("副本,")
    assert NARROW.findall("レプリカ.")
    assert not NARROW.findall("副本、HPA: 1.5")


def test_emphasis_that_a_letter_follows_too_closely_is_found() -> None:
    assert Page("回答是*保持(hold)*这样").unseen == ["是*保持(hold)*这"]
    assert Page("回答是**`hold`** 这样").unseen == ["是**``**"]
    assert Page("回答是*保持*这样。**不要。** 这样、*hold*").unseen == []


def test_a_heading_is_the_same_one_by_its_place_in_the_page() -> None:
    english, chinese = Page("# A\n\n## To zero\n"), Page("# 甲\n\n## 缩到零、再恢复\n")
    assert english.anchors.index("to-zero") == chinese.anchors.index("缩到零再恢复")


def test_a_link_is_a_file_and_the_place_of_a_heading_in_it() -> None:
    here = translations.DOCS / "zh" / "page.md"
    page = Page("[一](../metrics.md#log-events)、[二](../../LICENSE)、[三](https://keda.sh)")
    place = translations.read(translations.DOCS / "metrics.md").anchors.index("log-events")
    assert place > 0
    assert translations.links(page, here) == [
        ("docs/metrics.md", place),
        ("LICENSE", None),
        ("https://keda.sh", None),
    ]
