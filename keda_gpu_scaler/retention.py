"""How long is kept what is known of something that is not asked about any more, and of how many.

KEDA asks about a trigger every 30 s by default, and every few minutes at most. What was not asked
about for ten minutes was deleted, or is as good as new when it is asked about again.
"""

from collections.abc import Callable
from typing import TypeVar

from cachetools import TTLCache

FORGET_SECONDS = 600.0
TRIGGERS = 20_000
"""More than one KEDA can poll."""

K = TypeVar("K")
V = TypeVar("V")


def remembering(clock: Callable[[], float]) -> TTLCache[K, V]:
    """Return a cache of one value for each trigger, each kept until ten minutes after it was put.

    Args:
        clock: seconds that never go back.
    """
    return TTLCache(TRIGGERS, FORGET_SECONDS, timer=clock)
