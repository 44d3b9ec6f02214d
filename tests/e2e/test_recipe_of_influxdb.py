"""The recipe of 2017 on the database that it has: GPU samples in an InfluxDB, and no Prometheus.

The InfluxDB is real. Telegraf and Grafana are stand-ins that do on the wire what these do.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from tests.e2e import alerting, dashboards, exporters, streams
from tests.e2e.lab import Lab
from tests.repository.test_examples import ours, read
from tests.support.influxdb import DATABASE, InfluxdbServer, on_influxdb

pytestmark = [pytest.mark.needs("influxd"), on_influxdb]

SOURCE = "influxdb"
LEVEL = 45
REPLICAS, GPUS_EACH = 5, 4
"""They hold 20 of the lab's 24 GPUs; the pools get the other four."""
PER_MEAN = 24
"""What is offered in percent of one GPU, for one percent on average over all GPUs."""
QUIET, BUSY = 30 * PER_MEAN, 70 * PER_MEAN


@pytest_asyncio.fixture
async def influxdb(tmp_path: Path) -> AsyncIterator[InfluxdbServer]:
    """A running InfluxDB with an empty database."""
    directory = tmp_path / "influxdb"
    directory.mkdir()
    async with InfluxdbServer(directory) as running:
        yield running


async def _give(lab: Lab, influxdb: InfluxdbServer) -> None:
    """Give the lab's scaler the InfluxDB for a source, at the pace of a scenario."""
    source = {
        "type": "influxdb",
        "url": influxdb.url,
        "database": DATABASE,
        "step": "1s",
        "delay": "1s",
        "collection": "2s",
    }
    settings = lab.directory / "settings.yaml"
    settings.write_text(json.dumps({"sources": {SOURCE: source}}))
    await alerting.open_webhook(lab, CONFIG=str(settings), OWN_PROMQL="allow")


# Only the cluster can say that a workload has no pods: an InfluxDB does not show how exporters are.
@pytest.mark.parametrize("lab", [EvidenceSource.KUBERNETES], indirect=True, ids=str)
async def test_the_mean_above_45_percent_and_grafanas_alert_on_it_wake_pools_and_let_them_go(
    lab: Lab, influxdb: InfluxdbServer
) -> None:
    await _give(lab, influxdb)
    await lab.deploy("rest", replicas=REPLICAS, gpus=GPUS_EACH, load=QUIET)
    await lab.reaches("rest", REPLICAS)
    (trigger,) = ours(read(exporters.PATHS["influxdb"]))
    mean = trigger["metadata"]["demandQuery"].replace("now() - 1m", "now() - 5s")
    panel = dashboards.Grafana(
        influxdb, mean, LEVEL, f"{alerting.url(lab.scaler)}/{lab.name}/alerted"
    )
    async with dashboards.telegraf(lab, influxdb), panel.judging():
        for name in ("asked", "alerted"):
            await lab.deploy(name)
        await exporters.autoscale_by(lab, "influxdb", "asked", demandQuery=mean)
        alerted = streams.push(lab, "alerted", source=SOURCE)
        await lab.autoscale("alerted", alerted, min_replicas=0)
        for name in ("asked", "alerted"):
            await lab.becomes(name, "empty")
        await lab.stays("asked", 0, for_seconds=5)

        await lab.offer("rest", BUSY)
        for name in ("asked", "alerted"):
            await lab.reaches(name, 1)
        # The mean and the alert say that there is work. How much, the pool's own GPUs do.
        await lab.offer("asked", 160)
        await lab.reaches("asked", 3)
        assert lab.path("alerted") == [0, 1], lab.story()

        await lab.offer("asked", 0)
        await lab.reaches("asked", 1)
        await lab.stays("asked", 1, for_seconds=10)
        await lab.offer("rest", QUIET)
        for name in ("asked", "alerted"):
            await lab.reaches(name, 0)
    assert panel.sent == ["alerting", "ok"], lab.story()
    assert lab.path("alerted") == [0, 1, 0], lab.story()
    steps = lab.path("asked")
    top = steps.index(3)
    assert steps[: top + 1] == sorted(steps[: top + 1]), lab.story()
    assert steps[top:] == sorted(steps[top:], reverse=True), lab.story()
