"""The Prometheus source on real servers.

One server of each kind serves the whole module; every test has a namespace of its own. What is
decided by the answers of each server is in `test_situations.py`.
"""

import math
import time
from collections import Counter
from collections.abc import Iterable

import pytest
import pytest_asyncio

from keda_gpu_scaler.query.kube_state_texts import JOBS, PODS
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.snapshot.observation import GpuReports, Target
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient, parse_vector
from keda_gpu_scaler.sources.prometheus.source import GPUS_PER_QUERY
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from keda_gpu_scaler.telemetry.facts import Fact, Queried
from testbed import gpus, series
from testbed.gpus import Gpu, Up
from testbed.prometheus import PrometheusServer
from tests.support.prometheus_source import connected

pytestmark = pytest.mark.asyncio(loop_scope="module")

UTIL, ENGINE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def now(server: PrometheusServer) -> float:
    """When the server began; its exporter is in good health for an hour."""
    begun = lately()
    await server.write(gpus.history(begun, [Up(begin=-3600)]))
    return begun


def lately() -> float:
    """Return a time old enough that no server withholds its samples as possibly incomplete."""
    return (time.time() - 60) // 120 * 120


def snapshot_query(*namespaces: str, span: float = 300) -> SnapshotQuery:
    return SnapshotQuery(Signal.UTILIZATION, "auto", frozenset(namespaces), span, 120)


async def test_very_many_names_are_asked_about_at_once_or_in_parts(
    server: PrometheusServer, now: float, ns: str
) -> None:
    many = [f"{ns}-{'long' * 8}-{number:02}" for number in range(60)]
    uuids = [f"GPU-{ns}-{number}" for number in range(2 * GPUS_PER_QUERY + 1)]
    await server.write(gpus.history(now, [Gpu(f"pod-of-{name}", 50, name) for name in many]))
    await server.write(gpus.history(now, [Gpu("a", 5, ns, uuid=uuid, begin=-15) for uuid in uuids]))
    stated: list[Fact] = []
    async with connected(server.url, stated.append) as source:
        await source.synchronize()
        observation = await source.fetch(snapshot_query(*many), now)
        reports = await source.locate(uuids, now)

    assert {gpu.namespace: gpu.pod for gpu in observation.series} == {
        name: f"pod-of-{name}" for name in many
    }
    assert reports == GpuReports(frozenset(uuids))
    kinds = Counter(fact.query for fact in stated if isinstance(fact, Queried))
    assert ((kinds["age"], kinds["gpus"]) == (1, 3)) == server.TAKES_LONG_QUERIES


# Health and age


async def test_a_scrapes_time_is_its_own_and_not_the_instants(
    server: PrometheusServer, now: float, ns: str
) -> None:
    labels = {"job": f"job-{ns}", "instance": "late:9400"}
    times = [now - 7.25 - 60 * back for back in reversed(range(6))]
    owner = {"exported_pod": "a", "exported_namespace": ns, "UUID": "GPU-a"}
    await server.write(
        [
            series.Series("up", labels, [(at, 1.0) for at in times]),
            series.Series(UTIL, {**labels, **owner}, [(at, 50.0) for at in times]),
        ]
    )
    async with connected(server.url) as source:
        observation = await source.fetch(snapshot_query(ns), now)

    scrapes = observation.good_scrapes[Target(**labels)]
    assert scrapes[now] == now - 7.25
    assert set(scrapes.values()) <= set(times)
    assert set(scrapes) == set(observation.instants)


async def lingering(
    server: PrometheusServer, now: float, ages: Iterable[tuple[Gpu, float]]
) -> None:
    """Write series whose last samples have these ages, and no stale mark."""
    for gpu, age in ages:
        written = gpu.series(now)
        kept = [sample for sample in written.samples if sample[0] < now - age]
        await server.write([series.Series(written.name, written.labels, [*kept, (now - age, 0.5)])])


async def test_a_pod_is_as_old_as_its_freshest_sample_in_every_label_scheme(
    server: PrometheusServer, now: float, ns: str
) -> None:
    shown = [
        (Gpu("fresh", 0.5, ns, metric=ENGINE), 200),
        (Gpu("fresh", 0.5, ns, metric=UTIL), 0),
        (Gpu("fresh", 50, ns, uuid="GPU-stuck"), 150),
        (Gpu("minute", 1, ns), 60),
        (Gpu("engine", 0.5, ns, metric=ENGINE), 110),
        (Gpu("exported", 1, ns), 200),
        (Gpu("plain", 1, ns), 200),
        (Gpu("plain", 1, ns, convention="plain"), 150),
        (Gpu("old", 1, ns, convention="old"), 100),
    ]
    await lingering(server, now, shown)
    async with connected(server.url) as source:
        observation = await source.fetch(snapshot_query(ns), now)

    ages = {"engine": 110, "exported": 200, "plain": 150, "old": 100}
    assert observation.sample_ages == {(ns, pod): pytest.approx(age) for pod, age in ages.items()}
    assert {gpu.pod for gpu in observation.series} == {"fresh", "minute", *ages}


