"""The version is kept in one place; other files that name it are generated or checked."""

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from keda_gpu_scaler import __version__
from tests.repository.test_docs import ROOT

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
PAGE = """\
```sh
docker build --tag keda-gpu-scaler:{version} .
kind load docker-image keda-gpu-scaler:{version}
```

Since 0.1.0 it is at keda-gpu-scaler:6000, or `keda-gpu-scaler.keda.svc:6000`.
"""
FILES = {
    "deploy/helm/keda-gpu-scaler/Chart.yaml": CHART,
    "deploy/kustomize/deployment.yaml": DEPLOYMENT,
    "deploy/kustomize/kubernetes-evidence/rbac.yaml": DEPLOYMENT,
    "examples/quickstart/simulator.yaml": DEPLOYMENT,
    "docs/quickstart.md": PAGE,
    "docs/quickstart.ja.md": PAGE,
}
SHIPPED = ("README.md", "deploy", "docs", "examples")


def write(root: Path, version: str) -> None:
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(version=version))


def make(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [shutil.which("make") or "make", "-s", *words]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of the next version, with chart and manifests still of the one before."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "version.sh", tmp_path / "tools")
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


def tags(text: str) -> set[str]:
    """Return every tag that the image has in a text; what follows a host's name is a port."""
    return set(re.findall(r"\bkeda-gpu-scaler:(v?\d+\.[\w.-]*\w)", text))


def test_no_file_that_is_shipped_names_an_image_of_another_version() -> None:
    assert tags("keda-gpu-scaler:6000 a/keda-gpu-scaler:1.2.3-rc.1.") == {"1.2.3-rc.1"}
    found = [path for name in SHIPPED for path in (ROOT / name, *(ROOT / name).rglob("*"))]
    texts = [path for path in found if path.is_file() and path.suffix != ".png"]
    named = {path: tags(path.read_text()) for path in texts}
    tagged = {path: each for path, each in named.items() if each}
    assert len(tagged) > 4
    assert {path: each for path, each in tagged.items() if each != {__version__}} == {}


CHANGELOG = """\
# Changelog

## [Unreleased]

Later.

## [9.8.7] - 2026-12-24

Notes.

## [9.8.6] - 2026-11-01

Before.
"""


def test_the_notes_of_a_release_are_its_section_of_the_changelog(project: Path) -> None:
    (project / "CHANGELOG.md").write_text(CHANGELOG)
    assert make(project, "release-notes", "TAG=v9.8.7").stdout == "Notes.\n"


def test_a_tag_of_another_version_is_refused(project: Path) -> None:
    (project / "CHANGELOG.md").write_text(CHANGELOG)
    done = make(project, "release-notes", "TAG=v9.8.6")
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert "the tag is 'v9.8.6', and keda_gpu_scaler/__init__.py says v9.8.7" in done.stderr


@pytest.mark.parametrize(
    "command",
    ['"$(touch ran)"', "`touch ran`", "'; touch ran; '", "$(shell touch ran)", "$$(touch ran)"],
)
def test_a_tag_is_a_text_and_nothing_that_is_run(project: Path, command: str) -> None:
    (project / "CHANGELOG.md").write_text(CHANGELOG)
    done = make(project, "release-notes", f"TAG=v9.8.7{command}")
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert f"the tag is 'v9.8.7{command}', and" in done.stderr
    assert not (project / "ran").exists()


def test_a_release_that_the_changelog_does_not_know_is_refused(project: Path) -> None:
    (project / "CHANGELOG.md").write_text("## [9.8.6]\n\nBefore.\n")
    done = make(project, "release-notes", "TAG=v9.8.7")
    assert done.returncode != 0
    assert "CHANGELOG.md has no section [9.8.7]" in done.stderr


def test_it_is_one_that_python_and_helm_both_understand() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


@pytest.mark.needs("helm")
def test_the_chart_is_packed_with_the_image_that_a_release_has_pushed(tmp_path: Path) -> None:
    image = "registry.example/team/keda-gpu-scaler"
    done = make(ROOT, "chart-archive", f"DIST={tmp_path}", f"IMAGE={image}")
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / f"keda-gpu-scaler-{__version__}.tgz") as archive:
        text = archive.extractfile("keda-gpu-scaler/values.yaml")
        assert text is not None
        assert yaml.safe_load(text)["image"]["repository"] == image
    assert [path.name for path in tmp_path.iterdir()] == [f"keda-gpu-scaler-{__version__}.tgz"]
