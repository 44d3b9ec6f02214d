"""The tokens of the HTTP port and of its webhook, in the settings and while the process runs."""

from pathlib import Path

import pytest

from keda_gpu_scaler import errors
from tests.settings.test_loading import URL, WORD, load, refusal


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "token"
    written.write_text(f"{WORD}\n")
    return written


@pytest.mark.parametrize(
    ("kind", "name"), [("http", "the HTTP port's"), ("webhook", "the webhook's")]
)
def test_a_token_stands_in_the_settings_or_in_a_file_of_which_the_moment_counts(
    file: Path, kind: str, name: str
) -> None:
    loaded = load(PROMETHEUS_URL=URL, **{f"{kind}_token".upper(): WORD})
    assert getattr(loaded, f"{kind}_secret")() == WORD
    assert WORD not in f"{loaded!r} {loaded.model_dump(mode='json')}"

    loaded = load(PROMETHEUS_URL=URL, **{f"{kind}_token_file".upper(): str(file)})
    now = getattr(loaded, f"{kind}_secret")
    assert now() == WORD
    file.write_text("another")
    assert now() == "another"
    file.write_text(f"{WORD} {WORD}")
    with pytest.raises(errors.SettingsError, match=f"{name} token file does not hold") as caught:
        now()
    assert WORD not in f"{caught.value} {caught.value.__cause__}"
    file.unlink()
    with pytest.raises(errors.SettingsError, match=f"{name} token file cannot be read: No such"):
        now()


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
