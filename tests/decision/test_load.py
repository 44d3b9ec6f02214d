"""Claims about a workload's load."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.decision import load
from keda_gpu_scaler.decision.load import MeasuredWorkload
from keda_gpu_scaler.decision.pod_state import PodState
from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence, PodStatus, Readiness
from keda_gpu_scaler.snapshot.snapshot import GpuSamples, Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.spec.workload import Owner
from tests.support.snapshots import BERT_DEPLOYMENT, NOW, STEP, bert, pod, said, snapshot, unseen
from tests.support.triggers import spec

HOUR = 3600.0


def _workload(trigger: TriggerSpec, *pods: Pod, now: float = NOW) -> MeasuredWorkload:
    view = snapshot(*pods)
    return load.workload(trigger, load.pods_of(trigger, view), view, now)


def _conditions(found: MeasuredWorkload) -> list[PodState]:
    return [replica.reporting for replica in found.replicas]


def test_five_pods_at_ninety_are_four_hundred_and_fifty() -> None:
    assert _workload(spec(), *(bert(letter, 90) for letter in "bcdfg")).total == 450


def test_a_sum_has_no_digit_in_which_servers_differ() -> None:
    assert _workload(spec(), bert("b", 23.1), bert("c", 46.9)).total == 70


def test_two_gpus_in_a_pod_are_one_load() -> None:
    assert _workload(spec(), bert("b", 80, 100)).total == 90


@pytest.mark.parametrize(("how", "total"), [("average", 90), ("max", 100), ("sum", 180)])
def test_gpus_are_aggregated_as_the_trigger_says(how: str, total: float) -> None:
    assert _workload(spec(gpuAggregation=how), bert("b", 80, 100)).total == total


def test_the_busiest_gpu_of_each_instant_counts_for_max() -> None:
    swinging = bert("b", [0, 100] * 4, [100, 0] * 4)
    assert _workload(spec(gpuAggregation="max"), swinging).total == 100


def test_siblings_do_not_count() -> None:
    canary = pod("bert-canary-7b6667bd9-bbbbb", 100.0)
    assert _workload(spec(), bert("b", 90), canary).total == 90


def test_samples_outside_the_window_do_not_count() -> None:
    values = [0.0] * 10 + [60.0] * 4
    assert _workload(spec(window="1m"), bert("b", values)).sums.summed == 60
    assert _workload(spec(window="2m"), bert("b", values)).sums.summed == 30


def test_the_window_is_shorter_where_the_exporter_averages_itself() -> None:
    values = [0.0] * 10 + [60.0] * 4
    assert _workload(spec(), bert("b", values)).sums.summed == 30
    assert _workload(spec(), bert("b", values, averaged=True)).sums.summed == 60


def test_samples_from_before_the_warm_up_do_not_count() -> None:
    values = [100.0] * 8 + [10.0] * 5
    young = bert("b", values, first_seen=NOW - 12 * STEP)
    assert _workload(spec(warmup="2m"), young).total == 10
    assert _workload(spec(warmup="0s"), young).total == 43.75


def test_a_silent_pod_keeps_its_last_mean_for_a_minute() -> None:
    assert _workload(spec(), bert("b", 90, last_seen=NOW - 60)).total == 90
    silent = _workload(spec(), bert("b", 90, last_seen=NOW - 61))
    assert _conditions(silent) == [PodState.MISSING]


def test_two_scrapes_are_waited_for_where_they_are_longer_than_a_minute() -> None:
    silent = bert("b", 90, last_seen=NOW - 100)
    assert _conditions(_workload(spec(), silent)) == [PodState.MISSING]
    assert _workload(spec(), replace(silent, scrape_interval_seconds=50.0)).total == 90
    assert _conditions(_workload(spec(), replace(silent, scrape_interval_seconds=49.9))) == [
        PodState.MISSING
    ]


def test_a_sample_older_than_max_age_is_no_measurement() -> None:
    assert _workload(spec(), bert("b", 90, age=180)).total == 90
    stale = _workload(spec(), bert("b", 90, age=181))
    assert _conditions(stale) == [PodState.MISSING]
    assert _conditions(_workload(spec(), bert("b", 90), now=NOW + 181)) == [PodState.MISSING]


def test_a_pod_whose_samples_were_all_refused_is_missing() -> None:
    assert _conditions(_workload(spec(), bert("b"))) == [PodState.MISSING]


def test_what_is_left_of_a_pod_is_not_its_load() -> None:
    """The samples of its second GPU were all refused: the pod's load is not half of it."""
    whole = bert("b", 90)
    blank = GpuSamples("GPU-x", (), (), refused=whole.gpus[0].times)
    halved = replace(whole, gpus=(*whole.gpus, blank))
    assert _conditions(_workload(spec(), halved)) == [PodState.MISSING]


