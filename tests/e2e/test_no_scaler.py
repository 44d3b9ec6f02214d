"""No replica of the scaler answers: what KEDA does to each kind of ScaledObject meanwhile.

Every change of replicas and conditions is seen, and a failure shows all of them by the second. What
KEDA should not do is asserted as well: a version that does better has to change the pages that warn
of it (docs/operations.md, docs/upstream).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lightkube.resources.autoscaling_v2 import HorizontalPodAutoscaler
from lightkube.types import PatchType

from tests.e2e import generation, router, streams
from tests.e2e.counts import Counts
from tests.e2e.lab import Lab
from tests.e2e.relay import Door, Relay
from tests.e2e.resources import ScaledObject
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN, SEEN_FOR

OUTLASTS_A_POLL_SECONDS = 40
"""A cooldown: a poll at an address that takes calls and never answers fails after 20 s."""
BUSY = 50
"""For one replica, in percent of its GPU."""
LONG_COOLDOWN = {"cooldown_seconds": 600}
NO_NUMBER = "False FailedGetExternalMetric"
NUMBER = "True ValidMetricFound"
READY = "True ScaledObjectReady"
ERROR = "False TriggerError"
RESTS = "True ScalingDisabled"
NO_SCALE_IN = "autoscaling.keda.sh/paused-scale-in"
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


async def _autoscale(lab: Lab, objects: Mapping[str, Fields], **metadata: str) -> None:
    """Run one busy replica for each ScaledObject until its HPA has numbers."""
    for name in objects:
        await lab.deploy(name, replicas=1, load=BUSY)
    await _have_been_seen(lab, objects, 1)
    for name, fields in objects.items():
        trigger = streams.push if name.startswith("push") else Lab.gpu
        await lab.autoscale(name, trigger(lab, name, **metadata), **fields)
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


async def _metrics(lab: Lab, name: str) -> list[str]:
    """Return the names of the metrics that an HPA asks for."""
    hpa = await lab.client.get(HorizontalPodAutoscaler, f"keda-hpa-{name}", namespace=lab.name)
    assert hpa.spec is not None
    return [each.external.metric.name for each in hpa.spec.metrics or () if each.external]


async def test_a_scaler_that_is_gone_takes_no_replica_away_wakes_none_and_stops_fallback(
    lab: Lab, keda_counts: Counts
) -> None:
    await lab.deploy("asleep")
    demand = router.offered(lab.name, "asleep")
    asleep = lab.gpu("asleep", demandQuery=demand)
    await lab.autoscale("asleep", asleep, min_replicas=0)
    await _autoscale(lab, KEPT)
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


async def test_a_fallback_of_no_replicas_ends_a_busy_workload_without_a_scaler(lab: Lab) -> None:
    ended = {"min_replicas": 0, "fallback": {"failureThreshold": 60, "replicas": 0}}
    await _autoscale(lab, {"ended": ended, "zero": KEPT["zero"]})
    lab.timeline.note("the scaler is killed")
    lab.scaler.kill()
    await lab.reaches("ended", 0)
    await lab.shows("ended", "keda HPAActive", RESTS)
    assert lab.timeline.last("ended", "keda Ready") == READY, lab.story()
    assert lab.path("zero") == [1], lab.story()


async def test_a_scaler_that_takes_calls_and_answers_none_ends_what_its_cooldown_does_not_protect(
    lab: Lab,
) -> None:
    # A lost node looks like this: connections are not refused, and end after 20 s. A poll that
    # fails after the HPA's request has failed counts as "inactive, no error". 2.20 does not open
    # its connection anew, so that errors come at once there, and such polls by chance.
    ended: Mapping[str, Fields] = {
        "short": {"min_replicas": 0},
        "idled": {"idleReplicaCount": 0},
        "fallen": {"min_replicas": 0, "fallback": {"failureThreshold": 3, "replicas": 3}},
        "later": {"min_replicas": 0, "cooldown_seconds": OUTLASTS_A_POLL_SECONDS},
    }
    if generation.KEDA_IS_OLD:
        ended = {}
    kept = {name: KEPT[name] for name in ("one", "zero", "idle")}
    kept["paused"] = {"min_replicas": 0, "cooldown_seconds": OUTLASTS_A_POLL_SECONDS}
    door = Relay(lab.scaler.port)
    async with door.standing():
        await _autoscale(lab, {**ended, **kept}, scalerAddress=door.address)
        lab.timeline.note("the scaler takes calls and never answers")
        gone = lab.timeline.now_seconds
        await door.turn(Door.JAMMED)
        await _annotate(lab, "paused", {NO_SCALE_IN: "true"})
        for name in ended:
            await lab.reaches(name, 0)
        await _show(lab, kept, "keda HPAActive", NO_NUMBER)
        # By then a poll that began after the annotation has failed, and the cooldown is over.
        await lab.stays("one", 1, for_seconds=2 * OUTLASTS_A_POLL_SECONDS)

        lab.timeline.note("the scaler answers")
        await door.turn(Door.OPEN)
        await _show(lab, kept, "hpa ScalingActive", NUMBER)
        for name in kept:
            assert lab.path(name, gone) == [1], lab.story()


async def _annotate(lab: Lab, name: str, annotations: Mapping[str, str | None]) -> None:
    patch = {"metadata": {"annotations": annotations}}
    await lab.client.patch(
        ScaledObject, name, patch, namespace=lab.name, patch_type=PatchType.MERGE
    )


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
    whole = {name: await _metrics(lab, name) for name in names}
    assert whole["lone"] == whole["two"][:1] == ["s0-gpu-utilization"]

    lab.timeline.note("the scaler is killed, and the ScaledObjects are changed")
    gone = lab.timeline.now_seconds
    lab.scaler.kill()
    await _show(lab, names, "hpa ScalingActive", NO_NUMBER)
    await _annotate(lab, "guarded", {NO_SCALE_IN: "true"})
    for name in names:
        await lab.patch(name, maxReplicaCount=11)

    async def without_ours() -> bool:
        return [await _metrics(lab, name) for name in ("two", "guarded")] == [["s1-prometheus"]] * 2

    await lab.wait(without_ours, "the HPA asks for the other trigger alone")
    # Longer than what the HPA remembers of earlier recommendations.
    await lab.stays("two", replicas, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert await _metrics(lab, "lone") == whole["lone"]

    lab.timeline.note("the scaler is started")
    await lab.scaler.start()
    await lab.reaches("two", 1)
    await _show(lab, names, "hpa ScalingActive", NUMBER)
    await lab.stays("two", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)

    lab.timeline.note("the ScaledObjects are changed again")
    await lab.patch("two", maxReplicaCount=12)
    await _annotate(lab, "guarded", {NO_SCALE_IN: None})

    async def whole_again() -> bool:
        return {name: await _metrics(lab, name) for name in names} == whole

    await lab.wait(whole_again, "the HPA asks for ours again")
    await lab.reaches("two", replicas)
    await lab.stays("guarded", replicas, for_seconds=LONGER_THAN_THE_COOLDOWN)
    for name in ("lone", "guarded"):
        assert lab.path(name, gone) == [replicas], lab.story()
