"""The demo: its scenario, its parts with real processes, and the whole of it."""

import asyncio
import io
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.pb import externalscaler_pb2, externalscaler_pb2_grpc
from keda_gpu_scaler.simulator import cluster, exposition, web
from keda_gpu_scaler.simulator.demo import answers, children, driver, scenario, screen

COMMAND = [sys.executable, "-m", "keda_gpu_scaler", "demo"]
DEMO_SECONDS = 150
"""More than the demo itself allows for its start and all of its phases."""
NOWHERE = "http://127.0.0.1:9"
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


def test_a_goal_that_is_left_again_must_be_met_anew() -> None:
    progress = scenario.Progress(PHASES)
    for now, replicas in ((0, 2), (1, 3), (2, 2), (3, 2)):
        progress.advance(now, replicas)
    assert progress.index == 0


def test_the_last_phase_ends_the_scenario() -> None:
    progress = scenario.Progress(PHASES, index=1, entered_at=10)
    assert not progress.advance(10, 0)
    assert progress.advance(12, 0)


def test_a_goal_that_is_not_met_in_time_fails_in_words() -> None:
    progress = scenario.Progress(PHASES)
    progress.advance(10, 1)
    expected = "up: 100 % over a threshold of 70 % needs 2 replicas; after 10 s there are 1"
    with pytest.raises(scenario.DemoError, match=re.escape(expected)):
        progress.advance(10.1, 1)


def test_all_phases_together_end_in_time() -> None:
    assert sum(phase.limit_seconds for phase in scenario.PHASES) < DEMO_SECONDS
    assert [phase.goal for phase in scenario.PHASES] == [0, 7, 2, 0]


def test_every_time_is_thirty_times_faster_than_kedas_default() -> None:
    keda, hpa = scenario.keda(), scenario.hpa()
    slow_keda, slow_hpa = rules.Keda(), rules.Hpa()
    assert scenario.POLL_TICKS * scenario.SYNC_SECONDS * scenario.SPEED == 30
    assert keda.cooldown_seconds * scenario.SPEED == slow_keda.cooldown_seconds
    assert scenario.SYNC_SECONDS * scenario.SPEED == 15
    assert hpa.stabilization_seconds * scenario.SPEED == slow_hpa.stabilization_seconds


def test_the_summary_names_what_was_seen_and_what_was_expected() -> None:
    assert scenario.summary(7, 60) == (
        "From 0 to 7 replicas and back to 0 in 60 s, which stand for 30 minutes in a cluster. "
        "Expected at the peak: 430 % / 70 % = 7 replicas."
    )


# The server's log


@pytest.mark.parametrize("scaled_object", ["demo/bert", "bert"])
def test_the_words_of_the_newest_decision_are_kept(scaled_object: str) -> None:
    words = children.Words()
    said = {"event": "decision.changed", "scaled_object": scaled_object, "namespace": "demo"}
    words.hear(json.dumps(said | {"state": "measured", "reason": "two pods at 60 %"}))
    words.hear(json.dumps(said | {"scaled_object": "other", "state": "empty", "reason": "none"}))
    words.hear(json.dumps(said | {"event": "decision.made", "state": "ended"}))
    words.hear("Traceback (most recent call last):")
    words.hear("[]")
    assert words == children.Words("measured", "two pods at 60 %")


@pytest.mark.parametrize(
    ("line", "port"),
    [
        ('{"event": "serve.listening", "grpc_port": 6000, "http_port": 8080}', 6000),
        ('{"event": "serve.listening"}', None),
        ('{"event": "serve.starting", "grpc_port": 6000}', None),
        ("listening", None),
    ],
)
def test_the_port_is_read_from_the_line_that_says_so(line: str, port: int | None) -> None:
    assert children.grpc_port(line) == port


@pytest.mark.parametrize(
    ("line", "url"),
    [("listening on http://127.0.0.1:9", "http://127.0.0.1:9"), ("a warning", None)],
)
def test_the_simulators_address_is_read_from_its_line(line: str, url: str | None) -> None:
    assert children.simulator_url(line) == url


# Frames


def frame(**fields: object) -> screen.Frame:
    known: dict[str, object] = {
        "seconds": 12.34,
        "progress": scenario.Progress(index=1),
        "offered": 430.0,
        "answer": answers.Answer((rules.Metric(value=427, target=70),), active=True),
        "words": children.Words("measured", "7 pods at 61 %"),
        "replicas": 7,
        "sentence": "HPA: 427 over a target of 70 per replica asks for 7",
        "history": screen.History([0, 430, 215], [0, 7, 7]),
    }
    return screen.Frame(**(known | fields))  # type: ignore[arg-type]  # a table of any fields


