"""Claims about whether a workload is in use."""

from dataclasses import replace
from typing import Any

import pytest

from keda_gpu_scaler.decision import activity
from keda_gpu_scaler.decision.activity import Activity
from keda_gpu_scaler.decision.pod_state import in_use_unnamed
from keda_gpu_scaler.snapshot.snapshot import GpuSamples, Pod
from testbed.triggers import spec
from tests.support.snapshots import NOW, bert, said


def _activity(pod: Pod, now: float = NOW, /, **keys: str) -> Activity:
    return activity.activity(spec(**keys), (pod,), NOW, now)


def _with_gpu(pod: Pod, until: float, *, is_refused: bool = False) -> Pod:
    """Return a pod with a second GPU, which was idle until then, or whose samples were refused."""
    times = tuple(time for time in pod.gpus[0].times if time <= until)
    values = () if is_refused else (0.0,) * len(times)
    refused = times if is_refused else ()
    gpu = GpuSamples("GPU-x", () if is_refused else times, values, refused=refused)
    return replace(pod, gpus=(*pod.gpus, gpu))


def _without_samples(pod: Pod, begin: float, end: float) -> Pod:
    (gpu,) = pod.gpus
    shown = [(at, v) for at, v in zip(gpu.times, gpu.values, strict=True) if not begin < at < end]
    times, values = zip(*shown, strict=True)
    return replace(pod, gpus=(replace(gpu, times=times, values=values),))


IDLE, SILENT = bert("b", 0), bert("b", 0, last_seen=NOW - 15)
SPIKE_BEFORE = bert("b", [0] * 11 + [50] + [0] * 8)
BUSY_UNTIL_30 = bert("b", 90, last_seen=NOW - 30)
NOTHING = (False, False)
ACTIVITIES: dict[str, tuple[Pod, dict[str, str], tuple[bool, bool]]] = {
    "not above the threshold": (bert("b", 2), {}, (False, True)),
    "above it": (bert("b", 2.001), {}, (True, True)),
    "a spike within the window": (bert("b", [0] * 12 + [50] + [0] * 7), {}, (True, True)),
    "a spike before the window": (SPIKE_BEFORE, {}, (False, True)),
    "in a longer window": (SPIKE_BEFORE, {"activationWindow": "3m"}, (True, True)),
    "a part of the window": (bert("b", [0] * 3), {}, NOTHING),
    "all of a young pod's life": (bert("b", 0, first_seen=NOW - 45), {}, (False, True)),
    "a part of its time as Ready": (bert("b", [0] * 3, status=said()), {}, NOTHING),
    "all of its time as Ready": (
        bert("b", [0] * 3, status=said(ready=NOW - 45)),
        {},
        (False, True),
    ),
    # A busy pod whose exporter went away half a minute ago is not idle.
    "a short window": (IDLE, {"activationWindow": "20s"}, (False, True)),
    "a short life": (bert("b", 0, first_seen=NOW), {"activationWindow": "20s"}, (False, True)),
    "silent for longer": (BUSY_UNTIL_30, {"activationWindow": "20s"}, NOTHING),
    "silent for as long": (BUSY_UNTIL_30, {"activationWindow": "30s"}, NOTHING),
    "silent for a minute": (bert("b", 0, last_seen=NOW - 60), {}, (False, True)),
    "silent for more": (bert("b", 0, last_seen=NOW - 61), {}, NOTHING),
    "a gap": (_without_samples(IDLE, NOW - 90, NOW - 15), {}, NOTHING),
    "a 0 that another metric contradicts": (
        replace(IDLE, contradicted_at=NOW - 119),
        {},
        NOTHING,
    ),
    "contradicted before the window": (replace(IDLE, contradicted_at=NOW - 120), {}, (False, True)),
    "a GPU of refused samples": (_with_gpu(IDLE, NOW, is_refused=True), {}, NOTHING),
    "a GPU of before": (_with_gpu(IDLE, NOW - 60), {}, (False, True)),
    "a GPU of before a silence": (_with_gpu(SILENT, NOW - 75), {}, (False, True)),
    "no samples": (bert("b"), {}, NOTHING),
    "it has ended": (bert("b", 90, ended=True), {}, NOTHING),
    "missing, and busy within the window": (bert("b", 90, last_seen=NOW - 100), {}, (True, False)),
    "missing for longer": (bert("b", 90, last_seen=NOW - 121), {}, NOTHING),
}


@pytest.mark.parametrize(("pod", "keys", "expected"), ACTIVITIES.values(), ids=ACTIVITIES)
def test_it_is_active_and_its_samples_cover_the_window(
    pod: Pod, keys: dict[str, str], expected: tuple[bool, bool]
) -> None:
    found = _activity(pod, **keys)
    assert (found.active, found.covered) == expected


def test_the_busiest_single_gpu_decides_while_its_sample_is_not_stale() -> None:
    busy = bert("b", 0, 0, 0, 3)
    assert _activity(busy, NOW + 180) == Activity(3, active=True, covered=True)
    assert _activity(busy, NOW + 181) == Activity(None, active=False, covered=False)


LITTLE = bert("b", 2, last_seen=NOW - 105)


@pytest.mark.parametrize(
    ("how", "is_in_use"),
    [
        pytest.param({}, True, id="busy when it was named"),
        pytest.param({"gpus": LITTLE.gpus}, False, id="not above the threshold"),
        pytest.param({"is_unnamed": False}, False, id="its exporter names others"),
        pytest.param({"last_seen": NOW - 120, "gpus": ()}, False, id="named too long ago"),
        pytest.param({"gpus": (), "busy_unnamed_at": NOW - 105}, True, id="busy since"),
        pytest.param({"gpus": (), "busy_unnamed_at": NOW - 120}, False, id="not busy for long"),
    ],
)
def test_a_pod_whose_exporter_may_have_lost_its_map_is_in_use_for_the_window(
    how: dict[str, Any],
    is_in_use: bool,
) -> None:
    pod = replace(bert("b", 90, last_seen=NOW - 105, ended=True), is_unnamed=True)
    assert in_use_unnamed(spec(), replace(pod, **how), NOW) is is_in_use
