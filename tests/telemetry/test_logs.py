"""How the lines of the log look, of this process's own and of libraries, and who waits for them."""

import fcntl
import json
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from keda_gpu_scaler.settings import LogFormat, LogLevel
from keda_gpu_scaler.telemetry import logs
from keda_gpu_scaler.telemetry.logs import LONGEST_BYTES, WAITING_LINES
from testbed.clocks import Clock

HANG_SECONDS = 30.0
PIPE_BYTES = 4096
"""The smallest pipe that Linux has."""


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A file for the log; structlog and the libraries' loggers are left as they were."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield tmp_path / "log"
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root.handlers, root.level = handlers, level


@contextmanager
def logging_to(
    path: Path, form: LogFormat = LogFormat.JSON, level: LogLevel = LogLevel.INFO, **more: Clock
) -> Iterator[None]:
    """Write the log into a file, and all of it before the end."""
    with path.open("w") as stream:
        log = logs.configure(level, form, stream, **more)
        yield
        log.finish(HANG_SECONDS)


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("form", [LogFormat.JSON, LogFormat.AUTO])
def test_a_line_is_one_json_object_where_nobody_watches(path: Path, form: LogFormat) -> None:
    with logging_to(path, form):
        structlog.get_logger().info("serve.listening", grpc_port=6000)
    (line,) = written(path)
    assert list(line) == ["timestamp", "level", "event", "grpc_port"]
    assert (line["level"], line["event"], line["grpc_port"]) == ("info", "serve.listening", 6000)
    assert line["timestamp"].endswith("Z")


def test_a_line_is_for_people_on_a_terminal(path: Path) -> None:
    screen, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stream:
        log = logs.configure(LogLevel.INFO, LogFormat.AUTO, stream)
        structlog.get_logger().info("serve.listening", grpc_port=6000)
        log.finish(HANG_SECONDS)
        shown = os.read(screen, 4096).decode()
    os.close(screen)
    assert not path.exists()
    assert "serve.listening" in shown
    assert "\x1b[" in shown
    assert "{" not in shown


def test_where_nobody_watches_a_line_for_people_has_no_colours_and_is_cut_too(path: Path) -> None:
    with logging_to(path, LogFormat.CONSOLE, LogLevel.WARNING):
        structlog.get_logger().info("below the level")
        structlog.get_logger().warning("half a pair: \udc80", grpc_port=6000)
        structlog.get_logger().warning("long", source="x" * 2 * LONGEST_BYTES)
    short, long = path.read_bytes().splitlines()
    assert b"half a pair: \\udc80" in short
    assert b"grpc_port=6000" in short
    assert b"\x1b[" not in short
    assert len(long) == LONGEST_BYTES


@pytest.mark.parametrize("text", ["x", "ä", '"', "\n"])
def test_a_line_that_is_too_long_is_cut_and_still_an_object(path: Path, text: str) -> None:
    with logging_to(path):
        structlog.get_logger().info("serve.starting", sources=[text * 100] * 1_000)
    (line,) = written(path)
    assert list(line) == ["timestamp", "level", "event", "cut"]
    assert line["event"] == "serve.starting"
    assert line["cut"].startswith('{"timestamp": ')
    assert LONGEST_BYTES / 3 < len(path.read_bytes()) <= LONGEST_BYTES


def test_what_libraries_say_becomes_a_line_with_a_name(path: Path) -> None:
    with logging_to(path, level=LogLevel.DEBUG):
        logging.getLogger("uvicorn.error").info("Started")
        logging.getLogger("uvicorn.error").warning("limit of %d reached", 7)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("soon to be removed", DeprecationWarning, stacklevel=1)
    line, warned = written(path)
    assert warned["logger"] == "py.warnings"
    assert "soon to be removed" in warned["message"]
    assert (line["event"], line["level"]) == ("library.logged", "warning")
    assert (line["logger"], line["message"]) == ("uvicorn.error", "limit of 7 reached")


def test_a_library_that_repeats_itself_is_written_once_a_minute(path: Path) -> None:
    clock = Clock()
    library = logging.getLogger("asyncio")
    with logging_to(path, clock=clock):
        for number in range(1_000):
            library.error("no descriptor for socket %d", number)
            clock.now += 1 / 32
        library.error("something else")
        logging.getLogger("grpc").error("something else")
        clock.now += 30
        library.error("no descriptor for socket %d", 7)
        structlog.get_logger().info("decision.changed")
        structlog.get_logger().info("decision.changed")
    assert [line.get("message", line["event"]) for line in written(path)] == [
        "no descriptor for socket 0",
        "something else",
        "something else",
        "no descriptor for socket 7",
        "decision.changed",
        "decision.changed",
    ]


@pytest.mark.parametrize("form", [LogFormat.JSON, LogFormat.CONSOLE])
def test_a_traceback_does_not_show_the_values_of_variables(path: Path, form: LogFormat) -> None:
    with logging_to(path, form):
        try:
            _fail_with("hunter2"[::-1])
        except RuntimeError:
            structlog.get_logger().exception("serve.failed")
    assert "RuntimeError: 7" in path.read_text()
    assert "2retnuh" not in path.read_text()


def _fail_with(secret: str) -> None:
    raise RuntimeError(len(secret))


def test_lines_that_find_no_room_are_dropped_and_counted(path: Path) -> None:
    assert not path.exists()
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    with os.fdopen(reading) as reader, os.fdopen(writing, "w") as writer:

        def read(count: int) -> list[dict[str, Any]]:
            return [json.loads(reader.readline()) for _ in range(count)]

        log = logs.configure(LogLevel.INFO, LogFormat.JSON, writer)
        logger = structlog.get_logger()
        logger.info("hanging", text="a" * 2 * PIPE_BYTES)
        for number in range(WAITING_LINES + 10):
            logger.info("line", number=number)
        dropped = log.dropped()
        assert 9 <= dropped <= 10
        hanging, *lines, last = read(WAITING_LINES + 12 - dropped)
        assert hanging["event"] == "hanging"
        assert [line["number"] for line in lines] == list(range(WAITING_LINES + 10 - dropped))
        assert (last["event"], last["dropped"]) == ("log.lines_dropped", dropped)
        logger.info("afterwards")
        assert read(1)[0]["event"] == "afterwards"
        log.finish(HANG_SECONDS)
