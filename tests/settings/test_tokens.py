"""The tokens of the HTTP port, of its webhook and of namespaces, in settings and in files."""

from pathlib import Path

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings.tokens import OfNamespaces
from tests.settings.test_loading import URL, WORD, load, refusal
from tests.support.clocks import Clock


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


def test_the_webhook_is_set_by_the_environment() -> None:
    peers = "https://10.0.0.1:8080,dns+https://keda-gpu-scaler.keda.svc:8080"
    variables = {"WEBHOOK_TOKEN": WORD, "WEBHOOK_LIFETIME": "10m", "WEBHOOK_PEERS": peers}
    loaded = load(PROMETHEUS_URL=URL, **variables)
    assert loaded.webhook_secret is not None
    assert loaded.webhook_secret() == WORD
    assert loaded.webhook_lifetime_seconds == 600
    assert loaded.webhook_peers == tuple(peers.split(","))


def test_mistakes_are_named_and_no_token_is_shown(tmp_path: Path, file: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    mistakes = [
        *refusal(PROMETHEUS_URL=URL, WEBHOOK_TOKEN=f"{WORD} and more", WEBHOOK_LIFETIME="1s"),
        *refusal(PROMETHEUS_URL=URL, WEBHOOK_TOKEN=WORD, WEBHOOK_TOKEN_FILE=str(file)),
        *refusal(PROMETHEUS_URL=URL, WEBHOOK_PEERS="http://a:8080"),
        *refusal(PROMETHEUS_URL=URL, WEBHOOK_TOKEN_FILE=str(empty)),
    ]
    assert mistakes == [
        (
            "- KEDA_GPU_SCALER_WEBHOOK_TOKEN: a value that is not shown; "
            "expected a token of visible ASCII characters"
        ),
        '- KEDA_GPU_SCALER_WEBHOOK_LIFETIME: "1s"; expected a duration of at least 1m',
        f'- KEDA_GPU_SCALER_WEBHOOK_TOKEN_FILE: "{file}"; expected no webhook_token beside it',
        (
            '- KEDA_GPU_SCALER_WEBHOOK_PEERS: "http://a:8080"; '
            "expected webhook_token or webhook_token_file with it"
        ),
        (
            f'- KEDA_GPU_SCALER_WEBHOOK_TOKEN_FILE: "{empty}"; '
            "expected a file with a token, but it does not hold one token of visible ASCII"
        ),
    ]
    assert WORD not in "".join(mistakes)


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
