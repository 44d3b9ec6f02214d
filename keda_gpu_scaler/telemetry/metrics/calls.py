"""The metrics of KEDA's calls.

A call is noted, and counted when it is read or with many others: to count it takes longer than
everything else that is told of it.
"""

from collections import defaultdict
from collections.abc import Iterable

from prometheus_client import Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics import table

NOTED = 100
"""Of one method and code, at most: to count them takes a fraction of a millisecond."""
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""From an answer out of memory, about a millisecond, to beyond the 2.5 s that an RPC waits."""


class Calls(Collector):
    """Counts calls, and how long they took."""

    def __init__(self) -> None:
        rpcs, seconds = table.RPCS, table.RPC_SECONDS
        self._rpcs = Counter(rpcs.name, rpcs.meaning, rpcs.labels, registry=None)
        self._seconds = Histogram(
            seconds.name, seconds.meaning, seconds.labels, buckets=_BUCKETS, registry=None
        )
        self._noted: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        """The seconds that calls took, by method and code."""

    def called(self, fact: facts.Called) -> None:
        """Note a call."""
        noted = self._noted[fact.method, fact.code]
        noted.append(fact.seconds)
        if len(noted) >= NOTED:
            self._count()

    def collect(self) -> Iterable[Metric]:
        """Yield both families, with every call so far."""
        self._count()
        yield from self._rpcs.collect()
        yield from self._seconds.collect()

    def _count(self) -> None:
        for (method, code), noted in self._noted.items():
            self._rpcs.labels(method, code).inc(len(noted))
            observe = self._seconds.labels(method).observe
            for seconds in noted:
                observe(seconds)
            noted.clear()
