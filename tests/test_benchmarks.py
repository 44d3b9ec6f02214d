"""What the benchmarks make of what they measure; nothing is measured here."""

import io
import json
import os
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from google.protobuf.json_format import ParseDict
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from benchmarks import (
    comparison,
    counters,
    evidence,
    ghz,
    processes,
    queries,
    report,
    schedule,
    throughput,
    tls,
    world,
)
from benchmarks.evidence import Asked, Round, Spent
from benchmarks.ghz import Run
from benchmarks.queries import Cost
from benchmarks.streams import Held, Used
from benchmarks.tls import Secured
from keda_gpu_scaler import trigger
from keda_gpu_scaler.observation import Observation
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.spec import ScaledObject
from tests.triggers import access

POSITIVE = st.floats(min_value=1e-3, max_value=1e6)


def said(**changes: Any) -> str:  # noqa: ANN401 - any JSON
    """Return the report of a good run of ghz, with changes."""
    good = {
        "count": 4000,
        "rps": 2500.5,
        "statusCodeDistribution": {"OK": 4000},
        "latencyDistribution": [
            {"percentage": 95, "latency": 5_000_000},
            {"percentage": 99, "latency": 9_000_000},
        ],
    }
    return json.dumps(good | changes)


def test_a_report_of_ghz_is_read_in_base_units() -> None:
    assert ghz.parse(said(), 4000) == Run(4000, 2500.5, 0.009)


@pytest.mark.parametrize(
    "codes",
    [
        {"OK": 3999, "Unavailable": 1},
        {"OK": 3999},
        {"Unavailable": 4000},
        {},
    ],
    ids=["one error", "one missing", "all errors", "nothing"],
)
def test_a_run_with_anything_but_ok_is_refused(codes: dict[str, int]) -> None:
    with pytest.raises(ghz.GhzError, match="expected 4000 answers with OK"):
        ghz.parse(said(statusCodeDistribution=codes), 4000)


def test_a_run_that_was_cut_short_is_refused() -> None:
    with pytest.raises(ghz.GhzError, match="expected 5000 answers"):
        ghz.parse(said(), 5000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "{}",
        said(latencyDistribution=None),
        said(latencyDistribution=[]),
        said(rps="fast"),
    ],
)
def test_what_is_no_report_of_ghz_is_refused(text: str) -> None:
    with pytest.raises(ghz.GhzError, match="not a report of ghz"):
        ghz.parse(text, 4000)


def test_the_client_is_given_one_request_per_trigger(tmp_path: Path) -> None:
    asked = world.triggers(3)
    ghz.write_calls(tmp_path / "calls.json", asked)
    written = json.loads((tmp_path / "calls.json").read_text())
    assert [ParseDict(one, pb.GetMetricsRequest()) for one in written] == [
        one.request() for one in asked
    ]


def test_a_ratio_is_the_median_of_the_rounds_with_their_range() -> None:
    found = comparison.ratio([1.0, 3.0, 8.0], [2.0, 4.0, 8.0])
    assert found == comparison.Ratio(median=0.75, lowest=0.5, highest=1.0)


def test_rounds_are_compared_with_their_neighbours() -> None:
    """A machine that gets slower in the middle of a run changes no ratio."""
    found = comparison.ratio([10.0, 1.0], [20.0, 2.0])
    assert found == comparison.Ratio(0.5, 0.5, 0.5)


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1))
def test_the_median_is_within_the_range(rounds: list[tuple[float, float]]) -> None:
    found = comparison.ratio([one for one, _ in rounds], [other for _, other in rounds])
    assert found.lowest <= found.median <= found.highest


def test_rounds_without_a_neighbour_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        comparison.ratio([1.0, 2.0], [1.0])


def test_each_way_to_ask_is_compared_with_the_echo_server() -> None:
    runs = {"echo": [Run(1, 100, 0.01)], "a": [Run(1, 50, 0.03)], "b": [Run(1, 25, 0.01)]}
    compared = throughput.compare(runs)
    assert {name: one.requests_per_second.median for name, one in compared.items()} == {
        "a": 0.5,
        "b": 0.25,
    }
    assert compared["a"].p99.median == pytest.approx(3)


