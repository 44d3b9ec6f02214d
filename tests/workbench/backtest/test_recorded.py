"""Samples of the past → work: what is summed up, and what is not known."""

import math
from dataclasses import replace

import pytest

from keda_gpu_scaler.snapshot.observation import Observation, Series, Target
from keda_gpu_scaler.workbench.backtest.recorded import Chunk, chunk_of, work_of
from testbed.triggers import spec

POD, OTHER = "bert-7b6667bd9-bbbbb", "bert-7b6667bd9-ccccc"
EXPORTER = Target("dcgm-exporter", "10.0.0.1:9400")
N = None


def series(pod: str, gpu: str, values: dict[float, float], namespace: str = "ml") -> Series:
    times = tuple(values)
    return Series(namespace, pod, gpu, EXPORTER, times, times, tuple(values.values()), False)


def test_a_chunk_has_the_pods_of_the_workload_and_their_gpus_aggregated() -> None:
    observation = Observation(
        (15.0, 30.0, 45.0),
        (
            series(POD, "GPU-1", {15.0: 40.0, 30.0: 50.0}),
            series(POD, "GPU-2", {15.0: 60.0}),
            series("bertha-7b6667bd9-bbbbb", "GPU-3", {15.0: 99.0}),
            series(OTHER, "GPU-4", {15.0: 99.0}, namespace="other"),
        ),
        {EXPORTER: {15.0: 14.0, 30.0: 29.0}},
    )
    chunk = chunk_of(spec(), observation, None)
    assert chunk == Chunk(15.0, [True, True, False], {POD: [50.0, 50.0, None]}, 2, [])
    # A demand says nothing of the GPUs while no exporter answers.
    chunk = chunk_of(spec(), observation, {45.0: 7.0})
    assert chunk.covered == [True, True, False]
    assert chunk.demands == [None, None, 7.0]


def test_a_query_that_shows_no_exporter_covers_where_it_shows_pods() -> None:
    observation = Observation((15.0, 30.0), (series(POD, "GPU-1", {15.0: 40.0}),), {})
    assert chunk_of(spec(), observation, None).covered == [True, False]


def test_a_number_that_is_refused_is_no_idle_gpu() -> None:
    blank = series(POD, "GPU-1", {15.0: 40.0})
    blank = replace(blank, present=(15.0, 30.0))
    observation = Observation((15.0, 30.0), (blank,), {EXPORTER: {15.0: 14.0, 30.0: 29.0}})
    assert chunk_of(spec(), observation, None).covered == [True, False]


def test_a_gpu_that_two_targets_show_is_one() -> None:
    shown = series(POD, "GPU-1", {15.0: 40.0})
    other = replace(shown, target=Target("dcgm-exporter", "10.0.0.2:9400"))
    chunk = chunk_of(spec(), Observation((15.0,), (shown, other), {}), None)
    assert (chunk.pods, chunk.gpus) == ({POD: [40.0]}, 1)


def test_elements_that_name_no_gpu_are_not_counted() -> None:
    shown = series(POD, "/job=dcgm-exporter", {15.0: 40.0})
    assert chunk_of(spec(), Observation((15.0,), (shown,), {}), None).gpus == 0


def test_a_pod_that_moves_to_another_gpu_has_one() -> None:
    moved = series(POD, "GPU-1", {15.0: 40.0}), series(POD, "GPU-2", {30.0: 40.0})
    assert chunk_of(spec(), Observation((15.0, 30.0), moved, {}), None).gpus == 1


@pytest.mark.parametrize(
    ("covered", "pods", "loads", "replicas", "saturated"),
    [
        pytest.param([1] * 3, {POD: [50, 60, 70]}, [50, 60, 70], [1, 1, 1], 0, id="one pod"),
        pytest.param(
            [1] * 2, {POD: [50, 60], OTHER: [20, 30]}, [70, 90], [2, 2], 0, id="the sum of two"
        ),
        pytest.param([1, 0, 1], {POD: [50, N, 70]}, [50, N, 70], [1, N, 1], 0, id="no exporter"),
        pytest.param([1] * 3, {POD: [50, N, 70]}, [50, N, 70], [1, N, 1], 0, id="a hole in a pod"),
        pytest.param([1] * 2, {}, [0, 0], [0, 0], 0, id="no pod, and exporters answer"),
        pytest.param(
            [1] * 5,
            {POD: [50] * 5, OTHER: [N, 100, 100, 30, 30]},
            [50, 50, 50, 80, 80],
            [1, 2, 2, 2, 2],
            0,
            id="one that loads for half a minute does no work",
        ),
        pytest.param(
            [1] * 2,
            {POD: [95, 50], OTHER: [99, 99]},
            [201, 149],
            [2, 2],
            1,
            id="all of them full: more than they can do",
        ),
        pytest.param([1] * 3, {POD: [2, 1, 3]}, [0, 0, 3], [1, 1, 1], 0, id="blips of idle cards"),
    ],
)
def test_the_work_is_the_sum_over_replicas_where_all_are_seen(
    covered: list[int],
    pods: dict[str, list[float | None]],
    loads: list[float | None],
    replicas: list[int | None],
    saturated: int,
) -> None:
    chunk = Chunk(15.0, [bool(one) for one in covered], pods, gpus=2)
    work = work_of([chunk], lambda pod: pod, start_seconds=30)
    assert work.loads == loads
    assert work.replicas == replicas
    assert (sum(work.full), work.gpus, work.begin) == (saturated, 2 * bool(pods), 15.0)


