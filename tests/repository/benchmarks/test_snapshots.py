"""The benchmark of snapshots measures what it says it does."""

import json

import msgspec
import pytest

from benchmarks import snapshots
from benchmarks.snapshots import AT, STEP_SECONDS, Prometheus, Snapshots, fetcher
from keda_gpu_scaler.sources.prometheus import api
from keda_gpu_scaler.transport.client import Answer


def test_made_up_answers_are_json_as_prometheus_writes_it() -> None:
    body = b"".join(snapshots.matrix(20, AT, 8, STEP_SECONDS))
    rows = api.matrix(Answer(200, "application/json", body))
    assert len(rows) == 20 + 3
    assert {len(row.points) for row in rows} == {8}
    assert body == msgspec.json.encode(json.loads(body))


async def test_each_made_up_pod_is_in_the_snapshot_of_each_step() -> None:
    prometheus = Prometheus(20)
    async with fetcher(prometheus) as fetched:
        for number in range(3):
            at = AT + number * STEP_SECONDS
            prometheus.prepare(at)
            snapshot = await fetched(at)
            assert (snapshot.at, snapshot.pod_count) == (at, 20)
            loads = [pod.gpus[0].times[-1] for pod in snapshot.of("ml").pods.values()]
            assert loads == [at] * 20


def test_rounds_are_compared_with_rounds_and_peaks_with_the_idle_process() -> None:
    found = Snapshots(
        cpu_seconds=[0.3],
        late_seconds=[0.002],
        calm_seconds=[0.001],
        called_seconds=[0.006],
        undisturbed_seconds=[0.004],
        held_seconds=[0.01],
        idle_bytes=100,
        peak_bytes={10_000: 180, 50_000: 300},
    )
    medians = {one.key: one.judged.median for one in snapshots.rows(found)}
    assert medians == {
        "snapshots.calls": pytest.approx(1.5),
        "snapshots.peak-10000": 1.8,
        "snapshots.peak-50000": 3,
    }
    assert [one.limit for one in snapshots.rows(found)] == [2, 2, None]