@given(triggers=st.integers(1, 200), half_minutes=st.integers(1, 4))
def test_each_trigger_is_asked_about_as_often_as_keda_and_the_hpa_do(
    triggers: int, half_minutes: int
) -> None:
    """Per half minute one poll and two syncs."""
    asks = schedule.asks(triggers, half_minutes * 30)
    asked = Counter(each.trigger for each in asks)
    assert asked == dict.fromkeys(range(triggers), 3 * half_minutes)


@given(triggers=st.integers(1, 200), seconds=st.floats(1, 120))
def test_a_schedule_is_in_order_and_within_its_time(triggers: int, seconds: float) -> None:
    times = [each.at for each in schedule.asks(triggers, seconds)]
    assert times == sorted(times)
    assert all(0 < at <= seconds + 1e-9 for at in times)


@given(st.integers(2, 200))
def test_asks_are_spread_evenly(triggers: int) -> None:
    """There is no pause longer than between two syncs, and so no burst behind it."""
    times = [each.at for each in schedule.asks(triggers, 60)]
    longest = schedule.SYNC_SECONDS / triggers
    assert all(later - earlier <= longest + 1e-9 for earlier, later in pairwise(times))


def test_kedas_own_trigger_sends_a_tenth_of_a_query_per_second() -> None:
    assert schedule.queries_per_second(1) == pytest.approx(0.1)
    assert schedule.queries_per_second(1000) == pytest.approx(100)


def test_a_cost_is_compared_with_what_kedas_own_trigger_sends() -> None:
    cost = Cost(1000, seconds=60, asks=6000, queries=12, prometheus_cpu_seconds=1.0)
    assert cost.queries_per_second == pytest.approx(0.2)
    assert cost.ratio == pytest.approx(0.002)


def test_only_instant_queries_are_counted_whatever_came_of_them() -> None:
    page = (
        "# TYPE prometheus_http_requests_total counter\n"
        'prometheus_http_requests_total{code="200",handler="/api/v1/query"} 7\n'
        'prometheus_http_requests_total{code="400",handler="/api/v1/query"} 1\n'
        'prometheus_http_requests_total{code="200",handler="/api/v1/query_range"} 50\n'
        'prometheus_http_requests_total{code="200",handler="/metrics"} 90\n'
        "# TYPE process_cpu_seconds_total counter\n"
        "process_cpu_seconds_total 1.5\n"
    )
    assert counters.parse(page) == counters.Counters(queries=8, cpu_seconds=1.5)


def test_processor_time_is_read_behind_a_name_with_parentheses() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    fields = ["S", *["0"] * 10, f"{3 * ticks}", f"{2 * ticks}", "9", "9"]
    assert processes.cpu_seconds(f"42 (a (b) c) {' '.join(fields)}") == 5


def test_memory_is_read_in_bytes() -> None:
    status = "Name:\tpython\nVmPeak:\t  900 kB\nVmHWM:\t  200 kB\nVmRSS:\t  100 kB\nThreads:\t3\n"
    assert processes.memory(status) == processes.Memory(102_400, 204_800)


@pytest.mark.parametrize(
    ("line", "port"),
    [
        (b'{"event": "serve.listening", "grpc_port": 4711, "http_port": 8080}\n', 4711),
        (b'{"event": "serve.starting", "grpc_address": "127.0.0.1:0"}\n', None),
        (b"Traceback (most recent call last):\n", None),
        (b"[]\n", None),
    ],
)
def test_a_server_says_where_it_listens(line: bytes, port: int | None) -> None:
    assert processes.listening_port(line) == port


def test_every_trigger_is_one_the_scaler_accepts() -> None:
    for one in world.triggers(3, copies=2):
        reference = one.reference()
        whose = ScaledObject(reference.namespace, reference.name)
        spec = trigger.parse(whose, dict(reference.scalerMetadata), access())
        assert spec.metric_name == one.request().metricName
        assert all(spec.pods.matches(pod) for pod in one.pods)
        assert spec.activation_threshold < one.percent <= 100