def test_an_instant_with_a_refused_sample_does_not_count() -> None:
    whole = bert("b", [80.0] * 4 + [20.0] * 4)
    late = GpuSamples("GPU-x", (), (), refused=whole.gpus[0].times[4:])
    assert _workload(spec(), replace(whole, gpus=(*whole.gpus, late))).total == 80


def test_an_instant_at_which_a_gpu_is_not_there_counts_without_it() -> None:
    """As the average of the GPUs that are there, like the explained PromQL."""
    whole = bert("b", 80)
    gone = GpuSamples("GPU-x", whole.gpus[0].times[-4:-2], (20.0, 20.0))
    assert _workload(spec(window="1m"), replace(whole, gpus=(*whole.gpus, gone))).total == 65


def test_an_ended_pod_is_counted_and_carries_nothing() -> None:
    gone = bert("c", 90, last_seen=NOW - 200, ended=True)
    found = _workload(spec(), bert("b", 90), gone)
    assert (found.total, found.ended_pods, len(found.replicas)) == (90, 1, 1)


def test_a_pod_lost_with_its_exporter_is_given_up_only_while_others_report() -> None:
    lost = bert("b", 90, last_seen=NOW - HOUR - 1)
    assert len(_workload(spec(), lost, bert("c", 50)).replicas) == 1
    assert _conditions(_workload(spec(), lost)) == [PodState.MISSING]
    recent = bert("b", 90, last_seen=NOW - HOUR)
    assert len(_workload(spec(), recent, bert("c", 50)).replicas) == 2
    unsure = replace(lost, unsure_seconds=1.0)
    assert len(_workload(spec(), unsure, bert("c", 50)).replicas) == 2


def test_a_group_of_a_leaderworkerset_is_one_replica() -> None:
    trigger = spec(workload="lws/bert")
    groups = [
        pod("bert-0", 80.0),
        pod("bert-0-1", 100.0),
        pod("bert-1", 30.0),
        pod("bert-1-1", 50.0),
    ]
    found = _workload(trigger, *groups)
    assert [(replica.name, replica.load) for replica in found.replicas] == [
        ("bert-0", 90),
        ("bert-1", 40),
    ]
    assert found.total == 130
    assert found.reporting_pods == 4


def test_a_group_is_as_well_known_as_its_least_known_pod() -> None:
    trigger = spec(workload="lws/bert")
    missing = pod("bert-0-1", 100.0, last_seen=NOW - 100)
    warming = pod("bert-1-1", 100.0, first_seen=NOW - 30)
    found = _workload(trigger, pod("bert-0", 80.0), missing, pod("bert-1", 80.0), warming)
    assert _conditions(found) == [PodState.MISSING, PodState.WARMING]
    assert [replica.load for replica in found.replicas] == [0, 0]
    assert found.measured == []


def test_a_group_that_lost_a_pod_is_missing_however_young_its_other_pods_are() -> None:
    missing = pod("bert-0", 100.0, last_seen=NOW - 100)
    warming = pod("bert-0-1", 100.0, first_seen=NOW - 30)
    assert _conditions(_workload(spec(workload="lws/bert"), missing, warming)) == [PodState.MISSING]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8), st.integers(1, 8))
def test_the_sum_is_the_mean_load_times_the_replicas(values: list[float], count: int) -> None:
    pods = [pod(f"bert-{n}", values) for n in range(count)]
    found = _workload(spec(workload="sts/bert"), *pods)
    mean = sum(values) / len(values)
    assert found.sums.summed == pytest.approx(mean * count, abs=1e-5)
    assert 0 <= found.sums.summed <= 100 * count


# When it is known since when a pod is Ready


READY_NOW = NOW - 105
"""An exporter's delay (45 s) and half a window (60 s) ago."""


def test_samples_count_from_an_exporter_s_delay_after_the_pod_became_ready() -> None:
    loading = bert("b", [100.0] * 8 + [10.0] * 5, status=said(ready=READY_NOW))
    assert _workload(spec(), loading).total == 10
    averaged = replace(loading, averaged=True)
    assert _conditions(_workload(spec(window="2m"), averaged)) == [PodState.WARMING]


