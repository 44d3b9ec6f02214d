"""Settings of each kind → the source that they describe."""

import pytest

from keda_gpu_scaler import facts, sources
from keda_gpu_scaler.settings import InfluxdbSettings, PrometheusSettings, ScrapeSettings
from keda_gpu_scaler.sources.influxdb import InfluxdbSource
from keda_gpu_scaler.sources.prometheus import PrometheusSource
from keda_gpu_scaler.sources.scrape import ScrapeSource


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
    made = sources.create("default", settings, facts.ignore)
    await made.close()
    assert type(made) is kind
