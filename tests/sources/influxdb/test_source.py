"""The InfluxDB source on a real InfluxDB 1.6, with points as Telegraf writes them.

One server serves the whole module; every test has a namespace of its own.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.influxql import METRIC
from keda_gpu_scaler.settings import InfluxdbSettings
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation
from keda_gpu_scaler.sources.evaluation_times import SYNCHRONIZED_SECONDS
from keda_gpu_scaler.sources.influxdb import InfluxdbSource
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.facts import Fact, Queried
from testbed.clocks import Clock
from testbed.series import Series
from tests.query.test_promql_texts import HOSTILE
from tests.support.influxdb import DATABASE, InfluxdbServer, on_influxdb

pytestmark = [pytest.mark.needs("influxd"), on_influxdb, pytest.mark.asyncio(loop_scope="module")]

NOW = 1_795_260_000.0
"""The server stores points of any time, and each query names its time."""
INTERVAL_SECONDS = 15
UTIL = "DCGM_FI_DEV_GPU_UTIL"
MEAN = 'SELECT mean("gauge") FROM "load" WHERE time > now() - 1m'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def influxdb(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InfluxdbServer]:
    async with InfluxdbServer(tmp_path_factory.mktemp("influxdb")) as running:
        yield running


def gpu(
    pod: str,
    value: float,
    namespace: str,
    *,
    uuid: str = "",
    begin: float = -900,
    end: float = 0,
    **tags: str,
) -> Series:
    """Return the points that Telegraf makes of one series of dcgm-exporter."""
    named = {"namespace": namespace, "pod": pod, "container": "model"} if pod else {}
    of_gpu = {"UUID": uuid or f"GPU-{namespace}-{pod}", "gpu": "0", "Hostname": "node-1"}
    by_telegraf = {"host": "telegraf-0", "url": "http://10.0.0.1:9400/metrics"}
    times = [NOW + begin + n * INTERVAL_SECONDS for n in range(int(end - begin) // 15 + 1)]
    return Series(UTIL, named | of_gpu | by_telegraf | tags, [(at, value) for at in times])


def snapshot_query(
    *namespaces: str, signal: Signal = Signal.UTILIZATION, profile: str = "auto"
) -> SnapshotQuery:
    return SnapshotQuery(signal, profile, frozenset(namespaces), 300, 120)


@asynccontextmanager
async def connected(
    influxdb: InfluxdbServer, observe: facts.Observer = facts.ignore, /, **given: object
) -> AsyncIterator[InfluxdbSource]:
    values = {"url": influxdb.url, "database": DATABASE, **given}
    source = InfluxdbSource("default", InfluxdbSettings.model_validate(values), observe)
    try:
        yield source
    finally:
        await source.close()


def newest(observation: Observation) -> dict[tuple[str, str], float]:
    return {(series.pod, series.gpu): series.values[-1] for series in observation.series}


# Samples


async def test_each_pod_of_the_namespaces_asked_about_is_there_once_and_no_other(
    influxdb: InfluxdbServer, ns: str
) -> None:
    history = [
        gpu("bert-0", 80, ns),
        gpu("bert-0", 90, ns, host="telegraf-1"),
        gpu("bert-1", 10, ns, end=-15),
        gpu("bert-0", 50, f"{ns}-other", uuid="GPU-other"),
        gpu("bert-0", 60, f"{ns}-another", uuid="GPU-another"),
        gpu("", 0, ns, uuid="GPU-idle"),
    ]
    await influxdb.write(history)
    async with connected(influxdb) as source:
        observation = await source.fetch(snapshot_query(ns, f"{ns}-other"), NOW)

    assert sorted((one.namespace, one.pod, one.values[-1]) for one in observation.series) == [
        (ns, "bert-0", 90),
        (ns, "bert-1", 10),
        (f"{ns}-other", "bert-0", 50),
    ]
    assert observation.instants == tuple(NOW - 15 * back for back in reversed(range(20)))
    assert [observation.sample_ages[ns, pod] for pod in ("bert-0", "bert-1")] == [0, 15]


async def test_many_namespaces_are_one_question_and_those_too_long_for_a_url_a_few(
    influxdb: InfluxdbServer, ns: str
) -> None:
    names = [f"{ns}-{'x' * 40}-{number}" for number in range(400)]
    history = [gpu("bert-0", 90, name) for name in names]
    await influxdb.write(history)
    seen: list[Fact] = []
    async with connected(influxdb, seen.append) as source:
        await source.fetch(snapshot_query(*names[:40]), NOW)
        assert [fact.query for fact in seen if isinstance(fact, Queried)] == ["snapshot"]
        observation = await source.fetch(snapshot_query(*names), NOW)
    assert {series.namespace for series in observation.series} == set(names)
    assert 1 < len(seen) < 20


# How the database is laid out


@pytest.mark.parametrize(
    ("given", "measurement", "field"),
    [
        pytest.param({}, UTIL, "gauge", id="telegraf, metric version 1"),
        pytest.param(
            {"measurement": "prometheus", "field": METRIC},
            "prometheus",
            UTIL,
            id="telegraf, metric version 2",
        ),
        pytest.param({"field": "value"}, UTIL, "value", id="prometheus, remote write"),
        pytest.param({"measurement": "gpu", "field": "usage"}, "gpu", "usage", id="one's own"),
    ],
)
async def test_samples_are_found_wherever_the_settings_say(
    influxdb: InfluxdbServer, ns: str, given: dict[str, str], measurement: str, field: str
) -> None:
    shown = gpu("bert-0", 90, ns)
    await influxdb.write([Series(measurement, shown.labels, shown.samples)], field)
    async with connected(influxdb, **given) as source:
        observation = await source.fetch(snapshot_query(ns), NOW)
        past = await source.history(snapshot_query(ns), NOW)

    assert newest(observation) == newest(past) == {("bert-0", f"GPU-{ns}-bert-0"): 90}


async def test_a_field_of_ones_own_is_utilization_and_nothing_else(
    influxdb: InfluxdbServer, ns: str
) -> None:
    async with connected(influxdb, measurement="gpu", field="usage") as source:
        for ask in (source.fetch, source.history):
            with pytest.raises(errors.SourceRefusedError, match="it has no memory: where neither"):
                await ask(snapshot_query(ns, signal=Signal.MEMORY), NOW)


async def test_tags_of_ones_own_name_pods_and_a_retention_policy_can_be_named(
    influxdb: InfluxdbServer, ns: str
) -> None:
    policy = f"short {ns}"
    await influxdb.run(
        f'CREATE RETENTION POLICY "{policy}" ON {DATABASE} DURATION INF REPLICATION 1'
    )
    given = gpu("bert-0", 90, "exporters", pod_name="exporter-1")
    tags = {**given.labels, "pod": "exporter-1", "kube_ns": ns, "kube_pod": "bert-0", "card": "7"}
    await influxdb.write([Series(UTIL, tags, given.samples)], policy=policy)
    named = {"namespace_tag": "kube_ns", "pod_tag": "kube_pod", "gpu_tag": "card"}

    async with connected(influxdb, **named) as source:
        assert not (await source.fetch(snapshot_query(ns), NOW)).series
    async with connected(influxdb, **named, retention_policy=policy) as source:
        assert newest(await source.fetch(snapshot_query(ns), NOW)) == {("bert-0", "7"): 90}


# The rare questions


async def test_the_last_hour_is_remembered_coarsely(influxdb: InfluxdbServer, ns: str) -> None:
    history = [
        gpu("bert-0", 90, ns, begin=-3000, end=-1800),
        gpu("bert-1", 9, ns, begin=-7200, end=-4000),
    ]
    await influxdb.write(history)
    async with connected(influxdb) as source:
        observation = await source.history(snapshot_query(ns), NOW)

    (series,) = observation.series
    assert series.pod == "bert-0"
    assert set(series.present) <= set(observation.instants)
    assert NOW - 1800 <= series.present[-1] <= NOW - 1680
    assert NOW - 3000 <= series.present[0] <= NOW - 2880


async def test_gpus_are_found_with_another_pod_or_none(influxdb: InfluxdbServer, ns: str) -> None:
    uuids = [f"GPU-{ns}-{name}" for name in ("held", "idle", "busy", "gone", "unknown")]
    await influxdb.write(
        [
            gpu("bert-0", 90, ns, uuid=uuids[0]),
            gpu("", 0, ns, uuid=uuids[1]),
            gpu("", 90, ns, uuid=uuids[2]),
            gpu("bert-1", 90, ns, uuid=uuids[3], end=-300),
            Series(UTIL, {"namespace": ns, "pod": "bert-2"}, [(NOW, 90.0)]),
        ]
    )
    async with connected(influxdb) as source:
        reports = await source.locate([*uuids, "", "GPU-\0", "GPU-\r"], NOW)
        assert await source.locate(["GPU-\0"], NOW) == GpuReports()
    async with connected(influxdb, gpu_tag="gpu") as source:
        assert await source.locate(["0"], NOW) == GpuReports()  # numbers alone name no GPU

    assert reports == GpuReports(frozenset(uuids[:3]), frozenset({uuids[2]}))


# What tenants and operators may call things


async def test_hostile_names_are_found_and_do_nothing(influxdb: InfluxdbServer, ns: str) -> None:
    names = [f"{text}{ns}'; DROP DATABASE {DATABASE}; --" for text in HOSTILE]
    names = [name.replace("\n", " ").removesuffix("\\") for name in names]  # not in line protocol
    await influxdb.write([gpu("bert-0", 90, name, uuid=name) for name in names])

    async with connected(influxdb) as source:
        for name in names:
            observation = await source.fetch(snapshot_query(name), NOW)
            assert [series.namespace for series in observation.series] == [name]
            assert (await source.locate([name], NOW)).reported == {name}


# A number


async def test_a_number_is_asked_for_by_a_selection_alone(influxdb: InfluxdbServer) -> None:
    seen: list[Fact] = []
    async with connected(influxdb, seen.append) as source:
        assert await source.number(MEAN) is None
        with pytest.raises(errors.SourceRefusedError, match="HTTP 400: error parsing query"):
            await source.number(f"{MEAN} AND")
        asked = len(seen)
        with pytest.raises(errors.SourceRefusedError, match="not asked: expected InfluxQL that"):
            await source.number('DROP MEASUREMENT "load"')
    assert len(seen) == asked


# The server


async def test_the_clock_is_the_servers_and_is_asked_seldom(influxdb: InfluxdbServer) -> None:
    clock, seen = Clock(), list[Fact]()
    settings = InfluxdbSettings(url=influxdb.url, database=DATABASE)
    source = InfluxdbSource("default", settings, seen.append, clock)
    began = int(time.time())
    await source.synchronize()
    asked_at = time.time()
    await source.synchronize()
    clock.now += SYNCHRONIZED_SECONDS
    assert asked_at - 2 < source.now() - SYNCHRONIZED_SECONDS <= asked_at
    assert source.instant() == (source.now() - 12) // 15 * 15
    # The server's clock has not moved on, as in a cache's answer.
    with pytest.raises(errors.SourceMalformedError, match="went back by") as refused:
        await source.synchronize()
    await source.close()
    passed_seconds = int(time.time()) - began  # the server's clock shows whole seconds
    possible = range(round(SYNCHRONIZED_SECONDS) - passed_seconds, round(SYNCHRONIZED_SECONDS) + 1)
    assert any(f"went back by {seconds} s;" in str(refused.value) for seconds in possible)

    assert [fact.query for fact in seen if isinstance(fact, Queried)] == ["clock"] * 2


async def test_a_user_who_may_read_the_database_is_all_it_takes(tmp_path: Path) -> None:
    async with InfluxdbServer(tmp_path, asks_who=True) as asking:
        await asking.write([gpu("bert-0", 90, "ml")])
        await asking.run("CREATE USER scaler WITH PASSWORD 'right'")
        await asking.run(f"GRANT READ ON {DATABASE} TO scaler")
        right = {"username": "scaler", "password": "right"}
        async with connected(asking, **right) as source:
            await source.synchronize()
            assert newest(await source.fetch(snapshot_query("ml"), NOW)) == {
                ("bert-0", "GPU-ml-bert-0"): 90
            }
