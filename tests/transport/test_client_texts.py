"""What servers say, on one short line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.transport.client import WORDS_SHOWN, printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("as it is", "as it is"),
        ("two\n  lines\tand tabs", "two lines and tabs"),
        ("\x1b[31mred\x07", "?[31mred?"),
        ("x" * 257, "x" * 256 + "…"),
        ("x" * 256, "x" * 256),
    ],
)
def test_a_servers_words_are_made_printable(text: str, expected: str) -> None:
    assert printable(text) == expected


@given(st.text())
def test_printable_words_are_one_short_line(text: str) -> None:
    shown = printable(text)

    assert shown.isprintable()
    assert len(shown) <= WORDS_SHOWN + 1
    assert printable(shown) in {shown, shown[:-1] + "…"}
