"""The demo: its scenario, its screen, its driver, and the whole of it in a process."""

import io
import itertools
import os
import re
import signal
import subprocess
import sys

import pytest
from rich.console import Console

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.workbench.demo import driver, scenario, screen
from keda_gpu_scaler.workbench.world import cluster
from tests.cli.test_serve import AT_A_SIGNAL, FAILS

COMMAND = [sys.executable, "-m", "keda_gpu_scaler", "demo"]
DEMO_SECONDS = 150
"""More than the demo itself allows for its start and all of its phases."""
NOWHERE = "http://127.0.0.1:9"
FAILED = "keda-gpu-scaler: demo failed: the scaler ended early"
PHASES = (scenario.Phase("up", 100, 2, 10), scenario.Phase("down", 0, 2, 10))


# The scenario


def test_a_phase_ends_when_its_goal_has_been_met_for_long_enough() -> None:
    progress = scenario.Progress(PHASES)
    assert not progress.advance(0, 1)
    assert not progress.advance(1, 2)
    assert not progress.advance(2.9, 2)
    assert progress.index == 0
    assert not progress.advance(3, 2)
    assert (progress.index, progress.entered_at) == (1, 3)
    left_again = scenario.Progress(PHASES)
    for now, replicas in ((0, 2), (1, 3), (2, 2), (3, 2)):
        left_again.advance(now, replicas)
    assert left_again.index == 0


def test_a_goal_that_is_not_met_in_time_fails_in_words() -> None:
    progress = scenario.Progress(PHASES)
    progress.advance(10, 1)
    with pytest.raises(scenario.DemoError, match="up: 100 % over a threshold of 70 % needs 2 rep"):
        progress.advance(10.1, 1)


# Frames


OURS = driver.Side(430, 61.4286, 7, "HPA: 427.125 / 70 per replica = 7 replicas")
CORRECTED = driver.Side(430, 61.4286, 7, "HPA: 427 / 70 per replica = 7 replicas")
USUAL = driver.Side(430, 100, 2, "HPA: 100 / 70 per replica = 2 replicas")
MEASURED = driver.Reply(
    (rules.Metric(value=427.125, target=70),),
    active=True,
    state="measured",
    reason="mean utilization 61.0179 % over 7 replicas",
)
HELD = driver.Reply(
    (rules.Metric(value=None, target=70),), active=True, state="starting", reason="young"
)


def frame(**fields: object) -> driver.Frame:
    known: dict[str, object] = {
        "seconds": 12.34,
        "progress": scenario.Progress(index=1),
        "answer": MEASURED,
        "ours": [driver.Side()] * 4 + [OURS] * 4,
        "corrected": [CORRECTED] * 8,
        "usual": [USUAL] * 8,
    }
    return driver.Frame(**(known | fields))  # type: ignore[arg-type]  # a table of any fields


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (driver.Reply(reason="UNAVAILABLE: down"), ("-, target 70, -, -", "UNAVAILABLE: down")),
        (driver.Reply(), ("-, target 70, -, -", "reason       -")),
        (HELD, ("hold, target 70, active, starting", "young")),
        (MEASURED, ("427.1, target 70, active, measured", "61 % over 7 replicas")),
    ],
    ids=["an error", "nothing", "an empty answer", "a value"],
)
def test_what_is_not_known_is_a_dash_or_a_hold(
    answer: driver.Reply, shown: tuple[str, str]
) -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    console.print(screen.screen(frame(answer=answer)))
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert all(words in printed for words in shown), printed


def test_a_line_has_the_replicas_of_all_three_and_at_most_120_characters() -> None:
    assert screen.line(frame()) == (
        " 12.3 s  load 430 %  this 7, sum() 7, avg() 2  HPA: 427.1 / 70 per replica = 7 replicas"
    )
    long = screen.line(frame(ours=[driver.Side(430, 61, 7, "HPA: " + "long " * 30)]))
    assert len(long) == 120
    assert long.endswith(" …")


def test_outside_a_terminal_only_news_are_printed() -> None:
    console = Console(file=io.StringIO(), width=40, force_terminal=False)
    with screen.open_screen(console) as show:
        for replicas, seconds in itertools.product((1, 2), (1.0, 2.0, 3.0)):
            show(frame(usual=[driver.Side(replicas=replicas)], seconds=seconds))
    assert isinstance(console.file, io.StringIO)
    head, *lines = console.file.getvalue().splitlines()
    assert head == screen.HEAD
    assert [line.partition("avg() ")[2][0] for line in lines] == ["1", "2"]


def test_a_terminal_gets_a_live_screen() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, _environ={})
    with screen.open_screen(console) as show:
        show(frame())
    assert isinstance(console.file, io.StringIO)
    assert "keda-gpu-scaler demo, 12 s: load arrives" in console.file.getvalue()


async def test_a_scaler_that_never_knows_fails_the_demo_with_its_words() -> None:
    async def ask() -> driver.Reply:
        return driver.Reply(reason="UNAVAILABLE: source is down")

    played = driver.Driver(
        simulated=cluster.MadeUp(), ask=ask, show=lambda _frame: None, patience_seconds=0
    )
    with pytest.raises(scenario.DemoError, match="does not answer: UNAVAILABLE: source is down"):
        await played.prepare()


# The whole demo, end to end: a real process, real gRPC, real time


@pytest.mark.slow
def test_end_to_end_the_demo_reaches_the_expected_replicas_and_zero_again() -> None:
    # Neither proxies without a server nor settings of the environment concern the demo.
    elsewhere = os.environ | {
        "HTTP_PROXY": NOWHERE,
        "http_proxy": NOWHERE,
        "KEDA_GPU_SCALER_GRPC_ADDRESS": "nowhere",
    }
    ended = subprocess.run(
        COMMAND, capture_output=True, check=False, env=elsewhere, text=True, timeout=DEMO_SECONDS
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    assert max(map(len, lines)) <= 120
    assert lines[1].endswith("load   0 %  this 0, sum() 0, avg() 0  KEDA: inactive: nothing to do")
    assert any("this 7, sum() 7, avg() 2" in line for line in lines)
    told = " ".join(lines)
    assert re.search(r"From 0 to 7 replicas and back to 0 in \d+ s", told)
    assert "avg() with AverageValue, never asked for more than 2, and the corrected one" in told
    assert "keda-gpu-scaler explain" in lines[-1]
    assert ended.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status", "words"),
    [
        (signal.SIGTERM, 0, ""),
        (signal.SIGUSR1, 1, f"{FAILED}: the exchange of alerts ended by surprise\n"),
    ],
)
def test_a_signal_or_a_part_that_ends_early_ends_the_demo(
    number: signal.Signals, status: int, words: str
) -> None:
    command = [sys.executable, "-c", AT_A_SIGNAL.format(FAILS), "demo"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        try:
            assert demo.stdout is not None
            assert "replicas of this scaler" in demo.stdout.readline()
            assert "load   0 %" in demo.stdout.readline()
            demo.send_signal(number)
            _, errors = demo.communicate(timeout=DEMO_SECONDS)
        finally:
            demo.kill()
    assert (demo.returncode, errors) == (status, words)
