"""What every test shares: a real Prometheus on demand, and no task left behind."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import hypothesis
import pytest
import pytest_asyncio

from tests.prometheus import PrometheusServer

# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest_asyncio.fixture
async def prometheus(tmp_path: Path) -> AsyncIterator[PrometheusServer]:
    """A running Prometheus with no targets and no data."""
    directory = tmp_path / "prometheus"
    directory.mkdir()
    async with PrometheusServer(directory) as server:
        yield server


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> None:
    """Ask of every asynchronous test that it ends what it started."""
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        request.getfixturevalue("_no_task_left")


@pytest_asyncio.fixture
async def _no_task_left() -> AsyncIterator[None]:
    """Fail a test that leaves an asyncio task behind: it would end in the middle of another."""
    before = asyncio.all_tasks()
    yield
    await asyncio.sleep(0)  # tasks that were cancelled last get the one step they need to end
    left = asyncio.all_tasks() - before
    assert not {task.get_name() for task in left - {asyncio.current_task()}}
