"""Claims about which pods count as present, by exporter health alone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Series, Target
from keda_gpu_scaler.snapshot.reported_pods import (
    ABSENT_PODS_KEPT,
    ReportedPods,
    absent_gpus,
    advance_reported_pods,
    busy_before,
    confined,
    join,
)
from keda_gpu_scaler.snapshot.snapshot import NEVER_SEEN, Pod
from keda_gpu_scaler.times import REMEMBERED_SECONDS
from tests.support.worlds import (
    EVER,
    NODE,
    OTHER_NODE,
    STEP,
    Spans,
    World,
    WorldPod,
    since,
    until,
)

NOWHERE = GpuReports()
RELEASED = GpuReports(frozenset({"GPU-a", "GPU-b", "GPU-gone"}))
"""The exporters still show the GPUs, without the pods."""
BUSY = GpuReports(*[frozenset({"GPU-a"})] * 2)
"""Without its pod, and under load."""
BACK = (*until(900.0), *since(1200.0))
GONE = WorldPod("a", there=until(900.0))

Reports = GpuReports | Mapping[float, GpuReports]
"""Where GPUs are at every time, or from each of these times on."""


def _watched(world: World, *ats: float, gpus: Reports = NOWHERE) -> ReportedPods:
    return _advanced(ReportedPods(), world, *ats, gpus=gpus)


def _advanced(
    reported_pods: ReportedPods, world: World, *ats: float, gpus: Reports = NOWHERE
) -> ReportedPods:
    by_time = {0.0: gpus} if isinstance(gpus, GpuReports) else {0.0: NOWHERE, **gpus}
    for at in ats:
        reports = by_time[max(begin for begin in by_time if begin <= at)]
        observation = world.observed(at)
        reported_pods = advance_reported_pods(reported_pods, observation, reports)
    return reported_pods


def _pod(reported_pods: ReportedPods, name: str = "a") -> Pod:
    return reported_pods.pods["ml", name]


def _steps(begin: float, end: float) -> list[float]:
    return [begin + STEP * n for n in range(int((end - begin) / STEP) + 1)]


def test_a_pod_that_reports_is_seen_now() -> None:
    pod = _pod(_watched(World((WorldPod("a"),)), 900.0))
    assert (pod.last_seen, pod.sampled_at, pod.ended) == (900.0, 900.0, False)
    assert (pod.targets, pod.scrape_interval_seconds) == (frozenset({NODE}), STEP)


AGAIN = (*until(900.0), *since(1000.0))
BEGINNINGS = {
    "before anybody watched": (EVER, EVER, NEVER_SEEN),
    "right after that": (since(610.0), EVER, 615.0),
    "in view, and later not": (since(850.0), EVER, 855.0),
    "on a node that is new": (EVER, since(800.0), 810.0),
    "it reports again after an outage": (EVER, BACK, NEVER_SEEN),
    "in the first scrape after an outage": (since(1000.0), BACK, NEVER_SEEN),
    "in a later scrape after an outage": (since(1210.0), BACK, 1215.0),
    "again under the name of one that ended": (AGAIN, EVER, 1005.0),
}
"""When a pod and its exporter are there, and when the pod was first seen."""


@pytest.mark.parametrize("case", BEGINNINGS)
def test_when_a_pod_began(case: str) -> None:
    there, scraped, first_seen = BEGINNINGS[case]
    world = World((WorldPod("a", there=there),), {NODE: scraped})
    pod = _pod(_watched(world, *_steps(885.0, 1500.0)))
    assert (pod.first_seen, pod.last_seen, pod.ended) == (first_seen, 1500.0, False)


class Absence(NamedTuple):
    """A pod that does not report any more: until when it is kept, and when it has ended."""

    kept: float
    ended: float | None
    pod: WorldPod = GONE
    others: tuple[WorldPod, ...] = ()
    scraped: Mapping[Target, Spans] = {NODE: EVER}
    gpus: Reports = NOWHERE
    shows_free_gpus: bool = False


ALIVE, OTHER = WorldPod("a"), WorldPod("b")
ON_TWO = WorldPod("a", there=until(900.0), gpus=("GPU-a", "GPU-lost"))
DOWN = {NODE: until(900.0)}
MOVED = DOWN | {OTHER_NODE: since(930.0)}
BACK_LATER = WorldPod("a", there=(*until(900.0), *since(1230.0)))
HOUR = (870.0 + REMEMBERED_SECONDS, 885.0 + REMEMBERED_SECONDS)
ABSENCES = {
    "its GPU is shown without it too": Absence(900, None, ALIVE, gpus=RELEASED),
    "its GPUs are shown without it": Absence(885, 900, gpus=RELEASED),
    # The exporter answers well, and shows nothing of a GPU that no pod has.
    "only GPUs with pods are shown": Absence(930, 945),
    "only one of its GPUs is shown": Absence(930, 945, ON_TWO, gpus=RELEASED, shows_free_gpus=True),
    # A restarted dcgm-exporter answers well and has no samples until it has begun.
    "no GPU at all is shown": Absence(*HOUR, shows_free_gpus=True),
    "another pod is named": Absence(930, 945, others=(OTHER,), shows_free_gpus=True),
    "in the last good scrape of a dead exporter": Absence(4000, None, ALIVE, scraped=DOWN),
    "absent after an outage": Absence(
        1245, 1260, WorldPod("a", there=until(1000.0)), scraped={NODE: BACK}
    ),
    # The exporter came back without its map of pods.
    "idle and without a pod after an outage": Absence(
        1230, None, BACK_LATER, scraped={NODE: BACK}, gpus={1200: RELEASED}
    ),
    "busy without a pod": Absence(1500, 1515, gpus={0: BUSY, 1515: RELEASED}),
    # A process outside Kubernetes may use the GPU.
    "busy without a pod for an hour": Absence(*HOUR, gpus=BUSY),
    "shown without it by a restarted exporter": Absence(
        975, 990, ALIVE, scraped=MOVED, gpus={930: RELEASED}
    ),
    # The first sample of an exporter without its map of pods is a zero.
    "shown idle only once by a restarted exporter": Absence(
        1500, None, ALIVE, scraped=MOVED, gpus={930: RELEASED, 945: BUSY}
    ),
    # It is waited for anew.
    "shown idle again by a restarted exporter": Absence(
        1005, 1020, ALIVE, scraped=MOVED, gpus={930: RELEASED, 945: BUSY, 960: RELEASED}
    ),
}


@pytest.mark.parametrize("case", ABSENCES)
def test_a_pod_that_does_not_report_has_ended_once_that_is_certain(case: str) -> None:
    kept, ended, pod, others, scraped, gpus, shows_free_gpus = ABSENCES[case]
    world = World((pod, *others), scraped, shows_free_gpus)
    assert not _pod(_watched(world, *_steps(885.0, kept), gpus=gpus)).ended
    if ended is not None:
        assert _pod(_watched(world, *_steps(885.0, ended), gpus=gpus)).ended


def test_after_an_outage_an_exporter_that_is_scraped_seldom_is_waited_for_two_scrapes() -> None:
    world, known = World((GONE,), {NODE: BACK}), ReportedPods()
    for at in _steps(885.0, 1320.0):
        observation = world.observed(at)
        scrapes = {
            target: {instant: instant - instant % 60 for instant in good}
            for target, good in observation.good_scrapes.items()
        }
        known = advance_reported_pods(known, replace(observation, good_scrapes=scrapes), NOWHERE)
        assert _pod(known).ended is (at == 1320)


def test_a_pod_that_ended_before_the_outage_has_ended() -> None:
    world = World((WorldPod("a", there=until(870.0)),), {NODE: until(900.0)})
    assert _pod(_watched(world, 855.0, 960.0)).ended


def test_a_pod_that_ended_keeps_its_beginning_and_its_samples() -> None:
    """What it did counts for a while."""
    pod = _pod(_watched(World((GONE,)), 885.0, 900.0, 915.0, gpus=RELEASED))
    assert (pod.ended, pod.first_seen) == (True, NEVER_SEEN)
    assert pod.gpus[0].times == tuple(_steps(630.0, 885.0))


def test_an_answer_that_shows_less_of_a_pod_than_is_known_takes_nothing_back() -> None:
    known = _watched(World((ALIVE,)), 885.0)
    behind = World((WorldPod("a", there=until(840.0)),))
    assert _pod(_advanced(known, behind, 900.0)).last_seen == 885.0


def _lingering(at: float, age: float | None = None, value: float = 90.0) -> Observation:
    """Return what a Prometheus shows that was down when the pod went."""
    ages = {} if age is None else {("ml", "a"): age}
    return replace(World((WorldPod("a", value),)).observed(at), sample_ages=ages)


def test_an_ended_pod_that_a_second_prometheus_repeats_has_not_returned() -> None:
    again = _watched(World((GONE,)), 885.0, 900.0, gpus=RELEASED)
    for repeated in (_lingering(915.0), _lingering(1080.0, 180.0), _lingering(1260.0, 360.0)):
        again = advance_reported_pods(again, repeated, NOWHERE)
        assert (_pod(again).ended, _pod(again).last_seen) == (True, 885.0)


@pytest.mark.parametrize(("value", "returned"), [(1.0, 975.0), (0.0, 1215.0)])
def test_a_pod_that_ended_by_mistake_returns_after_a_minute_of_work_or_five_without(
    value: float, returned: float
) -> None:
    """One of two Prometheus had not scraped it yet; the other shows it all the time."""
    ended = _watched(World((GONE,)), 885.0, 900.0, gpus=RELEASED)
    again = advance_reported_pods(ended, _lingering(returned - STEP, value=value), NOWHERE)
    assert _pod(again).ended
    again = advance_reported_pods(again, _lingering(returned, value=value), NOWHERE)
    assert (_pod(again).ended, _pod(again).last_seen) == (False, returned)


def test_a_series_that_lingers_under_a_target_that_is_down_is_not_seen() -> None:
    observation = World((WorldPod("a"),)).observed(900.0)
    lingering = replace(observation, good_scrapes={NODE: {615.0: 615.0}})
    known = advance_reported_pods(ReportedPods(), lingering, NOWHERE)
    assert _pod(known).last_seen == 615.0
    without_any = replace(World((WorldPod("a"),)).observed(915.0), good_scrapes={})
    assert _pod(advance_reported_pods(known, without_any, NOWHERE)).last_seen == 615.0


def test_a_pod_only_ever_seen_lingering_is_silent_since_then() -> None:
    before = advance_reported_pods(ReportedPods(), World(()).observed(600.0), NOWHERE)
    down = World((WorldPod("a", there=since(900.0)),)).observed(930.0)
    lingering = replace(down, good_scrapes={NODE: {}})
    pod = _pod(advance_reported_pods(before, lingering, NOWHERE))
    assert pod == Pod("a", pod.gpus, NEVER_SEEN, 900.0, 900.0, targets=frozenset({NODE}))


def test_a_target_without_health_is_believed_while_it_reports_and_never_proves_an_end() -> None:
    reported_pods = ReportedPods()
    for at in _steps(885.0, 1500.0):
        blind = replace(World((GONE,)).observed(at), good_scrapes={})
        reported_pods = advance_reported_pods(reported_pods, blind, NOWHERE)
    assert (_pod(reported_pods).last_seen, _pod(reported_pods).ended) == (885.0, False)
    assert _pod(reported_pods).scrape_interval_seconds == 0


def test_a_pod_that_its_exporter_may_have_lost_is_looked_for_and_found_again() -> None:
    world = World((GONE,))
    reported_pods = _watched(world, 885.0, 900.0, gpus=RELEASED)
    assert (_pod(reported_pods).ended, _pod(reported_pods).is_unnamed) == (True, True)
    assert absent_gpus(reported_pods, world.observed(915.0)) == {"GPU-a"}
    reported_pods = _advanced(reported_pods, world, 915.0, gpus=BUSY)
    assert (_pod(reported_pods).ended, _pod(reported_pods).busy_unnamed_at) == (False, 915.0)
    reported_pods = _advanced(reported_pods, world, 930.0, gpus=RELEASED)
    assert (_pod(reported_pods).ended, _pod(reported_pods).busy_unnamed_at) == (True, 915.0)
    assert _pod(reported_pods).ended_at == 930.0


def test_a_pod_that_is_missing_where_its_exporter_names_another_has_ended_for_good() -> None:
    world = World((GONE, WorldPod("b")))
    reported_pods = _watched(world, 885.0, 900.0, gpus=RELEASED)
    assert (_pod(reported_pods).ended, _pod(reported_pods).is_unnamed) == (True, False)
    assert absent_gpus(reported_pods, world.observed(915.0)) == frozenset()


SECOND_JOB = NODE._replace(job="again")
EVERYWHERE = dict.fromkeys((NODE, OTHER_NODE, SECOND_JOB), EVER)
REPLACED = {NODE: until(900.0), OTHER_NODE: since(905.0)}
ONE, TWO, SAME = "GPU-1", "GPU-2", NEVER_SEEN
Namesakes = tuple[
    Mapping[Target, Spans], float, tuple[float, str], tuple[float, str, Target], float
]
NAMESAKES: dict[str, Namesakes] = {
    "another, made later": (EVERYWHERE, 885.0, (900, ONE), (1000, TWO, NODE), 1005),
    # It returned before its end was seen; the dead node's last samples still linger.
    "another, on another node": (
        {NODE: until(900.0), OTHER_NODE: EVER},
        *(885.0, (920, ONE), (905, TWO, OTHER_NODE), 915),
    ),
    "another, seen by a fresh process": (
        *(EVERYWHERE, 1005.0, (850, ONE), (870, TWO, OTHER_NODE), 870),
    ),
    "the same, by another job": (EVERYWHERE, 885.0, (900, ONE), (870, TWO, SECOND_JOB), SAME),
    "the same, by another target": (
        REPLACED,
        885.0,
        (900, ONE),
        (905, ONE, OTHER_NODE),
        SAME,
    ),
    "the same, by another target without UUIDs": (
        *(
            REPLACED,
            885.0,
            (900, "10.0.0.1:9400#0"),
            (905, "10.0.0.2:9400#0", OTHER_NODE),
            SAME,
        ),
    ),
}
"""Exporters, when one began to watch, the end of a pod and its GPU; the beginning of one of that
name, its GPU and target; and when the pod is said to have begun: before it was watched, if it is
the same."""


@pytest.mark.parametrize("case", NAMESAKES)
def test_a_pod_of_the_same_name_is_the_same_or_another(case: str) -> None:
    scraped, begin, (end, old), (start, new, target), first_seen = NAMESAKES[case]
    before = WorldPod("a", there=until(end), gpus=(old,))
    later = WorldPod("a", there=since(start), gpus=(new,), target=target)
    pod = _pod(_watched(World((before, later), scraped), *_steps(begin, 1005.0)))
    assert (pod.first_seen, pod.last_seen) == (first_seen, 1005.0)
    assert {gpu.gpu for gpu in pod.gpus} == ({old, new} if first_seen == SAME else {new})
    assert pod.targets == {target}
    assert min(gpu.times[0] for gpu in pod.gpus) == max(first_seen, 720.0), "all it showed"


def test_the_gpus_to_look_for_are_those_of_pods_that_are_gone_and_not_ended() -> None:
    pods = (WorldPod("a", there=until(900.0), gpus=("GPU-1/7", "GPU-2")), WorldPod("b"))
    world = World(pods)
    reported_pods = _watched(world, 885.0)
    assert absent_gpus(reported_pods, world.observed(885.0)) == frozenset()
    assert absent_gpus(reported_pods, world.observed(900.0)) == {"GPU-1", "GPU-2"}
    assert absent_gpus(ReportedPods(), world.observed(900.0)) == {"GPU-1", "GPU-2"}
    released = GpuReports(frozenset({"GPU-1", "GPU-2"}))
    ended = advance_reported_pods(reported_pods, world.observed(900.0), released)
    assert _pod(ended).ended
    assert absent_gpus(ended, world.observed(915.0)) == frozenset()


def test_a_stale_sample_is_as_old_as_the_source_says() -> None:
    observation = replace(World((WorldPod("a"),)).observed(900.0), sample_ages={("ml", "a"): 200.0})
    assert _pod(advance_reported_pods(ReportedPods(), observation, NOWHERE)).sampled_at == 700.0


def test_a_sample_is_as_old_as_its_scrape() -> None:
    observation = World((ALIVE,)).observed(900.0)
    scrapes = {at: at - 7.0 for at in observation.instants}
    observation = replace(observation, good_scrapes={NODE: scrapes})
    assert _pod(advance_reported_pods(ReportedPods(), observation, NOWHERE)).sampled_at == 893.0


def test_what_a_source_says_of_its_numbers_goes_with_each_pod() -> None:
    observation = World((WorldPod("a", gpus=("GPU-1", "GPU-2"), averaged=True),)).observed(900.0)
    first, second = observation.series
    series = replace(first, shown_by=("UTIL", "USED")), replace(second, shown_by=("USED",))
    observation = replace(observation, series=series, collection_seconds=30, sampled_since=700)
    pod = _pod(advance_reported_pods(ReportedPods(), observation, NOWHERE))
    assert (pod.averaged, pod.shown_by) == (True, ("UTIL", "USED"))
    assert (pod.collection_seconds, pod.sampled_since) == (30, 700)


def test_a_refused_sample_is_a_sign_of_life() -> None:
    seen = World((WorldPod("a"),)).observed(900.0)
    first = advance_reported_pods(ReportedPods(), seen, NOWHERE)
    refused = tuple(replace(one, times=(), values=()) for one in seen.series)
    pod = _pod(advance_reported_pods(first, replace(seen, series=refused), NOWHERE))
    assert (pod.last_seen, pod.ended) == (900.0, False)
    (gpu,) = pod.gpus
    assert (gpu.values, gpu.refused, gpu.last) == ((), seen.instants, 900.0)


def test_two_targets_that_report_one_gpu_are_one_gpu_with_the_larger_value() -> None:
    pods = (
        WorldPod("a", value=40.0, gpus=("GPU-1",)),
        WorldPod("a", value=50.0, gpus=("GPU-1",), target=OTHER_NODE),
    )
    pod = _pod(_watched(World(pods, {NODE: EVER, OTHER_NODE: EVER}), 900.0))
    assert [set(gpu.values) for gpu in pod.gpus] == [{50.0}]
    assert pod.targets == {NODE, OTHER_NODE}


def test_ended_pods_and_lost_targets_are_forgotten_and_missing_pods_with_theirs_are_not() -> None:
    pods, idle = (GONE, WorldPod("b", target=OTHER_NODE)), NODE._replace(instance="idle")
    world = World(pods, {NODE: EVER, OTHER_NODE: until(900.0), idle: until(900.0)})
    reported_pods = _watched(world, *_steps(885.0, 885.0 + REMEMBERED_SECONDS))
    assert [name for _, name in reported_pods.pods] == ["a", "b"]
    assert reported_pods.targets.keys() == {NODE, OTHER_NODE, idle}
    later = advance_reported_pods(
        reported_pods, world.observed(900.0 + REMEMBERED_SECONDS), NOWHERE
    )
    assert [name for _, name in later.pods] == ["b"]
    assert later.targets.keys() == {NODE, OTHER_NODE}


def test_what_is_remembered_of_missing_pods_is_bounded() -> None:
    first = Series("ml", "the-first", "GPU-0", NODE, (870.0,), (870.0,), (1.0,), averaged=False)
    later = replace(first, present=(885.0,), times=(885.0,))
    crowd = [replace(later, pod=f"pod-{n}") for n in range(ABSENT_PODS_KEPT)]
    observation = Observation((870.0, 885.0, 900.0), (first, *crowd), {})
    reported_pods = advance_reported_pods(ReportedPods(), observation, NOWHERE)
    assert len(reported_pods.pods) == ABSENT_PODS_KEPT
    assert ("ml", "the-first") not in reported_pods.pods


def test_ended_pods_are_bounded_and_make_room_for_missing_ones() -> None:
    there = Series("ml", "missing", "GPU-0", NODE, (870.0,), (870.0,), (1.0,), averaged=False)
    crowd = [
        replace(there, pod=f"ended-{n}", target=OTHER_NODE, present=(885.0,), times=(885.0,))
        for n in range(5)
    ]
    scrapes = {OTHER_NODE: {at: at for at in (870.0, 885.0, 900.0, 915.0, 930.0, 945.0)}}
    instants = tuple(scrapes[OTHER_NODE])
    observation = Observation(instants, (there, *crowd), scrapes)
    every = advance_reported_pods(ReportedPods(), observation, NOWHERE)
    assert [pod.ended for pod in every.pods.values()] == [False, *[True] * 5]
    few = advance_reported_pods(every, observation, NOWHERE, absent_kept=3)
    assert [name for _, name in few.pods] == ["missing", "ended-3", "ended-4"]


def test_a_history_is_joined_without_touching_what_is_known_better() -> None:
    known = _watched(World((WorldPod("a", there=since(800.0)),)), 900.0)
    pods = (WorldPod("a"), WorldPod("b", target=OTHER_NODE))
    past = _watched(World(pods, {NODE: EVER, OTHER_NODE: EVER}), 885.0)
    joined = join(known, past, unsure_seconds=120.0)
    assert joined.at == 900.0
    assert (_pod(joined).unsure_seconds, _pod(joined, "b").unsure_seconds) == (0, 120)
    assert _pod(joined).first_seen == 810.0
    assert _pod(joined, "b").last_seen == 885.0
    assert joined.targets == {**past.targets, **known.targets}
    assert join(ReportedPods(), past).at == 885.0
    # What the past shows of a time when nobody looked is newer.
    assert _pod(join(past, known)) == _pod(known)
    assert _pod(join(known, _watched(World(pods), 900.0))) == _pod(known)


def test_pods_that_were_gone_while_their_gpus_were_busy_without_a_pod_were_in_use() -> None:
    """Their exporter had lost its map of pods; the GPU of one that is shown may be of another."""
    pods = (GONE, WorldPod("shown", gpus=("GPU-a",)), WorldPod("idle", there=until(900.0)))
    past = busy_before(_watched(World(pods), 885.0, 900.0), BUSY, 900.0)
    found = {name: pod.busy_unnamed_at for (_, name), pod in past.pods.items()}
    assert found == {"a": 900.0, "shown": NEVER_SEEN, "idle": NEVER_SEEN}


def test_namespaces_nobody_asks_about_are_let_go() -> None:
    reported_pods = _watched(World((WorldPod("a"), WorldPod("b", namespace="web"))), 900.0)
    assert list(confined(reported_pods, {"web"}).pods) == [("web", "b")]


def test_a_history_and_the_present_are_one_story() -> None:
    """An hour at two-minute instants, then the last minutes at fine ones: a fresh process."""
    world = World(
        (
            WorldPod("old"),
            WorldPod("gone", there=until(3000.0)),
            WorldPod("new", there=since(3400.0)),
        )
    )
    hour = world.observed(3480.0, step=120.0, span=3600.0)
    reported_pods = advance_reported_pods(ReportedPods(), hour, NOWHERE)
    reported_pods = advance_reported_pods(reported_pods, world.observed(3600.0), NOWHERE)
    assert _pod(reported_pods, "old").first_seen == NEVER_SEEN
    assert _pod(reported_pods, "gone").ended
    assert 3400 <= _pod(reported_pods, "new").first_seen <= 3480


INSTANTS = tuple(STEP * number for number in range(6))


@st.composite
def _shown(draw: st.DrawFn) -> Series:
    present = sorted(draw(st.sets(st.sampled_from(INSTANTS), min_size=1)))
    times = [at for at in present if draw(st.booleans())] if draw(st.booleans()) else present
    values = [draw(st.sampled_from([10.0, 50.0, 90.0])) for _ in times]
    return Series(
        "ml",
        draw(st.sampled_from("ab")),
        draw(st.sampled_from(["GPU-1", "GPU-2"])),
        draw(st.sampled_from([NODE, OTHER_NODE])),
        tuple(present),
        tuple(times),
        tuple(values),
        averaged=draw(st.booleans()),
    )


def test_a_pod_that_is_shown_elsewhere_at_the_same_instant_is_there_from_then_on() -> None:
    good = {NODE: dict.fromkeys(INSTANTS, 0.0), OTHER_NODE: dict.fromkeys(INSTANTS, 0.0)}
    here = Series("ml", "a", "GPU-1", NODE, INSTANTS, INSTANTS, (1.0,) * 6, averaged=False)
    there = replace(here, gpu="GPU-2", target=OTHER_NODE)
    known = ReportedPods()
    for shown in (here, there):
        observation = Observation(INSTANTS, (shown,), good)
        known = advance_reported_pods(known, observation, NOWHERE)
    pod = _pod(known)
    assert pod.targets == {OTHER_NODE}
    assert (pod.first_seen, pod.ended) == (INSTANTS[-1], False)


def test_what_lingers_of_an_earlier_pod_on_a_dead_node_is_none_of_the_pod() -> None:
    """It had other GPUs; one of the pod's own may have no sample now."""
    old = Series("ml", "a", "GPU-1", NODE, INSTANTS, INSTANTS, (1.0,) * 6, averaged=False)
    new, before = replace(old, gpu="GPU-2", target=OTHER_NODE), INSTANTS[:-1]
    blank = replace(new, gpu="GPU-3", present=before, times=before, values=(1.0,) * 5)
    good = {NODE: {INSTANTS[0]: 0.0}, OTHER_NODE: dict.fromkeys(INSTANTS, 0.0)}
    observation = Observation(INSTANTS, (old, new, blank), good)
    pod = _pod(advance_reported_pods(ReportedPods(), observation, NOWHERE))
    assert [gpu.gpu for gpu in pod.gpus] == ["GPU-2", "GPU-3"]


