"""What all snapshots of a source share: whether it answers, and what its cluster says of pods.

Every shared snapshot of a source reports here how its fetches end, and before the first of them the
query at the start of the process. Only this module concludes and states what follows:

- A source is up with each fetch that succeeds.
- A source that gives no answer is down at once. A busy server may time out on one large query while
  it answers the others: once it has answered one of these, that query fails, and not the source.
- A source that refuses a query does answer: that query fails, and the source is down only if no
  other query was answered recently.
- A query that fails while the source is up is stated by its own name.

A user's own query that fails says nothing about its source.

The evidence about pods is fetched once per instant, for all signals of a source, from the first
provider that answers. If none does, that is no error: then only the exporters' evidence is used.
Each change of the evidence source is reported.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import Samples, Source
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.snapshot.evidence import Evidence, EvidenceSource
from keda_gpu_scaler.snapshot.pod_status import PodStatuses, advance_pod_statuses, silenced
from keda_gpu_scaler.snapshot.snapshot import Snapshot, SnapshotKey
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import EVIDENCE_SECONDS, FORGET_SECONDS, RECENT_SECONDS

_NO_ANSWER = (errors.SourceTimeoutError, errors.SourceUnreachableError)


@dataclass(slots=True)
class _Query:
    """How the fetches of one shared snapshot end."""

    answered_at: float = float("-inf")
    """The newest success."""
    failing_since: int | None = None
    """The number of the first report of a failure since then; None: the newest fetch succeeded."""
    is_stated: bool = False


class SourceDown(NamedTuple):
    """A source that does not answer."""

    name: str
    url: str
    reason: str
    seconds: float
    """For so long."""


class SourceState:
    """Whether one source is up; unknown until the first fetch has ended."""

    def __init__(
        self, name: str, url: str, observe: facts.Observer, clock: Callable[[], float]
    ) -> None:
        self._name, self._url, self._observe, self._clock = name, url, observe, clock
        self._is_up: bool | None = None
        self.known = asyncio.Event()
        """Set once it is known whether the source is up."""
        self._reason, self._since = "no answer yet", clock()
        """Why it is so, and since when."""
        self._fetched_at = float("-inf")
        self._fetches = self._last_success = 0
        """How many fetches have ended, and the number of the newest one that succeeded."""
        self._queries: dict[SnapshotKey, _Query] = {}

    def succeeded(self, key: SnapshotKey, snapshot: Snapshot) -> None:
        """Record a successful fetch, and state its snapshot."""
        self._fetches, self._fetched_at = self._fetches + 1, self._clock()
        self._last_success = self._fetches
        query = self._queries.setdefault(key, _Query())
        query.answered_at, query.failing_since = self._clock(), None
        if query.is_stated:
            query.is_stated = False
            self._state(key, works=True, reason="it is answered again")
        if not self._is_up:
            answers = "it answers" if self._is_up is None else "it answers again"
            self._turn(is_up=True, reason=answers)
        shown = snapshot.pod_count, snapshot.refused_samples, snapshot.stuck_gpus
        self._observe(facts.SnapshotTaken(*key[:3], snapshot.at, *shown))

    @property
    def is_fetched(self) -> bool:
        """Whether a fetch ended lately: it tells more than any look."""
        return self._clock() - self._fetched_at < RECENT_SECONDS

    def looked(self, error: errors.SourceError | None) -> None:
        """Record a query while no trigger asks; None: it was answered."""
        if self.is_fetched:
            return
        is_up, reason = error is None, f"source {self._name}: {error}"
        if is_up != self._is_up:
            self._turn(is_up=is_up, reason="it answers" if is_up else reason)
        elif not is_up:
            self._reason = reason

    def down(self) -> SourceDown | None:
        """Return what is known of a source that has not answered; None: it is up."""
        if self._is_up:
            return None
        reason = self._reason.removeprefix(f"source {self._name}: ")
        return SourceDown(self._name, self._url, reason, self._clock() - self._since)

    def failed(self, key: SnapshotKey, error: errors.SourceError) -> None:
        self._fetches, self._fetched_at = self._fetches + 1, self._clock()
        query, reason = self._queries.setdefault(key, _Query()), f"source {self._name}: {error}"
        if query.failing_since is None:
            query.failing_since = self._fetches
        is_own = key.query is not None
        is_silent = isinstance(error, _NO_ANSWER) and query.failing_since > self._last_success
        if not is_own and self._is_up is not False and (is_silent or not self._answers()):
            self._turn(is_up=False, reason=reason)
        elif not is_own and self._is_up is False:
            self._reason = reason
        if not query.is_stated and (is_own or self._is_up):
            query.is_stated = True
            self._state(key, works=False, reason=reason)

    def let_go(self, key: SnapshotKey) -> None:
        self._queries.pop(key, None)

    def _answers(self) -> bool:
        """Tell whether a query was answered recently that has not failed since."""
        since = self._clock() - RECENT_SECONDS
        return any(
            query.failing_since is None and query.answered_at >= since
            for query in self._queries.values()
        )

    def _turn(self, *, is_up: bool, reason: str) -> None:
        self._is_up, self._reason, self._since = is_up, reason, self._clock()
        self.known.set()
        self._observe(facts.SourceChanged(self._name, is_up, reason, self._url))

    def _state(self, key: SnapshotKey, *, works: bool, reason: str) -> None:
        if key.query is not None:
            name = key.query.name
        else:
            profile = "" if key.profile == profiles.AUTO else f" of {key.profile}"
            name = f"{key.signal}{profile}{' over a long range' if key.is_long_range else ''}"
        self._observe(facts.QueryChanged(self._name, name, works, reason))


_NAMES = {
    EvidenceSource.KUBERNETES: "the Kubernetes API",
    EvidenceSource.KUBE_STATE_METRICS: "kube-state-metrics",
}


class EvidenceFetcher:
    """Fetches what the cluster behind one source says; shared by the source's signals."""

    def __init__(self, name: str, source: Source, observe: facts.Observer) -> None:
        self._name, self._observe = name, observe
        self._clock, self._providers = source.samples.now, source.evidence_providers
        self._pod_statuses = PodStatuses()
        self._wanted_at: dict[str, float] = {}
        """When each namespace was last asked for."""
        self._fetched_at = float("-inf")
        self._fetched_namespaces: frozenset[str] = frozenset()
        self._evidence_source: EvidenceSource | None = None
        self._lock = asyncio.Lock()

    async def pod_statuses(self, namespaces: Collection[str], at: float) -> PodStatuses:
        """Return what is known of the pods of these namespaces at or before the instant `at`."""
        self._wanted_at |= dict.fromkeys(namespaces, at)
        async with self._lock:
            if at > self._fetched_at or not self._fetched_namespaces.issuperset(namespaces):
                await self._fetch(max(at, self._fetched_at))
        return self._pod_statuses

    def forget_after(self, at: float) -> None:
        """Forget everything if it was asked about later instants: the clock was set back."""
        if self._fetched_at > at:
            self._pod_statuses = PodStatuses()
            self._fetched_at, self._fetched_namespaces = float("-inf"), frozenset()

    async def _fetch(self, at: float) -> None:
        self._wanted_at = {
            name: when for name, when in self._wanted_at.items() if at - when <= FORGET_SECONDS
        }
        namespaces, troubles = frozenset(self._wanted_at), list[str]()
        evidence = None
        try:
            async with asyncio.timeout(EVIDENCE_SECONDS):
                evidence = await self._strongest_evidence(namespaces, at, troubles)
        except TimeoutError:
            troubles.append(f"no answer within {EVIDENCE_SECONDS:g} s")
        is_available = evidence is not None and evidence.is_available
        if evidence is not None and not is_available:
            troubles.append("kube-state-metrics shows nothing")
        watched = self._pod_statuses.watch.evidence_source
        if watched is EvidenceSource.KUBERNETES and not is_available:
            self._pod_statuses = silenced(self._pod_statuses)
        elif evidence is not None:
            self._pod_statuses = await asyncio.to_thread(
                advance_pod_statuses, self._pod_statuses, evidence, namespaces, at
            )
        # Not before: if the samples of the one who asks cannot be had, this is cancelled.
        self._fetched_at, self._fetched_namespaces = at, namespaces
        evidence_source = self._pod_statuses.evidence_source(at)
        if evidence_source is not self._evidence_source:
            self._evidence_source = evidence_source
            if evidence_source is not EvidenceSource.EXPORTERS:
                troubles.insert(0, f"{_NAMES[evidence_source]} answers")
            reason = "; ".join(troubles)
            self._observe(facts.EvidenceChanged(self._name, evidence_source, reason))

    async def _strongest_evidence(
        self, namespaces: frozenset[str], at: float, troubles: list[str]
    ) -> Evidence | None:
        """Return the strongest available evidence; add the errors of others to `troubles`."""
        for provider in self._providers:
            try:
                evidence = await provider.evidence(namespaces, at, self._clock())
            except errors.SourceError as error:
                troubles.append(f"{provider.name}: {error}")
            else:
                if evidence is not None:
                    return evidence
                troubles.append(f"the source has no {provider.name}")
        if not self._providers:
            troubles.append("the source has no evidence of pods")
        return None


class SharedSource(NamedTuple):
    """What the snapshots of a source share; one namespace's, where each has a source of its own."""

    samples: Samples
    state: SourceState
    evidence_fetcher: EvidenceFetcher
