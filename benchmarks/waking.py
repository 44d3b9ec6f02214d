"""When demand appears, for which workload, and how long each trigger took to wake it. Pure.

In each round the demand for several workloads at zero appears at the same moment, one for each kind
of trigger: nothing until then, and one request from then on. It is stored in advance, so that the
moment is known exactly and nothing is written or scraped during the measurement. The moments are
spread over the time, one at random in each equal part of it, so that no kind is lucky with where in
KEDA's poll they fall.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import NamedTuple

from benchmarks import world
from benchmarks.comparison import Detail
from benchmarks.processes import ServerError
from testbed.series import Series

_METRIC = "router_requests_running"
_INTERVAL_SECONDS = 15.0
ACTIVATION_ONLY = "1000000"
"""As a target per replica: one replica is enough for the demand here."""


class Kind(StrEnum):
    """The kinds of trigger, as KEDA calls them."""

    PROMETHEUS = "prometheus"
    """KEDA's own, which is the reference."""
    EXTERNAL = "external"
    """Ours, polled."""
    EXTERNAL_PUSH = "external-push"
    """Ours, pushed and polled."""


class Sleeper(NamedTuple):
    """One workload at zero."""

    kind: Kind
    number: int

    @property
    def name(self) -> str:
        """The Deployment's name, and the ScaledObject's."""
        return f"{self.kind}-{self.number}"

    def trigger(self, prometheus_url: str, scaler_address: str) -> dict[str, object]:
        """Return its trigger: the same query of the same Prometheus, everything else a default."""
        query = _promql(self.name)
        if self.kind is Kind.PROMETHEUS:
            metadata = {"serverAddress": prometheus_url, "query": query}
            return {"type": self.kind, "metadata": {**metadata, "threshold": ACTIVATION_ONLY}}
        metadata = {"scalerAddress": scaler_address, "workload": self.name, "threshold": "70"}
        return {"type": self.kind, "metadata": {**metadata, "demandQuery": query}}


@dataclass(frozen=True, slots=True)
class Woken:
    """How long it took from the demand to a replica that is wanted, in each round."""

    seconds: Mapping[Kind, Sequence[float]]

    def detail(self) -> Detail:
        """Return the seconds of each kind."""
        rounds = len(self.seconds[Kind.PROMETHEUS])
        names = {
            Kind.PROMETHEUS: "KEDA's own prometheus trigger",
            Kind.EXTERNAL: "this scaler, `external`",
            Kind.EXTERNAL_PUSH: "this scaler, `external-push`",
        }
        own = median(self.seconds[Kind.PROMETHEUS])
        cells = [
            [
                name,
                f"{median(self.seconds[kind]):.1f} s",
                f"{max(self.seconds[kind]):.1f} s",
                f"{median(self.seconds[kind]) / own:.2g}",
            ]
            for kind, name in names.items()
        ]
        head = ["from the demand to the first replica", f"median of {rounds} rounds", "longest"]
        title = "From the demand to the first replica"
        return Detail("wake", title, [*head, "median ÷ KEDA's own"], cells)


def _promql(workload: str) -> str:
    """Return the expression for the demand for one workload."""
    return f'sum({_METRIC}{{namespace="{world.NAMESPACE}",workload="{workload}"}})'


def rising(workload: str, begin: float, rises_at: float, end: float) -> Series:
    """Return the demand for a workload: 0 from `begin`, and 1 from `rises_at` until `end`.

    Args:
        workload: the workload that the demand is for.
        begin: the first sample, in seconds since the epoch.
        rises_at: the first sample of 1.
        end: no sample is later.
    """
    samples: list[tuple[float, float | None]] = []
    for value, first, last in ((0.0, begin, rises_at), (1.0, rises_at, end)):
        count = int((last - first) // _INTERVAL_SECONDS) + 1
        times = (first + number * _INTERVAL_SECONDS for number in range(count))
        samples += [(time, value) for time in times if time < last]
    return Series(_METRIC, {"namespace": world.NAMESPACE, "workload": workload}, samples)


def sleepers(rounds: int) -> list[Sleeper]:
    """Return the workloads of all rounds."""
    return [Sleeper(kind, number) for number in range(rounds) for kind in Kind]


def moments(rounds: int, seconds: float, seed: int) -> list[float]:
    """Return when demand appears in each round, in seconds from the begin."""
    chance = random.Random(seed)  # noqa: S311 - it keeps no secret
    part = seconds / rounds
    return [(number + chance.random()) * part for number in range(rounds)]


def woken(appeared: Sequence[float], awake: Mapping[str, float]) -> Woken:
    """Return how long each took.

    Args:
        appeared: when demand appeared in each round.
        awake: when each workload was wanted for the first time, by its name, on the same clock.

    Raises:
        ServerError: one was woken for nothing, or never.
    """
    found: dict[Kind, list[float]] = {kind: [] for kind in Kind}
    for sleeper in sleepers(len(appeared)):
        if sleeper.name not in awake:
            raise ServerError(f"{sleeper.name} was never woken")
        seconds = awake[sleeper.name] - appeared[sleeper.number]
        if seconds < 0:
            raise ServerError(f"{sleeper.name} was woken {-seconds:.1f} s before the demand")
        found[sleeper.kind].append(seconds)
    return Woken(found)