def printed(content: object, *, terminal: bool = True) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=terminal, color_system=None)
    console.print(content)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_screen_shows_load_answer_state_reason_and_replicas() -> None:
    shown = printed(screen.screen(frame()))
    for text in (
        "load arrives: 430 % needs 7 replicas",
        "430 %  ▁█▅",
        "7      ▁██",
        "427.0 over 70, active",
        "measured",
        "7 pods at 61 %",
        "HPA: 427 over a target of 70 per replica asks for 7",
    ):
        assert text in shown


def test_what_is_not_known_is_shown_as_a_dash_and_an_error_as_the_reason() -> None:
    unknown = frame(
        offered=None,
        answer=answers.Answer(error="UNAVAILABLE: source is down"),
        words=children.Words(),
    )
    assert (unknown.load, unknown.value, unknown.active) == ("-", "-", "-")
    assert "UNAVAILABLE: source is down" in printed(screen.screen(unknown))
    silent = printed(screen.screen(frame(words=children.Words())))
    assert re.search(r"reason +- ", silent)


def test_a_line_tells_the_same_in_short() -> None:
    assert screen.line(frame()) == (
        " 12.3 s  load arrives  load 430 %  value 427.0 active measured  "
        "replicas 7  HPA: 427 over a target of 70 per replica asks for 7  scaler: 7 pods at 61 %"
    )


@given(st.lists(st.floats(min_value=0, max_value=1e6), max_size=80))
def test_a_sparkline_has_one_bar_per_value_and_the_highest_is_full(values: list[float]) -> None:
    drawn = screen.sparkline(values)
    assert len(drawn) == len(values)
    if any(value > 1e-3 for value in values):
        assert drawn[values.index(max(values))] == "█"


def test_history_forgets_what_does_not_fit_the_screen() -> None:
    history = screen.History()
    for count in range(100):
        history.add(count, count)
    assert history.loads == history.replicas == [float(count) for count in range(40, 100)]


def test_outside_a_terminal_only_news_are_printed() -> None:
    console = Console(file=io.StringIO(), width=100)
    with screen.open_screen(console) as show:
        for replicas, seconds in itertools.product((1, 2), (1.0, 2.0, 3.0)):
            show(frame(replicas=replicas, seconds=seconds))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert [line.partition("replicas ")[2][0] for line in lines] == ["1", "2"]


def test_a_terminal_gets_a_live_screen() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    with screen.open_screen(console) as show:
        show(frame())
    assert isinstance(console.file, io.StringIO)
    assert "keda-gpu-scaler demo, 12 s" in console.file.getvalue()
    assert "load arrives: 430 % needs 7 replicas" in console.file.getvalue()


# Children


@asynccontextmanager
async def running(program: str) -> AsyncIterator[children.Child]:
    command = [sys.executable, "-c", program]
    async with children.running("child", command, dict(os.environ)) as child:
        yield child


def digits(line: str) -> int | None:
    return int(line) if line.isdigit() else None


async def test_the_first_line_with_a_meaning_is_found() -> None:
    async with running("print('hello'); print(42); input()") as child:
        assert await child.first(digits) == 42


@pytest.mark.parametrize("listen", ["first", "follow"])
async def test_a_child_that_ends_is_reported_with_its_last_lines(listen: str) -> None:
    program = "import sys; [print('line', n) for n in range(20)]; sys.exit('it broke')"
    async with running(program) as child:
        with pytest.raises(scenario.DemoError) as caught:
            await (child.first(digits) if listen == "first" else child.follow(lambda _: None))
    message = str(caught.value)
    assert message.startswith("child ended with status 1; its last lines:")
    assert message.endswith("line 19\n    it broke")
    assert "line 12\n" not in message


async def test_a_follower_hears_every_line() -> None:
    heard: list[str] = []
    async with running("print('one'); print('two')") as child:
        with pytest.raises(scenario.DemoError):
            await child.follow(heard.append)
    assert heard == ["one", "two"]


WAITS = "import signal; signal.signal(signal.SIGTERM, {how}); print(1, flush=True); signal.pause()"


async def test_a_child_is_stopped_when_the_block_ends() -> None:
    async with running(WAITS.format(how="signal.SIG_DFL")) as child:
        await child.first(digits)
    assert await child.wait() == -signal.SIGTERM


