"""Claims about the tokens of namespaces, in a folder on a real disk."""

from pathlib import Path

from keda_gpu_scaler.settings.tokens import OfNamespaces
from tests.support.clocks import Clock


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
