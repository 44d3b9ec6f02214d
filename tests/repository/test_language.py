"""Pages, chart texts and messages use plain technical English, with the words of KEDA."""

import ast
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "keda-gpu-scaler"

REFUSED = {
    r"who(?:m|so|mso)?ever|whom": "name the user, client or team",
    r"nobody|somebody|anybody|everybody": "name the caller or user, or say: is not known",
    r"he|him|his|she|hers?": "name the user or client",
    r"processor time": "CPU time",
    r"own PromQL|PromQL of (?:your|one's|a user's|users') own": "custom PromQL",
    r"(?:take|takes|taking|taken|took)(?: [a-z]+){0,4} away": "remove, or scale in",
    r"passed over": "ignored",
    r"anew": "again",
    r"lately": "recently",
    r"as ever": "as before, as usual",
    r"mend(?:s|ed|ing)?": "fix",
    r"yours to say": "required",
    r"of (?:its|their) own accord": "by itself",
    r"cannot be had": "cannot be reached, opened or read",
    r"sleep through": "not notice",
    r"simply|easily|robust|comprehensive": "leave it out",
}
"""Words and phrases that readers stumble over, and what to write."""

_BREAK = re.compile(r"\s+(?:[>#] +)?")
"""What is between two words, also at the end of a line of a quotation or a comment."""

_REFUSED = {
    re.compile(rf"\b(?:{words})\b".replace(" ", _BREAK.pattern), re.IGNORECASE): better
    for words, better in REFUSED.items()
}
_ANY = re.compile("|".join(pattern.pattern for pattern in _REFUSED), re.IGNORECASE)
_FENCE = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?<=\n\n) {4}(?![-*\d]).*(?:\n {4}.*)*")
_CODE = re.compile(r"``.+?``|`[^`\n]+`|<!--.*?-->", re.DOTALL)
_TARGET = re.compile(r"(?<=\])\([^)\s]*\)")


def pages() -> Iterator[Path]:
    """Yield the English pages."""
    yield from sorted(ROOT.glob("*.md"))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if not page.name.endswith((".zh.md", ".ja.md")) and not {"zh", "ja"} & set(page.parts):
            yield page


def chart_texts() -> Iterator[Path]:
    """Yield what people read of the chart: values and their meanings, notes, alerts, panels."""
    yield from (CHART / "values.yaml", CHART / "values.schema.json", CHART / "Chart.yaml")
    yield CHART / "templates" / "NOTES.txt"
    yield from sorted((CHART / "files").iterdir())


def modules() -> Iterator[Path]:
    """Yield our own modules; those in pb/ are generated."""
    for module in sorted((ROOT / "keda_gpu_scaler").rglob("*.py")):
        if "pb" not in module.parts:
            yield module


def blanked(text: str, *patterns: re.Pattern[str]) -> str:
    """Return the text without what a pattern finds, with its lines where they were."""
    for pattern in patterns:
        text = pattern.sub(lambda found: "\0" + "\n" * found[0].count("\n"), text)
    return text


def prose(page: str) -> str:
    """Return a page without code, links' targets and titles of panels, which are quoted."""
    dashboard = json.loads((CHART / "files" / "dashboard.json").read_text())
    titles = "|".join(re.escape(panel["title"]) for panel in dashboard["panels"])
    return blanked(page, _FENCE, _INDENTED, _CODE, _TARGET, re.compile(rf"\*(?:{titles})\*"))


def sentences(module: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and messages of a module with their lines: texts of several words."""
    for node in ast.walk(ast.parse(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, blanked(node.value, _CODE)


def refused(text: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """Yield the line of each refused word of a text, and what is wrong there."""
    if not _ANY.search(text):
        return
    for pattern, better in _REFUSED.items():
        for found in pattern.finditer(text):
            line = first + text.count("\n", 0, found.start())
            yield line, f"{_BREAK.sub(' ', found[0])!r}: {better}"


@functools.cache
def findings() -> dict[str, list[str]]:
    """Return what is refused in each file that has any of it."""
    found = {page: list(refused(prose(page.read_text()))) for page in pages()}
    found |= {text: list(refused(blanked(text.read_text(), _CODE))) for text in chart_texts()}
    for module in modules():
        spoken = sentences(module.read_text())
        found[module] = [each for first, text in spoken for each in refused(text, first)]
    return {
        str(path.relative_to(ROOT)): [f"{path.name}:{line} {what}" for line, what in sorted(each)]
        for path, each in found.items()
        if each
    }


def test_no_page_chart_text_or_message_has_a_refused_word() -> None:
    wrong = [line for lines in findings().values() for line in lines]
    assert not wrong, "\n".join(wrong)


def test_a_refused_word_is_found_with_its_line_also_over_the_end_of_a_line() -> None:
    page = (
        "# Title\n\nThe pod is\ntaken away, and Nobody asks. A quote of\n> whom it\n> takes away.\n"
    )
    assert sorted(refused(prose(page))) == [
        (4, "'Nobody': name the caller or user, or say: is not known"),
        (4, "'taken away': remove, or scale in"),
        (5, "'whom': name the user, client or team"),
        (6, "'takes away': remove, or scale in"),
    ]


WORDS = st.lists(st.sampled_from(["the", "replicas", "(scale", "in)", "heap", "80"]))
PHRASES = st.sampled_from(["nobody", "Whom", "own PromQL", "takes a busy pod away", "as ever"])


@given(before=WORDS, phrase=PHRASES, gap=st.sampled_from([" ", "\n", "\n> "]), after=WORDS)
def test_a_refused_phrase_is_found_wherever_its_lines_end(
    before: list[str], phrase: str, gap: str, after: list[str]
) -> None:
    page = gap.join([*before, phrase.replace(" ", gap), *after])
    (found,) = refused(prose(page))
    line, what = found
    assert what.startswith(f"'{phrase}': ")
    assert line == 1 + len(before) * gap.count("\n")


def test_code_and_targets_of_links_are_quoted_and_not_judged() -> None:
    page = (
        "`nobody` [custom PromQL](trigger.md#promql-of-your-own) <!-- anew -->\n\n"
        "```text\nnobody\n```\n\n    as ever\n\n*Processors* and the theme of a remedy, there\n"
    )
    assert not list(refused(prose(page)))


def test_docstrings_and_messages_are_judged_and_other_strings_are_not() -> None:
    module = (
        '"""A rule."""\n\nlabel = "lately"\n\n\nclass A:\n    """One.\n\n    Seen anew.\n    """\n'
    )
    assert [each for line, text in sentences(module) for each in refused(text, line)] == [
        (9, "'anew': again")
    ]
