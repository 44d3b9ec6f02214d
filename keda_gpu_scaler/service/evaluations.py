"""The port behind the service: who decides, seen from the calls that ask. Types only."""

import contextlib
from collections.abc import Callable
from typing import Protocol

from keda_gpu_scaler import decision, spec
from keda_gpu_scaler.demand import Demand


class Evaluations(Protocol):
    """Decides what a trigger's load is and whether its workload is active."""

    async def evaluate(
        self,
        scaled_object: spec.ScaledObject,
        trigger_spec: spec.TriggerSpec,
        timeout_seconds: float | None,
        /,
        *,
        patient: bool = False,
    ) -> decision.Decision:
        """Decide within the caller's remaining time; a faulty source becomes a decision too.

        Without a deadline it bounds itself, to a few seconds: KEDA sets none, and a stopping server
        waits for it.

        Args:
            scaled_object: whose trigger it is.
            trigger_spec: the trigger, parsed.
            timeout_seconds: what is left of the caller's deadline; None when it set none.
            patient: wait for what is on its way even where there is something usable. A stream
                would otherwise see it only at its next look.
        """

    async def demand(
        self,
        scaled_object: spec.ScaledObject,
        trigger_spec: spec.TriggerSpec,
        timeout_seconds: float | None,
        /,
    ) -> Demand:
        """Find the demand for the workload of a trigger that has a demandQuery; bound as above."""

    def until_news_seconds(
        self, scaled_object: spec.ScaledObject, trigger_spec: spec.TriggerSpec, /
    ) -> float:
        """Tell how long after an evaluation there can be something new to say."""

    def listen(
        self, scaled_object: spec.ScaledObject, call: Callable[[], None], /
    ) -> contextlib.AbstractContextManager[None]:
        """Have `call` called when there is something new before that, while the context lasts."""
