"""No replica of the scaler answers: what KEDA does to each kind of ScaledObject meanwhile.

Every change of replicas and conditions is seen, and a failure shows all of them by the second. What
KEDA should not do is asserted as well: a version that does better has to change the pages that warn
of it (docs/operations.md, docs/upstream).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from testbed.cluster import generation
from tests.e2e import waking
from tests.e2e.counts import Counts
from tests.e2e.lab import Lab
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN, SEEN_FOR

BUSY = 50
"""For one replica, in percent of its GPU."""
LONG_COOLDOWN = {"cooldown_seconds": 600}
NO_NUMBER = "False FailedGetExternalMetric"
NUMBER = "True ValidMetricFound"
READY = "True ScaledObjectReady"
ERROR = "False TriggerError"
RESTS = "True ScalingDisabled"
Fields = Mapping[str, Any]

KEPT: Mapping[str, Fields] = {
    "one": {},
    "zero": {"min_replicas": 0, **LONG_COOLDOWN},
    "idle": {"idleReplicaCount": 0, **LONG_COOLDOWN},
    "push": {"min_replicas": 0, **LONG_COOLDOWN},
    "static": {"fallback": {"failureThreshold": 1, "replicas": 3}},
    "current": {
        "fallback": {"failureThreshold": 0, "behavior": "currentReplicasIfHigher", "replicas": 3}
    },
    "pushed-static": {"fallback": {"failureThreshold": 1, "replicas": 3}},
    "pushed-at-once": {"fallback": {"failureThreshold": 0, "replicas": 3}},
}
"""ScaledObjects with one busy replica each. `push` in a name is the type of its trigger."""


async def _autoscale(lab: Lab, objects: Mapping[str, Fields]) -> None:
    """Run one busy replica for each ScaledObject until its HPA has numbers."""
    for name in objects:
        await lab.deploy(name, replicas=1, load=BUSY)
    await _have_been_seen(lab, objects, 1)
    for name, fields in objects.items():
        trigger = waking.push if name.startswith("push") else Lab.gpu
        await lab.autoscale(name, trigger(lab, name), **fields)
    await _show(lab, objects, "hpa ScalingActive", NUMBER)
    for name in objects:
        await lab.becomes(name, "measured")


async def _have_been_seen(lab: Lab, names: Iterable[str], replicas: int) -> None:
    """Wait until all have their replicas, and these have been seen for longer than a warm-up."""
    for name in names:
        await lab.reaches(name, replicas)
        pods = f'DCGM_FI_DEV_GPU_UTIL{{pod=~"{name}-[^-]+-[^-]+"}}'
        await lab.prometheus.wait_for(f"count({pods} offset {SEEN_FOR}) == {replicas}")


async def _show(lab: Lab, names: Iterable[str], aspect: str, value: str) -> None:
    for name in names:
        await lab.shows(name, aspect, value)


async def test_a_scaler_that_is_gone_wakes_none_and_takes_away_what_fallback_says_and_no_more(
    lab: Lab, keda_counts: Counts
) -> None:
    await lab.deploy("asleep")
    demand = lab.offered("asleep")
    asleep = lab.gpu("asleep", demandQuery=demand)
    await lab.autoscale("asleep", asleep, min_replicas=0)
    ended = {"min_replicas": 0, "fallback": {"failureThreshold": 60, "replicas": 0}}
    await _autoscale(lab, {**KEPT, "ended": ended})
    await lab.shows("asleep", "keda Ready", READY)

    lab.timeline.note("the scaler is killed")
    gone = lab.timeline.now_seconds
    before = {name: await _errors(lab, keda_counts, name) for name in [*KEPT, "asleep"]}
    lab.scaler.kill()
    await lab.offer("asleep", BUSY)
    replaced = set() if generation.KEDA_IS_OLD else {"pushed-at-once"}
    kept = KEPT.keys() - replaced
    await _show(lab, kept, "hpa ScalingActive", NO_NUMBER)
    await _show(lab, kept, "keda HPAActive", NO_NUMBER)
    # KEDA 2.21 knows the names of a pushed trigger's metrics without asking: it can count one
    # failure before it forgets them, which is enough for this threshold alone.
    for name in replaced:
        await lab.reaches(name, 3)
    await lab.stays("one", 1, for_seconds=2 * LONGER_THAN_THE_COOLDOWN)
    for name in kept:
        assert lab.path(name) == [1], lab.story()
    assert lab.path("asleep") == [0], lab.story()
    for name in [*KEPT, "asleep"]:
        # A `fallback` makes KEDA say that all is well.
        ready = READY if "fallback" in KEPT.get(name, {}) else ERROR
        await lab.shows(name, "keda Ready", ready)
        engaged = str(lab.timeline.last(name, "keda Fallback")).startswith("True")
        assert engaged == (name in replaced), lab.story()
    await lab.reaches("ended", 0)
    await lab.shows("ended", "keda HPAActive", RESTS)
    assert lab.timeline.last("ended", "keda Ready") == READY, lab.story()
    for name in kept | {"asleep"}:
        failed, detailed = await _errors(lab, keda_counts, name)
        assert failed > before[name][0], name
        # It has no name of a metric to count by, so that this one tells nothing.
        assert name.startswith("push") or detailed == before[name][1], name

    lab.timeline.note("the scaler is started")
    await lab.scaler.start()
    await lab.reaches("asleep", 1)
    await _show(lab, KEPT, "hpa ScalingActive", NUMBER)
    await _show(lab, KEPT, "keda Ready", READY)
    for name in kept:
        assert lab.path(name, gone) == [1], lab.story()


async def _errors(lab: Lab, counts: Counts, name: str) -> tuple[float, float]:
    """Return what KEDA has counted of a ScaledObject, and of the metrics of its triggers."""
    labels = {"namespace": lab.name, "scaledObject": name}
    objects = await counts.total("keda_scaled_object_errors_total", **labels)
    return objects, await counts.total("keda_scaler_detail_errors_total", **labels)


async def test_a_second_trigger_takes_replicas_away_if_keda_makes_the_hpa_anew_without_a_scaler(
    lab: Lab,
) -> None:
    # KEDA makes it anew whenever the ScaledObject changes, when its operator starts, and when
    # `Ready` turns True. No poll does the latter here: a sync of the HPA's comes first.
    replicas, load = 3, 180
    names = ("lone", "two", "guarded")
    for name in names:
        await lab.deploy(name, replicas=replicas, load=load)
    await _have_been_seen(lab, names, replicas)
    for name in names:
        others = [] if name == "lone" else [lab.router(name)]
        await lab.autoscale(name, lab.gpu(name), *others, polling_seconds=300)
    await _show(lab, names, "hpa ScalingActive", NUMBER)
    for name in names:
        await lab.becomes(name, "measured")
    whole = {name: lab.timeline.last(name, "hpa metrics") for name in names}
    assert whole["lone"] == ["s0-gpu-utilization"]

    lab.timeline.note("the scaler is killed, and the ScaledObjects are changed")
    gone = lab.timeline.now_seconds
    lab.scaler.kill()
    await _show(lab, names, "hpa ScalingActive", NO_NUMBER)
    await lab.annotate("guarded", paused_scale_in="true")
    for name in names:
        await lab.patch(name, maxReplicaCount=11)

    for name in ("two", "guarded"):
        await lab.shows(name, "hpa metrics", "['s1-prometheus']")
    # Longer than what the HPA remembers of earlier recommendations.
    await lab.stays("two", replicas, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert lab.timeline.last("lone", "hpa metrics") == whole["lone"], lab.story()

    lab.timeline.note("the scaler is started")
    await lab.scaler.start()
    await lab.reaches("two", 1)
    await _show(lab, names, "hpa ScalingActive", NUMBER)
    await lab.stays("two", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)

    lab.timeline.note("the ScaledObjects are changed again")
    await lab.patch("two", maxReplicaCount=12)
    await lab.annotate("guarded", paused_scale_in=None)

    for name in names:
        await lab.shows(name, "hpa metrics", str(whole[name]))
    await lab.reaches("two", replicas)
    await lab.stays("guarded", replicas, for_seconds=LONGER_THAN_THE_COOLDOWN)
    for name in ("lone", "guarded"):
        assert lab.path(name, gone) == [replicas], lab.story()
