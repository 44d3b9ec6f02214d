"""Three minutes of the soak: every fault once, and no answer that is wrong, stuck or faulty."""

from pathlib import Path

import pytest

from tests.soak import faults
from tests.soak.process import Size
from tests.soak.report import Report
from tests.soak.run import Pace, Soak
from tests.soak.world import Trigger, Workload

SHORT = Pace(
    seconds=180,
    fault_seconds=3,
    calm_seconds=1.5,
    poll_seconds=20,
    restart_seconds=60,
    rotation_seconds=25,
    flood_seconds=60,
    size_seconds=5,
    streams=300,
)


@pytest.mark.slow(minutes=3)
@pytest.mark.needs("prometheus", "influxd")
async def test_no_answer_is_wrong_while_everything_goes_wrong(tmp_path: Path) -> None:
    report = await Soak(tmp_path, SHORT, seed=1).run()

    assert report.failures(is_long=False) == [], report.lines()
    assert len(report.faults) > len(faults.NAMES) * 3 / 4
    assert report.calls["number"] > 1000
    assert report.calls["active"] > 1000
    assert report.restarts.total() >= 2


def test_a_number_may_be_the_truth_of_any_instant_it_may_be_about() -> None:
    swinging = Trigger(Workload(1), "utilization")
    edge = next(at for at in range(600, 1900) if swinging.value(at) != swinging.value(at - 1))
    assert swinging.bounds(edge + 100).hold(0)
    assert swinging.bounds(edge + 100).hold(54)
    assert not swinging.bounds(edge + 100).hold(60)
    before, after = swinging.bounds(edge - 1), swinging.bounds(edge + 400)
    assert {before.least, before.most, after.least, after.most} == {0, 54}
    assert not before.hold(after.least)


def test_a_part_of_the_pods_may_be_an_answer_that_keeps_all_of_them() -> None:
    two, lone = Trigger(Workload(9), "direct"), Trigger(Workload(8), "direct")
    assert (two.value(0), two.keeps(83), two.keeps(70)) == (166, True, False)
    assert not lone.keeps(lone.value(0))
    assert not Trigger(Workload(9), "demand").keeps(830)


def test_a_report_fails_for_each_thing_it_judges() -> None:
    mib = 1024 * 1024
    sizes = [Size(100 * mib, 100 * mib, 30, 15, 40, 900) for _ in range(8)]
    grown = [Size(110 * mib, 110 * mib, 30, 15, 40, 900) for _ in range(8)]
    good = Report(sizes=sizes)
    good.calm["number"] = 95
    good.calm["hold"] = 5
    assert good.failures(is_long=True) == []
    bad = Report(sizes=sizes + grown, wrong=["a"], stuck=["b"], faulty=["c"], own_faults=["d"])
    bad.calm["hold"] = 1
    assert bad.failures(is_long=False) == ["wrong: a", "stuck: b", "faulty: c", "own fault: d"]
    assert bad.failures(is_long=True)[4:] == [
        "only 0.0% of the undisturbed answers are numbers",
        "resident_bytes grew to 1.100 of what it was",
    ]
