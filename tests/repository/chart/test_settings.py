"""The scaler itself reads what the chart writes for it, and no secret is where many can see it."""

from pathlib import Path

import pytest
import yaml

from keda_gpu_scaler import settings
from keda_gpu_scaler.settings import sources
from keda_gpu_scaler.settings.loading import fields
from testbed import charts, setting_rows
from tests.repository.chart import shapes

pytestmark = pytest.mark.needs("helm")

SECRET = ("token", "password")


@pytest.mark.parametrize("case", charts.cases())
def test_the_scaler_reads_a_release_s_settings(case: str, tmp_path: Path) -> None:
    """The golden files show which they are."""
    read = settings.load(shapes.mounted(shapes.release(case), tmp_path))
    assert "default" in read.sources


def test_no_setting_with_a_secret_gets_into_a_config_map(tmp_path: Path) -> None:
    whole: dict[str, dict[str, str]] = {
        "prometheus": {"url": "http://prometheus:9090"},
        "influxdb": {"url": "http://influxdb:8086", "database": "telegraf"},
    }
    secrets = [row.key for row in setting_rows.describe() if row.key.endswith(SECRET)]
    named = list(secrets)
    for kind, source in whole.items():
        own = [key for key, _ in fields(sources.KINDS[kind]) if key.endswith(SECRET)]
        named += [f"sources.{kind}.{key}" for key in own]
        source.update({"type": kind} | dict.fromkeys(own, "x"))
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"settings": {"sources": whole, **dict.fromkeys(secrets, "x")}}))
    told = charts.refusal("--values", str(file))
    assert {"webhook_token", "prometheus_password", "sources.influxdb.bearer_token"} <= set(named)
    assert [key for key in named if f"settings.{key}" not in told] == []
