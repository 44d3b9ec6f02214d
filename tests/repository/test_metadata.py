"""What is uploaded to a package index: a source archive, the wheel built from it, its page."""

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest

from keda_gpu_scaler import __version__
from tests.repository.test_docs import ROOT
from tests.repository.test_versions import said

LINK = re.compile(r"\]\(([^)]*)\)")
OTHER_LINK = re.compile(r"^\[[^\]]+\]: |\b(?:href|src)=", re.MULTILINE)
"""Other forms of Markdown links, which the build does not make absolute."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive of the working tree, unpacked."""
    (archive,) = built(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))
    unpacked = tmp_path_factory.mktemp("source")
    with tarfile.open(archive) as files:
        files.extractall(unpacked, filter="data")
    (folder,) = unpacked.iterdir()
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The wheel, built from the source archive alone."""
    (path,) = built(source, "wheel", tmp_path_factory.mktemp("wheel"))
    with zipfile.ZipFile(path) as files:
        yield files


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(wheel.read(name))


def built(folder: Path, target: str, into: Path) -> list[Path]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    return list(into.iterdir())


def urls(metadata: Message) -> dict[str, str]:
    return dict(each.split(", ") for each in metadata.get_all("Project-URL", []))


def test_the_source_archive_has_what_builds_the_wheel_and_nothing_else(source: Path) -> None:
    chosen = {"CHANGELOG.md", "LICENSE", "README.md", "keda_gpu_scaler", "pyproject.toml"}
    added_by_every_build = {".gitignore", "PKG-INFO"}
    assert {path.name for path in source.iterdir()} == chosen | added_by_every_build


def test_the_wheel_has_the_packages_files_and_says_that_they_are_typed(
    wheel: zipfile.ZipFile,
) -> None:
    package = (path for path in (ROOT / "keda_gpu_scaler").rglob("*") if path.is_file())
    own = {str(path.relative_to(ROOT)) for path in package if path.suffix != ".pyc"}
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == own
    assert "keda_gpu_scaler/py.typed" in packed


def test_every_python_that_is_promised_has_its_classifier_and_no_other(
    metadata: Message,
) -> None:
    prefix = "Programming Language :: Python :: "
    named = [each for each in metadata.get_all("Classifier", []) if each.startswith(prefix)]
    assert ", ".join(each.removeprefix(prefix) for each in named) == said()["Python"][0]


def test_no_link_of_the_page_is_relative(metadata: Message) -> None:
    page = str(metadata.get_payload())
    links = LINK.findall(page)
    assert len(links) == len(LINK.findall((ROOT / "README.md").read_text())) > 0
    assert [link for link in links if not link.startswith("https://")] == []
    assert OTHER_LINK.findall(page) == []


def test_every_link_to_the_repository_leads_to_a_file_of_this_version(
    metadata: Message,
) -> None:
    files = f"{urls(metadata)['Source']}/blob/v{__version__}/"
    links = LINK.findall(str(metadata.get_payload()))
    paths = [link.removeprefix(files).partition("#")[0] for link in links if files in link]
    assert {"CONTRIBUTING.md", "docs/quickstart.md", "docs/migrate/index.md"} <= set(paths)
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_every_address_of_the_project_is_in_its_repository(metadata: Message) -> None:
    found = urls(metadata)
    assert {"Source", "Documentation", "Changelog", "Issues"} == found.keys()
    assert all(url.startswith(found["Source"]) for url in found.values())
    prefixes = {f"{found['Source']}/{part}/main/" for part in ("blob", "tree")}
    paths = [url.removeprefix(prefix) for url in found.values() for prefix in prefixes]
    inside = [path for path in paths if not path.startswith("https://")]
    assert len(inside) == 2
    assert all((ROOT / path).exists() for path in inside)
