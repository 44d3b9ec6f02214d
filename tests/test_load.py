"""Claims about a workload's load."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import load
from keda_gpu_scaler.load import Reporting, Workload
from keda_gpu_scaler.snapshot import GpuSamples, Pod
from keda_gpu_scaler.spec import TriggerSpec
from tests.snapshots import NOW, STEP, bert, pod, snapshot
from tests.triggers import spec

HOUR = 3600.0


def _workload(trigger: TriggerSpec, *pods: Pod, now: float = NOW) -> Workload:
    found = load.pods_of(trigger, snapshot(*pods))
    return load.workload(trigger, found, NOW, now, HOUR)


def _conditions(found: Workload) -> list[Reporting]:
    return [replica.reporting for replica in found.replicas]


def test_five_pods_at_ninety_are_four_hundred_and_fifty() -> None:
    assert _workload(spec(), *(bert(letter, 90) for letter in "bcdfg")).total == 450


def test_two_gpus_in_a_pod_are_one_load() -> None:
    assert _workload(spec(), bert("b", 80, 100)).total == 90


@pytest.mark.parametrize(("how", "total"), [("average", 90), ("max", 100), ("sum", 180)])
def test_gpus_are_aggregated_as_the_trigger_says(how: str, total: float) -> None:
    assert _workload(spec(gpuAggregation=how), bert("b", 80, 100)).total == total


def test_the_busiest_gpu_of_each_instant_counts_for_max() -> None:
    swinging = bert("b", [0, 100] * 4, [100, 0] * 4)
    assert _workload(spec(gpuAggregation="max"), swinging).total == 100


def test_siblings_and_other_namespaces_do_not_count() -> None:
    canary = pod("bert-canary-7b6667bd9-bbbbb", 100.0)
    assert _workload(spec(), bert("b", 90), canary).total == 90
    other = snapshot(bert("b", 90), namespace="web")
    assert load.pods_of(spec(), other) == []


def test_samples_outside_the_window_do_not_count() -> None:
    values = [0.0] * 10 + [60.0] * 4
    assert _workload(spec(window="1m"), bert("b", values)).total == 60
    assert _workload(spec(window="2m"), bert("b", values)).total == 30


def test_the_window_is_shorter_where_the_exporter_averages_itself() -> None:
    values = [0.0] * 10 + [60.0] * 4
    assert _workload(spec(), bert("b", values)).total == 30
    assert _workload(spec(), bert("b", values, averaged=True)).total == 60


def test_samples_from_before_the_warm_up_do_not_count() -> None:
    values = [100.0] * 8 + [10.0] * 5
    young = bert("b", values, first_seen=NOW - 12 * STEP)
    assert _workload(spec(warmup="2m"), young).total == 10
    assert _workload(spec(warmup="0s"), young).total == 43.75


def test_a_pod_younger_than_warmup_is_warming() -> None:
    assert _conditions(_workload(spec(), bert("b", 100, first_seen=NOW - 119))) == [
        Reporting.WARMING
    ]
    assert _conditions(_workload(spec(), bert("b", 100, first_seen=NOW - 120))) == [
        Reporting.MEASURED
    ]


def test_a_silent_pod_keeps_its_last_mean_for_a_minute() -> None:
    assert _workload(spec(), bert("b", 90, last_seen=NOW - 60)).total == 90
    silent = _workload(spec(), bert("b", 90, last_seen=NOW - 61))
    assert _conditions(silent) == [Reporting.MISSING]


def test_two_scrapes_are_waited_for_where_they_are_longer_than_a_minute() -> None:
    silent = bert("b", 90, last_seen=NOW - 100)
    assert _conditions(_workload(spec(), silent)) == [Reporting.MISSING]
    assert _workload(spec(), replace(silent, scrape_interval_seconds=60.0)).total == 90


def test_a_sample_older_than_max_age_is_no_measurement() -> None:
    assert _workload(spec(), bert("b", 90, age=180)).total == 90
    stale = _workload(spec(), bert("b", 90, age=181))
    assert _conditions(stale) == [Reporting.MISSING]
    assert _conditions(_workload(spec(), bert("b", 90), now=NOW + 181)) == [Reporting.MISSING]


def test_a_pod_whose_samples_were_all_refused_is_missing() -> None:
    assert _conditions(_workload(spec(), bert("b"))) == [Reporting.MISSING]


def test_what_is_left_of_a_pod_is_not_its_load() -> None:
    """The samples of its second GPU were all refused: the pod's load is not half of it."""
    whole = bert("b", 90)
    blank = GpuSamples("GPU-x", (), (), refused=whole.gpus[0].times)
    halved = replace(whole, gpus=(*whole.gpus, blank))
    assert _conditions(_workload(spec(), halved)) == [Reporting.MISSING]


def test_an_instant_with_a_refused_sample_does_not_count() -> None:
    whole = bert("b", [80.0] * 4 + [20.0] * 4)
    late = GpuSamples("GPU-x", (), (), refused=whole.gpus[0].times[4:])
    assert _workload(spec(), replace(whole, gpus=(*whole.gpus, late))).total == 80


def test_an_instant_at_which_a_gpu_is_not_there_counts_without_it() -> None:
    """As the average of the GPUs there are, which is what the PromQL for people says."""
    whole = bert("b", 80)
    gone = GpuSamples("GPU-x", whole.gpus[0].times[-4:-2], (20.0, 20.0))
    assert _workload(spec(window="1m"), replace(whole, gpus=(*whole.gpus, gone))).total == 65


def test_an_ended_pod_is_counted_and_carries_nothing() -> None:
    found = _workload(spec(), bert("b", 90), bert("c", 90, ended=True))
    assert (found.total, found.ended_pods, len(found.replicas)) == (90, 1, 1)


def test_a_pod_lost_with_its_exporter_is_given_up_only_while_others_report() -> None:
    lost = bert("b", 90, last_seen=NOW - HOUR - 1)
    assert len(_workload(spec(), lost, bert("c", 50)).replicas) == 1
    assert _conditions(_workload(spec(), lost)) == [Reporting.MISSING]
    recent = bert("b", 90, last_seen=NOW - HOUR)
    assert len(_workload(spec(), recent, bert("c", 50)).replicas) == 2


def test_a_group_of_a_leaderworkerset_is_one_replica() -> None:
    trigger = spec(workload="lws/bert")
    groups = [
        pod("bert-0", 80.0),
        pod("bert-0-1", 100.0),
        pod("bert-1", 30.0),
        pod("bert-1-1", 50.0),
    ]
    found = _workload(trigger, *groups)
    assert [replica.load for replica in found.replicas] == [90, 40]
    assert found.total == 130
    assert found.reporting_pods == 4


def test_a_group_is_as_well_known_as_its_least_known_pod() -> None:
    trigger = spec(workload="lws/bert")
    missing = pod("bert-0-1", 100.0, last_seen=NOW - 100)
    warming = pod("bert-1-1", 100.0, first_seen=NOW - 30)
    found = _workload(trigger, pod("bert-0", 80.0), missing, pod("bert-1", 80.0), warming)
    assert _conditions(found) == [Reporting.MISSING, Reporting.WARMING]
    assert found.total == 0


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8), st.integers(1, 8))
def test_the_sum_is_the_mean_load_times_the_replicas(values: list[float], count: int) -> None:
    pods = [pod(f"bert-{n}", values) for n in range(count)]
    found = _workload(spec(workload="sts/bert"), *pods)
    mean = sum(values) / len(values)
    assert found.total == pytest.approx(mean * count, abs=1e-5)
    assert 0 <= found.total <= 100 * count
