"""Claims about what the calls about one trigger say of its replicas."""

import pytest

from keda_gpu_scaler.evaluator.tracked_trigger import HpaCalls

Call = tuple[float, bool]
"""When it came, and whether it was the HPA's."""


def _called(*calls: Call) -> HpaCalls:
    found = HpaCalls()
    for now, is_hpa in calls:
        found.note(now, is_hpa=is_hpa)
    return found


def _polled(begin: float, end: float) -> list[Call]:
    return [(begin + 30.0 * n, False) for n in range(int((end - begin) / 30) + 1)]


NEW = [(90.0, False), (100.0, True)]
TWICE = [(100.0, True), (130.0, True)]


@pytest.mark.parametrize(
    ("calls", "now", "asking"),
    [
        ([], 100, None),
        # While a process is new it cannot know whether a call is the first.
        (NEW, 119, (100, 100)),
        (NEW, 120, None),
        ([*NEW, (200.0, True)], 200, None),
        # The HPA asks again and again, and a probe does not.
        ([(100.0, True)], 130, None),
        ([(100.0, True), (115.0, True), (130.0, True)], 130, (100, 130)),
        # A minute after its last call it does not ask any more.
        (TWICE, 190, (100, 130)),
        (TWICE, 191, None),
        ([*TWICE, (300.0, True)], 300, None),
    ],
)
def test_since_when_the_hpa_asks(
    calls: list[Call], now: float, asking: tuple[float, float] | None
) -> None:
    assert _called(*calls).asking(now) == asking


STOPPED = [(100.0, True), *_polled(110.0, 140.0)]


@pytest.mark.parametrize(
    ("calls", "now", "has_stopped"),
    [
        ([], 100, False),
        # It takes a minute of polls without it.
        (STOPPED, 169, False),
        (STOPPED, 170, True),
        ([*STOPPED, (171.0, True)], 300, False),
        # With cached metrics its silence says nothing.
        (_polled(100.0, 1000.0), 1000, False),
        # KEDA was away, and passes no call on; its first poll may come before the HPA's call.
        ([*STOPPED, (300.0, False)], 300, False),
        ([*STOPPED, (300.0, False)], 360, True),
    ],
)
def test_whether_the_hpa_has_stopped(calls: list[Call], now: float, *, has_stopped: bool) -> None:
    assert _called(*calls).has_stopped(now) is has_stopped
