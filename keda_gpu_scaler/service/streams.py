"""When `true` is pushed on a stream of activity.

Each `true` costs KEDA a write to the Kubernetes API and restarts its cooldown, so it is sent only
when the workload becomes active. It is repeated only for a workload without pods: KEDA may drop a
push, and nothing else would scale the workload up. `false` is never sent: KEDA since 2.18 ignores
it, and older versions would scale to zero although another trigger is active.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from keda_gpu_scaler.decision.decision import Decision

REPEAT_SECONDS = 15.0
_EARLY_SECONDS = 2.5
"""Evaluations come a little early or late; this is half of the usual time between two."""


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
