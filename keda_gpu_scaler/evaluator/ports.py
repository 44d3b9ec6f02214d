"""What the evaluator needs of the world: samples, evidence, one number, alerts.

A source answers or raises `errors.SourceError`; it never answers half. Each method ends by itself
within the source's own timeout. The Kubernetes API, where the operator wants it, answers from what
it has been told, without a request; what is not sure any more it does not answer.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.evidence import Evidence
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.spec.workload import PodSelector


class Alerting(Protocol):
    """Knows which alerts fire for a ScaledObject."""

    def firing(self, scaled_object: ScaledObject) -> str | None:
        """Return the name of an alert that fires for it now; None: none does."""

    def listen(
        self, scaled_object: ScaledObject, call: Callable[[], None]
    ) -> contextlib.AbstractContextManager[None]:
        """Have `call` called whenever an alert for it begins or ends, while the context lasts."""


class NoAlerts:
    """Nobody tells of alerts."""

    def firing(self, _scaled_object: ScaledObject) -> str | None:
        """Return that none fires."""

    def listen(
        self, _scaled_object: ScaledObject, _call: Callable[[], None]
    ) -> contextlib.AbstractContextManager[None]:
        """Call nobody."""
        return contextlib.nullcontext()


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

    async def target(self, scaled_object: ScaledObject, grace_seconds: float) -> PodSelector:
        """Return the pods of what a ScaledObject scales, waiting at most so long to learn it.

        Raises:
            errors.SourceError: it is not known; the message says why.
        """

    async def close(self) -> None:
        """Let go of connections and tasks."""


SETTLED_LAG_SECONDS = 2.0
"""How far behind its clock a source is asked: samples arrive late, and every replica of the scaler
must see the same ones to give the same answer."""
SLOW_SECONDS = 2.5
"""An answer that takes longer is no longer waited for by anybody; it may still come."""


class Source(Protocol):
    """Somewhere that GPU samples can be had from, with a clock of its own."""

    step_seconds: float
    """The distance between instants; no new information comes faster."""

    is_per_namespace: bool
    """Whether it can only be asked about one namespace at a time; `within` tells it which."""

    def within(self, namespace: str) -> "Source":
        """Return the source to ask about this namespace: itself, unless it is per namespace.

        What is returned then is closed together with this one.
        """

    async def start(self) -> None:
        """Begin whatever runs on its own; called once, before anything else."""

    async def synchronize(self) -> None:
        """Learn the source's clock, if it is not known well enough."""

    def now(self) -> float:
        """The time on the source's clock; this machine's, until the source's is known."""

    def instant(self) -> float:
        """The newest instant that can be asked for now."""

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the samples of the query up to the instant `at`."""

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation | None:
        """Return who reported in the last hour, coarsely; None where no such memory exists."""

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return where the GPUs with these UUIDs are at the instant `at`."""

    async def evidence(self, namespaces: Collection[str], at: float) -> Evidence | None:
        """Return what the cluster says of the pods there; None where nobody here says anything."""

    async def number(self, text: str) -> float | None:
        """Return the one number that an expression gives now; None where it gives nothing.

        Anything else than one number that can be counted with (`demand.is_countable`), such as two
        of them or NaN, is an error.

        Args:
            text: in the source's own language.
        """

    async def close(self) -> None:
        """Let go of connections and tasks."""
