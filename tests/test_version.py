"""The version stands in one place; what else names it is written from there, or refused."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from keda_gpu_scaler import __version__
from tests.test_docs import ROOT

CHART = """\
apiVersion: v2
name: keda-gpu-scaler
type: application
version: {version}
appVersion: "{version}"
kubeVersion: ">=1.29.0-0"
"""
DEPLOYMENT = """\
apiVersion: apps/v1
metadata:
  labels:
    app.kubernetes.io/version: "{version}"
    helm.sh/chart: keda-gpu-scaler-{version}
spec:
  containers:
    - name: keda-gpu-scaler
      image: keda-gpu-scaler:{version}
"""
FILES = {
    "deploy/helm/keda-gpu-scaler/Chart.yaml": CHART,
    "deploy/kustomize/deployment.yaml": DEPLOYMENT,
    "deploy/kustomize/kubernetes-evidence/rbac.yaml": DEPLOYMENT,
}


def write(root: Path, version: str) -> None:
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(version=version))


def make(root: Path, target: str) -> subprocess.CompletedProcess[str]:
    command = [shutil.which("make") or "make", "-s", target]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of the next version, whose chart and manifests are still of the one before."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "keda_gpu_scaler").mkdir()
    (tmp_path / "keda_gpu_scaler" / "__init__.py").write_text(
        '"""Doc."""\n\n__version__ = "9.8.7"\n'
    )
    write(tmp_path, "9.8.6")
    return tmp_path


def test_another_version_is_refused(project: Path) -> None:
    done = make(project, "check-version")
    assert done.returncode != 0
    assert "Chart.yaml names another version than 9.8.7: run make version" in done.stderr


def test_it_is_written_wherever_it_is_named_and_nothing_else_changes(project: Path) -> None:
    assert make(project, "version").returncode == 0
    for name, text in FILES.items():
        assert (project / name).read_text() == text.format(version="9.8.7")
    assert make(project, "check-version").returncode == 0


def test_it_is_one_that_python_and_helm_both_understand() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
