"""The chart's alerts about missing data are raised when data is missing, and Alertmanager has them.

They come at once here: how long each waits is proved by the cases that promtool runs.
"""

from collections.abc import Iterator

import yaml

from tests.e2e.alertmanager import Alertmanager, Rule, rule
from tests.e2e.lab import Lab
from tests.e2e.relay import Door
from tests.e2e.under_load import REPLICAS, SHORT_MAX_AGE, node_of_some, run_under_load
from tests.repository.chart.charts import CHART

SOURCE_DOWN = "KedaGpuScalerSourceDown"
UNKNOWN = "KedaGpuScalerLoadUnknown"
PARTIAL = "KedaGpuScalerLoadPartial"


def _rules() -> Iterator[Rule]:
    """Yield the chart's rules about missing data, each without its wait."""
    groups = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    for each in (one for group in groups for one in group["rules"]):
        if each["alert"] in (SOURCE_DOWN, UNKNOWN, PARTIAL):
            yield rule(each["alert"], each["expr"])


async def _watch_the_scaler(lab: Lab, alertmanager: Alertmanager) -> None:
    """Let the lab's Prometheus scrape the scaler and evaluate the chart's rules."""
    lab.prometheus.sections = alertmanager.sections(_rules())
    scaler = {"job_name": "scaler", "static_configs": [{"targets": [lab.scaler.http_address]}]}
    await lab.prometheus.reload([*lab.prometheus.scrape_configs, scaler])
    await lab.prometheus.wait_for('keda_gpu_scaler_trigger_state{state="measured"} == 1')


async def _fires(lab: Lab, alertmanager: Alertmanager, *names: str) -> None:
    """Wait until Alertmanager has exactly these alerts."""

    async def exactly() -> bool:
        fired = await alertmanager.alerts()
        lab.timeline.see("alertmanager", "has", sorted(alert["alertname"] for alert in fired))
        return {alert["alertname"] for alert in fired} == set(names)

    await lab.wait(exactly, f"Alertmanager has {names}")


async def test_data_that_is_missing_raises_the_charts_alerts_until_it_is_back(
    lab: Lab, alertmanager: Alertmanager
) -> None:
    await run_under_load(lab, **SHORT_MAX_AGE)
    await _watch_the_scaler(lab, alertmanager)
    await _fires(lab, alertmanager)

    exporter = lab.exporters[await node_of_some(lab)]
    lab.timeline.note("one exporter is gone")
    await exporter.turn(Door.SHUT)
    await _fires(lab, alertmanager, PARTIAL)
    [alert] = await alertmanager.alerts()
    assert (alert["namespace"], alert["scaled_object"]) == (lab.name, "bert"), alert

    lab.timeline.note("the exporter is back, and the scaler cannot reach Prometheus")
    await exporter.turn(Door.OPEN)
    await _fires(lab, alertmanager)
    await lab.door.turn(Door.SHUT)
    await _fires(lab, alertmanager, SOURCE_DOWN, UNKNOWN)

    lab.timeline.note("all is well")
    await lab.door.turn(Door.OPEN)
    await _fires(lab, alertmanager)
    assert lab.path("bert") == [REPLICAS], lab.story()
