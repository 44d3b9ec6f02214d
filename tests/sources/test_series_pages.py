"""The recorded pages of exporters: complete, and read the same without a Prometheus."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.simulator.cluster import Cluster, Key, Pod, Wanted
from keda_gpu_scaler.snapshot.observation import GpuReports, Target
from keda_gpu_scaler.sources.scrape.exposition import parse
from keda_gpu_scaler.sources.scrape.rounds import History, Scrape
from keda_gpu_scaler.spec.spec import Signal
from tests.support import cloud_exporters, exporters
from tests.support.exporters import (
    SAMPLES,
    SHARED,
    SHARED_UUID,
    approximately,
    newest,
    snapshot_query,
)

SHOWN = [(name, signal) for name, sample in SAMPLES.items() for signal in sample.shown]


# The table


def test_every_profile_has_a_page_and_its_numbers() -> None:
    assert set(SAMPLES) == set(profiles.PROFILES)
    assert {path.stem for path in exporters.PAGES.iterdir()} == {*SAMPLES, SHARED}


def test_every_signal_of_a_profile_has_its_numbers() -> None:
    assert {name: set(sample.shown) for name, sample in SAMPLES.items()} == {
        name: set(profiles.signals(name)) for name in SAMPLES
    }


def test_a_page_that_is_not_verified_says_so(subtests: pytest.Subtests) -> None:
    for name in SAMPLES:
        first = exporters.page(name).splitlines()[0]
        with subtests.test(name):
            assert first.startswith("# ")
            assert first.startswith("# UNVERIFIED") == (not profiles.PROFILES[name].verified)


def test_every_metric_of_a_profile_is_on_its_page(subtests: pytest.Subtests) -> None:
    optional = {
        "DCGM_FI_DEV_FB_TOTAL",  # collected only if asked for
        "gpu_power_usage",  # the third of three names
    }
    for name, signal in SHOWN:
        text = exporters.page(name)
        names = profiles.metric_names(name, signal) - optional
        old_only = {metric for metric in names if name == "dcgm-old" and "PROF_GR_" in metric}
        with subtests.test(f"{name} {signal}"):
            missing = {metric for metric in names - old_only if f"\n{metric}{{" not in text}
            assert missing == set()


# Directly


def scraped(name: str, text: str = "") -> History:
    samples, history = parse((text or exporters.page(name)).encode(), 0), History(600)
    history.add(0, {Target("gpus", "http://exporter/metrics"): Scrape(0, samples)})
    return history


def test_a_page_that_is_scraped_directly_says_the_same(subtests: pytest.Subtests) -> None:
    for name, sample in SAMPLES.items():
        history = scraped(name)
        for signal, shown in sample.shown.items() if sample.scrapable else ():
            with subtests.test(f"{name} {signal}"):
                observation = history.observation(snapshot_query(name, profiles.AUTO, signal), 0)
                assert newest(observation) == approximately(sample.auto.get(signal, shown))
                if name != "dcgm-exported":  # these labels are Prometheus' own
                    observation = history.observation(snapshot_query(name, name, signal), 0)
                    assert newest(observation) == approximately(shown)


def test_the_devices_own_series_does_not_look_like_a_lost_pod() -> None:
    """Otherwise no pod that shared this GPU could ever be seen to have ended."""
    assert scraped(SHARED).gpus([SHARED_UUID]) == GpuReports(frozenset({SHARED_UUID}))


# Pages that scenarios simulate

each = pytest.mark.parametrize("exporter", cloud_exporters.EXPORTERS)
POWER_WATTS = 70, 6.3
MEMORY_MIB, MEMORY_USED_MIB = 81559, 48935


def samples(page: str) -> list[Sample]:
    families = text_string_to_metric_families(page)
    return [sample for family in families for sample in family.samples]


def page(exporter: str, load: float = 0) -> str:
    """Return the page of two GPUs, one with a pod in the namespace of the recorded page."""
    cluster, key = Cluster(), Key(exporters.namespace(exporter), "bert")
    pod = Pod(uid="1", name="bert-0", workload=key, node="a", gpus=1, container="bert", ready_at=0)
    cluster.put(key, Wanted(load=load), 0)
    cluster.show({"a": 2}, [pod])
    return cloud_exporters.page(cluster.gpus(0), exporter).decode()


@each
def test_its_page_has_the_names_and_labels_of_the_recorded_one(exporter: str) -> None:
    recorded = {(one.name, frozenset(one.labels)) for one in samples(exporters.page(exporter))}
    shown = {(one.name, frozenset(one.labels)) for one in samples(page(exporter))}
    names = {name for name, _ in recorded} & {name for name, _ in shown}
    # The recorded pages have a few more metrics, and the simulated one the memory of the card.
    assert {one for one in shown if one[0] in names} <= recorded
    read = {
        name
        for signal in profiles.signals(exporter)
        for name in profiles.metric_names(exporter, signal)
    }
    assert read <= names


@each
@pytest.mark.parametrize("load", [0, 40, 200])
def test_each_signal_is_read_in_its_own_unit(exporter: str, load: float) -> None:
    percent = min(100, load)
    expected = {
        Signal.UTILIZATION: round(percent),
        Signal.MEMORY: 100 * MEMORY_USED_MIB / MEMORY_MIB,
        Signal.MEMORY_USED: MEMORY_USED_MIB,
        Signal.TEMPERATURE: round(30 + 0.4 * percent),
        Signal.POWER: POWER_WATTS[0] + POWER_WATTS[1] * percent,
    }
    history = scraped(exporter, page(exporter, load))
    assert set(expected) == set(profiles.signals(exporter))
    for signal, number in expected.items():
        observation = history.observation(snapshot_query(exporter, exporter, signal), 0)
        assert newest(observation) == {"bert-0": [pytest.approx(number, abs=1e-2)]}, signal
