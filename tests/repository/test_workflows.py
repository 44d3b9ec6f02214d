"""What no linter asks of the workflows; `make check-workflows` asks the rest."""

import re
import subprocess
from typing import Any

import pytest
import yaml

from tests.e2e import every_generation
from tests.repository.test_docs import ROOT
from tests.support import programs

WRITES = {
    ("release.yaml", "package"): {"id-token", "attestations"},
    ("release.yaml", "pypi"): {"id-token"},
    ("release.yaml", "image"): {"id-token"},
    ("release.yaml", "chart"): {"id-token"},
    ("release.yaml", "release"): {"contents"},
}
"""Which job may write what; every other one reads."""


@pytest.fixture(scope="module")
def workflows() -> dict[str, dict[str, Any]]:
    """Return the jobs of every workflow."""
    files = (ROOT / ".github" / "workflows").glob("*.yaml")
    return {path.name: yaml.safe_load(path.read_text())["jobs"] for path in files}


def steps(workflows: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    jobs = [job for found in workflows.values() for job in found.values()]
    return [step for job in jobs for step in job.get("steps", [])]


@pytest.mark.needs("actionlint")
def test_actionlint_has_nothing_to_say() -> None:
    files = map(str, (ROOT / ".github" / "workflows").glob("*.yaml"))
    words = [programs.path("actionlint"), "-no-color", *files]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_target_that_is_made_exists(workflows: dict[str, dict[str, Any]]) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    scripts = "\n".join(step.get("run", "") for step in steps(workflows))
    made = set(re.findall(r"\bmake (?:-s )?([a-z0-9-]+)", scripts))
    assert {"check", "test", "wheel"} <= made
    assert made - targets == set()


def test_it_covers_what_people_run_before_a_push(workflows: dict[str, dict[str, Any]]) -> None:
    (line,) = re.findall(r"^make (.*)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    scripts = [step.get("run", "") for step in steps(workflows)]
    made = {word for script in scripts if script.startswith("make ") for word in script.split()}
    assert set(line.split()) - made == set()


def test_it_tests_on_every_supported_python(workflows: dict[str, dict[str, Any]]) -> None:
    (promised,) = re.findall(r"^PYTHONS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert workflows["ci.yaml"]["test"]["strategy"]["matrix"]["python"] == promised.split()


def test_jobs_end_by_themselves_and_write_nothing_but_what_they_have_to(
    workflows: dict[str, dict[str, Any]],
) -> None:
    jobs = {(file, name): job for file, found in workflows.items() for name, job in found.items()}
    written = {
        name: {key for key, value in job["permissions"].items() if value != "read"}
        for name, job in jobs.items()
    }
    assert {name: rights for name, rights in written.items() if rights} == WRITES
    assert [
        job for job in jobs.values() if "timeout-minutes" not in job and "uses" not in job
    ] == []


def test_what_cannot_be_taken_back_comes_after_everything_else_has_succeeded(
    workflows: dict[str, dict[str, Any]],
) -> None:
    """A job that ran out of time is neither skipped nor failed: only its success counts."""
    jobs = workflows["release.yaml"]
    assert jobs["pypi"]["needs"] == "release"
    assert "needs.release.result == 'success'" in jobs["pypi"]["if"]
    assert set(jobs["release"]["needs"]) == jobs.keys() - {"release", "pypi"}
    assert all("ci" in jobs[name]["needs"] for name in ("package", "image"))
    condition = " ".join(jobs["release"]["if"].split())
    set_up = "vars.IMAGE_REGISTRY != '' && 'success' || 'skipped'"
    results = {"package": "'success'", "image": f"({set_up})", "chart": f"({set_up})"}
    waited_for = [f"needs.{name}.result == {result}" for name, result in results.items()]
    assert condition == f"${{{{ !cancelled() && {' && '.join(waited_for)} }}}}"


def test_what_a_release_downloads_was_uploaded(workflows: dict[str, dict[str, Any]]) -> None:
    def named(action: str) -> set[str]:
        used = [step for step in steps(workflows) if f"/{action}@" in step.get("uses", "")]
        return {step["with"]["name"] for step in used}

    assert {"dist", "chart"} <= named("download-artifact") <= named("upload-artifact")


def test_a_program_that_fails_before_a_pipe_ends_its_step(
    workflows: dict[str, dict[str, Any]],
) -> None:
    """With the shell named, bash runs with pipefail."""
    piped = [step for step in steps(workflows) if re.search(r"[^|]\|[^|]", step.get("run", ""))]
    assert [step["shell"] for step in piped] == ["bash"]


def test_its_scenarios_run_on_every_generation(workflows: dict[str, dict[str, Any]]) -> None:
    found = workflows["scenarios.yaml"]["e2e-all"]["strategy"]["matrix"]["generation"]
    assert found == list(every_generation.NAMES)
