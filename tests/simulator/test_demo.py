"""The demo: its scenario, its parts with real processes, and the whole of it."""

import asyncio
import io
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.pb import externalscaler_pb2, externalscaler_pb2_grpc
from keda_gpu_scaler.simulator import cluster, web
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
    assert scenario.summary(7, 2, 60) == (
        "From 0 to 7 replicas and back to 0 in 60 s, which stand for 30 minutes in a cluster. "
        "Expected at the peak: 430 % / 70 % = 7 replicas. On the same load the usual recipe, "
        "avg() with AverageValue, never asked for more than 2."
    )


# The server's log


@pytest.mark.parametrize(
    ("line", "ports"),
    [
        ('{"event": "serve.listening", "grpc_port": 6000, "http_port": 8080}', (6000, 8080)),
        ('{"event": "serve.listening", "grpc_port": 6000}', None),
        ('{"event": "serve.listening", "http_port": 8080}', None),
        ('{"event": "serve.starting", "grpc_port": 6000, "http_port": 8080}', None),
        ("listening", None),
        ("[]", None),
    ],
)
def test_the_ports_are_read_from_the_line_that_says_so(
    line: str, ports: tuple[int, int] | None
) -> None:
    assert children.ports(line) == ports


@pytest.mark.parametrize(
    ("line", "url"),
    [("listening on http://127.0.0.1:9", "http://127.0.0.1:9"), ("a warning", None)],
)
def test_the_simulators_address_is_read_from_its_line(line: str, url: str | None) -> None:
    assert children.simulator_url(line) == url


# Frames


OURS = screen.Side(430, 61.4286, 7, "HPA: 427.125 over a target of 70 per replica asks for 7")
USUAL = screen.Side(430, 100, 2, "HPA: 100 over a target of 70 per replica asks for 2")
MEASURED = answers.Said("measured", "mean utilization 61.0179 % over 7 replicas")


def frame(**fields: object) -> screen.Frame:
    known: dict[str, object] = {
        "seconds": 12.34,
        "progress": scenario.Progress(index=1),
        "answer": answers.Answer(
            (rules.Metric(value=427.125, target=70),), active=True, said=MEASURED
        ),
        "ours": OURS,
        "usual": USUAL,
        "history": screen.History([screen.Side()] * 4 + [OURS] * 4, [USUAL] * 8),
    }
    return screen.Frame(**(known | fields))  # type: ignore[arg-type]  # a table of any fields


def printed(content: object) -> list[str]:
    """Return the lines of a terminal of 80 columns, whatever the one is that runs the tests."""
    console = Console(
        file=io.StringIO(), width=80, force_terminal=True, color_system=None, _environ={}
    )
    console.print(content)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_screen_shows_both_workloads_with_answer_state_and_reason() -> None:
    lines = printed(screen.screen(frame()))
    assert {len(line) for line in lines} == {80}
    shown = "\n".join(lines)
    for text in (
        "keda-gpu-scaler demo, 12 s: load arrives, 430 % needs 7 replicas",
        "this scaler                     avg() with AverageValue",
        "load         430 %                           430 %",
        "replicas     7                               2",
        "utilization  61 %                            100 %",
        "answer       427.1, target 70, active, measured",
        "reason       mean utilization 61 % over 7 replicas",
        "replicas     HPA: 427.1 over a target of 70 per replica asks for 7",
        "avg(): HPA: 100 over a target of 70 per replica asks for 2",
    ):
        assert text in shown


def test_the_curves_of_both_workloads_have_the_same_scale() -> None:
    lines = printed(screen.screen(frame()))
    first = next(n for n, line in enumerate(lines) if "replicas     7" in line) + 1
    drawn = [(line[15:45].rstrip(), line[47:77].rstrip()) for line in lines[first : first + 4]]
    assert drawn == [(" █", ""), (" █", ""), (" █", "▁▁"), (" █", "██")]


