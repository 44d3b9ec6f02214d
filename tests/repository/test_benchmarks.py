"""A benchmark measures what it says, and fails where the answers that it measures are wrong."""

import json
import os
import time
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import (
    counters,
    ghz,
    polling,
    processes,
    schedule,
    throughput,
    waking,
    world,
)
from keda_gpu_scaler import trigger
from keda_gpu_scaler.spec.spec import ScaledObject
from tests.repository.test_docs import ROOT
from tests.support.triggers import access


def test_each_trigger_is_asked_about_as_often_as_keda_and_the_hpa_do_and_evenly() -> None:
    """Per half minute one poll and two syncs, and no pause with a burst behind it."""
    asks = schedule.asks(200, 120)
    assert Counter(each.trigger for each in asks) == dict.fromkeys(range(200), 3 * 4)
    times = [each.at for each in asks]
    longest = schedule.SYNC_SECONDS / 200 + 1e-9
    assert all(0 <= later - earlier <= longest for earlier, later in pairwise(times))


def test_the_rates_are_those_that_were_measured_on_keda_and_that_the_pages_have() -> None:
    """See tests/e2e/test_polls.py."""
    assert schedule.queries_per_second(1) == pytest.approx(0.1)
    assert schedule.queries_per_second(1, polls_values=False) == pytest.approx(0.0667, abs=1e-4)
    polled, alone = (schedule.calls_per_minute(polls_values=each) for each in (True, False))
    page = (ROOT / "docs" / "concepts.md").read_text()
    assert f"| `minReplicaCount: 0`, or `idleReplicaCount` | {polled:g} | {polled:g} |" in page
    assert f"| `minReplicaCount: 1` or more | {alone:g} | {polled:g} |" in page


def test_every_trigger_is_taken_and_is_about_its_own_pods() -> None:
    for one in world.triggers(3, copies=2):
        reference = one.reference()
        whose = ScaledObject(reference.namespace, reference.name)
        spec = trigger.parse(whose, dict(reference.scalerMetadata), access())
        assert spec.metric_name == one.request().metricName
        assert all(spec.pods.matches(pod) for pod in one.pods)


def test_only_instant_queries_are_counted_whatever_came_of_them() -> None:
    page = (
        "# TYPE prometheus_http_requests_total counter\n"
        'prometheus_http_requests_total{code="200",handler="/api/v1/query"} 7\n'
        'prometheus_http_requests_total{code="400",handler="/api/v1/query"} 1\n'
        'prometheus_http_requests_total{code="200",handler="/api/v1/query_range"} 50\n'
        "# TYPE process_cpu_seconds_total counter\n"
        "process_cpu_seconds_total 1.5\n"
    )
    assert counters.parse(page) == counters.Counters(queries=8, cpu_seconds=1.5)


def test_processor_time_of_a_process_is_its_clock() -> None:
    before = time.process_time()
    read = time.clock_gettime(processes.cpu_clock(os.getpid()))
    assert before <= read <= time.process_time()


def test_memory_is_read_in_base_units() -> None:
    status = "Name:\tpython\nVmPeak:\t  900 kB\nVmHWM:\t  200 kB\nVmRSS:\t  100 kB\nThreads:\t3\n"
    assert processes.memory(status) == processes.Memory(102_400, 204_800)


@pytest.mark.parametrize(
    "codes",
    [{"OK": 3999, "Unavailable": 1}, {"OK": 3999}, {"Unavailable": 4000}, {}],
    ids=["one error", "one missing", "all errors", "nothing"],
)
def test_calls_that_were_not_all_answered_fail_the_benchmark(codes: dict[str, int]) -> None:
    latencies = [{"percentage": 99, "latency": 9_000_000}]
    said = {"count": 4000, "rps": 2500.5, "latencyDistribution": latencies}
    good = json.dumps(said | {"statusCodeDistribution": {"OK": 4000}})
    assert ghz.parse(good, 4000) == ghz.Run(4000, 2500.5, 0.009)
    with pytest.raises(ghz.GhzError, match="expected 4000 answers with OK"):
        ghz.parse(json.dumps(said | {"statusCodeDistribution": codes}), 4000)


