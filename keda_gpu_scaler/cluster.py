"""The port to the Kubernetes API. `kubernetes/` stands behind it, where the operator wants it.

It answers from what it has been told, without a request: what nobody is sure of any more it does
not answer.
"""

from collections.abc import Collection
from typing import Protocol

from keda_gpu_scaler.evidence import Evidence
from keda_gpu_scaler.spec import PodSelector, ScaledObject


class Cluster(Protocol):
    """What one Kubernetes API server says of its pods, and of what ScaledObjects scale."""

    async def start(self) -> None:
        """Begin to follow it; called once, before anything else."""

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence:
        """Return what is known of the pods of these namespaces.

        Args:
            namespaces: the ones to speak of.
            at: the instant that is asked about; nothing is said of a later one.
            now: the time on the clock that `at` is on.

        Raises:
            errors.SourceError: what is known may be out of date; the message says why.
        """

    async def target(self, scaled_object: ScaledObject, patience_seconds: float) -> PodSelector:
        """Return the pods of what a ScaledObject scales, waiting at most so long to learn it.

        Raises:
            errors.SourceError: it is not known; the message says why.
        """

    async def close(self) -> None:
        """Let go of connections and tasks."""
