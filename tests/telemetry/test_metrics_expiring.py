"""Values that expire when they are not mentioned."""

from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.spec.retention import FORGET_SECONDS
from keda_gpu_scaler.telemetry.metrics.expiring import Expiring
from tests.support.clocks import Clock


def test_the_newest_value_of_a_key_is_held() -> None:
    lately: Expiring[str, int] = Expiring(10, Clock())
    lately.put("a", 1)
    lately.put("a", 2)
    assert lately.get("a") == 2
    assert lately.get("b") is None
    assert lately.items() == [("a", 2)]


def test_beyond_the_limit_a_new_key_is_left_out_until_another_one_ends() -> None:
    clock = Clock()
    lately: Expiring[str, int] = Expiring(2, clock)
    for key in ("a", "b", "c", "d", "d", "a"):
        lately.put(key, 0)
    assert dict(lately.items()).keys() == {"a", "b"}
    assert lately.left_out() == 2
    clock.now += FORGET_SECONDS
    lately.put("a", 0)
    lately.put("c", 0)
    clock.now += 1
    lately.put("d", 0)
    assert dict(lately.items()).keys() == {"a", "d"}
    assert lately.left_out() == 1


def test_as_many_as_the_limit_are_counted_as_left_out_and_each_for_ten_minutes() -> None:
    clock = Clock()
    lately: Expiring[str, int] = Expiring(2, clock)
    for key in "abcdefd":
        lately.put(key, 0)
        clock.now += 1
    assert lately.left_out() == 2
    clock.now += FORGET_SECONDS - 2
    assert lately.left_out() == 1
    clock.now += 1
    assert lately.left_out() == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 400)), max_size=50))
def test_it_holds_exactly_what_was_mentioned_lately(steps: list[tuple[int, int]]) -> None:
    clock = Clock()
    lately: Expiring[int, int] = Expiring(100, clock)
    mentioned: dict[int, float] = {}
    for key, passed in steps:
        clock.now += passed
        lately.put(key, key)
        mentioned[key] = clock.now
    since = clock.now - FORGET_SECONDS
    expected = {key for key, at in mentioned.items() if at >= since}
    assert dict(lately.items()).keys() == expected
    assert {key for key in mentioned if lately.get(key) is not None} == expected


def test_what_is_only_mentioned_keeps_its_value() -> None:
    clock = Clock()
    lately: Expiring[str, int] = Expiring(10, clock)
    lately.put("a", 1)
    lately.mention("b")
    clock.now += FORGET_SECONDS
    lately.mention("a")
    clock.now += FORGET_SECONDS
    assert lately.items() == [("a", 1)]
