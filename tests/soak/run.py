"""One soak: servers that misbehave, two scalers, KEDA's calls, and how they match the truth."""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from testbed.prometheus import PrometheusServer
from tests.soak import faults, world
from tests.soak.process import Scaler, warnings
from tests.soak.report import Report
from tests.soak.world import Trigger
from tests.support import api_server
from tests.support.http_replies import HttpServer, Reply, Request, closes, hangs, says

CALL_SECONDS = 15.0
"""A call has at most so long; the scaler promises 2.5 s on a machine that is not overloaded."""
SCRAPE = "5s"
CALM_AFTER_SECONDS = 45.0
"""So long after the start, and after a fault, data may still be missing."""
TRIGGERS = world.asked()


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things last."""

    seconds: float
    fault_seconds: float = 20.0
    calm_seconds: float = 70.0
    poll_seconds: float = 15.0
    """How often each trigger is asked about at each scaler, as KEDA's pollingInterval."""
    restart_seconds: float = 150.0
    flood_seconds: float = 240.0
    size_seconds: float = 10.0
    streams: int = 1000


@dataclass(slots=True)
class Soak:
    """The state of one soak."""

    directory: Path
    pace: Pace
    seed: int
    report: Report = field(default_factory=Report)
    fault: str = ""
    """What goes wrong now; empty: nothing."""
    calm_since: float = float("inf")
    chance: random.Random = field(init=False)
    prometheus: PrometheusServer = field(init=False)
    api: api_server.ApiServer = field(init=False)
    scalers: list[Scaler] = field(init=False)
    _upstream: httpx.AsyncClient = field(
        default_factory=lambda: httpx.AsyncClient(trust_env=False, timeout=20)
    )

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    async def run(self) -> Report:
        """Play it all, and return what was counted."""
        began = time.monotonic()
        async with contextlib.AsyncExitStack() as stack:
            await self._start(stack)
            tasks = [
                asyncio.create_task(work)
                for work in (
                    self._faults(),
                    self._restarts(),
                    self._floods(),
                    self._sizes(),
                    *(self._polls(scaler) for scaler in self.scalers),
                )
            ]
            done, _ = await asyncio.wait(
                tasks, timeout=self.pace.seconds, return_when=asyncio.FIRST_COMPLETED
            )
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for task in done:
                task.result()
        self.report.seconds = time.monotonic() - began
        for scaler in self.scalers:
            self.report.broken += (f"own fault: {line}" for line in warnings(scaler.log_file))
        return self.report

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        enter, life = stack.enter_async_context, self.pace.seconds + 600
        stack.push_async_callback(self._upstream.aclose)
        nodes = [await enter(HttpServer(self._exporter(node))) for node in range(world.NODES)]
        listed = await enter(HttpServer(_listed))
        exporters = [
            _scraped(server, namespace="gpu-operator", pod=f"exporter-{node}")
            for node, server in enumerate(nodes)
        ]
        pace: dict[str, Any] = {"scrape_interval": SCRAPE, "scrape_timeout": "3s"}
        gpus = {"job_name": "dcgm-exporter", "static_configs": exporters}
        state = {"job_name": "kube-state-metrics", "static_configs": [_scraped(listed)]}
        jobs = [pace | gpus, pace | state | {"honor_labels": True}]
        self.prometheus = PrometheusServer(self._folder("prometheus"), jobs, life_seconds=life)
        await enter(self.prometheus)
        self.api = api_server.ApiServer(world.objects(), page_objects=100)
        await enter(api_server.serving(self.api))
        config = self.directory / "settings.yaml"
        sources = {
            "default": {
                "type": "prometheus",
                "url": (await enter(HttpServer(self._prometheus_api))).url,
                "step": SCRAPE,
            },
            "direct": {
                "type": "scrape",
                "interval": SCRAPE,
                "timeout": "3s",
                "targets": ",".join(f"{server.url}/metrics" for server in nodes),
            },
        }
        config.write_text(json.dumps({"sources": sources}))  # JSON is YAML
        self.scalers = [
            Scaler(
                self._folder(name),
                name=name,
                settings={"CONFIG": str(config), "KUBERNETES": kubernetes},
                kubeconfig=self.api.kubeconfig(self.directory),
                life_seconds=life,
            )
            for name, kubernetes in (("scaler-a", "true"), ("scaler-b", "false"))
        ]
        for scaler in self.scalers:
            await enter(scaler)
        self.calm_since = time.time() + CALM_AFTER_SECONDS

    def _folder(self, name: str) -> Path:
        folder = self.directory / name
        folder.mkdir()
        return folder

    # The servers

    async def _prometheus_api(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Answer in place of Prometheus: by the fault of the hour, or by what Prometheus says."""
        await (await self._answer(request))(request, writer)

    async def _answer(self, request: Request) -> Reply:
        reply = faults.REPLIES.get(self.fault)
        if reply is not None and self.chance.random() < 0.5:
            return reply
        headers = {"content-type": request.headers.get("content-type", "text/plain")}
        url = f"{self.prometheus.url}{request.path}"
        try:
            answer = await self._upstream.request(
                request.method, url, content=request.body, headers=headers
            )
        except httpx.HTTPError:
            return closes
        body = answer.content
        if self.fault in faults.CLOCKS and request.form.get("query") == "time()":
            body = faults.with_clock(faults.CLOCKS[self.fault], body)
        return says(body, answer.status_code)

    def _exporter(self, node: int) -> Reply:
        async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
            is_ill = node < 2
            if is_ill and self.fault == "exporters that are down":
                await says("", 500)(request, writer)
            elif is_ill and self.fault == "exporters that hang":
                await hangs(request, writer)
            else:
                lines = world.exporter_page(node, time.time())
                change = faults.PAGES.get(self.fault) if is_ill else None
                await _page(lines if change is None else change(lines))(request, writer)

        return reply

    # What goes wrong

    async def _faults(self) -> None:
        for name in faults.order(self.seed):
            await asyncio.sleep(self.pace.calm_seconds)
            self.calm_since = float("inf")
            self.fault = name
            self.report.faults[name] += 1
            if name == faults.KILLED:
                await self.prometheus.kill()
            if name in faults.CLUSTER:
                for path in api_server.PATHS:
                    for kind in ("list", "watch"):
                        self.api.trouble[path, kind] = faults.CLUSTER[name]
                    self.api.end(path)
            await asyncio.sleep(self.pace.fault_seconds)
            if name == faults.KILLED:
                await self.prometheus.start()
            self.api.trouble.clear()
            self.fault = ""
            self.calm_since = time.time() + CALM_AFTER_SECONDS

    async def _restarts(self) -> None:
        """Kill and end one of the scalers in turns; the other is the one whose size is judged."""
        scaler = self.scalers[1]
        while True:
            await asyncio.sleep(self.pace.restart_seconds)
            await scaler.kill()
            await scaler.start()
            self.report.restarts["SIGKILL"] += 1
            await asyncio.sleep(self.pace.restart_seconds)
            await scaler.stop()
            await scaler.start()
            self.report.restarts["SIGTERM"] += 1

    async def _floods(self) -> None:
        """Open many streams, and drop them: half by a cancellation, half with their connection."""
        address = f"127.0.0.1:{self.scalers[0].grpc_port}"
        while True:
            await asyncio.sleep(self.pace.flood_seconds)
            async with (
                grpc.aio.insecure_channel(address) as kept,
                grpc.aio.insecure_channel(address) as cut,
            ):
                streams = []
                for number in range(self.pace.streams):
                    stub = externalscaler_pb2_grpc.ExternalScalerStub((kept, cut)[number % 2])
                    trigger = TRIGGERS[number % len(TRIGGERS)]
                    streams.append(stub.StreamIsActive(trigger.reference()))
                    await asyncio.sleep(0)
                await asyncio.sleep(5)
                for stream in streams[::2]:
                    stream.cancel()
            del streams  # they keep their connections

    async def _sizes(self) -> None:
        while True:
            await asyncio.sleep(self.pace.size_seconds)
            try:
                self.report.sizes.append(await self.scalers[0].size())
            except httpx.HTTPError as error:
                words = f"no page of metrics in {self.fault or 'calm'}: {type(error).__name__}"
                self.report.broken.append(f"stuck: {words} at {time.strftime('%X')}")

    # The calls

    async def _polls(self, scaler: Scaler) -> None:
        """Ask about every trigger in turns, over a new connection in each round."""
        pause = self.pace.poll_seconds / len(TRIGGERS)
        calls: set[asyncio.Task[None]] = set()
        while True:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{scaler.grpc_port}") as channel:
                stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
                for trigger in TRIGGERS:
                    if scaler.is_up:
                        call = asyncio.create_task(self._poll(scaler, stub, trigger))
                        calls.add(call)
                        call.add_done_callback(calls.discard)
                    await asyncio.sleep(pause)
                if calls:
                    await asyncio.wait(calls)

    async def _poll(
        self,
        scaler: Scaler,
        stub: externalscaler_pb2_grpc.ExternalScalerStub,
        trigger: Trigger,
    ) -> None:
        """Ask as KEDA's poll does: GetMetrics, then IsActive."""
        asked = self._asked(scaler, trigger)
        number = await self._outcome(
            asked, stub.GetMetrics(trigger.request(), timeout=CALL_SECONDS)
        )
        if number is not None:
            self._judge_number(asked, number)
        asked = self._asked(scaler, trigger)
        active = await self._outcome(
            asked, stub.IsActive(trigger.reference(), timeout=CALL_SECONDS)
        )
        if active is not None:
            self._judge_active(asked, active)

    def _asked(self, scaler: Scaler, trigger: Trigger) -> "_Asked":
        is_calm = time.time() >= self.calm_since
        return _Asked(scaler, scaler.lives, trigger, self.fault, is_calm)

    async def _outcome(self, asked: "_Asked", call: Awaitable[Any]) -> Any:
        """Return the answer to a call; None: it is an error, which is counted here."""
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            if asked.scaler.is_up and asked.scaler.lives == asked.life:
                self._judge_error(asked, error)
            return None

    def _judge_error(self, asked: "_Asked", error: grpc.aio.AioRpcError) -> None:
        self._note(error.code().name, asked)
        # What a fault of a source becomes.
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            is_stuck = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            kind = "stuck" if is_stuck else "faulty"
            words = f"{kind}: {asked}: {error.code().name} {error.details()}"
            self.report.broken.append(words)

    def _judge_number(self, asked: "_Asked", answer: pb.GetMetricsResponse) -> None:
        if not answer.metricValues:
            self._note("hold", asked)
            return
        number = answer.metricValues[0].metricValueFloat
        self._note("number", asked)
        least, most = asked.trigger.bounds(time.time())
        if number > most or (number < least and not asked.trigger.keeps(number)):
            truth = f"{least:g} to {most:g}"
            self.report.broken.append(f"wrong: {asked}: {number:g}, and the truth is {truth}")

    def _judge_active(self, asked: "_Asked", answer: pb.IsActiveResponse) -> None:
        self._note("active" if answer.result else "inactive", asked)
        if not answer.result and asked.trigger.is_busy(time.time()):
            self.report.broken.append(f"wrong: {asked}: inactive while busy")

    def _note(self, outcome: str, asked: "_Asked") -> None:
        self.report.calls[outcome] += 1
        is_restarted = asked.scaler is not self.scalers[0]
        if asked.calm and not is_restarted and outcome not in ("active", "inactive"):
            self.report.calm[outcome] += 1


@dataclass(frozen=True, slots=True)
class _Asked:
    """One call."""

    scaler: Scaler
    life: int
    trigger: Trigger
    fault: str
    calm: bool

    def __str__(self) -> str:
        name = self.trigger.reference().name
        return f"{self.scaler.name} {name} in {self.fault or 'calm'} at {time.strftime('%X')}"


def _scraped(server: HttpServer, **labels: str) -> dict[str, object]:
    return {"targets": [f"127.0.0.1:{server.port}"], "labels": labels}


async def _listed(request: Request, writer: asyncio.StreamWriter) -> None:
    await _page(world.cluster_page(time.time()))(request, writer)


def _page(lines: Iterable[str]) -> Reply:
    return says("\n".join([*lines, ""]), content_type="text/plain; version=0.0.4")