async def test_a_child_that_ignores_the_request_is_killed() -> None:
    command = [sys.executable, "-c", WAITS.format(how="signal.SIG_IGN")]
    limits = children.Limits(start_seconds=30, stop_seconds=0.05)
    async with children.running("child", command, dict(os.environ), limits) as child:
        await child.first(digits)
    assert await child.wait() == -signal.SIGKILL


async def test_a_child_that_does_not_start_in_time_is_reported() -> None:
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    limits = children.Limits(start_seconds=0.05, stop_seconds=10)
    with pytest.raises(scenario.DemoError, match="child did not start in time"):
        async with children.running("child", command, dict(os.environ), limits) as child:
            await child.first(digits)


async def test_a_child_is_killed_when_its_stop_is_interrupted() -> None:
    async def hold(begun: asyncio.Event, found: list[children.Child]) -> None:
        async with running(WAITS.format(how="signal.SIG_IGN")) as child:
            found.append(child)
            await child.first(digits)
            begun.set()

    begun, found = asyncio.Event(), list[children.Child]()
    task = asyncio.create_task(hold(begun, found))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await found[0].wait() == -signal.SIGKILL


# Answers


class SumScaler(externalscaler_pb2_grpc.ExternalScalerServicer):  # type: ignore[misc]  # generated code has no types
    """A scaler that says what a test wants it to say."""

    def __init__(self) -> None:
        """Begin with an active load of 150 over a target of 70."""
        self.values = [externalscaler_pb2.MetricValue(metricValueFloat=150)]
        self.spec = externalscaler_pb2.MetricSpec(metricName="gpu", targetSizeFloat=70)
        self.active = True
        self.error = ""

    async def GetMetricSpec(  # noqa: N802 - the name is KEDA's
        self, request: externalscaler_pb2.ScaledObjectRef, context: object
    ) -> externalscaler_pb2.GetMetricSpecResponse:
        """Give the one spec."""
        del context
        assert dict(request.scalerMetadata) == scenario.TRIGGER
        return externalscaler_pb2.GetMetricSpecResponse(metricSpecs=[self.spec])

    async def GetMetrics(  # noqa: N802 - the name is KEDA's
        self, request: externalscaler_pb2.GetMetricsRequest, context: object
    ) -> externalscaler_pb2.GetMetricsResponse:
        """Give the values."""
        del context
        assert request.metricName == "gpu"
        return externalscaler_pb2.GetMetricsResponse(metricValues=self.values)

    async def IsActive(  # noqa: N802 - the name is KEDA's
        self,
        request: externalscaler_pb2.ScaledObjectRef,
        context: grpc.aio.ServicerContext[object, object],
    ) -> externalscaler_pb2.IsActiveResponse:
        """Give the activity, or fail."""
        del request
        if self.error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, self.error)
        return externalscaler_pb2.IsActiveResponse(result=self.active)


class Scene:
    """A scaler under a test's control behind a channel, and a real simulator."""

    def __init__(self, servicer: SumScaler, channel: grpc.aio.Channel, url: str) -> None:
        self.servicer = servicer
        self.scaler = answers.Scaler(channel)
        self.url = url


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    servicer, grpc_server, stop = SumScaler(), grpc.aio.server(), asyncio.Event()
    externalscaler_pb2_grpc.add_ExternalScalerServicer_to_server(servicer, grpc_server)
    port = grpc_server.add_insecure_port("127.0.0.1:0")
    await grpc_server.start()
    listener = web.bind("127.0.0.1", 0)
    simulated = web.Api(cluster.Cluster(), exposition.Style(), asyncio.get_running_loop().time)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(web.serve(web.application(simulated), listener, stop))
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Scene(servicer, channel, url)
        stop.set()
    await grpc_server.stop(None)


async def test_the_scaler_is_asked_for_spec_value_and_activity(scene: Scene) -> None:
    answer = await scene.scaler.ask()
    assert answer == answers.Answer((rules.Metric(value=150, target=70),), active=True)


async def test_the_rounded_fields_count_where_the_exact_ones_are_not_set(scene: Scene) -> None:
    scene.servicer.values = [externalscaler_pb2.MetricValue(metricValue=3)]
    scene.servicer.spec = externalscaler_pb2.MetricSpec(metricName="gpu", targetSize=2)
    assert (await scene.scaler.ask()).metrics == (rules.Metric(value=3, target=2),)


async def test_an_empty_list_is_a_metric_without_a_value(scene: Scene) -> None:
    scene.servicer.values = []
    answer = await scene.scaler.ask()
    assert (answer.value, answer.active) == (None, True)


async def test_an_error_of_one_call_discards_the_others(scene: Scene) -> None:
    scene.servicer.error = "source is down"
    assert await scene.scaler.ask() == answers.Answer(error="UNAVAILABLE: source is down")