async def test_the_other_metric_is_returned_only_where_the_preferred_one_contradicts_it(
    server: PrometheusServer, now: float, ns: str
) -> None:
    shown = {
        "stuck": (0, 90),
        "fine": (0.5, 80),
        "idle": (0, 0),
        "blip": (0, 2),
        "alone": (None, 7),
    }
    await server.write(
        gpus.history(
            now,
            [
                Gpu("web", value, ns, uuid=gpu, metric=metric)
                for gpu, values in shown.items()
                for metric, value in zip((ENGINE, UTIL), values, strict=True)
                if value is not None
            ],
        )
    )
    async with connected(server.url) as source:
        observation = await source.fetch(snapshot_query(ns), now)

    read = {gpu.gpu: (set(gpu.values), gpu.shown_by[0].split()[0]) for gpu in observation.series}
    assert read == {
        "stuck": ({90}, UTIL),
        "fine": ({50}, ENGINE),
        "idle": ({0}, ENGINE),
        "blip": ({0}, ENGINE),
        "alone": ({7}, UTIL),
    }
    assert [gpu.gpu for gpu in observation.series if gpu.stuck] == ["stuck"]
    assert {len(gpu.values) for gpu in observation.series} == {len(observation.instants)}


async def test_gpus_are_located(server: PrometheusServer, now: float, ns: str) -> None:
    exporter = {"pod": "exporter-10.0.0.1:9400", "namespace": "gpu-operator"}
    bare = {"job": "static", "instance": "10.0.0.9:9400"}
    parts = [
        Gpu("a", 0, ns, uuid=f"{ns}-mapped"),
        Gpu("a", 90, ns, uuid=f"{ns}-taken"),
        Gpu("x", 90, uuid=f"{ns}-busy", convention="idle"),
        Gpu("x", 0.3, uuid=f"{ns}-engine-busy", convention="idle", metric=ENGINE),
        Gpu("x", 0, uuid=f"{ns}-idle", convention="idle"),
        Gpu("x", 90, uuid=f"{ns}-ended", convention="idle", end=-30),
        Gpu("x", math.nan, uuid=f"{ns}-nan", convention="idle"),
    ]
    others = [
        series.Series(UTIL, {**bare, "UUID": f"{ns}-bare"}, [(now - 10, 90.0)]),
        series.Series("dcgm_gpu_utilization", {**bare, "uuid": f"{ns}-old"}, [(now - 10, 90.0)]),
        series.Series("gpu_gfx_activity", {**bare, "gpu_uuid": f"{ns}-amd"}, [(now - 10, 90.0)]),
        series.Series(UTIL, {**bare, **exporter, "uuid": f"{ns}-not-up"}, [(now - 10, 90.0)]),
    ]
    await server.write([*gpus.history(now, parts), *others])
    shown = ["mapped", "taken", "busy", "engine-busy", "idle", "bare", "old", "amd", "not-up"]
    busy = ["busy", "engine-busy", "bare", "old", "amd"]
    if server.KEEPS_NAN:
        # Without a number it is not shown to be idle.
        shown.append("nan")
        busy.append("nan")
    async with connected(server.url) as source:
        asked = (*shown, "ended", "unknown", "nan")
        reports = await source.locate([f"{ns}-{name}" for name in asked], now)

    assert reports == GpuReports(
        reported=frozenset(f"{ns}-{name}" for name in shown),
        busy_without_pod=frozenset(f"{ns}-{name}" for name in busy),
    )


@pytest.mark.parametrize(("step", "limit"), [("7500ms", "2500ms"), (0.1234, 3.5)])
async def test_fractions_of_a_second_are_understood_and_instants_are_exact(
    server: PrometheusServer, ns: str, step: str | float, limit: str | float
) -> None:
    await server.write(gpus.history(lately(), [Gpu("a", 50, ns)]))
    span = 299.5
    async with connected(server.url, step=step, timeout=limit) as source:
        await source.synchronize()
        at = source.instant()
        observation = await source.fetch(snapshot_query(ns, span=span), at)

    (gpu,) = observation.series
    assert observation.at == at
    after_ms = (observation.instants[0] - (at - span)) * 1000
    assert 0 < round(after_ms, 2) <= round(source.step_seconds * 1000, 2)
    assert gpu.present == tuple(
        instant for instant in observation.instants if instant <= gpu.present[-1]
    )


async def test_jobs_of_kube_state_metrics_are_shown_with_their_namespaces(
    server: PrometheusServer, now: float, ns: str
) -> None:
    for job, count in ((f"few-{ns}", 1), (f"many-{ns}", 3)):
        shown = [
            {"job": job, "namespace": f"{ns}-{number}", "pod": pod}
            for number in range(count)
            for pod in ("a", "b")
        ]
        points = [(now - 15, 1.0), (now, 1.0)]
        await server.write([series.Series(PODS, labels, points) for labels in shown])
    client = PrometheusClient("default", PrometheusSettings(url=server.url))
    rows = await client.ask("jobs", JOBS, now, parse_vector)
    await client.close()
    assert {row.labels["job"]: row.values[0] for row in rows} == {
        f"few-{ns}": 1,
        f"many-{ns}": 3,
    }
    assert {row.labels["__name__"] for row in rows} == {PODS}


async def test_a_tenants_hundreds_of_jobs_make_no_query_too_long(
    server: PrometheusServer, now: float, ns: str
) -> None:
    for number in range(300):
        labels = {"job": f"{ns}-{number:03}-{'j' * 80}", "instance": "a:1"}
        shown = {**labels, "exported_namespace": ns, "exported_pod": f"a-{number}", "UUID": "GPU"}
        await server.write([series.Series(UTIL, shown, [(now - 15, 50.0), (now, 50.0)])])
    async with connected(server.url) as source:
        await source.synchronize()
        for _ in range(2):
            observation = await source.fetch(snapshot_query(ns), now)
    assert len(observation.series) == 300
