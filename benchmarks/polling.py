"""What it costs to be asked as often as KEDA and the HPA ask, next to KEDA's own trigger.

Three situations, each with servers that are asked at the same time, on the same schedule:

- everything can go to zero: the scaler about 1,000, 100 and 10 ScaledObjects, the echo server with
  the calls about 1,000, and a Prometheus with the queries of KEDA's own triggers for 1,000;
- the same on a machine that is busy anyway: a loop of the lowest priority on each core;
- nothing can, on KEDA 2.21: the scaler about 1,000, another one with a stream open for each of
  them, and the echo server.

At the same time and not in turns: whatever else the machine does is then the same for all. Both
gave the same median and about the same interval, and turns take twice the time. A round is one step
of the scaler, and begins in the middle between two instants, so that each has its queries once.
"""

import asyncio
import contextlib
import functools
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low
from typing import Any, NamedTuple

import grpc
import httpx

from benchmarks import asking, processes, queries, schedule, streams, world
from benchmarks.comparison import Detail, Goal, Measured, Row
from benchmarks.processes import Memory, Server, ServerError
from benchmarks.schedule import Ask
from testbed.prometheus import PrometheusServer

OBJECTS = 1000
FEWER = (10, 100)
"""Numbers of ScaledObjects whose cost is shown beside it."""
AHEAD_SECONDS = 180.0
"""For what comes before and after the rounds."""
AT_ONCE = 20
"""So many are polled at once for the first time."""
SCALER, ECHO, OWN, PUSHED = "scaler", "echo", "own trigger", "scaler with streams"
_MIB = 1024 * 1024


class Used(NamedTuple):
    """What has been used, or what was used in one round."""

    server_seconds: float
    """CPU time of the scaler or the echo server."""
    prometheus_seconds: float
    """CPU time of its Prometheus."""
    queries: int
    """That its Prometheus counted."""

    @property
    def cpu_seconds(self) -> float:
        """CPU time of both."""
        return self.server_seconds + self.prometheus_seconds

    def since(self, before: "Used") -> "Used":
        """Return what was used since then."""
        return Used(
            self.server_seconds - before.server_seconds,
            self.prometheus_seconds - before.prometheus_seconds,
            self.queries - before.queries,
        )


@dataclass(frozen=True, slots=True)
class Contender:
    """Who is asked, about how many, and how."""

    triggers: int
    ask: Callable[[Ask], Coroutine[Any, Any, None]]
    server: Server | None = None
    prometheus: PrometheusServer | None = None

    async def used(self) -> Used:
        """Return what it has used since it started."""
        server = 0.0 if self.server is None else self.server.cpu_seconds()
        if self.prometheus is None:
            return Used(server, 0.0, 0)
        counted = await queries.read(self.prometheus)
        return Used(server, counted.cpu_seconds, counted.queries)


Rounds = dict[str, list[Used]]


async def measure(directory: Path, rounds: int) -> Measured:
    """Ask in all situations, one after the other."""
    used, memories = await _to_zero(directory / "to-zero", rounds)
    with processes.idle_loops():
        busy, _ = await _to_zero(directory / "busy", rounds)
    kept = await _to_one(directory / "to-one", rounds)
    raw = {"to_zero": used, "busy": busy, "to_one": kept, "memories": memories}
    details = [queries_detail(used), sizes_detail(used, memories), bill_detail(used, kept)]
    rows = [bill_row(used), bill_row(busy, "busy")]
    return Measured([*rows, memory_row(memories[SCALER])], details, raw)


async def _to_zero(directory: Path, rounds: int) -> tuple[Rounds, dict[str, Memory]]:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        seconds = rounds * schedule.STEP_SECONDS
        contenders = {
            SCALER: await enter(_scaler(directory / SCALER, OBJECTS, seconds)),
            ECHO: await enter(_echo(directory)),
            OWN: await enter(_own_trigger(directory / OWN, seconds)),
        }
        for count in FEWER:
            home = directory / f"{count}"
            contenders[f"{count}"] = await enter(_scaler(home, count, seconds))
        found = await _play(contenders, rounds)
        counts = {SCALER: SCALER, **{f"{count}": f"{count}" for count in FEWER}}
        servers = {name: contenders[name].server for name in counts}
        return found, {
            name: server.memory() for name, server in servers.items() if server is not None
        }


