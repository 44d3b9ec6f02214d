"""What stands in quotes passes the parser by, and everything else keeps its meaning."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import promql
from keda_gpu_scaler.promql import Policy, parsing, tree
from keda_gpu_scaler.promql.lexer import tokens
from tests.support.expressions import by_hand, vectors

_WRITTEN = re.compile(r'"((?:[^"\\\n]|\\["\\n])*)"')
"""A literal as it is written here: without reading any other."""
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}

_PLAIN = st.characters(exclude_categories=["Cs"], exclude_characters="\\\"'\n")
_ESCAPED = st.sampled_from(
    [
        (r"\\", "\\"),
        (r"\n", "\n"),
        (r"\x41", "A"),
        (r"\xc3\xa9", "é"),
        (r"\101", "A"),
        (r"\u0022", '"'),
        (r"\U0001F600", "\U0001f600"),
        (r"\x00", "\0"),
    ]
)
_Literal = tuple[str, str]
"""How it is written by a user, and what it says."""


def _joined(quote: str, other: str) -> st.SearchStrategy[_Literal]:
    parts = st.one_of(
        st.tuples(_PLAIN, _PLAIN).map(lambda both: (both[0], both[0])),
        st.sampled_from([(other, other), (f"\\{quote}", quote), ("#", "#"), ("`", "`")]),
        _ESCAPED,
    )
    return st.lists(parts, max_size=6).map(
        lambda found: (
            f"{quote}{''.join(one for one, _ in found)}{quote}",
            "".join(one for _, one in found),
        )
    )


_RAW = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="`"), max_size=8)
_TRICKS = [
    "NaN",
    "inf",
    "without",
    "0",
    "1",
    '"0"',
    '",namespace="other',
    '"} or up{a="',
    "# ",
    "\\",
    "x" * 900,
]
LITERALS: st.SearchStrategy[_Literal] = st.one_of(
    _joined('"', "'"),
    _joined("'", '"'),
    _RAW.map(lambda text: (f"`{text}`", text)),
    st.sampled_from(_TRICKS).map(lambda text: (f"`{text}`", text)),
)
FORMS = [
    "{{a={0},b!={1},c=~{2},d!~{3}}}",
    "x{{{0}={1},{2}!={3}}}",
    "{{{0},a={1} or {2},{3}=~`0`}}",
    "sum by ({0},a) (x # {{}} '\"\r{{b\n={1}}}) - sum(y) without ({2},{3})",
    "x * ignoring ({0},b) group_left (a,{1}) (count_values({2}, y{{c != {3}}}))",
    "label_replace(x, {0}, {1}, {2}, {3}) > bool 1",
    "label_join(x, ({0}), {1}, {2}, {3})[5m:1m] @ 3",
    'x{{a="0",b={0}}} or y{{a={1},b="1"}} unless z{{c={2}}} / -w{{d={3},e="2"}}',
]


def said(text: str) -> list[str]:
    """Return what stands in quotes, by the rules of what is written here."""
    return [
        re.sub(r"\\.", lambda found: _ESCAPES[found[0]], one[1]) for one in _WRITTEN.finditer(text)
    ]


@pytest.mark.parametrize("form", FORMS)
@given(st.lists(LITERALS, min_size=4, max_size=4))
def test_what_is_written_says_what_was_said_and_nothing_else(
    form: str, given_ones: Sequence[_Literal]
) -> None:
    read = parsing.tree_of(tokens(form.format(*(one for one, _ in given_ones))))

    written = tree.text_of(read)

    meant = [text for _, text in given_ones] + re.findall(r"""["`]([0-9])["`]""", form)
    # Labels that need no quotes are written without, and metrics' names with some.
    found, expected = (
        sorted(one for one in texts if not _NAME.fullmatch(one)) for texts in (said(written), meant)
    )
    assert found == expected
    assert not re.search(r"""["'`#]""", _WRITTEN.sub("", written))
    assert parsing.tree_of(tokens(written)) == read


@given(st.lists(LITERALS, min_size=4, max_size=4), st.sampled_from(FORMS))
def test_no_literal_leads_out_of_a_namespace(given_ones: Sequence[_Literal], form: str) -> None:
    text = form.format(*(one for one, _ in given_ones))
    try:
        sent = promql.number(text, Policy.NAMESPACED, "ml")
    except ValueError:
        return  # too long, or of patterns that are none
    for node, _ in tree.nodes(parsing.tree_of(tokens(sent))):
        if isinstance(node, tree.Selector):
            for matchers in node.alternatives:
                assert tree.Matcher("namespace", "=", "ml") in matchers


@given(vectors)
def test_what_is_written_is_written_alike_when_it_is_read_again(marked: str) -> None:
    once = tree.text_of(parsing.tree_of(tokens(by_hand(marked, "", ""))))
    assert tree.text_of(parsing.tree_of(tokens(once))) == once


def test_matchers_keep_their_signs_and_their_order() -> None:
    read = parsing.tree_of(tokens("""x{a!~"1",b='2' , c\n!=# '\n`3`,"d"=~"0"} @ end()"""))

    expected = (("__name__", "=", "x"), ("a", "!~", "1"), ("b", "=", "2"), ("c", "!=", "3"))
    matchers = tuple(tree.Matcher(*one) for one in (*expected, ("d", "=~", "0")))
    assert read == tree.Selector((matchers,), tree.Shift("end()"))


def test_an_operator_is_kept_from_the_parser_only_before_a_text() -> None:
    assert tree.text_of(parsing.tree_of(tokens("x != 0"))) == '({__name__="x"}) != (0.0)'
    for text in ("x != 'a'", "x{!='a'}", "x{a!=!='b'}", "x{a!=='b'}", "x{'a' 'b'}", "x =~ 'a'"):
        with pytest.raises(ValueError, match=r"invalid promql query|unexpected '='"):
            parsing.tree_of(tokens(text))
