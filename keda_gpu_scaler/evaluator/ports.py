"""The evaluator's ports: samples, evidence, one number, alerts.

A source answers completely or raises `errors.SourceError`. Each method ends within the source's own
timeout. The Kubernetes API, where the operator enables it, answers from its watches, without a
request; it does not answer what may be out of date.
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
        """Return the name of an alert that fires for it now; None: no alert fires."""

    def listen(
        self, scaled_object: ScaledObject, call: Callable[[], None]
    ) -> contextlib.AbstractContextManager[None]:
        """Call `call` whenever an alert for it begins or ends, while the context lasts."""


class NoAlerts:
    """No alerts: the scaler receives none."""

    def firing(self, _scaled_object: ScaledObject) -> str | None:
        """Return None: no alert fires."""

    def listen(
        self, _scaled_object: ScaledObject, _call: Callable[[], None]
    ) -> contextlib.AbstractContextManager[None]:
        """Never call: there are no alerts."""
        return contextlib.nullcontext()


class Cluster(Protocol):
    """What one Kubernetes API server says of its pods, and of the targets of ScaledObjects."""

    async def start(self) -> None:
        """Start to follow it; called once, before anything else."""

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence:
        """Return what is known of the pods of these namespaces.

        Args:
            namespaces: the namespaces to report.
            at: the instant to report; nothing later is included.
            now: the time on the same clock as `at`.

        Raises:
            errors.SourceError: what is known may be out of date; the message says why.
        """

    async def target(self, scaled_object: ScaledObject, grace_seconds: float) -> PodSelector:
        """Return the pods of a ScaledObject's target; wait for it at most `grace_seconds`.

        Raises:
            errors.SourceError: it is not known; the message says why.
        """

    async def close(self) -> None:
        """Close connections and end tasks."""


SETTLED_LAG_SECONDS = 2.0
"""How far behind its clock a source is queried: samples arrive late, and every replica of the
scaler must see the same samples to give the same answer."""
SLOW_SECONDS = 2.5
"""No call waits longer for an answer; it may still come later."""


class Source(Protocol):
    """A source of GPU samples, with its own clock."""

    step_seconds: float
    """The distance between instants; no new information comes faster."""

    is_per_namespace: bool
    """Whether it can only be queried about one namespace at a time; `within` selects it."""

    def within(self, namespace: str) -> "Source":
        """Return the source for this namespace: itself, unless it is per namespace.

        The returned source is closed together with this one.
        """

    async def start(self) -> None:
        """Start its background tasks; called once, before anything else."""

    async def synchronize(self) -> None:
        """Learn the source's clock, if it is not known well enough."""

    def now(self) -> float:
        """The time on the source's clock; this machine's, until the source's is known."""

    def instant(self) -> float:
        """The newest instant that can be queried now."""

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the samples of the query up to the instant `at`."""

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation | None:
        """Return the pods that reported in the last hour, coarsely; None: there is no history."""

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return where the GPUs with these UUIDs are at the instant `at`."""

    async def evidence(self, namespaces: Collection[str], at: float) -> Evidence | None:
        """Return what the cluster says of the pods there; None: the source has no such evidence."""

    async def number(self, text: str) -> float | None:
        """Return the one number that an expression gives now; None if the result is empty.

        Any other result than one countable number (`demand.is_countable`), such as two numbers or
        NaN, is an error.

        Args:
            text: in the source's own language.
        """

    async def close(self) -> None:
        """Close connections and end tasks."""
