"""Triggers of type external-push, their streams, and workloads that sleep until one wakes them.

How soon it does is measured by `make bench-wake`. Here no poll comes before a wait is given up.
"""

from typing import Any

from testbed.cluster.manifests import Manifest
from testbed.cluster.resources import ScaledObject
from tests.e2e.lab import PATIENCE_SECONDS, POLLING_SECONDS, Lab

RARELY_SECONDS = 300
"""A pollingInterval after whose first poll only a stream can wake anything within a scenario."""
assert RARELY_SECONDS > PATIENCE_SECONDS
_LOOKS = 3
"""More decisions than the first poll makes: the stream is open and looks."""


def push(lab: Lab, workload: str, **metadata: str) -> Manifest:
    """Return a trigger of ours whose activity is pushed, beside KEDA's polls."""
    return lab.gpu(workload, **metadata) | {"type": "external-push"}


async def ended(lab: Lab, code: str, at_least: int) -> None:
    """Wait until this many streams have ended with a status, by the scaler's own count."""

    async def counted() -> bool:
        labels = {"method": "StreamIsActive", "code": code}
        return await lab.scaler.counted("keda_gpu_scaler_rpcs_total", **labels) >= at_least

    await lab.wait(counted, f"{at_least} streams have ended with {code}")


async def last_activity(lab: Lab, workload: str) -> Any:
    """Return when KEDA thinks a workload was last active."""
    found: Any = await lab.client.get(ScaledObject, workload, namespace=lab.name)
    return (found.status or {}).get("lastActiveTime")


async def is_told(lab: Lab, workload: str, since: Any, occasion: str) -> Any:
    """Wait until KEDA knows of a later activity than this one, and return it."""

    async def told() -> bool:
        return bool(await last_activity(lab, workload) != since)

    await lab.wait(told, f"KEDA is told that {workload} is active: {occasion}")
    return await last_activity(lab, workload)


async def asleep(
    lab: Lab,
    workload: str,
    *triggers: Manifest,
    **fields: Any,
) -> None:
    """Autoscale a workload at zero, which KEDA polls only once, and wait until its stream looks.

    KEDA 2.21 closes the stream of a trigger whose poll fails, until the next poll.
    """
    await lab.is_known(workload)
    spec = {"min_replicas": 0, "polling_seconds": RARELY_SECONDS} | fields
    await lab.autoscale(workload, *triggers, **spec)
    await lab.wait(
        lambda: len(lab.decisions(workload)) > _LOOKS and lab.replicas(workload) == 0,
        f"{workload} sleeps, and its stream looks",
    )


async def wakes(lab: Lab, workload: str) -> None:
    """Wait until a workload is woken by what just happened."""
    await lab.wait(lambda: lab.replicas(workload) == 1, f"{workload} is woken")


async def poll_often(lab: Lab, workload: str) -> None:
    """Have KEDA poll an active workload again: only a poll lets one go.

    KEDA 2.20 can take the poll that meets a changed ScaledObject for an idle one. A workload that
    it has not polled for longer than its cooldown would then be ended.
    """
    found: Any = await lab.client.get(ScaledObject, workload, namespace=lab.name)
    known = await last_activity(lab, workload)
    await lab.patch(workload, pollingInterval=POLLING_SECONDS, cooldownPeriod=RARELY_SECONDS)
    await is_told(lab, workload, known, "it is polled again")
    await lab.patch(workload, cooldownPeriod=found.spec["cooldownPeriod"])
