"""The page's grpcurl commands, word for word, against `serve` on a Prometheus of `simulate`."""

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from tests.support import grpcurl_page
from tests.support.prometheus import PrometheusServer
from tests.support.series import Series
from tools import programs

LIFE_SECONDS = 60
PAST_SECONDS = 600


@asynccontextmanager
async def _started(*words: str, **settings: str) -> AsyncIterator[asyncio.StreamReader]:
    """Run a command of ours; yield its standard output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "keda_gpu_scaler",
        *words,
        env={**os.environ, **settings},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.terminate()
        await process.stdout.read()
        assert await asyncio.wait_for(process.wait(), LIFE_SECONDS) == 0


async def _line(output: asyncio.StreamReader, sign: bytes) -> str:
    """Return the first line with a sign in it."""
    async with asyncio.timeout(LIFE_SECONDS):
        while line := await output.readline():
            if sign in line:
                return line.decode()
    message = f"the output ended without {sign!r}"
    raise AssertionError(message)


async def _aged(prometheus: PrometheusServer, scraped: str) -> None:
    """Give what is scraped now a past of the same values: nothing here is younger than warmup."""
    now = time.time()
    for labels in await prometheus.query(f"{scraped} or up"):
        metric: Mapping[str, str] = labels["metric"]
        first = float(labels["value"][0]) - PAST_SECONDS
        value = float(labels["value"][1])
        times = range(int(first), int(now) - 5)
        named = {name: text for name, text in metric.items() if name != "__name__"}
        await prometheus.write([Series(metric["__name__"], named, [(at, value) for at in times])])


async def _run(command: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *shlex.split(command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), LIFE_SECONDS)
    return process.returncode, output.decode()


@pytest.mark.needs("grpcurl")
async def test_the_page_s_commands_answer_what_the_page_shows(
    prometheus: PrometheusServer,
) -> None:
    commands = grpcurl_page.commands("grpcurl")
    methods = {command.text.split("/")[-1].strip() for command in commands if command.output}
    assert methods == {"GetMetrics"}
    async with _started(
        "simulate", "--address", "127.0.0.1:0", "--workload", "inference/bert=2:150"
    ) as simulator:
        address = (await _line(simulator, b"listening on")).rpartition("//")[2].strip()
        target = {"job_name": "dcgm-exporter", "static_configs": [{"targets": [address]}]}
        await prometheus.reload([target])
        await prometheus.wait_for("DCGM_FI_PROF_GR_ENGINE_ACTIVE")
        await _aged(prometheus, '{__name__=~"DCGM_FI_(PROF_GR_ENGINE_ACTIVE|DEV_GPU_UTIL)"}')
        async with _started(
            "serve",
            KEDA_GPU_SCALER_PROMETHEUS_URL=prometheus.url,
            KEDA_GPU_SCALER_GRPC_ADDRESS="127.0.0.1:0",
            KEDA_GPU_SCALER_HTTP_ADDRESS="127.0.0.1:0",
            KEDA_GPU_SCALER_LOG_FORMAT="json",
        ) as scaler:
            port = json.loads(await _line(scaler, b"serve.listening"))["grpc_port"]
            for command in commands:
                here = command.text.replace("localhost:6000", f"localhost:{port}")
                status, output = await _run(here.replace("grpcurl", programs.path("grpcurl"), 1))
                assert status == 0, output
                if command.output is not None:
                    assert json.loads(output) == json.loads(command.output)
