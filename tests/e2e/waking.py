"""Workloads that sleep until a stream wakes them.

How soon it does is measured by `make bench-wake`. Here no poll comes before a wait is given up.
"""

import logging
from typing import Any

from tests.e2e import streams
from tests.e2e.lab import PATIENCE_SECONDS, POLLING_SECONDS, Lab
from tests.e2e.manifests import Manifest
from tests.e2e.resources import ScaledObject

RARELY_SECONDS = 300
"""A pollingInterval after whose first poll only a stream can wake anything within a scenario."""
assert RARELY_SECONDS > PATIENCE_SECONDS
_LOOKS = 3
"""More decisions than the first poll makes: the stream is open and looks."""
log = logging.getLogger(__name__)


async def asleep(
    lab: Lab,
    workload: str,
    *triggers: Manifest,
    **fields: Any,  # noqa: ANN401 - any field of a ScaledObject's spec
) -> None:
    """Autoscale a workload at zero, which KEDA polls only once, and wait until its stream looks.

    KEDA 2.21 closes the stream of a trigger whose poll fails, until the next poll.
    """
    await lab.is_known(workload)
    spec = {"min_replicas": 0, "polling_seconds": RARELY_SECONDS} | fields
    await lab.autoscale(workload, *triggers, **spec)

    async def looked() -> bool:
        return len(lab.decisions(workload)) > _LOOKS and lab.replicas(workload) == 0

    await lab.wait(looked, f"{workload} sleeps, and its stream looks")


async def wakes(lab: Lab, workload: str) -> None:
    """Wait until a workload is woken by what just happened, and write down how long it took."""
    began = lab.timeline.now_seconds

    async def woken() -> bool:
        return lab.replicas(workload) == 1

    await lab.wait(woken, f"{workload} is woken")
    log.info("%s was woken after %.1f s", workload, lab.timeline.now_seconds - began)


async def poll_often(lab: Lab, workload: str) -> None:
    """Have KEDA poll an active workload again: only a poll lets one go.

    KEDA 2.20 can take the poll that meets a changed ScaledObject for an idle one. A workload that
    it has not polled for longer than its cooldown would then be ended.
    """
    found: Any = await lab.client.get(ScaledObject, workload, namespace=lab.name)
    known = await streams.last_activity(lab, workload)
    await lab.patch(workload, pollingInterval=POLLING_SECONDS, cooldownPeriod=RARELY_SECONDS)
    await streams.is_told(lab, workload, known, "it is polled again")
    await lab.patch(workload, cooldownPeriod=found.spec["cooldownPeriod"])
