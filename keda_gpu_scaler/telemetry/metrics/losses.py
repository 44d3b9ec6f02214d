"""What was lost of the telemetry: lines of the log, and facts that an observer failed at."""

from collections import Counter
from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from keda_gpu_scaler.telemetry.metrics import table


class Losses(Collector):
    """Counts what was lost."""

    def __init__(self, lines_dropped: Callable[[], int]) -> None:
        self._lines_dropped = lines_dropped
        self._failures: Counter[str] = Counter()

    def observer_failed(self, name: str) -> None:
        """Count that an observer failed at a fact."""
        self._failures[name] += 1

    def collect(self) -> Iterable[CounterMetricFamily]:
        """Yield one family per metric."""
        lines = table.LINES_DROPPED
        yield CounterMetricFamily(lines.name, lines.meaning, value=self._lines_dropped())
        failures = table.OBSERVER_FAILURES
        failed = CounterMetricFamily(failures.name, failures.meaning, labels=failures.labels)
        for name, count in self._failures.items():
            failed.add_metric((name,), count)
        yield failed