def test_the_screen_keeps_its_height_whatever_there_is_to_say() -> None:
    endless = answers.Answer(said=answers.Said("unknown", "no pod is seen " * 40))
    said = [frame(), frame(answer=endless), frame(answer=answers.Answer())]
    assert len({len(printed(screen.screen(each))) for each in said}) == 1


def test_what_is_not_known_is_shown_as_a_dash_and_an_error_as_the_reason() -> None:
    failed = answers.Answer(error="UNAVAILABLE: source is down")
    unknown = frame(answer=failed, ours=screen.Side(), usual=screen.Side())
    assert (unknown.value, unknown.active, unknown.state) == ("-", "-", "-")
    assert unknown.reason == "UNAVAILABLE: source is down"
    shown = "\n".join(printed(screen.screen(unknown)))
    assert re.search("load +- +-", shown)
    assert frame(answer=answers.Answer()).reason == "-"


def test_an_empty_answer_is_shown_as_a_hold() -> None:
    empty = answers.Answer((rules.Metric(value=None, target=70),), active=True)
    assert frame(answer=empty).value == "hold"


def test_a_line_tells_the_same_in_short() -> None:
    assert screen.line(frame()) == (
        " 12.3 s  load arrives  load 430 %  replicas 7, usual recipe 2  "
        "value 427.1 active measured  HPA: 427.1 over a target of 70 per replica asks for 7  "
        "scaler: mean utilization 61 % over 7 replicas"
    )


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("107.714 over a target", "107.7 over a target"),
        ("mean 61.4286 % of 99.96", "mean 61.4 % of 100"),
        ("it is 61.4286.", "it is 61.4."),
        ("10.12.13.14:9400 and 0.5", "10.12.13.14:9400 and 0.5"),
        ("bert-2.125", "bert-2.1"),
        ("430 %", "430 %"),
    ],
)
def test_numbers_in_a_sentence_are_rounded_and_addresses_are_not(said: str, shown: str) -> None:
    assert screen.rounded(said) == shown


@given(
    st.lists(st.floats(min_value=0, max_value=1e6), max_size=40),
    st.floats(min_value=1, max_value=1e6),
    st.integers(min_value=1, max_value=6),
)
def test_an_area_is_as_high_as_its_values(values: list[float], top: float, lines: int) -> None:
    drawn = screen.area(values, top, lines)
    assert [len(line) for line in drawn] == [len(values)] * lines
    for number, value in enumerate(values):
        column = [" ▁▂▃▄▅▆▇█".index(line[number]) for line in drawn]
        assert abs(sum(column) - min(value / top, 1) * lines * 8) <= 0.5
        assert column == sorted(column)  # nothing hangs in the air


def test_a_longer_run_than_the_screen_is_wide_shows_its_end() -> None:
    long = screen.History([screen.Side()] * 200 + [OURS] * 4, [USUAL] * 204)
    lines = printed(screen.screen(frame(history=long)))
    (last,) = [line for line in lines if "replicas     7" in line]
    below = lines[lines.index(last) + 1]
    assert below[15:45] == " " * 29 + "█"


def test_history_knows_the_most_replicas_of_both() -> None:
    history = screen.History()
    assert history.most_replicas == 7
    history.add(screen.Side(replicas=9), screen.Side(replicas=12))
    assert (history.most_replicas, len(history.ours), len(history.usual)) == (12, 1, 1)


def test_outside_a_terminal_only_news_are_printed() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    with screen.open_screen(console) as show:
        for replicas, seconds in itertools.product((1, 2), (1.0, 2.0, 3.0)):
            show(frame(usual=screen.Side(replicas=replicas), seconds=seconds))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert [line.partition("recipe ")[2][0] for line in lines] == ["1", "2"]


def test_a_terminal_gets_a_live_screen() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, _environ={})
    with screen.open_screen(console) as show:
        show(frame())
    assert isinstance(console.file, io.StringIO)
    assert "keda-gpu-scaler demo, 12 s: load arrives" in console.file.getvalue()


