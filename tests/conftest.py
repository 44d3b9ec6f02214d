"""What every test shares: which tests run, a real Prometheus on demand, and no task left behind.

A test that runs a program which is not Python says so, by a fixture below or by a marker, and so
does one that takes more than a few tenths of a second of a processor, or seconds of real time:

    @pytest.mark.needs("helm")
    @pytest.mark.slow
    @pytest.mark.slow(minutes=2)  # begins before the others
    @pytest.mark.nightly  # another variant of what runs before every push

`make test` leaves such tests out, except where they require only a Prometheus that the
environment names. `make test-servers` (`--servers`) runs them and no others,
and first builds what the chosen ones require and is not available; `make test-nightly`
(`--nightly`) runs those for which only the night has time.
"""

import asyncio
import gc
import inspect
import itertools
import logging
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import pytest_asyncio
import structlog
from structlog.testing import LogCapture

from testbed import programs
from testbed.prometheus import KINDS, PrometheusServer
from tests.support.each_prometheus import each
from tests.support.pki import Pki

_NEEDED = pytest.StashKey[frozenset[str]]()
_LEFT_OUT = pytest.StashKey[str]()
_LEFT_OUT_BY_WORKER = "left_out"
_TIME = "more than a moment"
"""What a slow test requires: listed like a program, but never built."""
# Thousands of tests are collected, and none of them is garbage.
gc.disable()
# How long an example takes depends on how busy the machine is: no profile has a deadline.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=25)
hypothesis.settings.register_profile("ci", deadline=None, max_examples=100, print_blob=True)
hypothesis.settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "quick")
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice between the tests that are quick and Python only, and the others."""
    parser.addoption(
        "--servers",
        action="store_true",
        help="run the tests that need real servers, programs or time, and no others",
    )
    parser.addoption("--nightly", action="store_true", help="run those of every night alone")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of one kind; count the others and name the programs they require."""
    for item in items:
        item.stash[_NEEDED] = _needed(item)
    nightly = {item for item in items if item.get_closest_marker("nightly")}
    if config.getoption("--nightly"):
        left = [item for item in items if item not in nightly]
    elif config.getoption("--servers"):
        left = [item for item in items if item in nightly or not item.stash[_NEEDED]]
    else:
        at_hand = {"prometheus"} if programs.named("prometheus") else set()
        left = [item for item in items if not item.stash[_NEEDED] <= at_hand]
        if missing := sorted({name for item in left for name in item.stash[_NEEDED]}):
            config.stash[_LEFT_OUT] = (
                f"left out, because they need {', '.join(missing)}: {len(left)}"
                " (make test-servers and make test-nightly run them)"
            )
    config.hook.pytest_deselected(items=left)
    absent = set(left)
    items[:] = _long_first([item for item in items if item not in absent])


def _long_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Let each worker begin with its share of the tests that take minutes.

    One that begins last runs alone at the end. `--dist worksteal` first gives each worker an equal
    run of neighbours, so each of these runs begins with a long one.
    """
    long = sorted(filter(_minutes, items), key=_minutes, reverse=True)
    short = (item for item in items if not _minutes(item))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ordered: list[pytest.Item] = []
    for number in range(workers):
        ordered += long[number::workers]
        ordered += itertools.islice(short, len(items) * (number + 1) // workers - len(ordered))
    return ordered


def _minutes(item: pytest.Item) -> int:
    """Return how many minutes a test takes, if it says so."""
    marker = item.get_closest_marker("slow")
    return marker.kwargs.get("minutes", 0) if marker else 0


def _needed(item: pytest.Item) -> frozenset[str]:
    """Return what a test requires besides Python: the names of programs, and time."""
    named = {name for marker in item.iter_markers("needs") for name in marker.args}
    if unknown := named - programs.PROGRAMS.keys():
        message = f"{item.nodeid} needs {', '.join(sorted(unknown))}: see testbed/programs.py"
        raise pytest.UsageError(message)
    if item.get_closest_marker("slow") or item.get_closest_marker("nightly"):
        named.add(_TIME)
    return frozenset(named)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the chosen tests require; with pytest-xdist, one worker does so for all."""
    gc.freeze()
    gc.enable()
    if session.config.option.collectonly:
        return
    needed = {name for item in session.items for name in item.stash.get(_NEEDED, ())}
    programs.build(needed - {_TIME})
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None and _LEFT_OUT in session.config.stash:
        output[_LEFT_OUT_BY_WORKER] = session.config.stash[_LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker has left out: every worker collects the same."""
    if _LEFT_OUT_BY_WORKER in node.workeroutput:
        node.config.stash[_LEFT_OUT] = node.workeroutput[_LEFT_OUT_BY_WORKER]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Repeat at the end what was left out."""
    if _LEFT_OUT in config.stash:
        terminalreporter.write_line(config.stash[_LEFT_OUT])


@pytest_asyncio.fixture(params=[pytest.param("prometheus", marks=pytest.mark.needs("prometheus"))])
async def prometheus(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[PrometheusServer]:
    """A running Prometheus with no targets and no data, or the servers that a test names."""
    directory = tmp_path / "prometheus"
    directory.mkdir()
    async with KINDS[request.param](directory) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=each())
async def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PrometheusServer]:
    """A running server of each kind, with no targets, for all tests of a module."""
    async with KINDS[request.param](tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    """Two CAs whose files are in the test's folder."""
    return Pki(tmp_path)


@pytest.fixture
def lines() -> Iterator[LogCapture]:
    """The lines of the log, of every level, as they are written."""
    captured = LogCapture()
    structlog.configure(
        processors=[captured], wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG)
    )
    yield captured
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> None:
    """Require every asynchronous test to end the tasks that it started."""
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        request.getfixturevalue("_no_task_left")


@pytest_asyncio.fixture
async def _no_task_left() -> AsyncIterator[None]:
    """Fail a test that leaves an asyncio task behind: it would end in the middle of another."""
    before = asyncio.all_tasks()
    yield
    await asyncio.sleep(0)  # tasks that were cancelled last get one more step to end
    left = asyncio.all_tasks() - before
    assert not {task.get_name() for task in left - {asyncio.current_task()}}
