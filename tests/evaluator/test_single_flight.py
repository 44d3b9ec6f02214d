"""Claims about one task that many callers wait for; the rest is shown by what uses it."""

import asyncio
import math
from collections.abc import Coroutine
from functools import partial

import pytest

from keda_gpu_scaler.evaluator.single_flight import SingleFlight
from tests.support.scripted import Clock


async def test_who_waits_is_told_of_the_task_it_waited_for_and_not_of_the_next() -> None:
    flight, gate, next_gate = SingleFlight(Clock(), 30), asyncio.Event(), asyncio.Event()
    flight.launch(partial(_until, gate), "first")

    async def waits_and_launches() -> None:
        await flight.wait(math.inf)
        flight.launch(partial(_until, next_gate), "second")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(waits_and_launches())
        second = tasks.create_task(flight.wait(math.inf))
        await asyncio.sleep(0)
        gate.set()
    assert second.result()
    assert flight.is_under_way
    next_gate.set()
    await flight.wait(math.inf)


async def test_who_launches_beside_a_close_makes_no_work_that_nobody_does() -> None:
    flight, made = SingleFlight(Clock(), 30), list[asyncio.Event]()

    def work() -> Coroutine[None, None, None]:
        made.append(asyncio.Event())
        return _until(made[-1])

    flight.launch(work, "first")
    await flight.close()
    with pytest.raises(asyncio.CancelledError):
        flight.launch(work, "second")
    assert len(made) == 1


async def _until(gate: asyncio.Event) -> None:
    await gate.wait()
