"""The tokens of the HTTP port, of its webhook and of namespaces, in settings and in files."""

from pathlib import Path

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings.tokens import OfNamespaces
from testbed.clocks import Clock
from tests.settings.test_loading import URL, WORD, load, refusal
from tests.support.pipes import pipe


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "token"
    written.write_text(f"{WORD}\n")
    return written


@pytest.mark.parametrize(
    ("kind", "name"), [("http", "the HTTP port's"), ("webhook", "the webhook's")]
)
def test_a_token_is_in_the_settings_or_in_a_file(file: Path, kind: str, name: str) -> None:
    loaded = load(PROMETHEUS_URL=URL, **{f"{kind}_token".upper(): WORD})
    assert getattr(loaded, f"{kind}_secret")() == WORD
    assert WORD not in f"{loaded!r} {loaded.model_dump(mode='json')}"

    loaded = load(PROMETHEUS_URL=URL, **{f"{kind}_token_file".upper(): str(file)})
    now = getattr(loaded, f"{kind}_secret")
    assert now() == WORD
    file.write_text("another")
    assert now() == "another"
    for wrong in (b"", f"{WORD} {WORD}".encode(), f"{WORD}é".encode(), WORD.encode() + b"\xff"):
        file.write_bytes(wrong)
        with pytest.raises(errors.SettingsError, match=f"{name} token file does not") as caught:
            now()
        assert WORD not in f"{caught.value} {caught.value.__cause__}"
        (mistake,) = refusal(PROMETHEUS_URL=URL, **{f"{kind}_token_file".upper(): str(file)})
        assert mistake.endswith(
            "a file with a token, but it does not hold one token of visible ASCII"
        )
    both = {f"{kind}_token".upper(): WORD, f"{kind}_token_file".upper(): str(file)}
    file.write_text(WORD)
    (mistake,) = refusal(PROMETHEUS_URL=URL, **both)
    assert mistake.endswith(f'_FILE: "{file}"; expected no {kind}_token beside it')
    file.unlink()
    with pytest.raises(errors.SettingsError, match=f"{name} token file cannot be read: No such"):
        now()


def test_a_token_is_in_a_regular_file_and_nothing_else_is_waited_for(file: Path) -> None:
    now = load(PROMETHEUS_URL=URL, HTTP_TOKEN_FILE=str(file)).http_secret
    assert now is not None
    file.unlink()
    with pipe(file, WORD.encode()):
        with pytest.raises(errors.SettingsError, match="cannot be read: it is not a regular file"):
            now()
        (mistake,) = refusal(PROMETHEUS_URL=URL, HTTP_TOKEN_FILE=str(file))
    why = "it cannot be read: it is not a regular file"
    assert mistake.endswith(f"a file with a token, but {why}")


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


def allowed(folder: Path, offered: bytes) -> frozenset[str]:
    return OfNamespaces(folder).allowed(offered)


def test_each_file_is_the_token_of_the_namespace_that_it_is_named_after(tmp_path: Path) -> None:
    (tmp_path / "ml").write_text("one\n")
    (tmp_path / "web").write_text("two")
    (tmp_path / "ml-2").write_text("one")
    assert allowed(tmp_path, b"one") == {"ml", "ml-2"}
    assert allowed(tmp_path, b"two") == {"web"}
    assert allowed(tmp_path, b"on") == frozenset()


def test_what_holds_no_token_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "b").write_bytes(b"\xff\xfe")
    (tmp_path / "c").mkdir()
    (tmp_path / "d").symlink_to("nowhere")
    (tmp_path / "..data").write_text("hidden")
    (tmp_path / "Not_A_Namespace").write_text("hidden")
    (tmp_path / "good").write_text("good")
    tokens = OfNamespaces(tmp_path)
    for offered in (b"", b"\xff\xfe", b"hidden"):
        assert tokens.allowed(offered) == frozenset()
    assert tokens.allowed(b"good") == {"good"}
    assert allowed(tmp_path / "none", b"x") == frozenset()


def test_a_pipe_among_the_tokens_of_namespaces_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("good")
    with pipe(tmp_path / "ml", WORD.encode()):
        tokens = OfNamespaces(tmp_path, Clock())
        assert tokens.allowed(WORD.encode()) == frozenset()
        assert tokens.allowed(b"good") == {"good"}


def test_the_folder_is_looked_at_once_a_second_at_most(tmp_path: Path) -> None:
    clock = Clock()
    tokens = OfNamespaces(tmp_path, clock)
    assert tokens.allowed(b"one") == frozenset()
    (tmp_path / "ml").write_text("one")
    clock.now += 0.9
    assert tokens.allowed(b"one") == frozenset()
    clock.now += 0.1
    assert tokens.allowed(b"one") == {"ml"}
    clock.now += 1
    assert tokens.allowed(b"one") == {"ml"}
