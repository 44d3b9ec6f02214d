"""Claims about a workload's load."""

from dataclasses import replace

import pytest

from keda_gpu_scaler.decision import load
from keda_gpu_scaler.decision.load import MeasuredWorkload
from keda_gpu_scaler.decision.pod_state import PodState
from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence, Readiness
from keda_gpu_scaler.snapshot.snapshot import GpuSamples, Pod
from keda_gpu_scaler.spec.workload import Owner
from testbed.triggers import spec
from tests.decision.deciding import measured
from tests.support.snapshots import BERT_DEPLOYMENT, NOW, STEP, bert, pod, said, snapshot, unseen

HOUR = 3600.0
READY_NOW = NOW - 105
"""An exporter's delay (45 s) and half a window (60 s) ago."""


def _conditions(found: MeasuredWorkload) -> list[PodState]:
    return [replica.state for replica in found.replicas]


def _blank(whole: Pod, *refused: float) -> Pod:
    """Return a pod with a second GPU, whose samples were refused at these times."""
    blank = GpuSamples("GPU-x", (), (), refused=refused)
    return replace(whole, gpus=(*whole.gpus, blank))


def _scraped_every(seconds: float) -> Pod:
    silent = bert("b", 90, last_seen=NOW - 100)
    return replace(silent, scrape_interval_seconds=seconds)


WHOLE, FALLEN, ENDED = bert("b", 80), [100.0] * 8 + [10.0] * 5, [60.0] * 10 + [0.0] * 4
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
    "from before the default window": ([bert("b", ENDED)], {}, 30),
    "from before a short window": ([bert("b", ENDED)], {"window": "1m"}, 0),
    "from before that of an average": ([bert("b", ENDED, averaged=True)], {}, 0),
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
    assert measured(*pods, **keys).total == total


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
    assert _conditions(measured(pod, **keys)) == [state]


FULL, AFTER_WARMUP = bert("z", 100), NOW - 300
BUSY_FOR_HALF_A_WINDOW = [0.0] * 12 + [80.0] * 5
BESIDE_FULL: dict[str, tuple[list[Pod], dict[str, str], PodState, float]] = {
    "idle": ([FULL, bert("b", 0, first_seen=AFTER_WARMUP)], {}, PodState.WARMING, 0),
    "idle by activationThreshold": (
        [FULL, bert("b", 9, first_seen=AFTER_WARMUP)],
        {"activationThreshold": "9"},
        PodState.WARMING,
        0,
    ),
    "busy for less than half a window": (
        [FULL, bert("b", [0.0] * 13 + [80.0] * 4, first_seen=AFTER_WARMUP)],
        {},
        PodState.WARMING,
        0,
    ),
    # What it showed while it was idle is not a part of its load.
    "busy for half a window": (
        [FULL, bert("b", BUSY_FOR_HALF_A_WINDOW, first_seen=AFTER_WARMUP)],
        {},
        PodState.MEASURED,
        80,
    ),
    "idle, beside one that is just full": (
        [bert("z", 95), bert("b", 0, first_seen=AFTER_WARMUP)],
        {},
        PodState.WARMING,
        0,
    ),
    "idle, beside one of which each GPU is full": (
        [bert("z", 100, 100), bert("b", 0, 0, first_seen=AFTER_WARMUP)],
        {"gpuAggregation": "sum"},
        PodState.WARMING,
        0,
    ),
    "busy since its samples count": (
        [FULL, bert("b", [0.0] * 4 + [80.0] * 4, first_seen=NOW - 210)],
        {},
        PodState.MEASURED,
        80,
    ),
    "idle in the first sample that counts": (
        [FULL, bert("b", [0.0], first_seen=NOW)],
        {"warmup": "0s"},
        PodState.WARMING,
        0,
    ),
    "busy in the first sample that counts": (
        [FULL, bert("b", [80.0], first_seen=NOW)],
        {"warmup": "0s"},
        PodState.MEASURED,
        80,
    ),
    "busy for long": (
        [FULL, bert("b", [80.0] * 12 + [20.0] * 5, first_seen=AFTER_WARMUP)],
        {},
        PodState.MEASURED,
        42.5,
    ),
    "one that was full since samples reach back": (
        [
            bert("z", [100.0] * 4 + [50.0] * 12),
            bert("b", BUSY_FOR_HALF_A_WINDOW, first_seen=AFTER_WARMUP),
        ],
        {},
        PodState.MEASURED,
        80,
    ),
    "one that was full for half a window": (
        [
            bert("z", [50.0] * 8 + [100.0] * 4 + [50.0] * 4),
            bert("b", BUSY_FOR_HALF_A_WINDOW, first_seen=AFTER_WARMUP),
        ],
        {},
        PodState.MEASURED,
        80,
    ),
    "none is full": (
        [bert("z", 94), bert("b", BUSY_FOR_HALF_A_WINDOW, first_seen=AFTER_WARMUP)],
        {},
        PodState.MEASURED,
        50,
    ),
    "as old as startTimeout": (
        [FULL, bert("b", 0, first_seen=AFTER_WARMUP)],
        {"startTimeout": "5m"},
        PodState.MEASURED,
        0,
    ),
    "from before all that is known": ([FULL, bert("b", 0)], {}, PodState.MEASURED, 0),
    "Ready": (
        [FULL, bert("b", 0, first_seen=AFTER_WARMUP, status=said())],
        {},
        PodState.MEASURED,
        0,
    ),
    "without a sample that counts": (
        [FULL, bert("b", first_seen=AFTER_WARMUP)],
        {},
        PodState.MISSING,
        0,
    ),
}


