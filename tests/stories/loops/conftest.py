"""Closed loops run in made-up time alone, however long the machine takes."""

from collections.abc import Mapping

from testbed.loops.idle_time import IdleTimeLoop


def pytest_asyncio_loop_factories() -> Mapping[str, type[IdleTimeLoop]]:
    return {"idle time": IdleTimeLoop}
