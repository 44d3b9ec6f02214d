"""The score of decisions is what the decisions give, and its arithmetic is right."""

import json

import pytest

from benchmarks import decided, decisions
from benchmarks.decided import Row
from benchmarks.decisions import Case

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", decisions.PART, ids=[case.way for case in decisions.PART])
def test_a_part_of_the_score_is_what_is_committed(case: Case) -> None:
    """After a change of decisions: `make bench-decisions ARGS=--commit`."""
    part = json.loads(decided.COMMITTED.read_text(encoding="utf-8"))["part"]
    assert [round(figure, 3) for figure in decisions.replay(case)] == part[case.way]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("trace", decisions.TRACES)
def test_a_load_has_its_peak_at_twelve_replicas_and_lasts_an_hour_or_two(
    trace: str, seed: int
) -> None:
    load = decisions.load(trace, seed)
    assert max(load) == pytest.approx(12 * 70)
    assert min(load) > 0
    assert 3400 <= len(load) * decisions.BIN <= 7200


def test_a_clairvoyant_has_what_is_needed_when_a_start_has_passed() -> None:
    offered = [30.0] * 6 + [140.0] * 6
    assert decisions.clairvoyant_hours(offered, 0) * 360 == 6 + 12
    assert decisions.clairvoyant_hours(offered, 30) * 360 == 3 + 18


def test_ways_are_compared_between_two_settings_and_nowhere_else() -> None:
    curve = [Row("sum", 60, 0, None, 1.2, 5.0, 0.0), Row("sum", 70, 0, None, 1.0, 9.0, 0.0)]
    assert decided.overloaded_at(1.1, curve) == pytest.approx(7.0)
    assert decided.overloaded_at(1.3, curve) is None
