"""The InfluxDB of the tests is a real one, and does what the tests build on."""

import subprocess
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.influxdb import InfluxdbServer, on_influxdb
from tests.support.series import STALE, Series

pytestmark = [pytest.mark.needs("influxd"), on_influxdb]


def test_it_is_an_influxdb_1() -> None:
    """Otherwise its tests would prove nothing about it."""
    command = [programs.path("influxd"), "version"]
    shown = subprocess.run(command, capture_output=True, check=True, text=True)
    assert shown.stdout.startswith("InfluxDB v1.")


async def test_what_was_written_is_found_and_survives_a_restart(tmp_path: Path) -> None:
    name = "load, of = a pod"
    async with InfluxdbServer(tmp_path) as influxdb:
        await influxdb.write([Series(name, {"pod name": "a,b"}, [(1.5, 4.0), (2.5, STALE)])])
        await influxdb.restart()
        found = await influxdb.run(f'SELECT * FROM "{name}"')  # noqa: S608 - a test's own

    (table,) = found["series"]
    assert table["columns"] == ["time", "gauge", "pod name"]
    assert table["values"] == [[1500, 4, "a,b"]]