@pytest.mark.parametrize(
    ("awake", "message"),
    [
        ({"prometheus-0": 110.0, "external-0": 111.0}, "external-push-0 was never woken"),
        (
            {"prometheus-0": 99.5, "external-0": 111.0, "external-push-0": 111.0},
            "prometheus-0 was woken 0.5 s before the demand",
        ),
    ],
    ids=["never", "early"],
)
def test_a_workload_that_is_woken_for_nothing_or_never_fails_the_benchmark(
    awake: dict[str, float], message: str
) -> None:
    with pytest.raises(processes.ServerError, match=message):
        waking.woken([100], awake)


def test_what_keda_asks_for_names_alone_is_its_polls_and_not_the_hpas() -> None:
    asks = schedule.asks(10, 30, polls_values=False)
    assert sum(not each.is_for_value for each in asks) == 10
    assert sum(each.is_for_value for each in asks) == 20


@given(st.floats(0, 1e9))
def test_a_round_begins_in_the_middle_between_two_instants(now: float) -> None:
    seconds = schedule.seconds_until_between(now)
    assert 0 <= seconds <= schedule.STEP_SECONDS
    of_instant = (now + seconds - schedule.DELAY_SECONDS) % schedule.STEP_SECONDS
    assert of_instant == pytest.approx(schedule.STEP_SECONDS / 2, abs=1e-5)


def test_what_was_used_in_a_round_is_the_difference_of_two_readings() -> None:
    read = [polling.Used(1, 2, 3), polling.Used(2, 2.5, 6), polling.Used(4, 4, 9)]
    assert polling.between(read) == [polling.Used(1, 0.5, 3), polling.Used(2, 1.5, 3)]
    assert polling.percents([polling.Used(1, 0.5, 3)]) == [10]


def test_the_bill_is_of_scaler_and_prometheus_together_next_to_keda_and_to_the_floor() -> None:
    scaler, echo = [polling.Used(3, 0.3, 3)], [polling.Used(2.25, 0, 0)]
    own = [polling.Used(0, 3, 1500)]
    rounds = {polling.SCALER: scaler, polling.ECHO: echo, polling.OWN: own}
    ratios = {each.key: each.ratio for each in polling.rows_to_zero(rounds)}
    medians = {key: each.median for key, each in ratios.items() if each is not None}
    assert medians == {
        "polling.at-kedas-rate": pytest.approx(3 / 2.25),
        "polling.bill": pytest.approx(3.3 / 3),
        "polling.floor": pytest.approx(2.25 / 3),
    }
    kept = {polling.SCALER: scaler, polling.PUSHED: own, polling.ECHO: echo}
    external, pushed = (each.judged.median for each in polling.rows_to_one(kept))
    assert external == pytest.approx(3.3 / 2.25)
    assert pushed == pytest.approx(3 / 2.25)


def test_the_queries_of_a_minute_are_those_of_the_usual_round() -> None:
    often = [polling.Used(1, 0, 3), polling.Used(1, 0, 4), polling.Used(1, 0, 3)]
    names = (polling.SCALER, *(f"{count}" for count in polling.FEWER))
    cells = polling.queries_detail(dict.fromkeys(names, often)).cells
    assert [line[:3] for line in cells] == [
        ["10 triggers", "12", "60"],
        ["100 triggers", "12", "600"],
        ["1,000 triggers", "12", "6,000"],
    ]


def test_each_turn_is_compared_with_the_echo_servers_of_its_round() -> None:
    def turn(rate: float, p99: float, cpu: float) -> throughput.Turn:
        return throughput.Turn(ghz.Run(1000, rate, p99), cpu)

    turns = {
        throughput.ECHO: [turn(4000, 0.004, 0.2)],
        throughput.WARM: [turn(3000, 0.006, 0.3)],
        throughput.ANEW: [turn(2000, 0.008, 0.5)],
    }
    medians = [each.judged.median for each in throughput.rows(turns)]
    assert medians == [pytest.approx(each) for each in (0.75, 1.5, 1.5, 0.5, 2, 2.5)]
