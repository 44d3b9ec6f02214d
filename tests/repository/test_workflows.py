"""What neither a linter nor a run of CI shows of the workflows: a release is not tried before."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import programs
from tests.repository.test_docs import ROOT
from tests.workbench.check.cases import STAYS

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
WRITES = {
    ("release.yaml", "package"): {"id-token", "attestations"},
    ("release.yaml", "pypi"): {"id-token"},
    ("release.yaml", "image"): {"id-token"},
    ("release.yaml", "chart"): {"id-token"},
    ("release.yaml", "release"): {"contents"},
    ("locks.yaml", "upgrade"): {"contents", "pull-requests", "actions"},
    ("security.yaml", "codeql"): {"security-events"},
    ("security.yaml", "scorecard"): {"security-events", "id-token"},
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


@pytest.mark.parametrize(("arguments", "status"), [("*.yaml", 0), ("*.yaml --fail-on note", 1)])
def test_the_step_for_other_repositories_checks_the_files_that_it_is_given(
    arguments: str, status: int, tmp_path: Path
) -> None:
    """Two files by one pattern, and a flag; what it installs from an index, this Python has."""
    (tmp_path / "a.yaml").write_text(STAYS)
    (tmp_path / "b.yaml").write_text(STAYS.replace("  maxReplicaCount: 8\n", ""))
    *_, step = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    (folder := tmp_path / "keda-gpu-scaler" / "bin").mkdir(parents=True)
    (folder / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (folder / "python").chmod(0o755)
    given = {"RUNNER_TEMP": tmp_path, "GITHUB_ACTION_PATH": ROOT, "ARGUMENTS": arguments}
    done = subprocess.run(
        ["/bin/bash", "-e", "-c", step["run"]],
        cwd=tmp_path,
        env=os.environ | {name: str(value) for name, value in given.items()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "checked 2 KEDA objects" in done.stdout) == (status, True)


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
