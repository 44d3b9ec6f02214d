"""Points in a real InfluxDB → the decision that KEDA gets: right, or unknown, and never made up."""

import time
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.settings import InfluxdbSettings
from keda_gpu_scaler.snapshot.evidence import Evidence, EvidenceSource
from keda_gpu_scaler.snapshot.observation import Target
from keda_gpu_scaler.sources.influxdb import InfluxdbSource
from keda_gpu_scaler.spec.demand import DemandSpec, OnEmpty
from tests.support import triggers
from tests.support.influxdb import DATABASE, InfluxdbServer, on_influxdb
from tests.support.processes import until
from tests.support.scripted import ScriptedCluster
from tests.support.series import Series

pytestmark = [pytest.mark.needs("influxd"), on_influxdb]

PODS = [f"bert-7b6667bd9-{letter * 5}" for letter in "bcdfg"]
CANARY = "bert-canary-7b6667bd9-bbbbb"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
MEAN_ABOVE_45 = DemandSpec(
    text=f'SELECT mean("gauge") FROM "{UTIL}" WHERE time > now() - 1m',  # noqa: S608 - no input
    activation_threshold=45,
    threshold=None,
    on_empty=OnEmpty.ERROR,
)
API = Target("kubernetes", "api")
WRONG = {"username": "scaler", "password": "wrong"}


class EmptyCluster(ScriptedCluster):
    """A Kubernetes API that lists no pod."""

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence:
        """Say so at any time."""
        self.said = Evidence(
            {},
            covered=frozenset({"ml"}),
            scrapes={API: at},
            stable_since={API: 0},
            evidence_source=EvidenceSource.KUBERNETES,
        )
        return await super().evidence(namespaces, at, now)


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
async def running(
    influxdb: InfluxdbServer, cluster: ScriptedCluster | None = None, /, **given: str
) -> AsyncIterator[Evaluator]:
    values = {"url": influxdb.url, "database": DATABASE, "delay": "0s", **given}
    source = InfluxdbSource("default", InfluxdbSettings.model_validate(values))
    stronger = () if cluster is None else (cluster,)
    evaluator = Evaluator({"default": source.ports(*stronger)}, targets=cluster)
    try:
        yield evaluator
    finally:
        await evaluator.close()
        await source.close()


async def decided(influxdb: InfluxdbServer, *shown: Gpu, **metadata: str) -> Decision:
    await influxdb.write([one.series() for one in shown])
    async with running(influxdb) as evaluator:
        return await evaluator.evaluate(triggers.BERT, triggers.spec(**metadata), None)


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
    found = await decided(influxdb, *shown)
    assert (found.state, found.value, found.active) == (state, value, active)


async def test_the_load_is_the_mean_over_the_window(influxdb: InfluxdbServer) -> None:
    begun = time.time() // 15 * 15 - time.time()  # an instant of the source
    earlier, later = range(-900, -75, 15), range(-75, 1, 15)
    history = [
        Gpu(PODS[0], 0, times=[begun + at for at in earlier]),
        Gpu(PODS[0], 80, times=[begun + at for at in later]),
    ]
    found = await decided(influxdb, *history, window="2m")
    assert found.state is State.MEASURED
    assert found.average in (80 * 5 / 8, 80 * 6 / 8)  # by whether the newest instant is settled
    assert found.value == 80, "the newest samples are more"


async def test_the_cluster_says_what_absence_cannot(influxdb: InfluxdbServer) -> None:
    await influxdb.write([GONE.series()])
    async with running(influxdb, EmptyCluster()) as evaluator:
        found = await evaluator.evaluate(triggers.BERT, triggers.spec(), None)
    assert (found.state, found.value, found.active) == (State.EMPTY, 0, False)


@pytest.mark.parametrize(("busy", "value", "active"), [(90, None, True), (50, 0, False)])
async def test_the_mean_of_a_cluster_wakes_a_workload_above_45_percent(
    influxdb: InfluxdbServer, busy: float, value: float | None, *, active: bool
) -> None:
    idle = Gpu("", 10, "GPU-idle")
    await influxdb.write([Gpu("resnet-0", busy).series(), idle.series()])
    asked = replace(triggers.spec(), demand=MEAN_ABOVE_45)
    async with running(influxdb, EmptyCluster()) as evaluator:
        demand = await evaluator.demand(triggers.BERT, asked, None)
        found = await evaluator.evaluate(triggers.BERT, asked, None)
    assert demand.value is not None
    assert round(demand.value, 6) == round((busy + 10) / 2, 6)
    assert (found.value, found.active) == (value, active)


async def test_a_server_that_is_away_makes_the_load_unknown_until_it_is_back(
    influxdb: InfluxdbServer,
) -> None:
    await influxdb.write([Gpu(PODS[0], 90).series()])
    await influxdb.stop()
    async with running(influxdb, step="1s") as evaluator:
        seen = [await evaluator.evaluate(triggers.BERT, triggers.spec(), None)]

        async def is_known() -> bool:
            seen.append(await evaluator.evaluate(triggers.BERT, triggers.spec(), None))
            return seen[-1].state is not State.UNKNOWN

        await influxdb.start()
        await until(is_known, 30, "the load is known again")
    assert seen[0].state is State.UNKNOWN
    assert "source default: " in seen[0].reason
    assert (seen[-1].state, seen[-1].value) == (State.MEASURED, 90)


async def test_a_refused_password_is_in_the_reason(tmp_path: Path) -> None:
    async with (
        InfluxdbServer(tmp_path, asks_who=True) as asking,
        running(asking, **WRONG) as evaluator,
    ):
        found = await evaluator.evaluate(triggers.BERT, triggers.spec(), None)
    assert found.state is State.UNKNOWN
    assert "HTTP 401: authorization failed" in found.reason