@pytest.mark.parametrize(("pods", "keys", "state", "load_"), BESIDE_FULL.values(), ids=BESIDE_FULL)
def test_beside_a_full_pod_a_young_one_that_is_idle_still_loads(
    pods: list[Pod], keys: dict[str, str], state: PodState, load_: float
) -> None:
    """With exporters only: nothing says since when it has been Ready."""
    replica = measured(*pods, **keys).replicas[0]
    assert (replica.state, replica.load) == (state, load_)


def test_an_ended_pod_is_counted_and_carries_nothing() -> None:
    gone = bert("c", 90, last_seen=NOW - 200, ended=True)
    found = measured(bert("b", 90), gone)
    assert (found.total, found.ended_pods, len(found.replicas)) == (90, 1, 1)


HERE, OURS = bert("b", 90), bert("b", 90, status=said())
ALIKE, NO_GPU = bert("b", 90, status=said(asks_gpu=False)), unseen("c", said(asks_gpu=False))
LOST = bert("c", 90, last_seen=NOW - HOUR - 1)
READINESS_UNKNOWN = said(readiness=Readiness.UNKNOWN)
MEASURED, MISSING, UNSEEN = PodState.MEASURED, PodState.MISSING, PodState.UNSEEN
REPORTS: dict[str, tuple[list[Pod], list[PodState]]] = {
    "lost with its exporter": ([HERE, replace(LOST, last_seen=NOW - HOUR)], [MEASURED, MISSING]),
    "lost for an hour": ([HERE, LOST], [MEASURED]),
    "lost for an hour, alone": ([LOST], [MISSING]),
    "lost for an hour, as far as it is known": (
        [HERE, replace(LOST, unsure_seconds=1.0)],
        [MEASURED, MISSING],
    ),
    "lost for an hour, and listed": ([HERE, replace(LOST, status=said())], [MEASURED, MISSING]),
    "lost for an hour when the others end": (
        [bert("b", 90, last_seen=NOW - 30, ended=True), replace(LOST, last_seen=NOW - 4000)],
        [],
    ),
    "listed, and Ready or not": ([unseen("b", READINESS_UNKNOWN)], []),
    "shown, and Ready or not": ([bert("b", 90, status=READINESS_UNKNOWN)], [MEASURED]),
    # One that asks for no GPU is left out while others ask for one, or show one for 15 minutes.
    "asks for no GPU": ([NO_GPU], [MISSING]),
    "asks for no GPU as others do": ([OURS, NO_GPU], [MEASURED]),
    "shows none, as others do": ([ALIKE, NO_GPU], [MEASURED]),
    "shows none for 15 minutes": (
        [replace(ALIKE, first_seen=NOW - 900), unseen("c", said(ready=NOW - 960, asks_gpu=False))],
        [MEASURED],
    ),
    "shows none for less": (
        [ALIKE, unseen("c", said(ready=NOW - 959, asks_gpu=False))],
        [MEASURED, MISSING],
    ),
    "never Ready, and asks for no GPU": (
        [ALIKE, unseen("c", said(never=True, created=NOW - 60, asks_gpu=False))],
        [MEASURED],
    ),
    # One that asks for a GPU is never left out.
    "asks for one, and shows none": ([OURS, unseen("c", said())], [MEASURED, MISSING]),
    "Ready now": ([OURS, unseen("c", said(is_ready=True))], [MEASURED, UNSEEN]),
    "Ready for 15 minutes": (
        [OURS, unseen("c", said(is_ready=True, ready=NOW - 960))],
        [MEASURED, UNSEEN],
    ),
    "Ready for less": (
        [OURS, unseen("c", said(is_ready=True, ready=NOW - 959))],
        [MEASURED, MISSING],
    ),
    # A Prometheus that has just started has not scraped all exporters yet.
    "Ready, beside one that is shown for 15 minutes": (
        [replace(OURS, first_seen=NOW - 900), unseen("c", said(is_ready=True))],
        [MEASURED, UNSEEN],
    ),
    "Ready, beside one that is shown for less": (
        [replace(OURS, first_seen=NOW - 899), unseen("c", said(is_ready=True))],
        [MEASURED, MISSING],
    ),
}
"""Pods, and the states of those that should report."""
REPLICA_SET = Owner("ReplicaSet", "bert-7b6667bd9")
FRACTION = said(asks_gpu=False, owners=frozenset({REPLICA_SET, BERT_DEPLOYMENT}), is_ready=True)
NPU = said(asks_gpu=None, devices=frozenset({"example.com/npu"}), is_ready=True)
OTHER_SET = frozenset({Owner("ReplicaSet", "bert-5ff95fdc99"), BERT_DEPLOYMENT})
REPORTS |= {
    # It is not known whether it asks for one, and no other shows what it asks for.
    "asks for what may be one": (
        [bert("b", 90, status=NPU), unseen("c", NPU)],
        [MEASURED, UNSEEN],
    ),
    "asks for what may be one, beside one that asks for a GPU": (
        [OURS, unseen("c", NPU)],
        [MEASURED],
    ),
    "asks for a GPU, and for another device": (
        [OURS, unseen("c", replace(NPU, asks_gpu=True))],
        [MEASURED, UNSEEN],
    ),
    "never Ready, and asks for what may be one": (
        [OURS, bert("c", 90, status=replace(NPU, readiness=Readiness.NEVER))],
        [MEASURED],
    ),
    "asks for what may be one, beside one that ended": (
        [bert("d", 90, ended=True, status=said()), bert("b", 90, status=NPU), unseen("c", NPU)],
        [MEASURED, UNSEEN],
    ),
    # Some other way gives parts of GPUs to the pods of one controller.
    "asks for none, as one that is shown and has its controller": (
        [bert("b", 90, status=FRACTION), unseen("c", FRACTION)],
        [MEASURED, UNSEEN],
    ),
    "the same, beside one of another controller that asks for one": (
        [bert("b", 90, status=FRACTION), unseen("c", FRACTION), bert("d", 90, status=said())],
        [MEASURED, UNSEEN, MEASURED],
    ),
    "asks for none, and has another controller than one that is shown": (
        [bert("b", 90, status=FRACTION), unseen("c", replace(FRACTION, owners=OTHER_SET))],
        [MEASURED],
    ),
}
IGNORED = {
    "asks for none, and has another controller than one that is shown",
    "shows none, as others do",
    "shows none for 15 minutes",
}


