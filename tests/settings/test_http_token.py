"""The token of the HTTP port, in the settings and while the process runs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.settings.test_loading import URL, WORD, load, refusal


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "token"
    written.write_text(f"{WORD}\n")
    return written


def secret(**variables: str) -> Callable[[], str]:
    secret = load(PROMETHEUS_URL=URL, **variables).http_secret
    assert secret is not None
    return secret


def test_by_default_there_is_none() -> None:
    assert load(PROMETHEUS_URL=URL).http_secret is None


def test_it_can_stand_in_the_settings_which_do_not_show_it() -> None:
    assert secret(HTTP_TOKEN=WORD)() == WORD
    assert WORD not in repr(load(PROMETHEUS_URL=URL, HTTP_TOKEN=WORD))


def test_the_one_in_a_file_is_that_of_the_moment(file: Path) -> None:
    now = secret(HTTP_TOKEN_FILE=str(file))
    assert now() == WORD
    file.write_text("another")
    assert now() == "another"


def test_there_is_one_or_the_other(file: Path) -> None:
    assert refusal(PROMETHEUS_URL=URL, HTTP_TOKEN=WORD, HTTP_TOKEN_FILE=str(file)) == [
        f'- KEDA_GPU_SCALER_HTTP_TOKEN_FILE: "{file}"; expected no http_token beside it'
    ]


def test_a_file_without_a_token_is_refused_before_a_port_opens(file: Path) -> None:
    file.write_text("two words")
    (mistake,) = refusal(PROMETHEUS_URL=URL, HTTP_TOKEN_FILE=str(file))
    assert mistake.startswith(f'- KEDA_GPU_SCALER_HTTP_TOKEN_FILE: "{file}"; expected a file with')


def test_a_token_that_is_none_is_not_shown_and_nothing_else_is_held_against_it(file: Path) -> None:
    given = {"HTTP_TOKEN": f"{WORD} {WORD}", "HTTP_TOKEN_FILE": str(file)}
    (mistake,) = refusal(PROMETHEUS_URL=URL, **given)
    assert mistake.startswith("- KEDA_GPU_SCALER_HTTP_TOKEN: a value that is not shown; expected a")


def test_tokens_of_namespaces_are_in_a_folder_and_go_with_a_token(tmp_path: Path) -> None:
    (tmp_path / "ml").write_text(WORD)
    variables = {"PROMETHEUS_URL": URL, "HTTP_NAMESPACE_TOKENS": str(tmp_path)}
    namespaces = load(HTTP_TOKEN=WORD * 2, **variables).http_namespaces
    assert namespaces is not None
    assert namespaces(WORD.encode()) == {"ml"}
    assert load(PROMETHEUS_URL=URL).http_namespaces is None
    (mistake,) = refusal(**variables)
    assert mistake.startswith(f'- KEDA_GPU_SCALER_HTTP_NAMESPACE_TOKENS: "{tmp_path}"; expected ')
    assert mistake.endswith("expected http_token_file or http_token with it")
    absent = variables | {"HTTP_NAMESPACE_TOKENS": str(tmp_path / "none")}
    (mistake,) = refusal(HTTP_TOKEN=WORD, **absent)
    assert mistake.endswith("; Path does not point to a directory")
