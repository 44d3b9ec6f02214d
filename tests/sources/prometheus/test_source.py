"""The Prometheus source on a real Prometheus.

One server serves the whole module; every test has a namespace of its own.
"""

import itertools
import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Target
from keda_gpu_scaler.sources.prometheus.source import GPUS_PER_QUERY
from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.telemetry.facts import Fact, Queried
from tests.query.test_promql_texts import HOSTILE
from tests.support import gpus, series
from tests.support.gpus import Gpu, Up
from tests.support.prometheus import PrometheusServer
from tests.support.prometheus_source import connected

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG_AGO_SECONDS = 6 * 3600
"""So long ago that only the samples of the test itself are there."""
UTIL, ENGINE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
TARGET = Target("dcgm-exporter", "10.0.0.1:9400")
_numbers = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def now(server: PrometheusServer) -> float:
    """When the server began; its exporter is in good health for an hour."""
    begun = lately()
    await server.write(gpus.history(begun, [Up(begin=-3600)]))
    return begun


def lately() -> float:
    """Return a time old enough that no server withholds its samples as possibly incomplete."""
    return (time.time() - 60) // 120 * 120


@pytest.fixture
def ns() -> str:
    return f"team-{next(_numbers)}"


def snapshot_query(
    *namespaces: str,
    signal: Signal = Signal.UTILIZATION,
    profile: str = "auto",
    span: float = 300,
) -> SnapshotQuery:
    return SnapshotQuery(signal, profile, frozenset(namespaces), span, 120)


async def observed(
    server: PrometheusServer, parts: Iterable[Gpu | Up], asked: SnapshotQuery, at: float
) -> Observation:
    await server.write(gpus.history(at, parts))
    async with connected(server.url) as source:
        return await source.fetch(asked, at)


# Labels


async def test_every_instant_of_the_span_is_there(
    server: PrometheusServer, now: float, ns: str
) -> None:
    observation = await observed(server, [Gpu("a", 50, ns)], snapshot_query(ns, span=300), now)

    assert observation.instants == tuple(now - 15 * back for back in reversed(range(20)))
    assert observation.series[0].present == observation.series[0].times == observation.instants
    assert observation.at == now


async def test_only_the_namespaces_asked_for_are_shown(
    server: PrometheusServer, now: float, ns: str
) -> None:
    namespaces = [f"{ns}-a", f"{ns}-b", f"{ns}-c", f"{ns}-ab", f"x{ns}-a"]
    parts = [
        Gpu(f"{scheme}-0", 50, name, uuid=f"GPU-{scheme}-{name}", convention=scheme)
        for scheme in ("exported", "plain", "old")
        for name in namespaces
    ]
    observation = await observed(server, parts, snapshot_query(*namespaces[:2]), now)

    assert {gpu.namespace for gpu in observation.series} == set(namespaces[:2])
    assert len(observation.series) == 6


async def test_many_namespaces_are_asked_about_at_once_or_in_parts(
    server: PrometheusServer, now: float, ns: str
) -> None:
    many = [f"{ns}-{'long' * 8}-{number:02}" for number in range(60)]
    await server.write(gpus.history(now, [Gpu(f"pod-of-{name}", 50, name) for name in many]))
    stated: list[Fact] = []
    async with connected(server.url, stated.append) as source:
        await source.synchronize()
        observation = await source.fetch(snapshot_query(*many), now)

    assert {gpu.namespace: gpu.pod for gpu in observation.series} == {
        name: f"pod-of-{name}" for name in many
    }
    assert (kinds(stated)["age"] == 1) == server.TAKES_LONG_QUERIES


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)