async def _to_one(directory: Path, rounds: int) -> Rounds:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        seconds = rounds * schedule.STEP_SECONDS
        pushed = await enter(_scaler(directory / PUSHED, OBJECTS, seconds))
        contenders = {
            SCALER: await enter(_scaler(directory / SCALER, OBJECTS, seconds)),
            PUSHED: pushed,
            ECHO: await enter(_echo(directory)),
        }
        if pushed.server is None:
            raise ValueError("there is no scaler to open streams to")
        opened = await enter(streams.opened(pushed.server, world.triggers(OBJECTS)))
        found = await _play(contenders, rounds, polls_values=False)
        streams.check_open(opened)
        return found


def _prometheus(directory: Path) -> PrometheusServer:
    directory.mkdir(parents=True)
    return PrometheusServer(directory)


@contextlib.asynccontextmanager
async def _scaler(directory: Path, triggers: int, seconds: float) -> AsyncIterator[Contender]:
    """Run a scaler that knows every trigger, on a Prometheus of its own."""
    about = world.triggers(triggers)
    async with _prometheus(directory) as prometheus:
        await world.fill(prometheus, triggers, seconds + AHEAD_SECONDS)
        async with (
            processes.scaler(directory, prometheus.url) as server,
            grpc.aio.insecure_channel(server.address) as channel,
        ):
            client = asking.Client(channel)
            await client.first(about[0])
            await _all(client.poll, about)

            async def ask(each: Ask) -> None:
                trigger = about[each.trigger]
                await (client.poll if each.is_for_value else client.name)(trigger)

            yield Contender(triggers, ask, server, prometheus)


