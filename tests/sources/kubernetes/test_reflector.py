"""Claims about the objects of one resource that were recently deleted."""

from keda_gpu_scaler.sources.kubernetes import reflector
from keda_gpu_scaler.sources.kubernetes.reflector import Listing
from tests.support.scripted import Clock


def test_what_went_is_known_as_it_was_at_the_end_and_bounded_in_number() -> None:
    known = Listing[int](Clock())
    known.replace({("ml", f"pod-{number}"): number for number in range(reflector.GONE_LIMIT + 5)})
    known.replace({("ml", "pod-0"): 0})
    assert [number for _, number in known.gone()] == list(range(5, reflector.GONE_LIMIT + 5))
    known.drop(("ml", "pod-0"), 30)
    assert (known.of("ml"), known.last(("ml", "pod-0"))) == ({}, 30)
