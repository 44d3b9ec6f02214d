"""Claims about a workload's load."""

from dataclasses import replace

import pytest

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
READY_NOW = NOW - 105
"""An exporter's delay (45 s) and half a window (60 s) ago."""


def _workload(trigger: TriggerSpec, *pods: Pod, now: float = NOW) -> MeasuredWorkload:
    view = snapshot(*pods)
    return load.workload(trigger, load.pods_of(trigger, view), view, now, HOUR)


def _conditions(found: MeasuredWorkload) -> list[PodState]:
    return [replica.reporting for replica in found.replicas]


def _blank(whole: Pod, *refused: float) -> Pod:
    """Return a pod with a second GPU, whose samples were refused at these times."""
    blank = GpuSamples("GPU-x", (), (), refused=refused)
    return replace(whole, gpus=(*whole.gpus, blank))


def _scraped_every(seconds: float) -> Pod:
    silent = bert("b", 90, last_seen=NOW - 100)
    return replace(silent, scrape_interval_seconds=seconds)


WHOLE, RISEN, FALLEN = bert("b", 80), [0.0] * 10 + [60.0] * 4, [100.0] * 8 + [10.0] * 5
HALFWAY = bert("b", [80.0] * 4 + [20.0] * 4)
GONE_FOR_A_WHILE = GpuSamples("GPU-x", WHOLE.gpus[0].times[-4:-2], (20.0, 20.0))
YOUNG = bert("b", FALLEN, first_seen=NOW - 12 * STEP)
LOADING = bert("b", FALLEN, status=said(ready=READY_NOW))
COLLECTED = bert("b", 10, averaged=True, status=said(ready=NOW - 15 - 2 * 30 - 60))
TOTALS: dict[str, tuple[list[Pod], dict[str, str], float]] = {
    "five pods": ([bert(letter, 90) for letter in "bcdfg"], {}, 450),
    "no digit in which servers differ": ([bert("b", 23.1), bert("c", 46.9)], {}, 70),
    "two GPUs": ([bert("b", 80, 100)], {}, 90),
    "their average": ([bert("b", 80, 100)], {"gpuAggregation": "average"}, 90),
    "their maximum": ([bert("b", 80, 100)], {"gpuAggregation": "max"}, 100),
    "their sum": ([bert("b", 80, 100)], {"gpuAggregation": "sum"}, 180),
    "the busiest of each instant": (
        [bert("b", [0, 100] * 4, [100, 0] * 4)],
        {"gpuAggregation": "max"},
        100,
    ),
    "a sibling": ([bert("b", 90), pod("bert-canary-7b6667bd9-bbbbb", 100.0)], {}, 90),
    "from before the warm-up": ([YOUNG], {"warmup": "2m"}, 10),
    "without a warm-up": ([YOUNG], {"warmup": "0s"}, 43.75),
    # Where readiness is known, warmup has no effect.
    "Ready": ([bert("b", 10, first_seen=NOW - 90, status=said())], {"warmup": "1h"}, 10),
    "from before it was Ready": ([LOADING], {}, 10),
    "Ready for half a window": ([bert("b", 10, status=said(ready=READY_NOW))], {}, 10),
    "of a short window": ([bert("b", 10, status=said(ready=READY_NOW + 1))], {"window": "1m"}, 10),
    "an average reaches back": ([COLLECTED], {"window": "2m"}, 10),
    "silent for a minute": ([bert("b", 90, last_seen=NOW - 60)], {}, 90),
    "silent for two long scrapes": ([_scraped_every(50.0)], {}, 90),
    "as old as maxAge": ([bert("b", 90, age=180)], {}, 90),
    "an instant with a refused sample": (
        [_blank(HALFWAY, *HALFWAY.gpus[0].times[4:])],
        {},
        80,
    ),
    # As the average of the GPUs that are there, like the explained PromQL.
    "an instant at which a GPU is not there": (
        [replace(WHOLE, gpus=(*WHOLE.gpus, GONE_FOR_A_WHILE))],
        {"window": "1m"},
        65,
    ),
}


@pytest.mark.parametrize(("pods", "keys", "total"), TOTALS.values(), ids=TOTALS)
def test_the_load_is_the_sum_of_the_pods_means(
    pods: list[Pod], keys: dict[str, str], total: float
) -> None:
    assert _workload(spec(**keys), *pods).total == total


