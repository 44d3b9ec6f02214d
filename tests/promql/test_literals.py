"""String literals are read as Prometheus reads them, and every text gets into a query and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.promql.lexer import unquoted
from keda_gpu_scaler.query.promql_texts import quoted

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ('""', ""),
        ("'a\"b'", 'a"b'),
        ('"a\'`b"', "a'`b"),
        (r'"\a\b\f\n\r\t\v"', "\a\b\f\n\r\t\v"),
        (r'"\\\"\\n"', '\\"\\n'),
        (r"'\''", "'"),
        (r'"\101\x41\u0041\U00000041"', "AAAA"),
        (r'"\xc3\xa9\303\251\u00e9"', "ééé"),
        (r'"\U0001F600"', "\U0001f600"),
        (r'"\000\x00\u0000"', "\0\0\0"),
        (r"`\d+\.`", r"\d+\."),
        ("`a\r\nb\"'#`", "a\r\nb\"'#"),
        ('"a\tb\rc#"', "a\tb\rc#"),
    ],
)
def test_a_literal_says_what_it_says_to_prometheus(literal: str, text: str) -> None:
    assert unquoted(literal) == text


@pytest.mark.parametrize(
    "literal",
    [
        *(r'"\d"', r'"\'"', "'\\\"'", r'"\`"', r'"\8"', r'"\18"', r'"\400"', r'"\x4"', r'"\xg0"'),
        *(r'"\u004"', r'"\U0000004"', r'"\uD800"', r'"\U00110000"', r'"\xff"', r'"\303"'),
        *('"\\\n"', '"\udcff"', "`\udcff`"),
    ],
)
def test_what_is_no_text_to_prometheus_is_refused(literal: str) -> None:
    with pytest.raises(ValueError, match="an escape that is not Prometheus', or a text that is"):
        unquoted(literal)


@given(TEXTS)
def test_a_text_that_is_quoted_is_the_same_text(text: str) -> None:
    assert unquoted(quoted(text)) == text
