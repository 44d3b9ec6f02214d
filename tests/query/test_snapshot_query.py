"""Claims about what is asked of a source, and about texts on many names: sent in parts."""

from collections.abc import Iterable
from functools import partial

import pytest

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


@pytest.mark.parametrize(
    ("names", "longest_bytes", "width", "expected"),
    [
        ("ab", 3, 0, ["a,b"]),
        ("ab", 2, 0, ["a", "b"]),
        ("abcdefgh", 3, 0, ["a,b", "c,d", "e,f", "g,h"]),
        ("abc", float("inf"), 99_999, [listed(99_999, "abc")]),
        ("a", 10, 99, ["a".ljust(99)]),
    ],
    ids=["fits", "halved", "halved again", "a server takes any text", "about one name"],
)
def test_a_text_that_is_too_long_is_asked_in_parts(
    names: str, longest_bytes: float, width: int, expected: list[str]
) -> None:
    about = partial(listed, width)
    assert texts_about(frozenset(names), about, longest_bytes) == expected
