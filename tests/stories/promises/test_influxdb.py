"""Points in a real InfluxDB → the decision that KEDA gets: right, or unknown, and never made up."""

import time
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
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
TIMES = range(-900, 1, 15)
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


def gpu(
    pod: str, value: float, *, number: int = 0, times: Iterable[float] = TIMES, **tags: str
) -> Series:
    """Return the points that Telegraf makes of one series of dcgm-exporter, up to now."""
    given = {"namespace": "ml", "pod": pod, "UUID": f"GPU-{pod}-{number}", "host": "a", **tags}
    now = time.time()
    return Series(UTIL, given, [(now + at, value) for at in times])


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


async def decided(influxdb: InfluxdbServer, history: Iterable[Series], **metadata: str) -> Decision:
    await influxdb.write(history)
    async with running(influxdb) as evaluator:
        return await evaluator.evaluate(triggers.BERT, triggers.spec(**metadata), None)


async def test_exactly_the_workloads_pods_count(influxdb: InfluxdbServer) -> None:
    history = [gpu(pod, 90) for pod in PODS]
    others = [gpu(CANARY, 100), gpu(PODS[0], 100, namespace="lab", UUID="GPU-lab")]

    found = await decided(influxdb, [*history, *others])

    assert (found.state, found.value, found.active) == (State.MEASURED, 450, True)


async def test_the_gpus_of_a_pod_are_one_load(influxdb: InfluxdbServer) -> None:
    found = await decided(influxdb, [gpu(PODS[0], 80), gpu(PODS[0], 100, number=1)])
    assert (found.state, found.value, found.active) == (State.MEASURED, 90, True)


async def test_the_load_is_the_mean_over_the_window(influxdb: InfluxdbServer) -> None:
    begun = time.time() // 15 * 15 - time.time()  # an instant of the source
    earlier, later = range(-900, -75, 15), range(-75, 1, 15)
    history = [
        gpu(PODS[0], 0, times=[begun + at for at in earlier]),
        gpu(PODS[0], 80, times=[begun + at for at in later]),
    ]
    found = await decided(influxdb, history, window="2m")

    assert found.state is State.MEASURED
    assert found.average in (80 * 5 / 8, 80 * 6 / 8)  # by whether the newest instant is settled
    assert found.value == 80, "the newest samples are more"


async def test_idle_pods_are_inactive(influxdb: InfluxdbServer) -> None:
    found = await decided(influxdb, [gpu(PODS[0], 0)])
    assert (found.state, found.value, found.active) == (State.MEASURED, 0, False)


async def test_a_pod_that_vanished_holds_and_keeps_active(influxdb: InfluxdbServer) -> None:
    history = [gpu(PODS[0], 0), gpu(PODS[1], 0, times=range(-900, -300, 15))]
    found = await decided(influxdb, history)
    assert (found.state, found.value, found.active) == (State.PARTIAL, None, True)


async def test_pods_that_all_vanished_are_unknown_and_never_gone(influxdb: InfluxdbServer) -> None:
    async with running(influxdb) as evaluator:
        never = await evaluator.evaluate(triggers.BERT, triggers.spec(), None)
    vanished = await decided(influxdb, [gpu(PODS[0], 0, times=range(-900, -300, 15))])

    assert (never.state, never.value) == (State.UNKNOWN, None)
    assert (vanished.state, vanished.value) == (State.UNKNOWN, None)


async def test_the_cluster_says_what_absence_cannot(influxdb: InfluxdbServer) -> None:
    await influxdb.write([gpu(PODS[0], 0, times=range(-900, -300, 15))])
    async with running(influxdb, EmptyCluster()) as evaluator:
        found = await evaluator.evaluate(triggers.BERT, triggers.spec(), None)
    assert (found.state, found.value, found.active) == (State.EMPTY, 0, False)


@pytest.mark.parametrize(("busy", "value", "active"), [(90, None, True), (50, 0, False)])
async def test_the_mean_of_a_cluster_wakes_a_workload_above_45_percent(
    influxdb: InfluxdbServer, busy: float, value: float | None, *, active: bool
) -> None:
    await influxdb.write([gpu("resnet-0", busy), gpu("", 10, UUID="GPU-idle")])
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
    await influxdb.write([gpu(PODS[0], 90)])
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
