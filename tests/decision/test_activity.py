"""Claims about whether a workload is in use."""

from dataclasses import replace
from typing import Any

import pytest

from keda_gpu_scaler.decision import activity
from keda_gpu_scaler.decision.activity import Activity
from keda_gpu_scaler.decision.pod_state import in_use_unnamed
from keda_gpu_scaler.snapshot.snapshot import GpuSamples, Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from tests.support.snapshots import NOW, bert, said
from tests.support.triggers import spec


def _activity(*pods: Pod, trigger: TriggerSpec | None = None, now: float = NOW) -> Activity:
    return activity.activity(trigger or spec(), pods, NOW, now)


def test_the_busiest_single_gpu_decides_and_not_the_average() -> None:
    assert _activity(bert("b", 0, 0, 0, 3)).active
    assert _activity(bert("b", 0, 0, 0, 3)).busiest == 3


def test_activity_is_strictly_above_its_threshold() -> None:
    assert not _activity(bert("b", 2)).active
    assert _activity(bert("b", 2.001)).active


def test_a_spike_within_the_window_is_activity() -> None:
    assert _activity(bert("b", [0] * 12 + [50] + [0] * 7)).active


def test_a_spike_before_the_window_is_not() -> None:
    assert not _activity(bert("b", [0] * 11 + [50] + [0] * 8)).active
    assert _activity(
        bert("b", [0] * 11 + [50] + [0] * 8), trigger=spec(activationWindow="3m")
    ).active


def test_an_idle_pod_is_idle_only_with_samples_over_the_whole_window() -> None:
    assert _activity(bert("b", 0)).covered
    assert not _activity(bert("b", [0] * 3)).covered


def test_a_young_pod_is_covered_by_its_own_life() -> None:
    assert _activity(bert("b", 0, first_seen=NOW - 45)).covered


def test_a_pod_is_covered_by_the_time_it_was_ready() -> None:
    assert not _activity(bert("b", [0] * 3, status=said())).covered
    assert _activity(bert("b", [0] * 3, status=said(ready=NOW - 45))).covered


def test_a_short_window_that_ends_in_silence_is_not_covered() -> None:
    """A busy pod whose exporter went away half a minute ago is not idle."""
    short = spec(activationWindow="20s")
    assert _activity(bert("b", 0), trigger=short).covered
    assert _activity(bert("b", 0, first_seen=NOW), trigger=short).covered
    silent = _activity(bert("b", 90, last_seen=NOW - 30), trigger=short)
    assert silent == Activity(None, active=False, covered=False)
    at_its_edge = spec(activationWindow="30s")
    assert not _activity(bert("b", 90, last_seen=NOW - 30), trigger=at_its_edge).covered


def test_a_minute_of_silence_is_no_gap() -> None:
    assert _activity(bert("b", 0, last_seen=NOW - 60)).covered
    assert not _activity(bert("b", 0, last_seen=NOW - 61)).covered


def test_a_gap_longer_than_patience_is_not_covered() -> None:
    whole = bert("b", 0)
    holed = whole.gpus[0]
    keep = [n for n, time in enumerate(holed.times) if not NOW - 90 < time < NOW - 15]
    times = tuple(holed.times[n] for n in keep)
    gpu = type(holed)(holed.gpu, times, tuple(0.0 for _ in times))
    pod = Pod(whole.name, (gpu,), None, NOW, NOW, 15.0)
    assert not _activity(pod).covered


def test_a_gpu_without_samples_is_not_an_idle_one() -> None:
    whole = bert("b", 0)
    blank = GpuSamples("GPU-x", (), (), refused=whole.gpus[0].times)
    assert not _activity(replace(whole, gpus=(*whole.gpus, blank))).covered


def test_a_gpu_that_the_pod_has_no_more_need_not_be_covered() -> None:
    whole = bert("b", 0)
    before = GpuSamples("GPU-x", whole.gpus[0].times[:-4], (0.0,) * (len(whole.gpus[0].times) - 4))
    assert _activity(replace(whole, gpus=(*whole.gpus, before))).covered


def test_a_gpu_that_was_not_shown_for_a_minute_is_one_that_the_pod_has_no_more() -> None:
    silent = bert("b", 0, last_seen=NOW - 15)
    times = tuple(time for time in silent.gpus[0].times if time <= silent.last_seen - 60)
    before = GpuSamples("GPU-x", times, (0.0,) * len(times))
    assert _activity(replace(silent, gpus=(*silent.gpus, before))).covered


def test_a_pod_without_samples_covers_nothing() -> None:
    assert not _activity(bert("b")).covered


def test_ended_pods_and_stale_samples_are_no_activity() -> None:
    assert _activity(bert("b", 90, ended=True)) == Activity(None, active=False, covered=False)
    assert _activity(bert("b", 90), now=NOW + 180).active
    assert not _activity(bert("b", 90), now=NOW + 181).active


def test_a_missing_pod_was_busy_as_long_as_the_window_remembers_it() -> None:
    assert _activity(bert("b", 90, last_seen=NOW - 100)).active
    assert not _activity(bert("b", 90, last_seen=NOW - 121)).active


@pytest.mark.parametrize(
    ("how", "is_in_use"),
    [
        pytest.param({}, True, id="busy when it was named"),
        pytest.param({"is_unnamed": False}, False, id="its exporter names others"),
        pytest.param({"last_seen": NOW - 120, "gpus": ()}, False, id="named too long ago"),
        pytest.param({"gpus": (), "busy_unnamed_at": NOW - 105}, True, id="busy since"),
        pytest.param({"gpus": (), "busy_unnamed_at": NOW - 120}, False, id="not busy for long"),
    ],
)
def test_a_pod_whose_exporter_may_have_lost_its_map_is_in_use_for_the_window(
    how: dict[str, Any],
    is_in_use: bool,  # noqa: FBT001 - an example
) -> None:
    pod = replace(bert("b", 90, last_seen=NOW - 105, ended=True), is_unnamed=True)
    assert in_use_unnamed(spec(), replace(pod, **how), NOW) is is_in_use
