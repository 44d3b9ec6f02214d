"""Which workloads have replicas, told from who asks: the HPA rests at zero.

Since 2.20, KEDA takes a poll that follows a failed one for "inactive, no error" when a request of
the HPA's meets it: an error about a busy workload can then scale it to zero. Where there are
replicas, "active" costs nothing instead; where there are none, it would wake the workload.
"""

import time
from collections.abc import Callable

from cachetools import TTLCache

from keda_gpu_scaler.spec import ScaledObject

REMEMBER_SECONDS = 60.0
"""Four syncs of the HPA at its default of 15 s: it may be late."""
OBJECTS_REMEMBERED = 20_000


class Awake:
    """The ScaledObjects that the HPA asked about lately."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Know of none.

        Args:
            clock: seconds that never go back.
        """
        self._asked: TTLCache[ScaledObject, bool] = TTLCache(
            OBJECTS_REMEMBERED, REMEMBER_SECONDS, timer=clock
        )

    def has_replicas(self, scaled_object: ScaledObject, seconds_left: float | None) -> bool:
        """Tell whether a workload is known to have replicas, from this call and those before.

        Args:
            scaled_object: whom the call is about.
            seconds_left: KEDA passes the HPA's deadline on, and sets none when it polls.
        """
        if seconds_left is not None:
            self._asked[scaled_object] = True
        return scaled_object in self._asked