@settings(max_examples=15)
@given(st.frozensets(names | st.sampled_from([text for text in HOSTILE if text]), min_size=2))
async def test_texts_never_break_out_of_a_query(
    server: PrometheusServer, now: float, namespaces: frozenset[str]
) -> None:
    at = now - LONG_AGO_SECONDS + 3600
    parts = [
        Gpu("a", 50, name, uuid=f"GPU-{name}", job=f"job {name}", begin=-60) for name in namespaces
    ]
    await server.write(gpus.history(at, parts))
    asked, *_ = sorted(namespaces)
    async with connected(server.url) as source:
        observation = await source.fetch(snapshot_query(asked, span=60), at)
        every = await source.fetch(snapshot_query(*namespaces, span=60), at)
        located = await source.locate([f"GPU-{name}" for name in namespaces], at)

    assert {(each.namespace, each.target.job) for each in observation.series} == {
        (asked, f"job {asked}")
    }
    assert {each.namespace for each in every.series} == namespaces
    assert located.reported == {f"GPU-{name}" for name in namespaces}


# Metrics


async def test_a_metric_that_ends_is_not_continued_by_another(
    server: PrometheusServer, now: float, ns: str
) -> None:
    """VictoriaMetrics would fill the gap that the preferred one leaves with the other's values."""
    parts = [
        Gpu("engine-ends", 0.5, ns, metric=ENGINE, end=-150),
        Gpu("engine-ends", 1, ns, metric=UTIL),
        Gpu("sample-ends", 0.5, ns, metric=ENGINE),
        Gpu("sample-ends", 1, ns, metric=UTIL, end=-150),
    ]
    observation = await observed(server, parts, snapshot_query(ns), now)

    assert {gpu.pod: gpu.values for gpu in observation.series} == {
        "engine-ends": (50.0,) * 10 + (1.0,) * 10,
        "sample-ends": (50.0,) * 20,
    }


async def test_unbelievable_samples_are_refused_and_counted(
    server: PrometheusServer, now: float, ns: str
) -> None:
    bad = {"negative": -1.0, "infinite": math.inf, "nan": math.nan}
    parts = [Gpu("good", 50, ns), *(Gpu(pod, value, ns) for pod, value in bad.items())]
    observation = await observed(server, parts, snapshot_query(ns), now)

    shown = bad if server.KEEPS_NAN else ("negative", "infinite")
    expected = {"good": (50.0,) * 20} | dict.fromkeys(shown, ())
    assert {gpu.pod: gpu.values for gpu in observation.series} == expected
    assert observation.refused_samples == 20 * len(shown)
    assert all(gpu.present == observation.instants for gpu in observation.series)


# Health and age


async def test_good_scrapes_are_the_targets_own(
    server: PrometheusServer, now: float, ns: str
) -> None:
    targets = {state: Target(f"job-{ns}", f"{state}:9400") for state in ("good", "down", "gone")}
    parts: list[Gpu | Up] = [
        Gpu(f"pod-{target.instance}", 50, ns, job=target.job, instance=target.instance)
        for target in targets.values()
    ]
    parts += [
        Up(targets["good"].instance, f"job-{ns}"),
        Up(targets["down"].instance, f"job-{ns}", down=-60),
        Up(targets["gone"].instance, f"job-{ns}", gone=-120),
    ]
    observation = await observed(server, parts, snapshot_query(ns), now)

    last = {target: max(good) for target, good in observation.good_scrapes.items()}
    assert last == {
        targets["good"]: now,
        targets["down"]: now - 75,
        targets["gone"]: now - 120,
    }
    assert set(observation.good_scrapes[targets["good"]]) == set(observation.instants)


