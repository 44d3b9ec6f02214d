"""The pages that scenarios simulate of other exporters: as the recorded ones, and read as them."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.simulator.cluster import Cluster, Key, Pod, Wanted
from keda_gpu_scaler.spec.spec import Signal
from tests.sources.test_series_pages import scraped
from tests.support import cloud_exporters, exporters
from tests.support.exporters import newest, snapshot_query

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
        for _, name in profiles.metric_names(exporter, signal)
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
