"""The scaler itself reads what the chart writes for it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from keda_gpu_scaler import settings
from keda_gpu_scaler.settings import names, process, sources
from tests.repository.chart import charts, shapes

pytestmark = pytest.mark.needs("helm")

SECRET = ("token", "password")
MTLS = {
    "grpc_cert_file": "/etc/keda-gpu-scaler/grpc-tls/tls.crt",
    "grpc_key_file": "/etc/keda-gpu-scaler/grpc-tls/tls.key",
    "grpc_client_ca_file": "/etc/keda-gpu-scaler/grpc-tls/ca.crt",
}
READ: Mapping[str, Mapping[str, Any]] = {
    "default": {
        "sources": {"default": {"url": "http://prometheus-operated.monitoring.svc:9090"}},
        "shutdown_grace_seconds": 20.0,
        "kubernetes": False,
        "grpc_cert_file": None,
        "http_cert_file": None,
        "webhook_token_file": None,
        "webhook_peers": [],
    },
    "mtls": MTLS,
    "cert-manager": MTLS,
    "kubernetes-evidence": {"kubernetes": True},
    "old-names": {
        "sources": {"default": {"url": "https://prometheus.example.com"}},
        "kubernetes": True,
    },
    "openshift": {"kubernetes": False},
    "scrape": {
        "sources": {
            "default": {
                "targets": ["dns+http://dcgm-exporter.gpu.svc:9400/metrics"],
                "interval_seconds": 10.0,
            }
        }
    },
    "sources": {
        "sources": {
            "default": {"type": "prometheus"},
            "edge": {"step_seconds": 30.0, "bearer_token_file": "/etc/sources/mimir/token"},
            "lab": {"type": "scrape", "namespaces": "lab"},
        }
    },
    "webhook": {
        "sources": {"default": {"username": "scaler", "database": "telegraf"}},
        "webhook_peers": ["dns+https://keda-gpu-scaler.keda.svc:8080"],
        "http_cert_file": "/etc/keda-gpu-scaler/http-tls/tls.crt",
    },
    "everything": {
        **MTLS,
        "sources": {"default": {"url": "https://prometheus.example.com"}},
        "shutdown_grace_seconds": 40.0,
        "max_concurrent_rpcs": 1_000_000,
        "other_namespaces": "team-a,team-b",
        "traces": True,
    },
}
"""The settings that the scaler reads in each case, without defaults."""


@pytest.mark.parametrize("case", charts.cases())
def test_the_scaler_reads_a_release_s_settings(case: str, tmp_path: Path) -> None:
    read = settings.load(shapes.mounted(shapes.release(case), tmp_path)).model_dump(mode="json")
    assert _part(READ[case], read) == shapes.there(READ[case], tmp_path)


def _part(expected: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that were read, without those that are not expected."""
    return {
        key: _part(one, read[key]) if isinstance(one, Mapping) else read[key]
        for key, one in expected.items()
    }


def _given(*keys: str) -> list[str]:
    return [word for key in keys for word in ("--set-string", f"settings.{key}=x")]


def _secrets(model: type[BaseModel]) -> list[str]:
    """Name the settings of a model that hold a secret themselves, and not the name of a file."""
    return [row.key for row in names.describe(model) if row.key.endswith(SECRET)]


def test_what_the_chart_decides_is_refused_among_the_settings_with_what_to_do() -> None:
    variables = shapes.release("everything").variables
    written = {one.removeprefix(names.PREFIX).lower() for one in variables if names.PREFIX in one}
    decided = written - {"config", "prometheus_bearer_token"} | {"grpc_address", "http_address"}
    told = charts.refusal(*_given(*decided))
    assert [key for key in decided if f"- settings.{key}: " not in told] == []


def test_no_setting_with_a_secret_gets_into_a_config_map(tmp_path: Path) -> None:
    whole: dict[str, dict[str, str]] = {
        "prometheus": {"url": "http://prometheus:9090"},
        "influxdb": {"url": "http://influxdb:8086", "database": "telegraf"},
    }
    secrets = dict.fromkeys(_secrets(process.Settings), "x")
    for kind in whole:
        whole[kind] |= {"type": kind} | dict.fromkeys(_secrets(sources.KINDS[kind]), "x")
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"settings": {"sources": whole, **secrets}}))
    told = charts.refusal("--values", str(file))
    named = [f"sources.{kind}.{key}" for kind in whole for key in ("bearer_token", "password")]
    assert secrets.keys() >= {"webhook_token", "prometheus_password", "influxdb_bearer_token"}
    assert [key for key in (*secrets, *named) if f"settings.{key}" not in told] == []


@pytest.mark.parametrize("case", charts.cases())
def test_a_config_map_holds_no_secret(case: str) -> None:
    (text,) = (
        one["data"]["settings.yaml"]
        for one in shapes.release(case).of("ConfigMap")
        if "settings.yaml" in one.get("data", {})
    )
    assert [key for key in _keys(yaml.safe_load(text)) if key.endswith(SECRET)] == []


def _keys(value: object) -> list[str]:
    if not isinstance(value, dict):
        return []
    return [*value, *(key for inner in value.values() for key in _keys(inner))]
