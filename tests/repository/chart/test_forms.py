"""Settings among the values: what is usual passes the chart's schema, and the scaler reads it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from keda_gpu_scaler.settings import Settings, load
from tools.chart import charts
from tools.setting_rows import describe

pytestmark = pytest.mark.needs("helm")

REQUIRED: Mapping[str, dict[str, Any]] = {
    "prometheus": {"url": "http://a"},
    "scrape": {"targets": "http://a"},
    "influxdb": {"url": "http://a", "database": "b"},
}


class Place(NamedTuple):
    """One setting: of a kind of source, or, with an empty kind, of the process."""

    kind: str
    key: str


USUAL: Mapping[Place, list[object]] = {
    Place("", "demand_interval"): ["1s", "90s", "2m", "1h30m", "1.5h", "1d", "1500ms", ""],
    Place("", "give_up"): ["60s", "90s", "1m30s", "1h", "1h30m", "0.5h", "1d", "2h5s"],
    Place("", "max_concurrent_rpcs"): [1, 5000, "5000"],
    Place("", "other_namespaces"): ["*", "a", "team-a,team-b", "a, b", ["a", "b"], ["*"]],
    Place("", "claims_without_gpus"): ["nic,rdma.example.com", ["nic"]],
    Place("prometheus", "step"): ["15s", "0.5s", "500ms", "1m"],
    Place("prometheus", "collection"): ["0s", "30s", "1h0m"],
    Place("prometheus", "url"): [
        "http://prometheus:9090",
        "https://mimir.example.com/prometheus/",
        "http://[fd00::1]:9090",
        "http://[fd00:1:2::3:4]",
        "http://10.0.0.1:65535",
    ],
    Place("prometheus", "headers"): [
        "X-Scope-OrgID=a,AccountID=c d",
        '{"X-Scope-OrgID": "b"}',
        {"X-Scope-OrgID": "b"},
    ],
    Place("prometheus", "matchers"): ['cluster="eu-1"', 'cluster=~"eu-.+",env!="test"'],
    Place("prometheus", "namespace_parameter"): ["namespace"],
    Place("prometheus", "namespace_header"): ["X-Scope-OrgID"],
    Place("prometheus", "max_response_bytes"): ["64MiB", "1Gi", 1048576],
    Place("scrape", "targets"): [
        "dns+http://dcgm-exporter.gpu:9400/metrics, http://10.0.0.1:9400",
        ["https://a/metrics?collect[]=gpu,mem"],
    ],
    Place("scrape", "namespaces"): ["lab"],
    Place("influxdb", "measurement"): ["{metric}", "gpu", "Größe"],
}


def content(place: Place, value: object) -> dict[str, Any]:
    """Return a file of settings with this one, beside those that it does not go without."""
    if not place.kind:
        return {"prometheus_url": "http://a", place.key: value}
    one = {"type": place.kind, **REQUIRED[place.kind], place.key: value}
    return {"sources": {"default": one}}


def passed(settings: dict[str, Any], folder: Path) -> Settings:
    """Let Helm take settings among its values, and the scaler read what the chart makes of them."""
    file, values = folder / "settings.yaml", folder / "values.yaml"
    values.write_text(yaml.safe_dump({"settings": settings}))
    made = charts.objects(charts.template("--values", str(values)))
    (text,) = (one["data"]["settings.yaml"] for one in made if one["kind"] == "ConfigMap")
    file.write_text(text)
    return load({"KEDA_GPU_SCALER_CONFIG": str(file)})


@pytest.mark.parametrize("place", USUAL, ids="-".join)
def test_what_is_usual_passes_both(place: Place, tmp_path: Path) -> None:
    for value in USUAL[place]:
        passed(content(place, value), tmp_path)


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


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("prometheus_step=15", "at '/settings/prometheus_step': got number, want string"),
        ("prometheus_url=5", "at '/settings/prometheus_url': got number, want string"),
        ("max_concurrent_rpcs=many", "at '/settings/max_concurrent_rpcs': 'many' does not match"),
        ("give_up=1y", "at '/settings/give_up': '1y' does not match pattern"),
        ("sources.Edge.type=scrape", "invalid propertyName 'Edge'"),
        ("prometheus_namespace_parameter=query", "at '/settings/prometheus_namespace_parameter'"),
    ],
)
def test_a_setting_that_the_scaler_would_refuse_is_refused_by_its_name(
    value: str, message: str
) -> None:
    assert message in charts.refusal("--set", f"settings.{value}")
