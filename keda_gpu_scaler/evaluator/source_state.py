"""The state of a source: whether it answers, and which of its signals fail.

Every shared snapshot of a source reports here how its fetches end. Only this module concludes and
reports:

- A source that gives no answer is down at once. A busy server may time out on one large query while
  it answers the others, so it is up again with the first answer, and goes down for the same query
  only after others have failed as well.
- A source that refuses a query does answer: that query fails, and the source is down only if all
  others fail too. A failure while the source is up is reported for the signal.
- When a snapshot is dropped, its failure is dropped too.

A user's own query that fails says nothing about its source; it is reported by its own name.
"""

from collections.abc import Callable
from dataclasses import dataclass

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.snapshot.snapshot import Key, Snapshot
from keda_gpu_scaler.telemetry import facts

_NO_ANSWER = (errors.SourceTimeoutError, errors.SourceUnreachableError)


@dataclass(slots=True)
class _Failure:
    """A signal or own query with failing fetches."""

    began_at: float
    reason: str
    is_answered: bool
    is_stated: bool = False


class SourceState:
    """Whether one source is up; unknown until the first fetch has ended."""

    def __init__(self, name: str, observe: facts.Observer, clock: Callable[[], float]) -> None:
        """Take the source's name; its state is unknown until the first report.

        Args:
            name: the source, as facts name it.
            observe: is called once for each change.
            clock: seconds that never go back.
        """
        self._name, self._observe, self._clock = name, observe, clock
        self._is_up: bool | None = None
        self._answered_at = float("-inf")
        self._failures: dict[Key, _Failure | None] = {}
        """By shared snapshot; None: its newest fetch succeeded."""

    def succeeded(self, key: Key, taken: Snapshot) -> None:
        """Record a successful fetch, and report its snapshot."""
        failure, self._failures[key] = self._failures.get(key), None
        self._answered_at = self._clock()
        if failure is not None and failure.is_stated:
            self._state(key, works=True, reason="it is answered again")
        self._conclude()
        self._observe(
            facts.SnapshotTaken(*key[:3], taken.at, taken.pod_count, taken.refused_samples)
        )

    def failed(self, key: Key, error: errors.SourceError) -> None:
        """Record a failed fetch."""
        failure = self._failures.get(key)
        if failure is None:
            failure = self._failures[key] = _Failure(self._clock(), "", is_answered=False)
        failure.reason = f"source {self._name}: {error}"
        failure.is_answered = not isinstance(error, _NO_ANSWER)
        self._conclude()

    def let_go(self, key: Key) -> None:
        """Forget a snapshot that is not fetched any more."""
        self._failures.pop(key, None)
        self._conclude()

    def _conclude(self) -> None:
        telling = [
            failure
            for key, failure in self._failures.items()
            if key.query is None or failure is None
        ]
        if telling:
            self._turn(self._down_because(telling))
        for key, failure in self._failures.items():
            is_own = key.query is not None
            if failure is not None and not failure.is_stated and (is_own or self._is_up):
                failure.is_stated = True
                self._state(key, works=False, reason=failure.reason)

    def _down_because(self, telling: list[_Failure | None]) -> str | None:
        """Return why the source is down; None: it is up."""
        failures = [failure for failure in telling if failure is not None]
        for failure in failures:
            if not failure.is_answered and failure.began_at >= self._answered_at:
                return failure.reason
        return failures[-1].reason if len(failures) == len(telling) else None

    def _turn(self, trouble: str | None) -> None:
        before, self._is_up = self._is_up, trouble is None
        if before is not self._is_up:
            answers = "it answers" if before is None else "it answers again"
            self._observe(facts.SourceChanged(self._name, self._is_up, trouble or answers))

    def _state(self, key: Key, *, works: bool, reason: str) -> None:
        self._observe(facts.QueryChanged(self._name, _called(key), works, reason))


def _called(key: Key) -> str:
    """Return a shared snapshot's name for logs: the own query's name, or the signal."""
    if key.query is not None:
        return key.query.name
    return str(key.signal) if key.profile == profiles.AUTO else f"{key.signal} of {key.profile}"
