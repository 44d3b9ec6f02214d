"""Three minutes of the soak: every fault once, and no answer that is wrong, stuck or faulty."""

from pathlib import Path

import pytest

from tests.soak import faults
from tests.soak.run import Pace, Soak

SHORT = Pace(
    seconds=180,
    fault_seconds=3,
    calm_seconds=1.5,
    poll_seconds=20,
    restart_seconds=60,
    flood_seconds=60,
    size_seconds=5,
    streams=300,
)


@pytest.mark.slow(minutes=3)
@pytest.mark.needs("prometheus")
async def test_no_answer_is_wrong_while_everything_goes_wrong(tmp_path: Path) -> None:
    report = await Soak(tmp_path, SHORT, seed=1).run()

    assert report.failures(is_long=False) == [], report.lines()
    assert len(report.faults) > len(faults.NAMES) * 3 / 4
    assert report.calls["number"] > 1000
    assert report.calls["active"] > 1000
    assert report.restarts.total() >= 2
