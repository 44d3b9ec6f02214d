"""The Prometheus of the tests does what the tests build on."""

import subprocess
import time
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.prometheus import KINDS, ON_EVERY_SERVER, PrometheusServer, chosen, each
from tests.support.series import STALE, Series

HISTORY = Series("load", {"pod": "bert-0"}, [(at, float(at)) for at in range(-60, 0, 15)])


def written_at(now: float, series: Series = HISTORY) -> Series:
    return Series(series.name, series.labels, [(now + at, value) for at, value in series.samples])


async def test_written_history_is_found_at_its_own_times(prometheus: PrometheusServer) -> None:
    now = time.time()
    await prometheus.write([written_at(now)])

    (found,) = await prometheus.query("load[1h]", at=now)

    assert found["metric"] == {"__name__": "load", "pod": "bert-0"}
    assert [value for _, value in found["values"]] == ["-60", "-45", "-30", "-15"]


async def test_older_history_can_follow_newer_history(prometheus: PrometheusServer) -> None:
    now = time.time()
    await prometheus.write([written_at(now)])
    await prometheus.write([written_at(now - 7200)])

    (found,) = await prometheus.query("count_over_time(load[3h])", at=now)

    assert found["value"][1] == "8"


async def test_a_stale_mark_ends_a_series_at_once(prometheus: PrometheusServer) -> None:
    now = time.time()
    ended = Series("load", {}, [(-30, 1.0), (-15, STALE)])
    await prometheus.write([written_at(now, ended)])

    assert await prometheus.query("load", at=now - 20)
    assert not await prometheus.query("load", at=now)


@pytest.mark.parametrize(
    ("value", "spelled"), [(float("nan"), "NaN"), (float("inf"), "+Inf"), (float("-inf"), "-Inf")]
)
async def test_numbers_json_lacks_can_be_written(
    prometheus: PrometheusServer, value: float, spelled: str
) -> None:
    now = time.time()
    await prometheus.write([written_at(now, Series("load", {}, [(-1, value)]))])

    (found,) = await prometheus.query("load", at=now)

    assert found["value"][1] == spelled


async def test_data_survive_a_restart(prometheus: PrometheusServer) -> None:
    now = time.time()
    await prometheus.write([written_at(now)])
    await prometheus.restart()

    assert await prometheus.query("load", at=now)


async def test_a_reload_starts_a_scrape(prometheus: PrometheusServer) -> None:
    itself = {"targets": [f"127.0.0.1:{prometheus.port}"]}
    await prometheus.reload([{"job_name": "itself", "static_configs": [itself]}])

    (up,) = await prometheus.wait_for('up{job="itself"} == 1')

    assert up["metric"]["instance"] == f"127.0.0.1:{prometheus.port}"


@ON_EVERY_SERVER
async def test_every_server_stores_and_ends_a_series(prometheus: PrometheusServer) -> None:
    now = prometheus.now()
    ended = Series("load", {"pod": "bert-0"}, [(-30, 1.0), (-15, STALE)])
    await prometheus.write([written_at(now, ended)])

    assert await prometheus.query("load", at=now - 20)
    assert not await prometheus.query("load", at=now)


SAYS = {
    "prometheus": ("--version", "prometheus, version 3."),
    "prometheus-2": ("--version", "prometheus, version 2."),
    "victoria-metrics": ("--help", "victoria-metrics is a time series database"),
}


@pytest.mark.parametrize("name", each())
def test_a_server_is_the_one_that_it_is_called(name: str) -> None:
    """Otherwise its tests would prove nothing about it."""
    asked, answer = SAYS[name]
    command = [programs.path(name), asked]
    shown = subprocess.run(command, capture_output=True, check=True, text=True)

    assert (shown.stdout + shown.stderr).lstrip().startswith(answer)


def test_servers_are_left_out_on_purpose_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERVERS", raising=False)
    assert chosen() == list(KINDS)
    monkeypatch.setenv("SERVERS", "influxdb prometheus")
    assert chosen() == ["prometheus"]
    monkeypatch.setenv("SERVERS", "prometheus prometeus-2")
    with pytest.raises(RuntimeError, match="and not prometeus-2"):
        chosen()


@pytest.mark.needs("prometheus")
async def test_a_process_that_ends_while_it_starts_shows_its_log(tmp_path: Path) -> None:
    server = PrometheusServer(tmp_path, scrape_configs=[{"no_such_key": 1}])
    with pytest.raises(RuntimeError, match="no_such_key"):
        await server.start()
