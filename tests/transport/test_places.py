"""One namespace leaves places for others."""

from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.transport.places import Places


def taken(places: Places, namespace: str) -> int:
    """Take as many places as there are, and return how many."""
    count = 0
    while places.take(namespace):
        count += 1
    return count


def test_one_namespace_takes_three_quarters() -> None:
    assert taken(Places(1000), "a") == 750


@given(st.integers(1, 50), st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=200))
def test_there_is_always_a_place_for_a_newcomer(most: int, steps: list[tuple[str, bool]]) -> None:
    places = Places(most)
    counts = dict.fromkeys("abc", 0)
    for name, takes in steps:
        if takes:
            counts[name] += places.take(name)
        elif counts[name]:
            places.give_back(name)
            counts[name] -= 1
        assert sum(counts.values()) <= most
    if sum(counts.values()) < most:
        assert places.take("newcomer")
