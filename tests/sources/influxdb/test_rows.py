"""Points at any time → the values at each instant."""

import itertools

import pytest

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.influxql import Schema
from keda_gpu_scaler.snapshot.observation import GpuReports, Row
from keda_gpu_scaler.sources import influxdb
from keda_gpu_scaler.sources.influxdb import Field
from keda_gpu_scaler.sources.series import Exporters
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery

STEP = 15.0
AT = 1_700_000_100.0
UTIL = "DCGM_FI_DEV_GPU_UTIL"
TIMES = tuple(AT - STEP * back for back in reversed(range(8)))
NEED = SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({"ml"}), 120, 120)
TELEGRAF = {"namespace": "ml", "pod": "bert-0", "UUID": "GPU-1", "gpu": "0", "url": "http://a:9400"}
IDLE = {key: text for key, text in TELEGRAF.items() if key not in ("namespace", "pod")}
ANYBODYS = sorted(
    {
        metric.name
        for way in profiles.metric_sources("auto", Signal.UTILIZATION)
        for metric in way.measure.metrics
        if not metric.where
    }
)


def every(seconds: float, *, until: float = 0, count: int = 40) -> list[tuple[float, float]]:
    """Return points of rising value, the last one at `until` from the newest instant."""
    return [(AT + until - seconds * back, float(count - back)) for back in reversed(range(count))]


def shown(points: list[tuple[float, float]], step: float = STEP) -> list[float]:
    return [time - AT for time in influxdb.at_instants(Row.of({}, points), TIMES, step).times]


def test_a_series_that_goes_on_has_no_gap() -> None:
    seen = {
        (interval, late): len(shown(every(interval, until=-late)))
        for interval in (5, 10, 15, 20, 30, 60)
        for late in (0, 3, 14)
    }
    assert {each: count for each, count in seen.items() if count != len(TIMES)} == {}


def test_an_instant_shows_the_newest_point_up_to_it_and_one_that_was_lost_is_no_gap() -> None:
    points = [(AT - 16, 1.0), (AT - 15, 2.0), (AT - 14, 3.0), (AT + 1, 4.0)]
    placed = influxdb.at_instants(Row.of({}, points), TIMES, STEP)
    assert list(placed.points)[-2:] == [(AT - 15, 2.0), (AT, 3.0)]
    missed = every(15)
    del missed[-3]
    assert len(shown(missed)) == len(TIMES)


@pytest.mark.parametrize(
    ("interval", "last"),
    [
        pytest.param(5, -75, id="faster than the step"),
        pytest.param(15, -75, id="as fast as the step"),
        pytest.param(30, -45, id="every other step"),
    ],
)
def test_a_series_ends_two_of_its_intervals_after_its_last_point(
    interval: float, last: float
) -> None:
    assert shown(every(interval, until=-90))[-1] == last


def test_no_point_is_looked_back_for_longer_than_the_limit() -> None:
    assert shown(every(600, until=-130))[-1] == -15
    assert influxdb.lookback_seconds(STEP) == 120
    assert influxdb.lookback_seconds(90) == 180


@pytest.mark.parametrize("metric", ANYBODYS)
def test_metrics_of_every_convention_have_the_tags_that_were_named(metric: str) -> None:
    raw = influxdb.rows_of([Field(metric, "gauge", Row.of(TELEGRAF, [(AT, 1.0)]))], Schema(), NEED)
    (gpu,) = influxdb.samples(raw, NEED, AT, STEP, Exporters(collection_seconds=30)).series
    assert (gpu.namespace, gpu.pod, gpu.gpu) == ("ml", "bert-0", "GPU-1")


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        pytest.param([(TELEGRAF, 90, 0)], GpuReports(frozenset({"GPU-1"})), id="another pod"),
        pytest.param([(IDLE, 0, 0)], GpuReports(frozenset({"GPU-1"})), id="idle without a pod"),
        pytest.param(
            [(IDLE, 90, 0)],
            GpuReports(frozenset({"GPU-1"}), frozenset({"GPU-1"})),
            id="busy without a pod",
        ),
        pytest.param(
            [(IDLE, 90, 0), (TELEGRAF, 90, 0)], GpuReports(frozenset({"GPU-1"})), id="both"
        ),
        pytest.param(
            [({**IDLE, "GPU_I_ID": "1"}, 90, 0), ({**TELEGRAF, "GPU_I_ID": "2"}, 90, 0)],
            GpuReports(frozenset({"GPU-1"}), frozenset({"GPU-1"})),
            id="a slice without a pod",
        ),
        pytest.param([(TELEGRAF, 90, -60)], GpuReports(), id="not any more"),
        pytest.param([({**IDLE, "UUID": "GPU-9"}, 90, 0)], GpuReports(), id="not asked for"),
    ],
)
def test_a_gpu_is_where_it_is_shown_last(
    series: list[tuple[dict[str, str], float, float]], expected: GpuReports
) -> None:
    fields = [
        Field(UTIL, "gauge", Row.of(tags, [(AT + late - 15, value), (AT + late, value)]))
        for tags, value, late in series
    ]
    for order in itertools.permutations(fields):
        assert influxdb.reports(order, Schema(), {"GPU-1"}, AT, STEP) == expected
