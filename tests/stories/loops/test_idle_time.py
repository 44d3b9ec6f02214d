"""A claim about the event loop of made-up worlds."""

import asyncio


async def test_time_passes_only_while_nothing_is_left_to_do() -> None:
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(0.0001):
        for _ in range(1000):
            await asyncio.sleep(0)
    assert asyncio.get_running_loop().time() == began
    async with asyncio.timeout(3601):
        await asyncio.sleep(3600)
    assert 3600 <= asyncio.get_running_loop().time() - began < 3601