# Children


@asynccontextmanager
async def running(program: str) -> AsyncIterator[children.Child]:
    command = [sys.executable, "-c", program]
    in_order = {**os.environ, "PYTHONUNBUFFERED": "1"}  # what it prints, before how it ends
    async with children.running("child", command, in_order) as child:
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
        self.later: list[list[externalscaler_pb2.MetricValue]] = []
        """The values of the next calls, before those above."""

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
        values = self.later.pop(0) if self.later else self.values
        return externalscaler_pb2.GetMetricsResponse(metricValues=values)

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


class Status:
    """The HTTP port of a scaler that says what a test wants it to say."""

    def __init__(self) -> None:
        """Begin with what a scaler says of a measured load."""
        self.body = (
            b'{"triggers": [{"state": "measured", "reason": "150", "other": 1}], "next": ""}'
        )

    async def triggers(self, request: Request) -> Response:
        """Give the list of the namespace."""
        assert request.url.path == "/api/v1/triggers/demo"
        return Response(self.body, media_type="application/json")

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        """Yield a client of this port, without a socket."""
        routes = [Route("/api/v1/triggers/demo", self.triggers)]
        transport = httpx.ASGITransport(Starlette(routes=routes))
        async with httpx.AsyncClient(base_url="http://scaler", transport=transport) as client:
            yield client


@dataclass
class Scene:
    """A scaler under a test's control behind a channel, and a real simulator."""

    servicer: SumScaler
    status: Status
    scaler: answers.Scaler
    url: str

    @asynccontextmanager
    async def driver(
        self, show: Callable[[screen.Frame], None], *phases: scenario.Phase
    ) -> AsyncIterator[driver.Driver]:
        """Yield a driver of these phases, whose KEDA waits for no cooldown."""
        async with httpx.AsyncClient(base_url=self.url) as client:
            ours, usual = (
                driver.Scaled(answers.Exporter(client, each), keda=rules.Keda(cooldown_seconds=0))
                for each in (scenario.OURS, scenario.USUAL)
            )
            yield driver.Driver(
                ours=ours,
                usual=usual,
                scaler=self.scaler,
                show=show,
                progress=scenario.Progress(phases),
            )


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    servicer, grpc_server, stop = SumScaler(), grpc.aio.server(), asyncio.Event()
    externalscaler_pb2_grpc.add_ExternalScalerServicer_to_server(servicer, grpc_server)
    port = grpc_server.add_insecure_port("127.0.0.1:0")
    await grpc_server.start()
    listener = web.bind("127.0.0.1", 0)
    simulated = web.Api(cluster.Cluster(), asyncio.get_running_loop().time)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    status = Status()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(web.serve(web.application(simulated), listener, stop))
        async with (
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
            status.client() as client,
        ):
            yield Scene(servicer, status, answers.Scaler(channel, client), url)
        stop.set()
    await grpc_server.stop(None)


async def test_the_scaler_is_asked_for_spec_value_activity_and_reason(scene: Scene) -> None:
    answer = await scene.scaler.ask()
    said = answers.Said("measured", "150")
    metrics = (rules.Metric(value=150, target=70),)
    assert answer == answers.Answer(metrics, active=True, said=said)


@pytest.mark.parametrize("body", [b'{"triggers": []}', b"no JSON"])
async def test_a_scaler_that_says_no_reason_has_answered_all_the_same(
    scene: Scene, body: bytes
) -> None:
    scene.status.body = body
    answer = await scene.scaler.ask()
    assert (answer.value, answer.said) == (150, answers.Said())


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
    answer = await scene.scaler.ask()
    assert (answer.metrics, answer.active) == ((), None)
    assert answer.problem == answer.error == "UNAVAILABLE: source is down"


