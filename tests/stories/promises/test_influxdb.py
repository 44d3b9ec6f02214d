"""Points in a real InfluxDB → the decision that KEDA gets: right, or unknown, and never made up."""

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.settings import InfluxdbSettings
from keda_gpu_scaler.sources.influxdb import InfluxdbSource
from testbed import triggers
from testbed.series import Series
from tests.support.influxdb import DATABASE, InfluxdbServer, on_influxdb

pytestmark = [pytest.mark.needs("influxd"), on_influxdb]

PODS = [f"bert-7b6667bd9-{letter * 5}" for letter in "bcdfg"]
CANARY = "bert-canary-7b6667bd9-bbbbb"
UTIL = "DCGM_FI_DEV_GPU_UTIL"


@pytest_asyncio.fixture
async def influxdb(tmp_path: Path) -> AsyncIterator[InfluxdbServer]:
    async with InfluxdbServer(tmp_path) as running:
        yield running


@dataclass(frozen=True, slots=True)
class Gpu:
    """The points that Telegraf makes of one series of dcgm-exporter, up to now."""

    pod: str
    value: float
    uuid: str = ""
    times: Iterable[float] = range(-900, 1, 15)
    namespace: str = "ml"

    def series(self) -> Series:
        """Return them."""
        tags = {"namespace": self.namespace, "pod": self.pod, "host": "a"}
        now = time.time()
        uuid = self.uuid or f"GPU-{self.pod}"
        return Series(UTIL, {**tags, "UUID": uuid}, [(now + at, self.value) for at in self.times])


@asynccontextmanager
async def running(influxdb: InfluxdbServer, **given: str) -> AsyncIterator[Evaluator]:
    values = {"url": influxdb.url, "database": DATABASE, "delay": "0s", **given}
    source = InfluxdbSource("default", InfluxdbSettings.model_validate(values))
    evaluator = Evaluator({"default": source.ports()})
    try:
        yield evaluator
    finally:
        await evaluator.close()
        await source.close()


UNTIL_FIVE_MINUTES_AGO = range(-900, -300, 15)
GONE = Gpu(PODS[0], 0, times=UNTIL_FIVE_MINUTES_AGO)
OTHERS = [Gpu(CANARY, 100), Gpu(PODS[0], 100, "GPU-lab", namespace="lab")]


@pytest.mark.parametrize(
    ("shown", "state", "value", "active"),
    [
        ([*(Gpu(pod, 90) for pod in PODS), *OTHERS], State.MEASURED, 450, True),
        ([Gpu(PODS[0], 80, "GPU-1"), Gpu(PODS[0], 100, "GPU-2")], State.MEASURED, 90, True),
        ([Gpu(PODS[0], 0)], State.MEASURED, 0, False),
        ([Gpu(PODS[1], 0), GONE], State.PARTIAL, None, True),
        ([GONE], State.UNKNOWN, None, None),
        ([], State.UNKNOWN, None, None),
    ],
    ids=["exactly its pods", "two GPUs", "idle", "one vanished", "all vanished", "none ever"],
)
async def test_what_is_decided(
    influxdb: InfluxdbServer, shown: list[Gpu], state: State, value: float | None, active: object
) -> None:
    await influxdb.write([one.series() for one in shown])
    async with running(influxdb) as evaluator:
        found = await evaluator.evaluate(triggers.BERT, triggers.spec(), None)
    assert (found.state, found.value, found.active) == (state, value, active)
