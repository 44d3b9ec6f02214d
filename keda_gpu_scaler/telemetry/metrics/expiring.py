"""Values that end when they were not updated for a while, and their metric families."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

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
        # Both in the order of their times, oldest first. The first key of a dict is slow to find
        # where many before it were removed.
        self._seen: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._left_out: OrderedDict[K, float] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value of a key, if it is held."""
        seen = self._seen.get(key)
        return None if seen is None else seen[1]

    def put(self, key: K, value: V) -> None:
        """Hold a value, unless the limit is reached; drop those that are too old."""
        now, seen = self._clock(), self._seen
        seen[key] = now, value
        seen.move_to_end(key)
        while next(iter(seen.values()))[0] < now - FORGET_SECONDS:
            seen.popitem(last=False)
        self._left_out.pop(key, None)
        if len(seen) > self._limit:
            seen.popitem()
            self._left_out[key] = now
            if len(self._left_out) > self._limit:
                self._left_out.popitem(last=False)

    def mention(self, key: K) -> None:
        """Put the value of a key again, if it has one, so that it is held for longer."""
        seen = self._seen.get(key)
        if seen is not None:
            self.put(key, seen[1])

    def items(self) -> list[tuple[K, V]]:
        """Return the keys put or mentioned recently, with their values."""
        since = self._clock() - FORGET_SECONDS
        seen = list(self._seen.items())
        return [(key, value) for key, (at, value) in seen if at >= since]

    def left_out(self) -> int:
        """Return how many keys were left out recently; as many as the limit are counted."""
        since = self._clock() - FORGET_SECONDS
        return sum(at > since for at in self._left_out.values())
