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

SHIPPED = ("README.md", "deploy", "docs", "examples")
CHANGELOG = "# Changelog\n\n## [9.8.7]\n\nNotes.\n\n## [9.8.6]\n\nBefore.\n"


def make(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [shutil.which("make") or "make", "-s", *words]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that releases its next version."""
    (tmp_path / "keda_gpu_scaler").mkdir()
    (tmp_path / "keda_gpu_scaler" / "__init__.py").write_text('__version__ = "9.8.7"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "tools").mkdir()
    for name in ("Makefile", "tools/version.sh"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


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


@pytest.mark.parametrize("tag", ["v9.8.6", "v9.8.7'$(shell touch ran)`touch ran`; touch ran; '"])
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
        chart = archive.extractfile("keda-gpu-scaler/Chart.yaml")
        assert chart is not None
        named = yaml.safe_load(chart)["annotations"]["artifacthub.io/images"]
        assert [one["image"] for one in yaml.safe_load(named)] == [f"{image}:{__version__}"]
        names = {name.removeprefix("keda-gpu-scaler/") for name in archive.getnames()}
    assert names >= {"README.md", "values.schema.json", "templates/NOTES.txt"}
    assert [name for name in names if name.startswith("ci/")] == []