async def test_a_scrapes_time_is_its_own_and_not_the_instants(
    server: PrometheusServer, now: float, ns: str
) -> None:
    labels = {"job": f"job-{ns}", "instance": "late:9400"}
    times = [now - 7.25 - 60 * back for back in range(6)]
    owner = {"exported_pod": "a", "exported_namespace": ns, "UUID": "GPU-a"}
    await server.write(
        [
            series.Series("up", labels, [(at, 1.0) for at in sorted(times)]),
            series.Series(UTIL, {**labels, **owner}, [(at, 50.0) for at in sorted(times)]),
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


async def test_the_age_of_stale_samples_is_told_in_every_label_scheme(
    server: PrometheusServer, now: float, ns: str
) -> None:
    ages = {"fresh": 0.0, "minute": 60.0, "exported": 200.0, "plain": 150.0, "old": 100.0}
    schemes = {"plain": "plain", "old": "old"}
    shown = [(Gpu(pod, 1, ns, convention=schemes.get(pod, "exported")), ages[pod]) for pod in ages]
    await lingering(server, now, shown)
    async with connected(server.url) as source:
        observation = await source.fetch(snapshot_query(ns), now)

    assert observation.sample_ages == {
        (ns, pod): pytest.approx(age) for pod, age in ages.items() if age > 60
    }
    assert {gpu.pod for gpu in observation.series} == ages.keys()


async def test_a_series_without_an_end_goes_on_as_far_as_its_server_looks_back(
    server: PrometheusServer, now: float, ns: str
) -> None:
    await lingering(server, now, [(Gpu("a", 1, ns), 45)])
    async with connected(server.url) as source:
        observation = await source.fetch(snapshot_query(ns), now)

    (gpu,) = observation.series
    last = now - 45 + server.LOOKBACK_SECONDS
    assert gpu.present[-1] == max(instant for instant in observation.instants if instant <= last)


async def test_a_pod_is_as_fresh_as_its_freshest_sample(
    server: PrometheusServer, now: float, ns: str
) -> None:
    shown = [
        (Gpu("a", 0.5, ns, metric=ENGINE), 200),
        (Gpu("a", 0.5, ns, metric=UTIL), 0),
        (Gpu("a", 50, ns, uuid="GPU-stuck"), 150),
        (Gpu("b", 0.5, ns, metric=ENGINE), 100),
    ]
    await lingering(server, now, shown)
    async with connected(server.url) as source:
        observation = await source.fetch(snapshot_query(ns), now)

    assert observation.sample_ages == {(ns, "b"): pytest.approx(100)}


@pytest.mark.parametrize(("watched_seconds", "known"), [(None, False), (90, False), (150, True)])
async def test_absence_is_not_known_right_after_a_cold_start(
    server: PrometheusServer,
    now: float,
    ns: str,
    watched_seconds: int | None,
    known: bool,  # noqa: FBT001 - an example
) -> None:
    at = now - LONG_AGO_SECONDS - 3600 * (watched_seconds or 0) / 30
    parts: list[Gpu | Up] = [Gpu("a", 50, ns, begin=-60)]
    if watched_seconds is not None:
        parts.append(Up("cold:9400", begin=-watched_seconds))
    observation = await observed(server, parts, snapshot_query(ns), at)

    assert [gpu.pod for gpu in observation.series] == ["a"]
    assert observation.absence_known is known


# The rare questions


async def test_history_is_a_little_more_than_the_hour_before_at_a_coarse_step(
    server: PrometheusServer, now: float, ns: str
) -> None:
    parts = [Gpu("ended", 50, ns, begin=-3500, end=-3000), Gpu("alive", 50, ns, begin=-3500)]
    await server.write(gpus.history(now, parts))
    async with connected(server.url) as source:
        observation = await source.history(snapshot_query(ns), now)

    present = {gpu.pod: gpu.present for gpu in observation.series}
    assert observation.instants == tuple(now - 120 * back for back in reversed(range(1, 33)))
    assert present["alive"] == tuple(at for at in observation.instants if at >= now - 3500)
    assert present["ended"] == tuple(
        at for at in observation.instants if now - 3500 <= at < now - 2985
    )
    assert set(observation.good_scrapes[TARGET]) == {
        at for at in observation.instants if at >= now - 3600
    }


@pytest.mark.parametrize("later", [0, 105])
@pytest.mark.parametrize("span", [15, 300])
async def test_history_and_a_snapshot_overlap(
    server: PrometheusServer, now: float, ns: str, later: float, span: float
) -> None:
    at = now - 600 + later
    async with connected(server.url) as source:
        history = await source.history(snapshot_query(ns, span=span), at)
        observation = await source.fetch(snapshot_query(ns, span=span), at)

    assert observation.instants[0] <= history.at < at
    assert history.at in observation.instants


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
    ]
    others = [
        series.Series(UTIL, {**bare, "UUID": f"{ns}-bare"}, [(now - 10, 90.0)]),
        series.Series("dcgm_gpu_utilization", {**bare, "uuid": f"{ns}-old"}, [(now - 10, 90.0)]),
        series.Series(UTIL, {**bare, **exporter, "uuid": f"{ns}-not-up"}, [(now - 10, 90.0)]),
    ]
    await server.write([*gpus.history(now, parts), *others])
    shown = ("mapped", "taken", "busy", "engine-busy", "idle", "bare", "old", "not-up")
    async with connected(server.url) as source:
        reports = await source.locate([f"{ns}-{pod}" for pod in (*shown, "ended", "unknown")], now)

    assert reports == GpuReports(
        reported=frozenset(f"{ns}-{pod}" for pod in shown),
        busy_without_pod=frozenset(f"{ns}-{pod}" for pod in ("busy", "engine-busy", "bare", "old")),
    )


async def test_a_gpu_without_a_number_is_not_shown_to_be_idle(
    server: PrometheusServer, now: float, ns: str
) -> None:
    await server.write(gpus.history(now, [Gpu("x", math.nan, uuid=ns, convention="idle")]))
    async with connected(server.url) as source:
        reports = await source.locate([ns], now)
    # VictoriaMetrics does not show it at all, which proves as little.
    assert reports.reported == reports.busy_without_pod


async def test_many_gpus_are_located_a_few_hundred_at_a_time(
    server: PrometheusServer, now: float, ns: str
) -> None:
    uuids = [f"GPU-{ns}-{number}" for number in range(2 * GPUS_PER_QUERY + 1)]
    await server.write(gpus.history(now, [Gpu("a", 5, ns, uuid=uuid, begin=-15) for uuid in uuids]))
    stated: list[Fact] = []
    async with connected(server.url, stated.append) as source:
        await source.synchronize()
        reports = await source.locate(uuids, now)

    assert reports == GpuReports(frozenset(uuids))
    assert (kinds(stated)["gpus"] == 3) == server.TAKES_LONG_QUERIES


def kinds(stated: Sequence[Fact]) -> Counter[str]:
    return Counter(fact.query for fact in stated if isinstance(fact, Queried))


async def test_a_step_costs_one_snapshot_and_one_age(
    server: PrometheusServer, now: float, ns: str
) -> None:
    await server.write(gpus.history(now, [Gpu("a", 50, ns), Gpu("b", 50, f"{ns}-b")]))
    stated: list[Fact] = []
    async with connected(server.url, stated.append) as source:
        await source.fetch(snapshot_query(ns, f"{ns}-b"), now - 15)
        first = kinds(stated)
        await source.fetch(snapshot_query(ns, f"{ns}-b"), now)

    assert first == {"snapshot": 2, "exporters": 1, "age": 1}  # the job was new: so is its health
    assert kinds(stated) - first == {"snapshot": 1, "age": 1}
    assert all(isinstance(fact, Queried) and fact.error is None for fact in stated)
    assert all(isinstance(fact, Queried) and fact.source == "default" for fact in stated)


async def test_the_servers_clock_is_asked_for(server: PrometheusServer) -> None:
    stated: list[Fact] = []
    async with connected(server.url, stated.append) as source:
        await source.synchronize()
        await source.synchronize()
        assert source.now() == pytest.approx(time.time() - server.LATE_SECONDS, abs=5)

    assert kinds(stated) == {"clock": 1}


# Numbers


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
