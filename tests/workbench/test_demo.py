"""The demo: its scenes as they end, its screen, and the whole of it in a process."""

import asyncio
import io
import os
import signal
import subprocess
import sys

import pytest
from rich.console import Console

from keda_gpu_scaler.autoscaling.rules import Metric
from keda_gpu_scaler.workbench.demo import playing, scenes, screen
from keda_gpu_scaler.workbench.demo.scenes import SCENES, Side, Sides

COMMAND = [sys.executable, "-m", "keda_gpu_scaler", "demo"]
DEMO_SECONDS = 90
"""More than it takes on a machine that is busy; on a terminal it promises no more."""
CLIMB, OUTAGE, CANARY, WAKE = SCENES
NOWHERE = "http://127.0.0.1:9"


def begun(scene: scenes.DemoScene = CLIMB) -> Sides:
    """Return a scene in which one full replica has asked for another."""
    ours, other = Side(scene=scene, begin=62.0), Side(scene=scene, begin=62.0)
    for side in (ours, other):
        side.note()
        side.advance(15)
        side.act(Metric(value=100, target=70), None, 1, "1 replica at 100 % = 100 %")
        side.note()
    ours.reason = "mean utilization 100 % over 1 replica, " * 9
    return ours, other


def printed(console: Console, scene: scenes.DemoScene, *shown: Sides) -> list[str]:
    with screen.opened(console, scene) as show:
        for sides in shown:
            show(sides)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("columns", [80, 160])
def test_the_screen_is_as_wide_as_the_terminal_and_keeps_its_height(columns: int) -> None:
    console = Console(file=io.StringIO(), width=columns, force_terminal=False)
    heights = set()
    for scene in (CLIMB, CANARY):
        with console.capture() as shown:
            console.print(screen.screen(begun(scene), columns))
        lines = shown.get().splitlines()
        assert {len(line) for line in lines} == {columns}
        heights.add(len(lines))
    assert len(heights) == 1
    assert "1 replica at 100 % = 100 %, needs 2 at 70 %" in shown.get()


def test_a_column_of_a_curve_shows_the_highest_of_its_ticks() -> None:
    assert screen.area([1, 4, 2, 2], 8, 4, 4, 2).splitlines() == ["█   ", "██  "]
    assert screen.area([1, 4], 2, 4, 4, 1) == "▂▂██"


def test_outside_a_terminal_only_news_are_printed() -> None:
    console = Console(file=io.StringIO(), width=40, force_terminal=False)
    sides = begun()
    assert printed(console, CLIMB, sides, sides) == [
        f"keda-gpu-scaler demo, 1 of 4: {CLIMB.headline}",
        "  0:15  load         40 % of a GPU",
        "  0:15  this scaler   2  1 replica at 100 % = 100 %, needs 2 at 70 %",
        "  0:15  sum()         2  1 replica at 100 % = 100 %, needs 2 at 70 %",
    ]


def test_a_terminal_gets_a_live_screen() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, _environ={})
    assert "keda-gpu-scaler demo, 1 of 4, 0:15" in "".join(printed(console, CLIMB, begun()))


def ended(scene: scenes.DemoScene) -> Sides:
    world = playing.World()
    with asyncio.Runner(loop_factory=lambda: world) as runner:
        return runner.run(playing.play(world, scene, lambda _sides: None))


def test_a_model_that_loads_is_work_for_the_sum_alone() -> None:
    ours, other = ended(CLIMB)
    assert (max(ours.sizes), max(other.sizes)) == (7, 19)
    assert ours.arithmetic == "7 replicas at 61 % = 430 %, needs 7 at 70 %"


def test_an_exporter_that_goes_costs_replicas_of_the_sum_alone() -> None:
    ours, other = ended(OUTAGE)
    assert (set(ours.sizes), other.sizes[-1]) == ({3}, 0)


def test_a_neighbour_with_a_name_alike_counts_for_the_pattern_alone() -> None:
    ours, other = ended(CANARY)
    assert (set(ours.sizes), other.sizes[-1]) == ({1}, 3)


# The whole demo, end to end: a real process, real gRPC


@pytest.mark.slow
def test_end_to_end_the_demo_plays_all_scenes() -> None:
    # Neither proxies without a server nor settings of the environment concern the demo.
    elsewhere = os.environ | {
        "HTTP_PROXY": NOWHERE,
        "http_proxy": NOWHERE,
        "KEDA_GPU_SCALER_GRPC_ADDRESS": "nowhere",
    }
    ended = subprocess.run(
        COMMAND, capture_output=True, check=False, env=elsewhere, text=True, timeout=DEMO_SECONDS
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    heads = [line for line in lines if line.startswith("keda-gpu-scaler demo, ")]
    assert [head.partition(": ")[2] for head in heads] == [scene.headline for scene in SCENES]
    assert "A load that needs 7 replicas took this scaler to 7 and sum() to 19" in " ".join(lines)
    woken = [line.split()[1] for line in lines if "woken" in line]
    assert woken == ["this", "prometheus"]
    assert "keda-gpu-scaler explain" in lines[-1]


@pytest.mark.slow
def test_a_signal_ends_the_demo() -> None:
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        try:
            assert demo.stdout is not None
            assert "1 of 4" in demo.stdout.readline()
            demo.send_signal(signal.SIGTERM)
            _, errors = demo.communicate(timeout=DEMO_SECONDS)
        finally:
            demo.kill()
    assert (demo.returncode, errors) == (0, "")
