"""The Kustomize base is the chart with its defaults, and its component the chart's evidence."""

import os
import re
from pathlib import Path

import pytest
import yaml

from tests.repository.chart import charts, kustomized
from tests.repository.chart.charts import Object

pytestmark = pytest.mark.needs("helm", "kubectl")

HELM = ("app.kubernetes.io/managed-by", "helm.sh/chart")
CHECKSUM = "checksum/settings"
_HASH = re.compile(r"\b(keda-gpu-scaler)-[a-z0-9]{10}\b")


def _without_helm(one: Object) -> Object:
    """Leave out Helm's labels, and its way to roll pods out when the settings change."""
    for label in HELM:
        one["metadata"]["labels"].pop(label, None)
    if one["kind"] == "Deployment":
        template = one["spec"]["template"]["metadata"]
        annotations = template.pop("annotations", {CHECKSUM: ""})
        assert annotations.keys() == {CHECKSUM}
    return one


def _by_name(manifests: str) -> dict[tuple[str, str], Object]:
    found = [_without_helm(one) for one in charts.objects(manifests)]
    named = {(one["kind"], one["metadata"]["name"]): one for one in found}
    assert len(named) == len(found)
    return named


def _without_hash(manifests: str) -> str:
    assert len(set(_HASH.findall(manifests))) == 1
    return _HASH.sub(r"\1", manifests)


def _overlay(directory: Path, **more: object) -> str:
    parts = {"resources": [_relative(charts.BASE, directory)], **more}
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(parts))
    return charts.kustomized(directory)


def _relative(path: Path, directory: Path) -> str:
    """Return the form that Kustomize takes, which is no absolute one."""
    return os.path.relpath(path, directory.resolve())


def test_the_base_is_the_chart_with_its_defaults() -> None:
    base = _by_name(_without_hash(charts.kustomized()))
    assert base == _by_name(charts.template("--skip-tests"))


def test_the_component_is_the_chart_s_kubernetes_evidence(tmp_path: Path) -> None:
    overlay = _overlay(tmp_path, components=[_relative(kustomized.COMPONENT, tmp_path)])
    expected = charts.rendered("kubernetes-evidence", "--skip-tests")
    assert _by_name(_without_hash(overlay)) == _by_name(expected)


def test_other_settings_roll_the_pods_out(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("log_level: debug\n")
    generator = {"name": "keda-gpu-scaler", "behavior": "replace", "files": ["settings.yaml"]}
    changed = _overlay(tmp_path, configMapGenerator=[generator])
    names = {_HASH.search(text)[0] for text in (changed, charts.kustomized())}  # type: ignore[index] # both have one
    assert len(names) == 2
    (config,) = (one for one in charts.objects(changed) if one["kind"] == "ConfigMap")
    assert config["data"] == {"settings.yaml": "log_level: debug\n"}