async def test_the_router_shows_the_load_that_was_applied(scene: Scene) -> None:
    async with httpx.AsyncClient(base_url=scene.url) as client:
        exporter = answers.Exporter(client)
        assert await exporter.offered() is None
        await exporter.apply(430, 0)
        assert await exporter.offered() == 430


async def test_a_simulator_that_is_gone_says_nothing() -> None:
    with web.bind("127.0.0.1", 0) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    async with httpx.AsyncClient(base_url=url) as client:
        exporter = answers.Exporter(client)
        await exporter.apply(430, 1)
        assert await exporter.offered() is None


# The driver


async def test_the_driver_wakes_scales_and_returns_to_zero(scene: Scene) -> None:
    phases = [
        scenario.Phase("idle", 0, 0, 60),
        scenario.Phase("busy", 150, 0, 60),
        scenario.Phase("idle again", 0, 0, 60),
    ]
    shown: list[screen.Frame] = []

    def show(frame: screen.Frame) -> None:
        scene.servicer.active = bool(frame.offered)
        shown.append(frame)

    scene.servicer.active = False
    async with httpx.AsyncClient(base_url=scene.url) as client:
        story = await driver.Driver(
            exporter=answers.Exporter(client),
            scaler=scene.scaler,
            words=children.Words(),
            show=show,
            progress=scenario.Progress(phases),
            keda=rules.Keda(cooldown_seconds=0),
        ).run()
    assert story.startswith("From 0 to 3 replicas and back to 0")
    assert (shown[0].replicas, shown[-1].replicas) == (0, 0)
    assert any("HPA: 150 over a target of 70" in one.sentence for one in shown)


async def test_the_driver_wakes_beside_a_failing_scaler_and_never_scales_in(scene: Scene) -> None:
    scene.servicer.error = "source is down"
    phases = [scenario.Phase("busy", 60, 1, 60), scenario.Phase("idle", 0, 0, 1)]
    async with httpx.AsyncClient(base_url=scene.url) as client:
        played = driver.Driver(
            exporter=answers.Exporter(client),
            scaler=scene.scaler,
            words=children.Words(),
            show=lambda _: None,
            progress=scenario.Progress(phases),
            keda=rules.Keda(cooldown_seconds=0),
        )
        with pytest.raises(scenario.DemoError, match="needs 0 replicas; after 1 s there are 1"):
            await played.run()


# The whole demo, end to end: real processes, real gRPC, real time


@pytest.mark.soak
def test_end_to_end_the_demo_reaches_the_expected_replicas_and_zero_again() -> None:
    # A proxy address without a server: the demo connects only to this machine.
    behind_a_proxy = os.environ | {"HTTP_PROXY": NOWHERE, "http_proxy": NOWHERE}
    ended = subprocess.run(
        COMMAND,
        capture_output=True,
        check=False,
        env=behind_a_proxy,
        text=True,
        timeout=DEMO_SECONDS,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    *lines, story = ended.stdout.splitlines()
    assert re.match(r"From 0 to 7 replicas and back to 0 in \d+ s", story)
    assert any("measured" in line and "replicas 7" in line for line in lines)
    assert ended.stderr == ""


@pytest.fixture
def demo() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def children_of(process: subprocess.Popen[str]) -> list[int]:
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in listed.read_text().split()]


on_linux = pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds children in /proc")


@on_linux
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.soak), signal.SIGTERM]
)
def test_a_signal_ends_the_demo_and_its_children(
    demo: subprocess.Popen[str], number: signal.Signals
) -> None:
    assert demo.stdout is not None
    assert "idle at zero" in demo.stdout.readline()
    pids = children_of(demo)
    assert len(pids) == 2
    demo.send_signal(number)
    _, said = demo.communicate(timeout=DEMO_SECONDS)
    assert (demo.returncode, said) == (128 + number, "demo stopped\n")
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@on_linux
@pytest.mark.parametrize("which", [pytest.param(0, marks=pytest.mark.soak), 1])
def test_a_child_that_dies_fails_the_demo_with_its_last_words(
    demo: subprocess.Popen[str], which: int
) -> None:
    assert demo.stdout is not None
    assert "idle at zero" in demo.stdout.readline()
    os.kill(children_of(demo)[which], signal.SIGKILL)
    _, said = demo.communicate(timeout=DEMO_SECONDS)
    assert demo.returncode == 1
    name = ["simulate", "serve"][which]
    assert said.startswith(f"demo failed: {name} ended with status -9; its last lines:")
