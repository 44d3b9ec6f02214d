"""`true` is pushed on the edge, again while no pod exists, and a stream has an end."""

import asyncio
import math
from dataclasses import replace

import pytest

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.service import streams
from tests.service.harness import QUIET, SIGNAL

WAKING = replace(SIGNAL, state=State.ENDED, reporting_pods=0)


def pushed(*decisions: Decision, step_seconds: float = 15) -> list[bool]:
    """Pass in decisions one step apart; return for each whether it was pushed."""
    pushes = streams.Pushes()
    return [
        pushes.is_due(decided, 1000 + number * step_seconds)
        for number, decided in enumerate(decisions)
    ]


def test_an_active_workload_is_pushed_when_the_stream_opens() -> None:
    assert pushed(SIGNAL) == [True]


def test_an_idle_workload_is_not_pushed() -> None:
    assert pushed(QUIET, QUIET) == [False, False]


def test_only_the_rising_edge_is_pushed_while_pods_report() -> None:
    assert pushed(QUIET, SIGNAL, SIGNAL, SIGNAL) == [False, True, False, False]


def test_each_rising_edge_is_pushed() -> None:
    assert pushed(SIGNAL, QUIET, SIGNAL) == [True, False, True]


def test_activity_without_a_signal_is_never_pushed() -> None:
    assert pushed(replace(QUIET, active=True, reporting_pods=0)) == [False]


@pytest.mark.parametrize(
    ("step_seconds", "expected"),
    [
        (5, [True, False, False, True, False, False, True]),
        (15, [True] * 7),
        (60, [True] * 7),
    ],
)
def test_a_push_that_may_be_lost_is_repeated_while_no_pod_exists(
    step_seconds: float, expected: list[bool]
) -> None:
    assert pushed(*[WAKING] * 7, step_seconds=step_seconds) == expected


def test_the_repetition_survives_an_evaluation_that_comes_a_little_early() -> None:
    pushes = streams.Pushes()
    due = [pushes.is_due(WAKING, now) for now in (0.4, 15.1, 30.0)]

    assert due == [True, True, True]


def test_the_repetition_stops_with_the_first_pod() -> None:
    assert pushed(WAKING, WAKING, SIGNAL, SIGNAL) == [True, True, False, False]


def test_streams_of_specs_that_were_opened_at_once_end_hours_apart() -> None:
    lives = sorted(streams.spec_seconds() for _ in range(1000))
    assert 43_200 <= lives[0] < 46_000
    assert 83_000 < lives[-1] <= streams.LONGEST_SPEC_SECONDS


async def test_a_life_goes_on_after_a_step() -> None:
    assert not await streams.Life(asyncio.Event(), 3600).is_over_within(0, asyncio.Event())


async def test_a_life_is_over_when_its_time_is_up() -> None:
    assert await streams.Life(asyncio.Event(), 0).is_over_within(3600, asyncio.Event())


async def test_a_life_is_over_when_the_server_drains() -> None:
    draining, news = asyncio.Event(), asyncio.Event()
    life = streams.Life(draining, 3600)
    with life.heard_by(news):
        draining.set()
        assert await life.is_over_within(math.inf, news)


async def test_a_life_goes_on_after_news() -> None:
    news = asyncio.Event()
    news.set()
    assert not await streams.Life(asyncio.Event(), 3600).is_over_within(math.inf, news)


async def test_waiting_for_the_end_of_a_life_ends_with_it() -> None:
    await streams.Life(asyncio.Event(), 0).is_over()
