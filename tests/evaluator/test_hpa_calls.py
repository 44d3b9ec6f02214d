"""Claims about what the calls about one trigger say of its replicas."""

from keda_gpu_scaler.evaluator.tracked_trigger import HpaCalls


def _called(*calls: tuple[float, bool]) -> HpaCalls:
    found = HpaCalls()
    for now, is_hpa in calls:
        found.note(now, is_hpa=is_hpa)
    return found


def _polled(begin: float, end: float) -> list[tuple[float, bool]]:
    return [(begin + 30.0 * n, False) for n in range(int((end - begin) / 30) + 1)]


def test_without_a_call_nothing_is_known() -> None:
    found = HpaCalls()
    assert (found.asking(100.0), found.has_stopped(100.0)) == (None, False)


def test_while_a_process_is_new_it_cannot_know_whether_a_call_is_the_first() -> None:
    found = _called((90.0, False), (100.0, True))
    assert (found.asking(119.0), found.asking(120.0)) == ((100.0, 100.0), None)
    found.note(200.0, is_hpa=True)
    assert found.asking(200.0) is None


def test_the_hpa_asks_again_and_again_and_a_probe_does_not() -> None:
    assert _called((100.0, True)).asking(130.0) is None
    assert _called((100.0, True), (115.0, True), (130.0, True)).asking(130.0) == (100.0, 130.0)


def test_a_minute_after_its_last_call_it_does_not_ask_any_more() -> None:
    found = _called((100.0, True), (130.0, True))
    assert (found.asking(190.0), found.asking(191.0)) == ((100.0, 130.0), None)
    found.note(300.0, is_hpa=True)
    assert found.asking(300.0) is None


def test_it_has_stopped_after_a_minute_of_polls() -> None:
    found = _called((100.0, True), *_polled(110.0, 140.0))
    assert (found.has_stopped(169.0), found.has_stopped(170.0)) == (False, True)
    found.note(171.0, is_hpa=True)
    assert not found.has_stopped(300.0)


def test_with_cached_metrics_its_silence_says_nothing() -> None:
    assert not _called(*_polled(100.0, 1000.0)).has_stopped(1000.0)


def test_while_keda_itself_is_silent_the_silence_of_the_hpa_says_nothing() -> None:
    """KEDA was away, and passes no call on; its first poll may come before the HPA's call."""
    found = _called((100.0, True), *_polled(110.0, 140.0), (300.0, False))
    assert (found.has_stopped(300.0), found.has_stopped(360.0)) == (False, True)


def test_one_call_of_its_own_shows_that_there_are_replicas_for_a_minute() -> None:
    """Also one that may be a person's: an error about a busy workload can cost it its replicas."""
    calls = _called((100.0, False), (110.0, True), (120.0, False))
    assert [calls.has_asked(now) for now in (120.0, 170.0, 171.0)] == [True, True, False]
    assert not _called((100.0, False)).has_asked(100.0)
