"""Claims about what is asked of a source, and about texts on many names: sent in parts."""

from collections.abc import Iterable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.query.snapshot_query import SnapshotQuery, merged, texts_about
from keda_gpu_scaler.snapshot import observation
from keda_gpu_scaler.spec.spec import Signal


def test_what_everybody_asks_for_is_one_demand_that_covers_them_all() -> None:
    short = SnapshotQuery(Signal.POWER, "auto", frozenset({"ml"}), 255.0, 120.0)
    long = SnapshotQuery(Signal.POWER, "auto", frozenset({"web"}), 600.0, 60.0)
    both = SnapshotQuery(Signal.POWER, "auto", frozenset({"ml", "web"}), 600.0, 120.0)
    assert merged([short, long]) == both
    assert merged([short]) == short


def test_a_mig_instance_is_on_the_board_of_its_uuid() -> None:
    assert observation.uuid_of("GPU-1/7") == observation.uuid_of("GPU-1") == "GPU-1"


def listed(width: int, names: Iterable[str]) -> str:
    return ",".join(name.ljust(width) for name in sorted(names))


def parts(names: Iterable[str], longest_bytes: float, width: int = 0) -> list[str]:
    return list(texts_about(frozenset(names), partial(listed, width), longest_bytes))


@given(st.sets(st.from_regex("[a-z]{1,9}", fullmatch=True), min_size=1, max_size=50))
def test_a_text_that_is_too_long_is_asked_in_parts(names: set[str]) -> None:
    found = parts(names, 16_000, 999)

    assert [name.strip() for part in found for name in part.split(",")] == sorted(names)
    assert all(len(part) <= 16_000 for part in found)
    assert (len(found) == 1) == (len(names) <= 16)


def test_a_text_is_halved_until_it_is_no_longer_than_it_may_be() -> None:
    assert parts("ab", 3) == ["a,b"]
    assert parts("ab", 2) == ["a", "b"]
    assert parts("abcdefgh", 3) == ["a,b", "c,d", "e,f", "g,h"]


def test_a_server_that_takes_any_text_gets_one() -> None:
    assert parts("abc", float("inf"), 99_999) == [listed(99_999, "abc")]


def test_a_text_about_one_name_cannot_be_parted() -> None:
    assert parts("a", 10, 99) == ["a".ljust(99)]
