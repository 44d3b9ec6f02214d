"""Each error has the status code of its cause, and messages stay short and readable."""

import urllib.parse

from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.service.interceptor import (
    status_message,
)


@given(st.text(st.characters(exclude_categories=()), max_size=200), st.integers(1, 200))
def test_a_message_is_one_bounded_line_whatever_the_text(text: str, times: int) -> None:
    message = status_message(text * times)

    assert message.isprintable()
    assert len(urllib.parse.quote(message, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")) <= 4096


def test_a_long_message_keeps_its_beginning_and_shows_that_it_was_cut() -> None:
    message = status_message("a" * 5000)

    assert message == "a" * (4096 - 9) + "…"
