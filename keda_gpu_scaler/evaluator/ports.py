"""The evaluator's ports, one for each need: samples, evidence, one number, scale targets, alerts.

Each of them answers completely or raises `errors.SourceError`, within its own timeout. What
stands behind a port is opened before the evaluator is made, and closed after it.
"""

import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from keda_gpu_scaler.record.causes import Look
from keda_gpu_scaler.snapshot.evidence import Evidence
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation
from keda_gpu_scaler.spec.spec import ScaledObject, SnapshotQuery
from keda_gpu_scaler.spec.workload import PodSelector


class Alerting(Protocol):
    """Knows which alerts fire for a ScaledObject."""

    def firing(self, scaled_object: ScaledObject) -> str | None:
        """Return the name of an alert that fires for it now; None: no alert fires."""

    def listen(
        self, scaled_object: ScaledObject, call: Callable[[], None]
    ) -> contextlib.AbstractContextManager[None]:
        """Call `call` whenever an alert for it begins or ends, while the context lasts."""


class ScaleTargets(Protocol):
    """Knows which pods a ScaledObject scales."""

    async def target(self, scaled_object: ScaledObject, grace_seconds: float) -> PodSelector:
        """Return the pods of a ScaledObject's target; wait for it at most `grace_seconds`."""


class EvidenceProvider(Protocol):
    """Says which pods a cluster has: the Kubernetes API, or kube-state-metrics in a source."""

    @property
    def name(self) -> str:
        """The provider, in the words of a log line."""

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence | None:
        """Return what is known of the pods of these namespaces; None: it was never set up here.

        Nothing later than the instant `at` is included; `now` is the time on the same clock.

        Raises:
            errors.SourceError: what is known may be out of date; the message says why.
        """


class Numbers(Protocol):
    """Answers a `demandQuery`."""

    async def number(self, text: str) -> float | None:
        """Return the one number that an expression gives now; None if the result is empty.

        The expression is in the source's own language. Any other result than one countable number
        (`spec.is_countable`), such as two numbers or NaN, is an error.
        """


class Samples(Protocol):
    """The samples of GPUs, on their own clock."""

    @property
    def step_seconds(self) -> float:
        """The distance between instants; no new information comes faster."""

    @property
    def settled_seconds(self) -> float:
        """How long after an instant it can be queried."""

    async def synchronize(self) -> None:
        """Learn the source's clock, if it is not known well enough."""

    @property
    def lag_seconds(self) -> float:
        """How far the source's clock is behind, because all its samples arrive late; mostly 0."""

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


@dataclass(frozen=True, slots=True)
class Source:
    """A source that triggers name, by what it can be asked for."""

    samples: Samples
    evidence_providers: tuple[EvidenceProvider, ...] = ()
    """The strongest first; the next one is asked where one does not answer."""
    numbers: Numbers | None = None
    """None: it understands no demandQuery."""
    exporters: Callable[[], Collection[str]] | None = None
    """Returns the exporters that were found there beside dcgm-exporter, for people who ask it the
    same in PromQL; None: it understands no PromQL."""
    of_namespace: "Callable[[str], Source] | None" = None
    """The part about one namespace, where no query can be about several; None: all at once."""
    url: str = ""
    """Where it is, for people, without secrets."""
    look: Callable[[], Awaitable[None]] | None = None
    """Asks for something small, to know whether it answers; None: its clock is that."""
    accelerators: Callable[[], Awaitable[Look]] | None = None
    """Returns what there is of accelerators now, and was at the last scrapes, whatever reads it;
    None: it cannot be asked."""

    def within(self, namespace: str) -> "Source":
        """Return the source for queries about this namespace."""
        return self if self.of_namespace is None else self.of_namespace(namespace)

    def key(self, name: str, namespace: str) -> str:
        """Return the name for facts: with the namespace, where that has a source of its own."""
        return name if self.of_namespace is None else f"{name}/{namespace}"
