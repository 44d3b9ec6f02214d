"""Claims about the history of decisions."""

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.history import AGE_SECONDS, CHANGES, METRICS, TOTAL_BYTES, History
from tests.support.triggers import BERT, spec

pytestmark = pytest.mark.slow

BUSY = Decision(state=State.MEASURED, reason="busy", value=100.0, active=True, average=50.0)


class Watched:
    """A history on a clock of the test's."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.history = History(lambda: self.now)

    def decided(self, decided: Decision, whose: ScaledObject = BERT, metric: str = "a") -> None:
        """Let it be decided a second later."""
        self.now += 1
        named = replace(spec(), metric_name=metric)
        self.history(facts.Evaluated(whose, named, decided, 1.0))

    def values(self, whose: ScaledObject = BERT) -> list[float | None]:
        """Return the values of the changes."""
        return [change.value for change in self.history.of(whose)]


@pytest.mark.parametrize(
    ("later", "is_change"),
    [
        (replace(BUSY, value=109.0, reason="a little more"), False),
        (replace(BUSY, value=112.0), True),
        (replace(BUSY, value=89.0), True),
        (replace(BUSY, value=None), True),
        (replace(BUSY, active=False), True),
        (replace(BUSY, state=State.PARTIAL), True),
        (replace(BUSY, average=60.0), False),
    ],
)
def test_a_change_is_another_state_or_activity_or_a_value_that_the_hpa_sees(
    later: Decision,
    is_change: bool,  # noqa: FBT001 - a row of the table
) -> None:
    watched = Watched()
    watched.decided(BUSY)
    watched.decided(later)
    assert len(watched.history.of(BERT)) == 1 + is_change


def test_triggers_of_two_workloads_with_one_metric_name_are_told_apart() -> None:
    watched = Watched()
    for _ in range(3):
        for workload, value in {"deployment/a": 10.0, "deployment/b": 300.0}.items():
            named = replace(spec(), workload=workload)
            watched.history(facts.Evaluated(BERT, named, replace(BUSY, value=value), 1.0))
    assert [(one.workload, one.value) for one in watched.history.of(BERT)] == [
        ("deployment/a", 10.0),
        ("deployment/b", 300.0),
    ]


def test_a_slow_drift_is_seen_once_it_is_ten_percent() -> None:
    watched = Watched()
    for value in range(100, 130):
        watched.decided(replace(BUSY, value=float(value)))
    assert watched.values() == [100, 112, 125]


def test_two_metrics_of_one_object_do_not_change_each_other() -> None:
    watched = Watched()
    for _ in range(3):
        watched.decided(BUSY, metric="a")
        watched.decided(replace(BUSY, value=5.0), metric="b")
    assert watched.values() == [100, 5]


def test_nothing_else_is_noted_and_nothing_is_known_of_others() -> None:
    watched = Watched()
    watched.history(facts.CallDecided(BUSY))
    assert watched.history.of(BERT) == []
    assert watched.history.since == 1000


def test_what_is_older_than_a_day_is_gone_also_where_nothing_changed_since() -> None:
    watched = Watched()
    watched.decided(BUSY)
    watched.now += AGE_SECONDS
    assert watched.values() == [100]
    watched.now += 1
    assert watched.values() == []
    watched.decided(replace(BUSY, active=False))
    watched.decided(BUSY)
    assert watched.values() == [100, 100]


def test_one_object_keeps_its_last_changes_and_all_keep_to_their_room() -> None:
    watched = Watched()
    for number in range(3 * CHANGES):
        watched.decided(replace(BUSY, value=float(number), active=number % 2 == 0))
    assert len(watched.history.of(BERT)) == CHANGES
    assert watched.values()[-1] == 3 * CHANGES - 1
    long = replace(BUSY, reason="x" * 4000)
    others = [ScaledObject("web", f"bert-{number}") for number in range(TOTAL_BYTES // 8000)]
    for other in others:
        watched.decided(long, whose=other)
    assert watched.history.of(BERT) == []
    assert watched.history.of(others[0]) == []
    assert len(watched.history.of(others[-1])) == 1


@pytest.mark.parametrize(
    ("objects", "metrics", "changes", "reason"),
    [
        pytest.param(14_000, 1, 1, "b", id="many objects"),
        pytest.param(60, 1, 100, 4000 * "b", id="many changes"),
        pytest.param(50, 110, 1, 4000 * "b", id="many metrics"),
        pytest.param(25, 1, 100, 6000 * "\U0001f525", id="long texts of wide characters"),
    ],
)
def test_the_memory_of_all_is_what_is_stated(
    objects: int, metrics: int, changes: int, reason: str
) -> None:
    watched = Watched()
    named = [replace(spec(), metric_name=f"metric-{metric}") for metric in range(metrics)]
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(objects):
        whose = ScaledObject("namespace", f"object-{number}")
        for one in named:
            for change in range(changes):
                watched.now += 0.001
                decided = replace(BUSY, value=float(change), reason=f"{change}{reason}")
                active = replace(decided, active=change % 2 == 0)
                watched.history(facts.Evaluated(whose, one, active, 1.0))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < TOTAL_BYTES + 2**20
    assert len(watched.history.of(whose)) == min(CHANGES, metrics * changes)


def test_of_very_many_metrics_of_one_object_the_last_ones_are_remembered() -> None:
    watched = Watched()
    for number in range(2 * METRICS):
        watched.decided(BUSY, metric=f"{number}")
    watched.decided(BUSY, metric=f"{2 * METRICS - 1}")
    assert [one.metric_name for one in watched.history.of(BERT)][-1] == f"{2 * METRICS - 1}"
    known = len(watched.history.of(BERT))
    watched.decided(BUSY, metric="0")
    assert watched.history.of(BERT)[-1].metric_name == "0"
    assert len(watched.history.of(BERT)) == known == CHANGES


@given(st.lists(st.one_of(st.none(), st.floats(0, 2**53, exclude_max=True)), max_size=50))
def test_each_value_is_within_ten_percent_of_the_change_before_it(
    values: list[float | None],
) -> None:
    watched, last = Watched(), 0
    for value in values:
        watched.decided(replace(BUSY, value=value))
        shown = watched.values()[-1]
        assert (shown is None) == (value is None)
        if shown is not None and value is not None:
            assert abs(shown - value) <= 0.1 * max(shown, value)
        assert len(watched.values()) >= last
        last = len(watched.values())