def test_an_average_reaches_back_one_collection_more() -> None:
    half = NOW - 15 - 2 * 30 - 60
    young = bert("b", 10, averaged=True, status=said(ready=half))
    later = replace(young, status=said(ready=half + 1))
    assert _workload(spec(window="2m"), young).total == 10
    assert _conditions(_workload(spec(window="2m"), later)) == [PodState.WARMING]


def test_a_pod_is_not_measured_before_its_samples_cover_half_the_window() -> None:
    young = bert("b", 10, status=said(ready=READY_NOW + 1))
    assert _conditions(_workload(spec(), young)) == [PodState.WARMING]
    assert _workload(spec(window="1m"), young).total == 10


def test_warmup_has_no_effect_where_readiness_is_known() -> None:
    young = bert("b", 10, first_seen=NOW - 90, status=said())
    assert _workload(spec(warmup="1h"), young).total == 10


def test_a_ready_pod_without_a_sample_is_waited_for_and_then_missing() -> None:
    early, late = unseen("b", said(ready=NOW - 120)), unseen("b", said(ready=NOW - 121))
    assert _conditions(_workload(spec(), early)) == [PodState.WARMING]
    assert _conditions(_workload(spec(), late)) == [PodState.MISSING]


def test_a_pod_that_was_measured_and_falls_silent_is_missing_however_young_it_is() -> None:
    short, young = spec(window="10s", maxAge="15s"), said(ready=NOW - 75)
    silent = bert("b", 90, last_seen=NOW, age=16, status=young)
    assert _conditions(_workload(short, silent)) == [PodState.MISSING]


def test_a_pod_that_was_never_ready_is_none_of_those_that_should_report() -> None:
    found = _workload(
        spec(startTimeout="10m"),
        bert("b", 90, status=said()),
        bert("c", 100, status=said(never=True, created=NOW - 599)),
        unseen("d", said(never=True, created=NOW - 600)),
        unseen("f", said(never=True, created=None)),
    )
    assert (found.total, len(found.replicas)) == (90, 1)
    assert found.starting == ("bert-7b6667bd9-ccccc", "bert-7b6667bd9-fffff")
    assert found.stalled == ("bert-7b6667bd9-ddddd",)


def test_a_listed_pod_of_which_nobody_knows_whether_it_is_ready_counts_once_it_reports() -> None:
    unknown = said(readiness=Readiness.UNKNOWN)
    assert not _workload(spec(), unseen("b", unknown)).replicas
    assert _workload(spec(), bert("b", 90, status=unknown)).total == 90


def test_a_pod_that_asks_for_no_gpu_while_others_do_is_left_out() -> None:
    leader = unseen("c", said(asks_gpu=False))
    found = _workload(spec(), bert("b", 90, status=said()), leader)
    assert (len(found.replicas), found.ignored) == (1, ())
    assert _conditions(_workload(spec(), leader)) == [PodState.MISSING]


@pytest.mark.parametrize(
    ("ready", "began", "ignored"),
    [(None, None, True), (NOW - 960, NOW - 900, True), (NOW - 959, None, False)],
)
def test_a_pod_that_never_reported_while_others_did_for_long_has_no_gpu(
    ready: float | None, began: float | None, *, ignored: bool
) -> None:
    silent = unseen("c", said(ready=ready, asks_gpu=False))
    reports = bert("b", 90, first_seen=began, status=said(asks_gpu=False))
    found = _workload(spec(), reports, silent)
    assert found.ignored == (("bert-7b6667bd9-ccccc",) if ignored else ())
    assert len(found.replicas) == (1 if ignored else 2)


def test_where_requests_are_not_known_a_pod_has_no_gpu_beside_others_of_its_group() -> None:
    """A leader may ask for none, and its workers do; a replica is like the others."""
    unknown = said(asks_gpu=None, owners=frozenset({Owner("StatefulSet", "bert")}))
    worker = pod("bert-0-1", 90.0, status=unknown)
    for leader, ignored in (("bert-0", ("bert-0",)), ("bert-1", ())):
        silent = replace(unseen("", unknown), name=leader)
        assert _workload(spec(workload="lws/bert"), worker, silent).ignored == ignored


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (said(is_ready=True), PodState.UNSEEN),
        (said(is_ready=True, ready=NOW - 960), PodState.UNSEEN),
        (said(is_ready=True, ready=NOW - 959), PodState.MISSING),
        (said(is_ready=True, asks_gpu=False), None),
        (said(), PodState.MISSING),
    ],
)
def test_a_ready_pod_that_asks_for_a_gpu_and_never_showed_one_is_never_ignored(
    status: PodStatus, state: PodState | None
) -> None:
    found = _workload(spec(), bert("b", 90, status=said()), unseen("c", status))
    assert [*_conditions(found)[1:]] == ([] if state is None else [state])
    assert not found.ignored