@pytest.mark.parametrize("case", REPORTS)
def test_which_pods_should_report(case: str) -> None:
    pods, states = REPORTS[case]
    found = measured(*pods)
    assert _conditions(found) == states
    assert bool(found.ignored) is (case in IGNORED)


LWS, STATEFUL_SET = {"workload": "lws/bert"}, frozenset({Owner("StatefulSet", "bert")})


def test_a_group_of_a_leaderworkerset_is_one_replica() -> None:
    loads = {"bert-0": 80.0, "bert-0-1": 100.0, "bert-1": 30.0, "bert-1-1": 50.0}
    found = measured(*(pod(name, load) for name, load in loads.items()), **LWS)
    assert {replica.name: replica.load for replica in found.replicas} == {
        "bert-0": 90,
        "bert-1": 40,
    }
    assert (found.total, found.reporting_pods) == (130, 4)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_leader_of_another_leaderworkerset_is_no_worker(*, is_known: bool) -> None:
    """The other one is called as the StatefulSet of a fourth group's workers would be."""

    def of(name: str, load: float, owner: str) -> Pod:
        return pod(name, load, status=said(owners=frozenset({Owner("StatefulSet", owner)})))

    leader = of("bert-0", 80, "bert") if is_known else pod("bert-0", 80)
    own = leader, of("bert-0-1", 100, "bert-0")
    others = of("bert-3-0", 90, "bert-3"), of("bert-3-1", 90, "bert-3")
    found = measured(*own, *others, of("bert-3-0-1", 90, "bert-3-0"), **LWS)
    assert {replica.name: replica.load for replica in found.replicas} == {"bert-0": 90}


