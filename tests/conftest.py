"""What every test shares: a real Prometheus on demand, and no task left behind."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import hypothesis
import pytest
import pytest_asyncio

from tests.prometheus import KINDS, PrometheusServer, chosen

# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest_asyncio.fixture
async def prometheus(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[PrometheusServer]:
    """A running Prometheus with no targets and no data, or a server that a test names instead."""
    directory = tmp_path / "prometheus"
    directory.mkdir()
    async with KINDS[getattr(request, "param", "prometheus")](directory) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=chosen())
async def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PrometheusServer]:
    """A running server of each kind, with no targets, for all tests of a module."""
    async with KINDS[request.param](tmp_path_factory.mktemp(request.param)) as running:
        yield running


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
