"""Every exporter's page through a real Prometheus: the right numbers of the right pods."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from testbed.prometheus import KINDS
from tests.support import exporters
from tests.support import http_replies as web
from tests.support.each_prometheus import each
from tests.support.exporters import (
    EXPORTER_POD,
    SAMPLES,
    SHARED,
    SHARED_UUID,
    approximately,
    newest,
    snapshot_query,
)
from tests.support.http_replies import HttpServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHOWN = [(name, signal) for name, sample in SAMPLES.items() for signal in sample.shown]
FIRST_SCRAPES_SECONDS = 30.0


def _job(name: str, url: str, *, honor_labels: bool) -> dict[str, object]:
    target = {"targets": [url.removeprefix("http://")], "labels": EXPORTER_POD}
    return {"job_name": name, "honor_labels": honor_labels, "static_configs": [target]}


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=each())
async def source(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PrometheusSource]:
    """Scrape every page as its users do; yield a source on the server that did."""
    kind = KINDS[request.param]
    async with AsyncExitStack() as stack:
        jobs = []
        for name in [*SAMPLES, SHARED]:
            answer = web.says(exporters.page(name), content_type="text/plain; version=0.0.4")
            server = await stack.enter_async_context(HttpServer(answer))
            honored = name in SAMPLES and SAMPLES[name].honor_labels
            jobs.append(_job(name, server.url, honor_labels=honored))
        running = await stack.enter_async_context(kind(tmp_path_factory.mktemp("server"), jobs))
        everywhere = f"count(up offset 5s == 1) == {len(jobs)}"
        await running.wait_for(everywhere, FIRST_SCRAPES_SECONDS + 2 * kind.LATE_SECONDS)
        settings = PrometheusSettings.model_validate({"url": running.url, "step": "1s"})
        source = PrometheusSource(PrometheusClient("default", settings))
        yield source
        await source.close()


async def observed(source: PrometheusSource, asked: SnapshotQuery) -> Observation:
    await source.synchronize()
    return await source.fetch(asked, source.instant())


async def test_a_profile_and_auto_read_the_right_numbers_of_the_right_pods(
    source: PrometheusSource, subtests: pytest.Subtests
) -> None:
    for name, signal in SHOWN:
        sample = SAMPLES[name]
        numbers = {
            name: sample.shown[signal],
            profiles.AUTO: sample.auto.get(signal, sample.shown[signal]),
        }
        for profile, shown in numbers.items():
            with subtests.test(f"{name} {signal} by {profile}"):
                observation = await observed(source, snapshot_query(name, profile, signal))

                assert newest(observation) == approximately(shown)
                assert {gpu.target.job for gpu in observation.series} <= {name}
                assert bool(observation.refused_samples) == (signal in sample.refused)


KIN = {
    "dcgm": {"dcgm", "dcgm-prof", "dcgm-exported", "acs", SHARED},
    "acs": {"dcgm", "dcgm-exported", "acs", SHARED},
    "dcgm-prof": {"dcgm", "dcgm-prof", "dcgm-exported", SHARED},
    "dcgm-exported": {"dcgm", "dcgm-prof", "dcgm-exported", "acs", SHARED},
    "dcgm-old": {"dcgm", "dcgm-prof", "dcgm-exported", "dcgm-old", "acs", SHARED},
}
"""Profiles that share labels and metrics."""


async def test_a_profile_reads_no_others_labels_or_metrics(
    source: PrometheusSource, subtests: pytest.Subtests
) -> None:
    everywhere = frozenset(exporters.namespace(other) for other in [*SAMPLES, SHARED])
    for name in filter(profiles.signals, SAMPLES):
        kin = {exporters.namespace(other) for other in KIN.get(name, {name})}
        with subtests.test(name):
            observation = await observed(
                source, SnapshotQuery(Signal.UTILIZATION, name, everywhere, 60, 30)
            )

            assert {gpu.namespace for gpu in observation.series if gpu.values} == kin


async def test_an_idle_gpu_is_no_load_of_its_exporter(source: PrometheusSource) -> None:
    namespaces = frozenset({EXPORTER_POD["namespace"]})
    for signal in set(Signal) - {Signal.NUMBER}:
        asked = SnapshotQuery(signal, profiles.AUTO, namespaces, 60, 30)
        assert (await observed(source, asked)).series == (), signal


# Shared GPUs


async def test_each_pod_of_a_shared_gpu_has_one_copy_of_it(source: PrometheusSource) -> None:
    for profile, signal, numbers in (
        ("auto", Signal.UTILIZATION, {"bert-0": [87.5], "bert-1": [87.5]}),
        ("dcgm-exported", Signal.UTILIZATION, {"bert-0": [55.0], "bert-1": [28.0]}),
        ("auto", Signal.MEMORY_USED, {"bert-0": [20000.0], "bert-1": [10000.0]}),
    ):
        observation = await observed(source, snapshot_query(SHARED, profile, signal))
        assert newest(observation) == approximately(numbers)


async def test_the_devices_own_series_does_not_look_like_a_lost_pod(
    source: PrometheusSource,
) -> None:
    """Otherwise no pod that shared this GPU could ever be seen to have ended."""
    await source.synchronize()
    reports = await source.locate([SHARED_UUID], source.instant())

    assert reports == GpuReports(reported=frozenset({SHARED_UUID}))
