"""KEDA's cron trigger beside ours, while the hours really begin and end.

The file is examples/scaledobjects/business-hours.yaml. Only its hours are the next minutes, its
times are short, and its trigger looks at as short a time as every scenario's.
"""

import time
from datetime import UTC, datetime
from typing import Any

from tests.e2e.lab import (
    COOLDOWN_SECONDS,
    POLLING_SECONDS,
    SHORT_TIMES,
    STABILIZATION_SECONDS,
    Lab,
)
from tests.e2e.test_examples import placed
from tests.repository.test_examples import EXAMPLES, read

(EXAMPLE,) = (path for path in EXAMPLES if path.stem == "business-hours")
FLOOR = 2
"""The example's desiredReplicas."""
MINUTE = 60
SET_UP_SECONDS = 25
"""Before the hours begin: to see that it has no replicas while nothing asks for any."""
EDGE_SECONDS = 1
"""Close to a full minute nothing is claimed: the hours may begin or end between two looks."""
OPEN_MINUTES = 3
"""To climb above the floor and to come back to it takes less than one."""


def at(moment: float) -> str:
    """Return the line of a crontab for the minute that begins then, on every day."""
    when = datetime.fromtimestamp(moment, UTC)
    return f"{when.minute} {when.hour} * * *"


def shortened(document: dict[str, Any], opens: float, closes: float) -> dict[str, Any]:
    """Return the example with these hours and short times, and nothing else changed."""
    spec = document["spec"]
    spec |= {"pollingInterval": POLLING_SECONDS, "cooldownPeriod": COOLDOWN_SECONDS}
    scale_in = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
    scale_in["stabilizationWindowSeconds"] = STABILIZATION_SECONDS
    scale_in["policies"] = [{"type": "Pods", "value": 1, "periodSeconds": POLLING_SECONDS}]
    metadata = {trigger["type"]: trigger["metadata"] for trigger in spec["triggers"]}
    metadata["external"] |= SHORT_TIMES
    metadata["cron"] |= {"timezone": "UTC", "start": at(opens), "end": at(closes)}
    assert metadata["cron"]["desiredReplicas"] == str(FLOOR)
    return document


async def test_the_hours_are_a_floor_and_end_no_pod_that_works(lab: Lab) -> None:
    await lab.deploy("bert")
    await lab.is_known("bert")
    opens = (time.time() + SET_UP_SECONDS) // MINUTE * MINUTE + MINUTE
    closes = opens + OPEN_MINUTES * MINUTE
    await lab.apply(shortened(placed(lab, read(EXAMPLE), "bert"), opens, closes))

    # Before the hours nothing asks for a replica.
    await lab.stays("bert", 0, for_seconds=opens - EDGE_SECONDS - time.time())
    await lab.reaches("bert", FLOOR)

    # In the hours the GPUs ask for more: 250 % over 70 % for each is 4.
    await lab.offer("bert", 250)
    await lab.reaches("bert", 4)
    # 40 % needs one replica, and the hours keep two.
    await lab.offer("bert", 40)
    await lab.reaches("bert", FLOOR)
    await lab.stays("bert", FLOOR, for_seconds=closes - EDGE_SECONDS - time.time())

    # After them one is left, because it works, for longer than what ends an idle one.
    await lab.reaches("bert", 1)
    await lab.stays("bert", 1, for_seconds=3 * COOLDOWN_SECONDS)
    await lab.offer("bert", 0)
    await lab.reaches("bert", 0)

    path = lab.path("bert")
    top = path.index(4)
    assert path[: top + 1] == sorted(path[: top + 1]), lab.story()
    assert path[top:] == sorted(path[top:], reverse=True), lab.story()
    assert time.time() > closes, "the hours have not passed"
