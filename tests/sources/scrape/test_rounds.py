"""What the scrape source remembers: its rounds, its targets' good scrapes, for a bounded time."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.snapshot.observation import GpuReports, Row, Target
from keda_gpu_scaler.sources.scrape.rounds import (
    MOST_POINTS,
    NEW_SERIES_POINTS,
    Rounds,
    Scrape,
)
from keda_gpu_scaler.sources.series import Exporters, fill_gaps, read_series
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from tests.support import gpu_samples
from tests.support.gpu_samples import Sample

A, B = Target("gpus", "http://a/metrics"), Target("gpus", "http://b/metrics")
UTIL, ENGINE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


def snapshot_query(*namespaces: str, span: float = 100, window: float = 50) -> SnapshotQuery:
    return SnapshotQuery(Signal.UTILIZATION, "auto", frozenset(namespaces or {"ml"}), span, window)


def sample(pod: str | None = "bert-0", value: float = 50, name: str = UTIL, **more: str) -> Sample:
    owner = {"namespace": "ml", "pod": pod} if pod else {}
    return {"__name__": name, "UUID": f"GPU-{pod}", **owner, **more}, value


def add(
    history: Rounds, at: float, shown: Mapping[Target, list[Sample] | None], late: float = 0
) -> None:
    """Add a round of scrapes that began so many seconds before it."""
    history.add(
        at,
        {
            target: None if samples is None else Scrape(at - late, gpu_samples.of(*samples))
            for target, samples in shown.items()
        },
    )


def rounds(history: Rounds, count: int, *samples: Sample, begin: float = 0) -> float:
    """Add rounds ten seconds apart in which target A is good; return the instant of the last."""
    for number in range(count):
        add(history, begin + 10 * number, {A: list(samples)})
    return begin + 10 * (count - 1)


def test_a_scrape_keeps_its_own_time_beside_the_instant_of_its_round() -> None:
    history = Rounds(600)
    add(history, 0, {A: [sample()], B: [sample("bert-1")]})
    add(history, 10, {A: [sample(job="its own")], B: None}, late=4)
    observed = history.observation(snapshot_query(), 10)

    assert observed.good_scrapes == {A: {0: 0, 10: 6}, B: {0: 0}}
    assert {series.target: series.present for series in observed.series} == {A: (0, 10), B: (0,)}


# Absence

OF_A: Mapping[Target, list[Sample] | None] = {A: []}
OF_BOTH: Mapping[Target, list[Sample] | None] = {A: [], B: []}
WITHOUT_B: Mapping[Target, list[Sample] | None] = {A: [], B: None}


@pytest.mark.parametrize(
    ("shown", "known"),
    [
        pytest.param([OF_A] * 6, True, id="one window of good rounds"),
        pytest.param([OF_A] * 5, False, id="less than that"),
        pytest.param([OF_BOTH] * 4 + [WITHOUT_B] + [OF_BOTH] * 5, False, id="a miss within it"),
        pytest.param([OF_BOTH] * 3 + [WITHOUT_B] + [OF_BOTH] * 6, True, id="a miss before it"),
        pytest.param([OF_A] * 10 + [OF_BOTH], False, id="a new target"),
        pytest.param([WITHOUT_B] + [OF_A] * 9, True, id="a target that left"),
        pytest.param([{}] * 10, False, id="no target"),
    ],
)
def test_absence_is_known_after_one_window_of_good_rounds_of_every_target(
    shown: list[Mapping[Target, list[Sample] | None]], *, known: bool
) -> None:
    history = Rounds(600)
    for number, one_round in enumerate(shown):
        add(history, 10 * number, one_round)

    last = 10 * (len(shown) - 1)
    assert history.observation(snapshot_query(window=50), last).absence_known is known


# GPUs


def test_gpus_are_reported_by_the_newest_good_round_only() -> None:
    history = Rounds(600)
    add(history, 0, {A: [sample(UUID="GPU-old"), sample(UUID="GPU-a")], B: [sample(UUID="GPU-b")]})
    add(history, 10, {A: [sample(UUID="GPU-a"), sample("bert-1", UUID="GPU-x")], B: None})

    assert history.gpus(["GPU-old", "GPU-a", "GPU-b"]) == GpuReports(frozenset({"GPU-a"}))


def on_a(
    value: float, name: str = UTIL, pod: str | None = None, *, slice_of: str = "", vgpu: str = ""
) -> Sample:
    """Return what is shown of GPU-a, by default without a pod."""
    more = {"GPU_I_ID": slice_of, "vgpu": vgpu}
    return sample(
        pod, value, name, UUID="GPU-a", **{label: more[label] for label in more if more[label]}
    )


NO_NAMES: Sample = ({"__name__": UTIL, "UUID": "GPU-a", "namespace": "", "pod": ""}, 50.0)
OF_OLD_NAMES: Sample = ({"__name__": "dcgm_gpu_utilization", "uuid": "GPU-a"}, 7.0)
BUSY = {
    "busy": [on_a(50)],
    "engine busy": [on_a(0.5, ENGINE)],
    "unknown": [on_a(math.nan)],
    "negative": [on_a(-1)],
    "empty labels": [NO_NAMES],
    "old names": [OF_OLD_NAMES],
    "one slice": [
        on_a(0.5, ENGINE, slice_of="1"),
        on_a(0.5, ENGINE, "bert-0", slice_of="2"),
    ],
}
NOT_BUSY = {
    "idle": [on_a(0)],
    "one is usable": [on_a(math.nan), on_a(0, ENGINE)],
    "warm": [on_a(9, "DCGM_FI_DEV_GPU_TEMP")],
    "busy with a pod": [on_a(50, pod="bert-1")],
    "pods share it": [on_a(80), on_a(40, pod="bert-0", vgpu="0")],
}


@pytest.mark.parametrize("case", [*BUSY, *NOT_BUSY])
def test_a_gpu_under_load_without_a_pod_is_busy(case: str) -> None:
    shown = BUSY.get(case) or NOT_BUSY[case]
    for samples in (shown, shown[::-1]):
        history = Rounds(600)
        rounds(history, 1, *samples)
        busy = frozenset({"GPU-a"} if case in BUSY else ())
        assert history.gpus(["GPU-a"]) == GpuReports(frozenset({"GPU-a"}), busy)


# Memory


Round = tuple[float, Mapping[Target, list[Sample] | None]]

scrapes = st.none() | st.lists(
    st.builds(
        sample,
        st.sampled_from(["bert-0", "bert-1", None]),
        st.floats(-10, 200),
        namespace=st.sampled_from(["ml", "ml", "other"]),
    ),
    max_size=4,
)
round_lists = st.lists(
    st.tuples(st.floats(0.5, 30), st.dictionaries(st.sampled_from([A, B]), scrapes)), max_size=25
)


def played(
    rounds_: list[Round], keep_seconds: float, most_points: int = MOST_POINTS
) -> tuple[Rounds, float]:
    history, at = Rounds(keep_seconds, most_points=most_points), 1000.0
    for after, shown in rounds_:
        at += after
        add(history, at, shown)
    return history, at


@given(round_lists, st.floats(1, 400), st.floats(0, 100))
def test_a_series_has_the_points_of_all_rounds_that_showed_it(
    rounds_: list[Round], span: float, before: float
) -> None:
    history, last = played(rounds_, 1000)
    at = last - before
    rows: dict[tuple[Target, frozenset[tuple[str, str]]], list[tuple[float, float]]] = {}
    instant = 1000.0
    for after, shown in rounds_:
        instant += after
        for target, samples in shown.items():
            for labels, value in samples or ():
                is_asked_for = "pod" in labels and labels["namespace"] == "ml"
                if at - span < instant <= at and is_asked_for:
                    key = target, frozenset({**labels, **target._asdict()}.items())
                    rows.setdefault(key, []).append((instant, value))
    asked = snapshot_query(span=span)
    observation = history.observation(asked, at)
    every = [Row.of(dict(labels), points) for (_, labels), points in rows.items()]
    exporters = Exporters(collection_seconds=history.collection_seconds)
    series, refused, _ = read_series(every, asked.profile, asked.signal, exporters)

    expected = fill_gaps(series, observation.good_scrapes)
    assert sorted(observation.series, key=repr) == sorted(expected, key=repr)
    assert observation.refused_samples == refused


@given(round_lists, round_lists)
def test_a_copy_shows_the_same_whatever_comes_later(
    rounds_: list[Round], later: list[Round]
) -> None:
    history, at = played([(1, {A: [sample()]}), *rounds_], 100, most_points=20)
    expected = history.observation(snapshot_query(), at)
    copied = replace(history)
    for after, shown in later:
        at += after
        add(history, at, shown)

    assert copied.observation(snapshot_query(), expected.at) == expected


@given(round_lists, st.integers(1, 30))
def test_more_points_than_there_is_room_for_shorten_the_memory(
    rounds_: list[Round], most_points: int
) -> None:
    (bounded, at), (whole, _) = played(rounds_, 100, most_points), played(rounds_, 100)
    points = [round_.points for round_ in bounded.rounds]

    assert all(round_.at >= at - 100 for round_ in whole.rounds)
    assert sum(points) <= max(most_points, points[-1] if points else 0)
    if rounds_:
        asked = snapshot_query(span=at - bounded.rounds[0].at + 0.001)
        one, other = bounded.observation(asked, at), whole.observation(asked, at)
        assert one.sampled_since == other.sampled_since
        assert one.instants == other.instants
        assert sorted(one.series, key=repr) == sorted(other.series, key=repr)
        assert one.good_scrapes.items() <= other.good_scrapes.items()


def test_labels_that_are_new_at_each_scrape_shorten_the_memory() -> None:
    """The labels of a series take more memory than its points."""
    steady, changing = Rounds(1000, most_points=1000), Rounds(1000, most_points=1000)
    for at in range(100):
        add(steady, at, {A: [sample("bert-0")]})
        add(changing, at, {A: [sample(f"bert-{at}")]})

    assert len(steady.rounds) == 100
    assert len(changing.rounds) == 1000 // (NEW_SERIES_POINTS + 1)


@pytest.mark.parametrize(
    ("shown", "overlooked"),
    [
        pytest.param([WITHOUT_B], True, id="until it answers"),
        pytest.param([WITHOUT_B, OF_BOTH], False, id="once it answers"),
        pytest.param([OF_BOTH] + [WITHOUT_B] * 97, False, id="not while it is dead afterwards"),
        pytest.param([OF_BOTH, OF_A, WITHOUT_B], True, id="listed anew"),
        pytest.param([WITHOUT_B] * 360, True, id="dead for almost an hour"),
        pytest.param([WITHOUT_B] * 361, False, id="dead for as long as anything is known"),
    ],
)
def test_an_exporter_that_has_not_answered_yet_is_overlooked(
    shown: list[Mapping[Target, list[Sample] | None]], *, overlooked: bool
) -> None:
    history = Rounds(100)
    for number, one_round in enumerate(shown):
        add(history, 10 * number, one_round)
    last = 10 * (len(shown) - 1)
    assert history.observation(snapshot_query(), last).misses_targets is overlooked