@pytest.mark.parametrize("ended", [True, False])
def test_a_worker_that_has_ended_is_the_workload_s_without_its_leader(*, ended: bool) -> None:
    """A leader without a GPU is known from the list of pods alone, and is gone before that."""
    worker = pod("bert-1-1", 100, status=said(owners=frozenset({Owner("StatefulSet", "bert-1")})))
    found = load.pods_of(spec(**LWS), snapshot(replace(worker, ended=ended)))
    assert bool(found) is ended


def test_a_group_is_as_well_known_as_its_least_known_pod() -> None:
    missing = pod("bert-0-1", 100.0, last_seen=NOW - 100)
    warming = pod("bert-1-1", 100.0, first_seen=NOW - 30)
    found = measured(pod("bert-0", 80.0), missing, pod("bert-1", 80.0), warming, **LWS)
    assert _conditions(found) == [PodState.MISSING, PodState.WARMING]
    assert [replica.load for replica in found.replicas] == [0, 0]
    assert found.measured == []
    both = measured(missing, replace(warming, name="bert-0-2"), **LWS)
    assert _conditions(both) == [PodState.MISSING]
    loading = replace(warming, status=said(owners=STATEFUL_SET, never=True, created=NOW - 60))
    started = measured(pod("bert-1", 80.0, status=said(owners=STATEFUL_SET)), loading, **LWS)
    assert (started.names(PodState.STARTING), started.total) == (("bert-1",), 0)


def test_a_pod_that_was_never_ready_is_none_of_those_that_should_report() -> None:
    found = measured(
        bert("b", 90, status=said()),
        bert("c", 100, status=said(never=True, created=NOW - 599)),
        unseen("d", said(never=True, created=NOW - 600)),
        unseen("f", said(never=True, created=None)),
        startTimeout="10m",
    )
    assert (found.total, len(found.replicas)) == (90, 1)
    assert found.names(PodState.STARTING) == ("bert-7b6667bd9-ccccc", "bert-7b6667bd9-fffff")
    assert found.names(PodState.STALLED) == ("bert-7b6667bd9-ddddd",)


def test_where_requests_are_not_known_a_pod_has_no_gpu_beside_others_of_its_group() -> None:
    """A leader may ask for none, and its workers do; a replica is like the others."""
    unknown = said(asks_gpu=None, owners=STATEFUL_SET)
    worker = pod("bert-0-1", 90.0, status=unknown)
    for leader, ignored in (("bert-0", ("bert-0",)), ("bert-1", ())):
        silent = replace(unseen("", unknown), name=leader)
        assert measured(worker, silent, **LWS).ignored == ignored


def test_a_pod_is_the_workload_s_by_its_owner_and_not_by_its_name() -> None:
    """The names of deployment/bert-7b6667bd9 look like those of deployment/bert."""
    other = said(owners=frozenset({Owner("Deployment", "bert-7b6667bd9")}))
    assert measured(bert("b", 90, status=said()), bert("c", 80, status=other)).total == 90


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


def test_a_query_that_stands_alone_misses_no_pod_that_it_never_showed() -> None:
    silent = unseen("z", said(ready=NOW - 300))
    named = {"query": "load", "activationThreshold": "5"}
    alone = {**named, "workload": ""}
    assert measured(bert("b", 90), pod("web-0", 10), silent, **alone).total == 100
    assert PodState.MISSING not in _conditions(measured(bert("b", 90), silent, **alone))
    assert PodState.MISSING in _conditions(measured(bert("b", 90), silent, **named))