def test_a_pod_whose_new_node_is_not_scraped_any_more_is_missing_and_has_not_ended() -> None:
    """Its former node is healthy, shows another pod, and never shows this one."""
    here = Series("ml", "a", "GPU-1", NODE, INSTANTS, INSTANTS, (1.0,) * 6, averaged=False)
    good = dict.fromkeys(INSTANTS, 0.0)
    observation = Observation(INSTANTS, (here,), {NODE: good, OTHER_NODE: good})
    known = advance_reported_pods(ReportedPods(), observation, NOWHERE)
    for steps in range(1, 9):
        later = tuple(steps * STEP + instant for instant in INSTANTS)
        shown = later[-2:]
        there = Series("ml", "a", "GPU-2", OTHER_NODE, shown, shown, (1.0, 1.0), averaged=False)
        other = Series("ml", "b", "GPU-3", NODE, later, later, (1.0,) * 6, averaged=False)
        scrapes = {NODE: dict.fromkeys(later, 0.0)}
        scrapes[OTHER_NODE] = {at: 0.0 for at in later if at <= INSTANTS[-1]}
        observation = Observation(later, (there, other), scrapes)
        known = advance_reported_pods(known, observation, NOWHERE)
        assert not known.pods["ml", "a"].ended


GOOD_SCRAPES = st.dictionaries(
    st.sampled_from([NODE, OTHER_NODE]), st.sets(st.sampled_from(INSTANTS))
)


@given(st.lists(_shown(), min_size=1, max_size=3), GOOD_SCRAPES)
def test_a_series_says_the_same_once_and_twice(
    series: list[Series], good: dict[Target, set[float]]
) -> None:
    scrapes = {target: {time: time - 1.0 for time in times} for target, times in good.items()}
    once, twice = (
        advance_reported_pods(ReportedPods(), Observation(INSTANTS, tuple(shown), scrapes), NOWHERE)
        for shown in (series, series * 2)
    )
    assert once == twice
