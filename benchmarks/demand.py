"""Made-up demand: nothing until a moment, then one request. Pure.

It is stored in advance, so that the moment is known exactly and nothing is written or scraped
during the measurement.
"""

from benchmarks import world
from tests.support.series import Series

METRIC = "router_requests_running"
INTERVAL_SECONDS = 15.0


def promql(workload: str) -> str:
    """Return the expression for the demand for one workload."""
    return f'sum({METRIC}{{namespace="{world.NAMESPACE}",workload="{workload}"}})'


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
        count = int((last - first) // INTERVAL_SECONDS) + 1
        times = (first + number * INTERVAL_SECONDS for number in range(count))
        samples += [(time, value) for time in times if time < last]
    return Series(METRIC, {"namespace": world.NAMESPACE, "workload": workload}, samples)
