"""How long a stream of specs lives, and when `true` is pushed on a stream of activity.

Each `true` costs KEDA a write to the Kubernetes API and restarts its cooldown, so it is sent only
when the workload becomes active. It is repeated only for a workload without pods: KEDA may drop a
push, and nothing else would scale the workload up. `false` is never sent: KEDA since 2.18 ignores
it, and older versions would scale to zero although another trigger is active.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator

from keda_gpu_scaler.decision.decision import Decision

REPEAT_SECONDS = 15.0
LONGEST_SPEC_SECONDS = 86_400.0
"""Of a StreamMetricSpec: it says nothing after its first message, on whichever connection it is."""
_EARLY_SECONDS = 2.5
"""Evaluations come a little early or late; this is half of the usual time between two."""


def spec_seconds() -> float:
    """Return how long one StreamMetricSpec lives: half a day to a day, each for a time of its own.

    For each one that opens KEDA 2.21 reconciles its ScaledObject, with six requests to the API
    server, of which it sends 20 a second. A thousand of them are opened at once when KEDA starts.
    """
    return random.uniform(LONGEST_SPEC_SECONDS / 2, LONGEST_SPEC_SECONDS)  # noqa: S311 - no secret


@contextlib.contextmanager
def on_draining(draining: asyncio.Event, call: Callable[[], None]) -> Iterator[None]:
    """Call `call` when the server drains, while the context lasts."""
    task = asyncio.create_task(draining.wait(), name="draining")
    task.add_done_callback(lambda _: call())
    try:
        yield
    finally:
        task.cancel()


class Pushes:
    """Decides after each evaluation whether to push `true`."""

    def __init__(self) -> None:
        self._was_active = False
        self._pushed_at = float("-inf")

    def is_due(self, decision: Decision, now: float) -> bool:
        """Return whether to push this decision; `now` is in seconds of any one clock."""
        rising = decision.activated and not self._was_active
        self._was_active = decision.activated
        is_old = now - self._pushed_at > REPEAT_SECONDS - _EARLY_SECONDS
        due = rising or (decision.activated and not decision.shows_pods and is_old)
        if due:
            self._pushed_at = now
        return due
