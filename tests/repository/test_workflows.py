"""The workflows: what a linter finds in them, and which of their jobs may write."""

import subprocess
from typing import Any

import pytest
import yaml

from tests.repository.test_docs import ROOT
from tools import programs

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
WRITES = {
    ("release.yaml", "package"): {"id-token", "attestations"},
    ("release.yaml", "pypi"): {"id-token"},
    ("release.yaml", "image"): {"id-token"},
    ("release.yaml", "chart"): {"id-token"},
    ("release.yaml", "release"): {"contents"},
}
"""Which job may write what; every other one reads."""


def jobs() -> dict[tuple[str, str], dict[str, Any]]:
    read = {path.name: yaml.safe_load(path.read_text())["jobs"] for path in FILES}
    return {(file, name): job for file, found in read.items() for name, job in found.items()}


@pytest.mark.needs("actionlint")
def test_actionlint_has_nothing_to_say() -> None:
    words = [programs.path("actionlint"), "-no-color", *map(str, FILES)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_jobs_write_nothing_but_what_they_have_to() -> None:
    written = {
        name: {key for key, value in job["permissions"].items() if value != "read"}
        for name, job in jobs().items()
    }
    assert {name: rights for name, rights in written.items() if rights} == WRITES