def test_a_pod_whose_samples_may_still_come_is_not_taken_for_one_that_no_exporter_shows() -> None:
    """A Prometheus that has just started has not scraped all exporters yet."""
    for began, state in ((NOW - 900, PodState.UNSEEN), (NOW - 899, PodState.MISSING)):
        shown = bert("b", 90, first_seen=began, status=said())
        found = _workload(spec(), shown, unseen("c", said(is_ready=True)))
        assert _conditions(found)[1] is state


def test_a_pod_that_is_silent_and_ready_is_told_from_one_that_may_be_gone() -> None:
    for is_ready, state in ((True, PodState.SILENT), (False, PodState.MISSING)):
        lost = bert("b", 90, last_seen=NOW - 100, status=said(is_ready=is_ready))
        assert _conditions(_workload(spec(), lost)) == [state]


def test_a_gpu_that_shows_nothing_to_be_believed_is_named() -> None:
    whole = bert("b", 90, status=said(is_ready=True))
    blank = GpuSamples("GPU-x", (), (), refused=whole.gpus[0].times)
    found = _workload(spec(), replace(whole, gpus=(*whole.gpus, blank)))
    assert (found.blank, _conditions(found)) == (
        ("GPU-x of bert-7b6667bd9-bbbbb",),
        [PodState.SILENT],
    )


def test_a_pod_is_the_workload_s_by_its_owner_and_not_by_its_name() -> None:
    """The names of deployment/bert-7b6667bd9 look like those of deployment/bert."""
    other = said(owners=frozenset({Owner("Deployment", "bert-7b6667bd9")}))
    assert _workload(spec(), bert("b", 90, status=said()), bert("c", 80, status=other)).total == 90


def test_an_owner_without_replicas_ends_what_nobody_has_shown_since() -> None:
    none = NamespaceEvidence(
        NOW - 10, absence_known=False, without_pods=frozenset({BERT_DEPLOYMENT})
    )
    pods = [
        bert("b", 90, last_seen=NOW - 20),
        bert("c", 90, last_seen=NOW - 20, status=said(listed=NOW - 40)),
        bert("d", 90, status=said(listed=NOW - 40)),
        unseen("f", said(never=True)),
    ]
    found = load.pods_of(spec(), snapshot(*pods, evidence=none))
    assert [one.ended for one in found] == [True, True, False, False]


def test_a_pod_the_cluster_lists_is_never_given_up() -> None:
    lost = bert("c", 90, last_seen=NOW - 4000, status=said())
    assert len(_workload(spec(), bert("b", 90), lost).replicas) == 2


def test_a_pod_that_was_given_up_does_not_come_back_when_the_others_end() -> None:
    lost = bert("c", 90, last_seen=NOW - 4000)
    assert not _workload(spec(), bert("b", 90, last_seen=NOW - 30, ended=True), lost).replicas


def test_a_group_is_ready_when_all_of_its_pods_are() -> None:
    owner = frozenset({Owner("StatefulSet", "bert")})
    pods = [
        pod("bert-0", 90, status=said(owners=owner)),
        pod("bert-0-1", 50, status=said(owners=owner)),
        pod("bert-1", 90, status=said(owners=owner)),
        pod("bert-1-1", 90, status=said(owners=owner, never=True, created=NOW - 60)),
    ]
    found = _workload(spec(workload="lws/bert"), *pods)
    assert (found.total, found.starting) == (70, ("bert-1",))


def test_a_query_that_stands_alone_misses_no_pod_that_it_never_showed() -> None:
    silent = unseen("z", said(ready=NOW - 300))
    alone = spec(workload="", query="load", activationThreshold="5")
    assert _workload(alone, bert("b", 90), pod("web-0", 10), silent).total == 100
    assert PodState.MISSING not in _conditions(_workload(alone, bert("b", 90), silent))
    named = spec(query="load", activationThreshold="5")
    assert PodState.MISSING in _conditions(_workload(named, bert("b", 90), silent))
