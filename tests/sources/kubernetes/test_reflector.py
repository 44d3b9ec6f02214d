"""Claims about the objects of one resource, and those that were recently deleted."""

import pytest

from keda_gpu_scaler.sources.kubernetes import reflector
from keda_gpu_scaler.sources.kubernetes.reflector import Listing
from tests.support.scripted import Clock

ONE, TWO, ELSEWHERE = ("ml", "one"), ("ml", "two"), ("web", "one")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def known(clock: Clock) -> Listing[int]:
    known = Listing[int](clock)
    known.replace({ONE: 1, TWO: 2, ELSEWHERE: 3})
    return known


def test_what_went_is_known_as_it_was_at_the_end_until_another_one_of_the_name_is_there(
    known: Listing[int],
) -> None:
    known.drop(ELSEWHERE, 30)
    assert (known.of("ml"), known.of("web")) == ({"one": 1, "two": 2}, {})
    assert (known.get(ELSEWHERE), known.last(ELSEWHERE), known.last(ONE)) == (None, 30, 1)
    known.replace({ONE: 11})
    assert list(known.gone()) == [(ELSEWHERE, 30), (TWO, 2)]
    known.put(TWO, 12)
    assert list(known.gone()) == [(ELSEWHERE, 30)]
    assert known.last(TWO) == 12


def test_what_went_is_forgotten_after_a_while(known: Listing[int], clock: Clock) -> None:
    known.drop(ONE, 1)
    clock.seconds += reflector.GONE_SECONDS - 1
    assert list(known.gone()) == [(ONE, 1)]
    clock.seconds += 1
    assert not list(known.gone())
    known.drop(TWO, 2)
    known.drop(("nowhere", "nobody"), 0)
    assert list(known.gone()) == [(TWO, 2), (("nowhere", "nobody"), 0)]
    assert known.last(ONE) is None


def test_what_went_is_bounded_in_number(known: Listing[int]) -> None:
    known.replace({("ml", f"pod-{number}"): number for number in range(reflector.GONE_LIMIT + 5)})
    known.replace({})
    went = [number for _, number in known.gone()]
    assert len(went) == reflector.GONE_LIMIT
    assert went[-1] == reflector.GONE_LIMIT + 4
