"""The port behind the service: who decides, seen from the calls that ask. Types only."""

from typing import Protocol

from keda_gpu_scaler import decision, spec


class Evaluations(Protocol):
    """Decides what a trigger's load is and whether its workload is active."""

    @property
    def source_names(self) -> frozenset[str]:
        """The sources a trigger may name."""

    @property
    def knows_targets(self) -> bool:
        """Whether a trigger may leave out its workload, because the Kubernetes API names it."""

    async def evaluate(
        self,
        scaled_object: spec.ScaledObject,
        trigger_spec: spec.TriggerSpec,
        timeout_seconds: float | None,
        /,
    ) -> decision.Decision:
        """Decide within the caller's remaining time; a faulty source becomes a decision too.

        Without a deadline it bounds itself, to a few seconds: KEDA sets none, and a stopping server
        waits for it.

        Args:
            scaled_object: whose trigger it is.
            trigger_spec: the trigger, parsed.
            timeout_seconds: what is left of the caller's deadline; None when it set none.
        """

    def step_seconds(self, source: str, /) -> float:
        """Tell how often a source has something new to say."""
