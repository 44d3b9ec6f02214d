"""Prometheus goes away where nothing can go to zero: KEDA 2.21 polls for no values there.

It takes what the HPA was told last. Replicas are watched by every change; a failure shows them all.
"""

from typing import Any

from tests.e2e.lab import Lab
from tests.e2e.under_load import (
    LESS_LOAD,
    LOAD,
    LONGER_THAN_THE_COOLDOWN,
    REPLICAS,
    SHORT_MAX_AGE,
    the_hpa_has_a_number,
)

FALLBACK = {"failureThreshold": 1, "replicas": 7}
NO_NUMBER = "False FailedGetExternalMetric"
READY = "True ScaledObjectReady"


async def test_an_outage_of_prometheus_holds_the_replicas_of_what_never_goes_to_zero(
    lab: Lab,
) -> None:
    # A hold is no failure, so that no `fallback` comes; an error is one, and still takes nothing.
    objects: dict[str, dict[str, Any]] = {"bert": {}, "held": {"fallback": FALLBACK}, "failing": {}}
    for name in objects:
        await lab.deploy(name, replicas=REPLICAS, load=LOAD)
    for name, fields in objects.items():
        await lab.reaches(name, REPLICAS)
        unknown = {"onUnknown": "error"} if name == "failing" else {}
        await lab.autoscale(name, lab.gpu(name, **SHORT_MAX_AGE, **unknown), **fields)
    for name in objects:
        await the_hpa_has_a_number(lab, name)
        await lab.shows(name, "keda HPAActive", "True")

    lab.timeline.note("Prometheus stopped")
    began = lab.timeline.now_seconds
    await lab.prometheus.stop()
    for name in objects:
        await lab.becomes(name, "unknown")
        await lab.offer(name, LESS_LOAD)
    for name in objects:
        await lab.shows(name, "keda HPAActive", NO_NUMBER)
        await lab.stays(name, REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    for name in objects:
        assert lab.path(name, began) == [REPLICAS], lab.story()
        await lab.shows(name, "keda Ready", "False TriggerError" if name == "failing" else READY)
        fallbacks = lab.timeline.path(name, "keda Fallback", began)
        assert not any(str(each).startswith("True") for each in fallbacks), lab.story()
    for name in ("bert", "held"):
        assert lab.timeline.path(name, "keda Ready", began) == [READY], lab.story()

    lab.timeline.note("Prometheus started")
    back = lab.timeline.now_seconds
    await lab.prometheus.start()
    for name in objects:
        await lab.reaches(name, 2)
        await lab.shows(name, "keda HPAActive", "True")
        assert lab.path(name, back) == sorted(lab.path(name, back), reverse=True), lab.story()