async def test_the_page_shows_the_load_that_was_applied_and_each_gpu(scene: Scene) -> None:
    async with httpx.AsyncClient(base_url=scene.url) as client:
        ours = answers.Exporter(client, scenario.OURS)
        usual = answers.Exporter(client, scenario.USUAL)
        assert await ours.look() == answers.Shown()
        await ours.apply(130, 0)
        await usual.apply(60, 1)
        assert await ours.look() == answers.Shown(130)
        assert await usual.look() == answers.Shown(60, (0.0,))  # it starts


async def test_a_simulator_that_is_gone_says_nothing() -> None:
    with web.bind("127.0.0.1", 0) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    async with httpx.AsyncClient(base_url=url) as client:
        exporter = answers.Exporter(client, scenario.OURS)
        await exporter.apply(430, 1)
        assert await exporter.look() == answers.Shown()


def test_the_usual_recipe_is_an_average_that_takes_nothing_for_zero() -> None:
    busy = answers.usual(answers.Shown(430, (100, 50)))
    assert busy == answers.Answer((rules.Metric(value=75, target=70),), active=True)
    none = answers.usual(answers.Shown(430))
    assert none == answers.Answer((rules.Metric(value=0, target=70),), active=False)
    assert answers.usual(answers.Shown()) == answers.Answer(error="the query failed")


# The driver


@pytest.mark.slow
async def test_the_driver_wakes_scales_and_returns_to_zero(scene: Scene) -> None:
    shown: list[screen.Frame] = []

    def show(frame: screen.Frame) -> None:
        scene.servicer.active = bool(frame.ours.offered)
        shown.append(frame)

    scene.servicer.active = False
    phases = [scenario.Phase(*each, 60) for each in (("idle", 0, 0), ("busy", 150, 0), ("", 0, 0))]
    async with scene.driver(show, *phases) as played:
        story = await played.run()
    assert story.startswith("From 0 to 3 replicas and back to 0")
    assert (shown[0].ours.replicas, shown[-1].ours.replicas) == (0, 0)
    assert any("HPA: 150 over a target of 70" in one.ours.sentence for one in shown)
    assert max(one.usual.replicas for one in shown) in {1, 2}


@pytest.mark.slow
async def test_the_driver_wakes_beside_a_failing_scaler_and_never_scales_in(scene: Scene) -> None:
    scene.servicer.error = "source is down"
    phases = [scenario.Phase("busy", 60, 1, 60), scenario.Phase("idle", 0, 0, 1)]
    async with scene.driver(lambda _: None, *phases) as played:
        with pytest.raises(scenario.DemoError, match="needs 0 replicas; after 1 s there are 1"):
            await played.run()


async def test_the_first_phase_waits_until_the_scaler_knows_that_there_are_no_pods(
    scene: Scene,
) -> None:
    scene.servicer.active = False
    idle = [externalscaler_pb2.MetricValue(metricValueFloat=0.5)]
    scene.servicer.later = [[], idle, idle, []]
    async with scene.driver(lambda _: None) as played:
        await played.prepare()
        assert await played.ours.exporter.look() == answers.Shown(0)
    assert scene.servicer.later == []


async def test_a_scaler_that_never_knows_fails_the_demo_with_its_words(scene: Scene) -> None:
    scene.servicer.error = "source is down"
    async with scene.driver(lambda _: None) as played:
        played.patience_seconds = 0
        with pytest.raises(scenario.DemoError, match="does not answer: UNAVAILABLE: source is do"):
            await played.prepare()


# The whole demo, end to end: real processes, real gRPC, real time


@pytest.mark.slow
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
    assert story.endswith("the usual recipe, avg() with AverageValue, never asked for more than 2.")
    assert "inactive ended" in lines[0]
    assert any("measured" in line and "replicas 7, usual recipe 2" in line for line in lines)
    assert not any("UNAVAILABLE" in line for line in lines)
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


@pytest.mark.slow
@on_linux
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
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


@pytest.mark.slow
@on_linux
@pytest.mark.parametrize("which", [pytest.param(0, marks=pytest.mark.slow), 1])
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