@contextlib.asynccontextmanager
async def _echo(directory: Path) -> AsyncIterator[Contender]:
    """Run the server that answers the same calls without looking."""
    about = world.triggers(OBJECTS)
    async with (
        processes.echo(directory) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        await channel.channel_ready()
        client = asking.Client(channel, is_checked=False)

        async def ask(each: Ask) -> None:
            trigger = about[each.trigger]
            await (client.poll if each.is_for_value else client.name)(trigger)

        yield Contender(OBJECTS, ask, server)


@contextlib.asynccontextmanager
async def _own_trigger(directory: Path, seconds: float) -> AsyncIterator[Contender]:
    """Run a Prometheus that gets the queries of KEDA's own triggers."""
    about = world.triggers(OBJECTS)
    async with _prometheus(directory) as prometheus:
        await world.fill(prometheus, OBJECTS, seconds + AHEAD_SECONDS)
        async with httpx.AsyncClient(base_url=prometheus.url, trust_env=False) as client:
            poll = functools.partial(queries.poll, client)
            await _all(poll, about)

            async def ask(each: Ask) -> None:
                if each.is_for_value:
                    await poll(about[each.trigger])

            yield Contender(OBJECTS, ask, prometheus=prometheus)


async def _all(
    poll: Callable[[world.Trigger], Awaitable[None]], about: Sequence[world.Trigger]
) -> None:
    """Poll each for the first time, which is not measured."""
    for begin in range(0, len(about), AT_ONCE):
        await asyncio.gather(*(poll(trigger) for trigger in about[begin : begin + AT_ONCE]))


async def _play(
    contenders: dict[str, Contender], rounds: int, *, polls_values: bool = True
) -> Rounds:
    """Ask all of them at the same time; return what each used in each round."""
    seconds = rounds * schedule.STEP_SECONDS
    loop = asyncio.get_running_loop()
    begin = loop.time() + schedule.seconds_until_between(time.time())
    readings: dict[str, list[Used]] = {name: [] for name in contenders}
    async with asyncio.TaskGroup() as group:
        for number, contender in enumerate(contenders.values()):
            asks = schedule.asks(contender.triggers, seconds, polls_values=polls_values)
            # Each between the asks of the others, and not all at the same instant.
            behind = number / len(contenders) * schedule.SYNC_SECONDS / contender.triggers
            group.create_task(_asked(asks, contender.ask, begin + behind))
        for number in range(rounds + 1):
            await asyncio.sleep(begin + number * schedule.STEP_SECONDS - loop.time())
            for name, contender in contenders.items():
                readings[name].append(await contender.used())
    return {name: between(found) for name, found in readings.items()}


async def _asked(
    asks: list[Ask], ask: Callable[[Ask], Coroutine[Any, Any, None]], begin: float
) -> None:
    """Ask each at its time, without waiting for the ones before.

    Raises:
        ServerError: the machine was too busy to ask at this rate.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        for each in asks:
            await asyncio.sleep(begin + each.at - loop.time())
            group.create_task(ask(each))
    late = loop.time() - begin - asks[-1].at
    if late > schedule.STEP_SECONDS:
        raise ServerError(f"everything was asked {late:.0f} s late: this is not KEDA's rate")


def between(readings: Sequence[Used]) -> list[Used]:
    """Return what was used from each reading to the next."""
    return [after.since(before) for before, after in itertools.pairwise(readings)]


def percents(used: Sequence[Used]) -> list[float]:
    """Return the CPU time of the server and its Prometheus, in percent of one core."""
    return [100 * usage.cpu_seconds / schedule.STEP_SECONDS for usage in used]


def server_percents(used: Sequence[Used]) -> list[float]:
    """Return the CPU time of the server alone."""
    return [100 * usage.server_seconds / schedule.STEP_SECONDS for usage in used]


def bill_row(rounds: Rounds, machine: str = "idle") -> Row:
    """Return what is compared where everything can go to zero, on an idle or a busy machine."""
    return Row(
        key="polling.bill" if machine == "idle" else f"polling.bill.{machine}",
        name=f"scaler and Prometheus, {OBJECTS:,} ScaledObjects, minReplicaCount 0, {machine}",
        unit="% of a core",
        measured=percents(rounds[SCALER]),
        reference_name="Prometheus with KEDA's own triggers",
        reference=percents(rounds[OWN]),
        goal=Goal.RATIO_AT_MOST,
        limit=1.3,
    )


def memory_row(memory: Memory) -> Row:
    """Return what the scaler has in memory after all rounds."""
    return Row(
        key="polling.memory",
        name=f"memory of a scaler that is asked about {OBJECTS:,} ScaledObjects",
        unit="MiB",
        measured=[memory.resident_bytes / _MIB],
        reference_name="nothing",
        reference=[0.0],
        goal=Goal.FIGURE_AT_MOST,
        limit=110.0,
    )


def queries_detail(rounds: Rounds) -> Detail:
    """Return how often Prometheus was asked in a minute."""
    cells = []
    for name, count in ((f"{FEWER[0]}", FEWER[0]), (f"{FEWER[1]}", FEWER[1]), (SCALER, OBJECTS)):
        counted = _per_minute(rounds[name])
        own, of_hpa = (
            60 * schedule.queries_per_second(count, polls_values=polls) for polls in (True, False)
        )
        ratios = f"{counted / own:.2g}", f"{counted / of_hpa:.2g}"
        shown = f"{counted:.0f}", f"{own:,.0f}", ratios[0], f"{of_hpa:,.0f}", ratios[1]
        cells.append([f"{count:,} triggers", *shown])
    head = ["queries in a minute", "the scaler's", "KEDA's own trigger's", "ratio"]
    more = ["the same, `minReplicaCount: 1` with KEDA 2.21", "ratio"]
    return Detail("queries", "Queries that Prometheus counted", [*head, *more], cells)


def _per_minute(used: Sequence[Used]) -> float:
    # Of the usual round: a query that is sent again on a busy machine is not part of it.
    return 60 / schedule.STEP_SECONDS * median_low(usage.queries for usage in used)


def sizes_detail(rounds: Rounds, memories: dict[str, Memory]) -> Detail:
    """Return the resources that one scaler uses."""
    cells = []
    for name, count in ((f"{FEWER[0]}", FEWER[0]), (f"{FEWER[1]}", FEWER[1]), (SCALER, OBJECTS)):
        used, memory = _mean(server_percents(rounds[name])), memories[name]
        sizes = (f"{size / _MIB:.0f}" for size in (memory.resident_bytes, memory.peak_bytes))
        cells.append([f"{count:,} ScaledObjects", f"{used:.2g}", *sizes])
    head = ["one scaler, polled as KEDA does", "percent of one core", "MiB resident", "MiB at most"]
    return Detail("sizes", "What one scaler needs", head, cells)


def bill_detail(to_zero: Rounds, to_one: Rounds) -> Detail:
    """Return where the CPU time goes, server and Prometheus apart."""
    named = {
        "`minReplicaCount: 0`, the scaler": to_zero[SCALER],
        "`minReplicaCount: 0`, the echo server": to_zero[ECHO],
        "`minReplicaCount: 0`, KEDA's own triggers": to_zero[OWN],
        "`minReplicaCount: 1`, the scaler": to_one[SCALER],
        "`minReplicaCount: 1`, the scaler, `external-push`": to_one[PUSHED],
        "`minReplicaCount: 1`, the echo server": to_one[ECHO],
    }
    cells = []
    for name, used in named.items():
        both, server = _mean(percents(used)), _mean(server_percents(used))
        cells.append([name, f"{server:.1f}", f"{both - server:.1f}", f"{both:.1f}"])
    head = [f"percent of one core, {OBJECTS:,} ScaledObjects", "server", "Prometheus", "together"]
    return Detail("bill", "Where the CPU time goes", head, cells)


def _mean(figures: Sequence[float]) -> float:
    return sum(figures) / len(figures)
