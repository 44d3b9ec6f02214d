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

FILES = {
    "deploy/helm/keda-gpu-scaler/Chart.yaml": """\
version: {version}
appVersion: "{version}"
kubeVersion: ">=1.29.0-0"
""",
    "deploy/kustomize/deployment.yaml": """\
apiVersion: apps/v1
    app.kubernetes.io/version: "{version}"
    helm.sh/chart: keda-gpu-scaler-{version}
      image: keda-gpu-scaler:{version}
""",
    "deploy/helm/keda-gpu-scaler/README.md": """\
docker tag keda-gpu-scaler:{version} images.example.com/keda-gpu-scaler:{version}
docker push images.example.com/keda-gpu-scaler:{version}
""",
    "README.md": """\
Version {version}, not published yet. Version 1.2.3 of something else.
""",
    "docs/quickstart.md": """\
kind load docker-image keda-gpu-scaler:{version}
Since 0.1.0 it is at keda-gpu-scaler:6000, or `keda-gpu-scaler.keda.svc:6000`.
""",
}
SHIPPED = ("README.md", "deploy", "docs", "examples")
CHANGELOG = """\
# Changelog

## [9.8.7] - 2026-12-24

Notes.

## [9.8.6] - 2026-11-01

Before.
"""


def make(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [shutil.which("make") or "make", "-s", *words]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of the next version, with chart and manifests still of the one before."""
    texts = {name: text.format(version="9.8.6") for name, text in FILES.items()}
    texts["keda_gpu_scaler/__init__.py"] = '__version__ = "9.8.7"\n'
    texts["CHANGELOG.md"] = CHANGELOG
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "tools").mkdir()
    for name in ("Makefile", "tools/version.sh"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_it_is_written_wherever_it_is_named_and_nothing_else_changes(project: Path) -> None:
    refused = make(project, "check-version")
    assert "Chart.yaml names another version than 9.8.7: run make version" in refused.stderr
    assert make(project, "version").returncode == 0
    for name, text in FILES.items():
        assert (project / name).read_text() == text.format(version="9.8.7")
    assert make(project, "check-version").returncode == 0


def test_no_file_that_is_shipped_names_an_image_of_another_version() -> None:
    """What follows the image's name without dots is a port."""
    found = [path for name in SHIPPED for path in (ROOT / name, *(ROOT / name).rglob("*"))]
    texts = [path.read_text() for path in found if path.is_file() and path.suffix != ".png"]
    tags = {
        tag for text in texts for tag in re.findall(r"\bkeda-gpu-scaler:(v?\d+\.[\w.-]*\w)", text)
    }
    assert tags == {__version__}
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__), "as Python and Helm both understand it"


def test_the_notes_of_a_release_are_its_section_of_the_changelog(project: Path) -> None:
    assert make(project, "release-notes", "TAG=v9.8.7").stdout == "Notes.\n"
    (project / "CHANGELOG.md").write_text("## [9.8.6]\n\nBefore.\n")
    refused = make(project, "release-notes", "TAG=v9.8.7")
    assert "CHANGELOG.md has no section [9.8.7]" in refused.stderr


@pytest.mark.parametrize(
    "tag",
    [
        "v9.8.6",
        *('v9.8.7"$(touch ran)"', "v9.8.7`touch ran`", "v9.8.7'; touch ran; '"),
        *("v9.8.7$(shell touch ran)", "v9.8.7$$(touch ran)"),
    ],
)
def test_another_tag_is_refused_and_is_a_text_that_nothing_runs(project: Path, tag: str) -> None:
    done = make(project, "release-notes", f"TAG={tag}")
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert f"the tag is '{tag}', and keda_gpu_scaler/__init__.py says v9.8.7" in done.stderr
    assert not (project / "ran").exists()


@pytest.mark.needs("helm")
def test_the_chart_is_packed_with_the_image_that_a_release_has_pushed(tmp_path: Path) -> None:
    image = "registry.example/team/keda-gpu-scaler"
    done = make(ROOT, "chart-archive", f"DIST={tmp_path}", f"IMAGE={image}")
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    assert path.name == f"keda-gpu-scaler-{__version__}.tgz"
    with tarfile.open(path) as archive:
        text = archive.extractfile("keda-gpu-scaler/values.yaml")
        assert text is not None
        assert yaml.safe_load(text)["image"]["repository"] == image
        names = {name.removeprefix("keda-gpu-scaler/") for name in archive.getnames()}
    assert names >= {"README.md", "values.schema.json", "templates/NOTES.txt"}
    assert [name for name in names if name.startswith("ci/")] == []
