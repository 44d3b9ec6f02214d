"""Settings among the values: what is usual passes the chart's schema, and the scaler reads it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from keda_gpu_scaler.settings import Settings, load
from testbed import charts
from testbed.setting_rows import describe

pytestmark = pytest.mark.needs("helm")

REQUIRED: Mapping[str, dict[str, Any]] = {
    "prometheus": {"url": "http://a"},
    "scrape": {"targets": "http://a"},
    "influxdb": {"url": "http://a", "database": "b"},
}


USUAL = """
demand_interval: 1h30m
webhook_lifetime: 0.5h
max_concurrent_rpcs: "5000"
other_namespaces: team-a, team-b
claims_without_gpus: [nic, rdma.example.com]
resources_without_gpus: example.com/, example.org/nic_a
sources:
  default:
    type: prometheus
    url: http://[fd00:1:2::3:4]:9090
    step: 500ms
    collection: 1h0m
    headers: X-Scope-OrgID=a,AccountID=c d
    matchers: cluster=~"eu-.+",env!="test"
    namespace_parameter: namespace
    max_response_bytes: 64MiB
  edge:
    type: scrape
    targets: dns+http://dcgm-exporter.gpu:9400/metrics, http://10.0.0.1:65535
    namespaces: lab
  influx: {type: influxdb, url: "http://a", database: b, measurement: Größe}
---
demand_interval: ""
webhook_lifetime: 1h
max_concurrent_rpcs: 5000
other_namespaces: ["*"]
claims_without_gpus: nic
resources_without_gpus: [example.com/]
sources:
  default:
    type: prometheus
    url: https://mimir.example.com/prometheus/
    step: 0.5s
    headers: {X-Scope-OrgID: b}
    namespace_header: X-Tenant
    max_response_bytes: 1048576
  edge: {type: scrape, targets: ["https://a/metrics?collect[]=gpu,mem"]}
  influx: {type: influxdb, url: "http://a", database: b, measurement: "{metric}"}
"""
"""Settings as people write them, each in several forms."""


def passed(settings: dict[str, Any], folder: Path) -> Settings:
    """Let Helm take settings among its values, and the scaler read what the chart makes of them."""
    file, values = folder / "settings.yaml", folder / "values.yaml"
    values.write_text(yaml.safe_dump({"settings": settings}))
    made = charts.objects(charts.template("--values", str(values)))
    (text,) = (one["data"]["settings.yaml"] for one in made if one["kind"] == "ConfigMap")
    file.write_text(text)
    return load({"KEDA_GPU_SCALER_CONFIG": str(file)})


@pytest.mark.parametrize("written", list(yaml.safe_load_all(USUAL)), ids=["texts", "lists"])
def test_what_is_usual_passes_both(written: dict[str, Any], tmp_path: Path) -> None:
    assert passed(written, tmp_path).sources.keys() == {"default", "edge", "influx"}


def test_every_default_passes(tmp_path: Path) -> None:
    defaults = {
        row.key: row.default
        for row in describe()
        if row.default and row.key not in charts.decided() and row.key.split("_")[0] not in REQUIRED
    }
    for kind, needed in REQUIRED.items():
        rows = [row for row in describe() if row.key.startswith(f"{kind}_") and row.default]
        own = {row.key: row.default for row in rows}
        own |= {f"{kind}_{key}": value for key, value in needed.items()}
        assert passed({**defaults, **own}, tmp_path).sources


def test_a_number_is_written_so_that_the_scaler_reads_it(tmp_path: Path) -> None:
    """Also one that Go would write with an exponent."""
    for number in (1_000_000, 123_456_789, 2**31 - 1):
        assert passed({"max_concurrent_rpcs": number}, tmp_path).max_concurrent_rpcs == number
    told = charts.refusal(f"--set=settings.max_concurrent_rpcs={2**31}")
    assert "max_concurrent_rpcs': maximum: got 2.147483648" in told
