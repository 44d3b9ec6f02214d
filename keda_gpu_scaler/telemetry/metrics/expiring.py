"""Values that end when they were not updated for a while, and their metric families."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from cachetools import TTLCache
from prometheus_client.core import GaugeMetricFamily

from keda_gpu_scaler.spec.retention import FORGET_SECONDS
from keda_gpu_scaler.telemetry.metrics.table import Metric


def gauge(
    metric: Metric, samples: Iterable[tuple[tuple[str, ...], float | None]]
) -> GaugeMetricFamily:
    """Return a gauge with all samples that have a value."""
    family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for labels, value in samples:
        if value is not None:
            family.add_metric(labels, value)
    return family


K = TypeVar("K")
V = TypeVar("V")


class Expiring(Generic[K, V]):
    """The newest value of each key that was put or mentioned recently; bounded in number.

    At the limit a new key is left out: those that are shown stay until they end by themselves.
    """

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        """Bound the number of keys; `FORGET_SECONDS` bounds their age.

        Args:
            limit: how many keys to hold.
            clock: seconds that never go back.
        """
        self._limit, self._clock = limit, clock
        self._seen: dict[K, tuple[float, V]] = {}
        self._left_out: TTLCache[K, bool] = TTLCache(limit, FORGET_SECONDS, timer=clock)

    def get(self, key: K) -> V | None:
        """Return the value of a key, if it is held."""
        seen = self._seen.get(key)
        return None if seen is None else seen[1]

    def put(self, key: K, value: V) -> None:
        """Hold a value, unless the limit is reached; drop those that are too old."""
        now = self._clock()
        self._seen.pop(key, None)
        while self._seen and self._oldest() < now - FORGET_SECONDS:
            del self._seen[next(iter(self._seen))]
        if len(self._seen) < self._limit:
            self._seen[key] = (now, value)
            if self._left_out.currsize:
                self._left_out.pop(key, None)
        else:
            self._left_out[key] = True

    def mention(self, key: K) -> None:
        """Put the value of a key again, if it has one, so that it is held for longer."""
        if key in self._seen:
            self.put(key, self._seen[key][1])

    def items(self) -> list[tuple[K, V]]:
        """Return the keys put or mentioned recently, with their values."""
        since = self._clock() - FORGET_SECONDS
        seen = list(self._seen.items())
        return [(key, value) for key, (at, value) in seen if at >= since]

    def left_out(self) -> int:
        """Return how many keys were left out recently; as many as the limit are counted."""
        return len(self._left_out)

    def _oldest(self) -> float:
        """Return when the first key was put; `put` moves a key to the end."""
        at, _ = next(iter(self._seen.values()))
        return at
