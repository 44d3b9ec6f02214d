"""Values that end ten minutes after they were last put, and gauges of them."""

import threading
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Generic, TypeVar

from cachetools import TTLCache
from prometheus_client.core import GaugeMetricFamily

from keda_gpu_scaler.spec.retention import FORGET_SECONDS

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The newest value of each key that was put within `FORGET_SECONDS`; any thread may read."""

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        self._values: TTLCache[K, V] = TTLCache(limit, FORGET_SECONDS, clock)
        self._lock = threading.Lock()

    def put(self, key: K, value: V) -> None:
        """Hold a value from now on; at the limit, the one that was put longest ago ends."""
        with self._lock:
            self._values[key] = value

    def renewed(self, key: K, new: Callable[[], V]) -> V:
        """Return the value of a key, or a new one; it is held as if it was put now."""
        with self._lock:
            value = self._values.get(key) or new()
            self._values[key] = value
            return value

    def items(self) -> list[tuple[K, V]]:
        """Return the keys that are held, with their values."""
        with self._lock, self._values.timer:  # the time stands still, so no key ends meanwhile
            return list(self._values.items())


def gauge(
    name: str,
    meaning: str,
    labels: tuple[str, ...],
    samples: Iterable[tuple[tuple[str, ...], float | None]],
) -> GaugeMetricFamily:
    """Return a gauge with all samples that have a value."""
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, number in samples:
        if number is not None:
            family.add_metric(values, number)
    return family


def one_of(
    members: type[StrEnum], held: Iterable[tuple[tuple[str, ...], StrEnum | None]]
) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield a sample per key and member: 1 for the member that the key has, 0 for the others.

    A key that has none has no samples.
    """
    for key, member_held in held:
        if member_held is not None:
            for member in members:
                yield (*key, member), member is member_held
