"""The Kustomize base and its component can be built, and make what the chart makes."""

import os
import re
from pathlib import Path

import pytest
import yaml

from testbed import charts

pytestmark = pytest.mark.needs("helm", "kubectl")


def names(manifests: str) -> list[tuple[str, str]]:
    """Return the kind and the name of each object, without the hash of a ConfigMap's content."""
    found = [(one["kind"], one["metadata"]["name"]) for one in charts.objects(manifests)]
    return sorted((kind, re.sub(r"-[a-z0-9]{10}$", "", name)) for kind, name in found)


def test_the_base_makes_the_objects_of_the_chart() -> None:
    assert names(charts.kustomized()) == names(charts.template("--skip-tests"))


def test_the_component_makes_the_objects_of_the_chart_s_kubernetes_evidence(tmp_path: Path) -> None:
    # Kustomize takes no absolute paths.
    base, component = (
        os.path.relpath(path, tmp_path.resolve()) for path in (charts.BASE, charts.COMPONENT)
    )
    overlay = {"resources": [base], "components": [component]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    made = charts.kustomized(tmp_path)
    assert names(made) == names(charts.rendered("kubernetes-evidence", "--skip-tests"))
    (deployment,) = (one for one in charts.objects(made) if one["kind"] == "Deployment")
    assert "KEDA_GPU_SCALER_KUBERNETES" in str(deployment)
