"""The page's grpcurl commands, word for word, against `serve` on a Prometheus of `simulate`."""

import asyncio
import json
import shlex
import time
from collections.abc import Mapping

import pytest

from testbed import programs
from testbed.prometheus import PrometheusServer
from testbed.series import Series
from tests.cli.test_simulate import simulating
from tests.support import grpcurl_page
from tests.support.serving import serving

LIFE_SECONDS = 60
PAST_SECONDS = 600


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
    with simulating("--workload", "inference/bert=2:150") as (_, url):
        targets = [url.removeprefix("http://")]
        target = {"job_name": "dcgm-exporter", "static_configs": [{"targets": targets}]}
        await prometheus.reload([target])
        await prometheus.wait_for("DCGM_FI_PROF_GR_ENGINE_ACTIVE")
        await _aged(prometheus, '{__name__=~"DCGM_FI_(PROF_GR_ENGINE_ACTIVE|DEV_GPU_UTIL)"}')
        with serving(PROMETHEUS_URL=prometheus.url, SCRAPE_TARGETS="") as scaler:
            for command in commands:
                here = command.text.replace("localhost:6000", f"localhost:{scaler.grpc_port}")
                status, output = await _run(here.replace("grpcurl", programs.path("grpcurl"), 1))
                assert status == 0, output
                if command.output is not None:
                    assert json.loads(output) == json.loads(command.output)
