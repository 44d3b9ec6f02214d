"""Each error has the status code of its cause, and messages stay short and readable."""

import urllib.parse

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors
from keda_gpu_scaler.service.interceptor import (
    DEADLINE_TEXT,
    INTERNAL_TEXT,
    status_message,
    status_of,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.SpecError("words"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.RequestError("words"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.UnknownLoadError("words"), grpc.StatusCode.UNAVAILABLE),
    ],
)
def test_an_error_made_for_the_caller_keeps_its_words(
    error: Exception, code: grpc.StatusCode
) -> None:
    assert status_of(error) == (code, "words")


@pytest.mark.parametrize(
    "error", [errors.SettingsError("secret"), errors.SourceError("secret"), KeyError("secret")]
)
def test_our_own_fault_says_only_so(error: Exception) -> None:
    assert status_of(error) == (grpc.StatusCode.INTERNAL, INTERNAL_TEXT)


def test_running_out_of_time_is_a_passed_deadline() -> None:
    assert status_of(TimeoutError("secret")) == (
        grpc.StatusCode.DEADLINE_EXCEEDED,
        DEADLINE_TEXT,
    )


@given(st.text(st.characters(exclude_categories=()), max_size=200), st.integers(1, 200))
def test_a_message_is_one_bounded_line_whatever_the_text(text: str, times: int) -> None:
    message = status_message(text * times)

    assert message.isprintable()
    assert len(urllib.parse.quote(message, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")) <= 4096


def test_a_short_message_is_kept_as_it_is() -> None:
    assert status_message("threshold '70°': expected a number, 100 %") == (
        "threshold '70°': expected a number, 100 %"
    )


def test_line_breaks_become_blanks() -> None:
    assert status_message("one\r\ntwo\x00") == "one  two "


def test_a_long_message_keeps_its_beginning_and_shows_that_it_was_cut() -> None:
    message = status_message("a" * 5000)

    assert message == "a" * (4096 - 9) + "…"
