"""The benchmark of the plan past one machine: what follows from its figures."""

import pytest

from benchmarks import plan
from benchmarks.plan import Served, Size
from benchmarks.processes import Memory

SERVED = Served(
    Size(1_000, 2_000),
    step_cpu_seconds=0.6,
    poll_cpu_seconds=0.002,
    prometheus_cpu_seconds=0.05,
    queries=3.0,
    memory=Memory(100 * 2**20, 120 * 2**20),
)


def test_a_replica_needs_its_steps_and_six_polls_a_minute_about_each_object() -> None:
    assert pytest.approx(100 * (4 * 0.6 + 6 * 1_000 * 0.002) / 60) == SERVED.percent


def test_the_table_has_a_row_for_each_size() -> None:
    (cells,) = plan.detail([SERVED]).cells
    expected = ["1,000", "2,000", "2.0 ms", "0.60 s", "24 %", "100", "120", "0.05 s", "12"]
    assert cells == expected
