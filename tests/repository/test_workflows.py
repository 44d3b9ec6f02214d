"""What neither a linter nor a run of CI shows of the workflows: a release is not tried before."""

import subprocess
from typing import Any

import pytest
import yaml

from testbed import programs
from tests.repository.test_docs import ROOT

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


def test_what_cannot_be_taken_back_comes_after_everything_else_has_succeeded() -> None:
    """A job that ran out of time is neither skipped nor failed: only its success counts."""
    release = {name: job for (file, name), job in jobs().items() if file == "release.yaml"}
    assert release["pypi"]["needs"] == "release"
    assert "needs.release.result == 'success'" in release["pypi"]["if"]
    assert set(release["release"]["needs"]) == release.keys() - {"release", "pypi"}
    assert all("ci" in release[name]["needs"] for name in ("package", "image"))
    condition = " ".join(release["release"]["if"].split())
    set_up = "vars.IMAGE_REGISTRY != '' && 'success' || 'skipped'"
    results = {"package": "'success'", "image": f"({set_up})", "chart": f"({set_up})"}
    waited_for = [f"needs.{name}.result == {result}" for name, result in results.items()]
    assert condition == f"${{{{ !cancelled() && {' && '.join(waited_for)} }}}}"
