"""Claims about one task that many callers wait for."""

import asyncio

import pytest

from keda_gpu_scaler.evaluator.single_flight import SingleFlight


async def test_who_stops_waiting_leaves_the_task_running_for_the_others() -> None:
    flight, gate = SingleFlight(), asyncio.Event()

    async def work() -> None:
        await gate.wait()

    flight.launch(work(), "work")
    assert not await flight.wait(0)
    assert flight.is_under_way
    gate.set()
    assert await flight.wait(30)
    assert not flight.is_free
    flight.land()
    assert flight.is_free


async def test_who_waits_is_told_of_the_task_it_waited_for_and_not_of_the_next() -> None:
    flight, gate, next_gate = SingleFlight(), asyncio.Event(), asyncio.Event()
    flight.launch(_until(gate), "first")

    async def waits_and_launches() -> None:
        await flight.wait(30)
        flight.land()
        flight.launch(_until(next_gate), "second")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(waits_and_launches())
        second = tasks.create_task(flight.wait(30))
        await asyncio.sleep(0)
        gate.set()
    assert second.result()
    assert flight.is_under_way
    next_gate.set()
    await flight.wait(30)


async def _until(gate: asyncio.Event) -> None:
    await gate.wait()


async def test_a_fault_is_raised_once_to_who_comes_next() -> None:
    flight = SingleFlight()

    async def work() -> None:
        raise ValueError("a fault")

    flight.launch(work(), "work")
    await flight.wait(30)
    with pytest.raises(ValueError, match="a fault"):
        flight.land()
    flight.land()
    assert flight.is_free


async def test_without_a_task_there_is_nothing_to_wait_for_and_nothing_to_end() -> None:
    flight = SingleFlight()
    assert await flight.wait(30)
    flight.cancel()
    await flight.close()


async def test_closing_ends_the_task() -> None:
    flight, ended = SingleFlight(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    flight.launch(work(), "work")
    await asyncio.sleep(0)
    await flight.close()
    assert ended.is_set()