def test_a_pod_that_comes_back_under_its_name_starts_again() -> None:
    chunk = Chunk(15.0, [True] * 33, {POD: [50.0] * 33, OTHER: [90.0, *[N] * 28, *[100.0] * 4]})
    work = work_of([chunk], lambda pod: pod, start_seconds=30)
    assert list(work.loads)[-5:] == [50.0, 50.0, 50.0, 150.0, 150.0]


def test_a_new_pod_of_a_group_hides_the_group_only_while_it_starts() -> None:
    pods: dict[str, list[float | None]] = {
        "bert-0": [90.0] * 6,
        "bert-0-1": [N, N, N, 100.0, 90.0, 90.0],
    }
    work = work_of([Chunk(15.0, [True] * 6, pods)], lambda pod: pod[:6], start_seconds=15)
    assert work.loads == [90.0, 90.0, 90.0, 0, 90.0, 90.0]


def test_replicas_that_are_full_while_another_one_loads_are_all_full() -> None:
    pods: dict[str, list[float | None]] = {POD: [100.0] * 4, OTHER: [N, N, 100.0, 50.0]}
    work = work_of([Chunk(15.0, [True] * 4, pods)], lambda pod: pod, start_seconds=15)
    assert work.full == [True, True, True, False]


def test_a_pod_that_is_away_for_more_than_five_minutes_was_not_there() -> None:
    chunk = Chunk(15.0, [True] * 30, {POD: [50.0, *[N] * 28, 50.0], OTHER: [10.0] * 30})
    work = work_of([chunk], lambda pod: pod, start_seconds=0)
    assert work.loads == [60.0, *[10.0] * 28, 60.0]
    # No other pod has such a name: its exporter was away.
    work = work_of([chunk], lambda pod: pod, start_seconds=30, hole_seconds=math.inf)
    assert work.loads == [60.0, *[None] * 28, 60.0]


def test_chunks_follow_each_other_and_groups_are_one_replica() -> None:
    first = Chunk(15.0, [True, True], {"bert-0": [40.0, 40.0], "bert-0-1": [60.0, 60.0]}, gpus=8)
    second = Chunk(45.0, [True], {"bert-0": [80.0]}, gpus=8)
    work = work_of([first, second], lambda pod: pod[:6], start_seconds=0)
    assert (work.loads, work.gpus) == ([50.0, 50.0, 80.0], 16)


def test_with_a_capacity_the_demand_is_the_work() -> None:
    chunk = Chunk(15.0, [True, True], {POD: [100.0, 100.0]}, gpus=1, demands=[30.0, None])
    work = work_of([chunk], lambda pod: pod, start_seconds=0, capacity=20.0)
    assert (work.loads, work.full) == ([150.0, None], [])


def test_a_pod_that_is_shown_again_is_no_scale_out() -> None:
    seen: list[float | None] = [60.0] * 80
    pods = {f"bert-7b6667bd9-{letter * 5}": seen for letter in "bcdf"}
    pods["bert-7b6667bd9-ggggg"] = [*seen[:30], N, N, *seen[:48]]
    chunk = Chunk(15.0, [True] * 80, pods, demands=[40.0] * 80)
    assert work_of([chunk], lambda pod: pod, start_seconds=0).futile == ()


@pytest.mark.parametrize(("load", "futile"), [(95.0, 1), (76.0, 0)])
def test_a_scale_out_after_which_neither_demand_nor_load_fell_is_named(
    load: float, futile: int
) -> None:
    old: list[float | None] = [*[95.0] * 30, *[load] * 30]
    new: list[float | None] = [*[N] * 30, *[load] * 30]
    pods = {f"bert-7b6667bd9-{letter * 5}": old for letter in "bcdf"}
    pods["bert-7b6667bd9-ggggg"] = new
    chunk = Chunk(15.0, [True] * 60, pods, demands=[40.0] * 60)
    named = work_of([chunk], lambda pod: pod, start_seconds=0).futile
    assert [at for at, _ in named] == [15.0 * 51] * futile
    assert all(sentence.startswith("5 replicas instead of 4 did not") for _, sentence in named)
