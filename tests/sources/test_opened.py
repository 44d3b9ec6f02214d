"""Settings of each kind → the source that they describe."""

import pytest

from keda_gpu_scaler import sources
from keda_gpu_scaler.settings import InfluxdbSettings, PrometheusSettings, ScrapeSettings
from keda_gpu_scaler.sources.influxdb.source import InfluxdbSource
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.sources.scrape.source import ScrapeSource
from keda_gpu_scaler.telemetry import facts


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        (PrometheusSettings(url="http://a:9090"), PrometheusSource),
        (ScrapeSettings(targets=("http://a:9400",)), ScrapeSource),
        (InfluxdbSettings(url="http://a:8086", database="telegraf"), InfluxdbSource),
    ],
)
async def test_each_kind_of_settings_makes_its_source(
    settings: PrometheusSettings | ScrapeSettings | InfluxdbSettings, kind: type
) -> None:
    async with sources.opened("default", settings, facts.ignore) as source:
        assert type(source.samples) is kind