def test_samples_outside_the_window_do_not_count() -> None:
    """The window is shorter where the exporter averages by itself."""
    assert _workload(spec(window="1m"), bert("b", RISEN)).summed == 60
    assert _workload(spec(), bert("b", RISEN)).summed == 30
    assert _workload(spec(), bert("b", RISEN, averaged=True)).summed == 60


REQUESTS = said(is_ready=True)
STATES: dict[str, tuple[Pod, dict[str, str], PodState]] = {
    "silent for more than a minute": (
        bert("b", 90, last_seen=NOW - 61),
        {},
        PodState.MISSING,
    ),
    "silent for more than two scrapes": (_scraped_every(49.9), {}, PodState.MISSING),
    "older than maxAge": (bert("b", 90, age=181), {}, PodState.MISSING),
    "all samples refused": (bert("b"), {}, PodState.MISSING),
    # What is left of a pod is not its load.
    "all of one GPU refused": (_blank(WHOLE, *WHOLE.gpus[0].times), {}, PodState.MISSING),
    # Without its readiness, warmup and an exporter's delay are waited for: series begin as late.
    "younger than warmup": (bert("b", 90, first_seen=NOW - 164), {}, PodState.WARMING),
    "older than warmup": (bert("b", 90, first_seen=NOW - 165), {}, PodState.MEASURED),
    "Ready for less than half a window": (
        bert("b", 10, status=said(ready=READY_NOW + 1)),
        {},
        PodState.WARMING,
    ),
    "Ready, by averages": (replace(LOADING, averaged=True), {"window": "2m"}, PodState.WARMING),
    "of one collection more": (
        replace(COLLECTED, status=said(ready=NOW - 134)),
        {"window": "2m"},
        PodState.WARMING,
    ),
    "Ready, and still to come": (unseen("b", said(ready=NOW - 120)), {}, PodState.WARMING),
    "Ready, and not shown": (unseen("b", said(ready=NOW - 121)), {}, PodState.MISSING),
    "measured, and silent however young it is": (
        bert("b", 90, age=16, status=said(ready=NOW - 75)),
        {"window": "10s", "maxAge": "15s"},
        PodState.MISSING,
    ),
    "silent, and Ready": (bert("b", 90, last_seen=NOW - 100, status=REQUESTS), {}, PodState.SILENT),
    "silent, and perhaps gone": (
        bert("b", 90, last_seen=NOW - 100, status=said(is_ready=False)),
        {},
        PodState.MISSING,
    ),
}


@pytest.mark.parametrize(("pod", "keys", "state"), STATES.values(), ids=STATES)
def test_each_pod_has_a_state(pod: Pod, keys: dict[str, str], state: PodState) -> None:
    assert _conditions(_workload(spec(**keys), pod)) == [state]


def test_a_new_pod_waits_for_half_a_window_whatever_the_others_show() -> None:
    pods = bert("b", 100, status=said()), bert("c", 100, status=said(ready=NOW - 50))
    assert _conditions(_workload(spec(), *pods)) == [PodState.MEASURED, PodState.WARMING]


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


LWS = spec(workload="lws/bert")


def test_a_group_of_a_leaderworkerset_is_one_replica() -> None:
    loads = {"bert-0": 80.0, "bert-0-1": 100.0, "bert-1": 30.0, "bert-1-1": 50.0}
    found = _workload(LWS, *(pod(name, load) for name, load in loads.items()))
    assert {replica.name: replica.load for replica in found.replicas} == {
        "bert-0": 90,
        "bert-1": 40,
    }
    assert (found.total, found.reporting_pods) == (130, 4)


def test_a_group_is_as_well_known_as_its_least_known_pod() -> None:
    missing = pod("bert-0-1", 100.0, last_seen=NOW - 100)
    warming = pod("bert-1-1", 100.0, first_seen=NOW - 30)
    found = _workload(LWS, pod("bert-0", 80.0), missing, pod("bert-1", 80.0), warming)
    assert _conditions(found) == [PodState.MISSING, PodState.WARMING]
    assert [replica.load for replica in found.replicas] == [0, 0]
    assert found.measured == []
    both = _workload(LWS, missing, replace(warming, name="bert-0-2"))
    assert _conditions(both) == [PodState.MISSING]


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
