"""The benchmark of a start measures every server in every round."""

import pytest

from benchmarks import start

pytestmark = pytest.mark.slow


async def test_a_start_is_measured_once_a_round_for_each_server() -> None:
    found = await start.each(1)
    for figures in (found.cpu_seconds, found.resident_mib):
        assert figures.keys() == {start.SCALER, start.ECHO, start.BARE}
        assert all(len(rounds) == 1 and rounds[0] > 0 for rounds in figures.values())
    scaler, echo = (found.resident_mib[name] for name in (start.SCALER, start.ECHO))
    assert scaler > echo, "the scaler has what the echo server has, and more"