def test_neighbours_have_different_answers() -> None:
    values = [one.value for one in world.triggers(1000)]
    assert all(one != other for one, other in pairwise(values))


def test_copies_are_other_scaled_objects_on_the_same_workloads() -> None:
    names = [one.reference().name for one in world.triggers(2, copies=3)]
    assert len(set(names)) == len(names) == 6
    assert [one.number for one in world.triggers(2, copies=3)] == [0, 1] * 3


def test_what_is_decided_anew_is_asked_once_in_a_turn_and_by_nobody_else() -> None:
    asked = [one.reference().name for each in throughput.ASKED.values() for one in each]
    assert len(set(asked)) == len(asked) == throughput.MOST_REQUESTS + throughput.WORKLOADS


def test_a_trigger_that_is_decided_anew_rests_for_the_default_step() -> None:
    settings = PrometheusSettings.model_validate({"url": "http://prometheus"})
    assert settings.step_seconds == throughput.STEP_SECONDS


def test_kedas_own_trigger_asks_for_exactly_its_own_pods() -> None:
    promql_parser.parse(text := queries.promql(world.Trigger(7)))
    assert 'exported_pod=~"model-7-' in text


def test_evidence_is_compared_with_the_snapshot_of_the_same_round() -> None:
    rounds = [Round(Spent(1, 1), Spent(2, 3)), Round(Spent(4, 2), Spent(4, 2))]
    asked = Asked(10, Spent(9, 9), [*rounds, rounds[1]])
    assert asked.seconds == comparison.Ratio(1, 1, 2)
    assert asked.cpu == comparison.Ratio(1, 1, 3)
    assert asked.usual == Spent(4, 2)


async def test_what_is_measured_about_tls_are_right_answers(tmp_path: Path) -> None:
    secured = await tls.measure(tmp_path, 1, 100)
    assert [len(runs) for runs in secured.runs.values()] == [1, 1]
    assert secured.cpu_ratio > 0


async def test_what_is_measured_about_evidence_is_a_right_answer(tmp_path: Path) -> None:
    asked = await evidence.measure(tmp_path, 20, 1)
    assert asked.usual.seconds > 0


def test_a_pod_that_is_missing_in_an_answer_fails_the_benchmark() -> None:
    with pytest.raises(processes.ServerError, match="20 pods: 0 reported, 0 listed, 0 of them"):
        evidence.check(20, Observation((), (), {}), None)


def test_the_tables_show_ratios_and_what_was_counted() -> None:
    shown = io.StringIO()
    cost = Cost(1000, 60.0, 6000, 9, prometheus_cpu_seconds=1.25, scaler_cpu_seconds=7.5)
    sized = replace(cost, start_cpu_seconds=1.75, memory=processes.Memory(90 * 2**20, 99 * 2**20))
    runs = {"echo": [Run(10, 100, 0.01)], "100 triggers": [Run(10, 80, 0.02)]}
    secured = Secured(
        {tls.PLAINTEXT: [Run(10, 100, 0.01)], tls.MUTUAL: [Run(10, 66, 0.013)]},
        {tls.PLAINTEXT: 2.0, tls.MUTUAL: 2.34},
    )
    asked = Asked(10, Spent(3, 2), [Round(Spent(1, 0.5), Spent(1.5, 0.75))])
    idle = Used(60, 0.15)
    held = Held(1000, Used(30, 1.5, queries=72), idle, idle)
    report.show(
        report.Results(runs, secured, [sized], cost, asked, held), Console(file=shown, width=100)
    )
    ratios = ("0.80  (0.80 to 0.80)", "2.00  (2.00 to 2.00)", "1.50  (1.50 to 1.50)")
    for text in (*ratios, "0.0015", "1.25", "7.50", "0.75", "3.00", "5.00", "144", "0.25"):
        assert text in shown.getvalue()
    for text in ("12.5", "90", "99", "1.8", "0.66  (0.66 to 0.66)", "1.30  (1.30 to 1.30)", "1.17"):
        assert text in shown.getvalue()
