"""The workflows of the forge, read: what they may do, what they run, and whose code that is."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart import charts
from tests.test_docs import ROOT

FOLDER = ROOT / ".github"
WORKFLOWS = sorted((FOLDER / "workflows").glob("*.yaml"))
ACTIONS = sorted(FOLDER.glob("actions/*/action.yaml"))
WRITES = {
    ("release.yaml", "package"): {"id-token", "attestations"},
    ("release.yaml", "pypi"): {"id-token"},
    ("release.yaml", "image"): {"id-token"},
    ("release.yaml", "chart"): {"id-token"},
    ("release.yaml", "release"): {"contents"},
}
"""Which job may write what; every other one reads."""
TRIGGERS = {
    "ci.yaml": {"push", "pull_request", "workflow_dispatch", "workflow_call"},
    "release.yaml": {"push"},
}
"""None of them gives the code of a stranger the rights of a maintainer."""


def read(path: Path) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    return {
        "on" if key is True else key: it for key, it in yaml.safe_load(path.read_text()).items()
    }


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in read(path)["jobs"].items():
            yield path.name, name, job


def steps() -> Iterator[dict[str, Any]]:
    for _workflow, _name, job in jobs():
        yield from job.get("steps", [])
    for path in ACTIONS:
        yield from read(path)["runs"]["steps"]


def scripts() -> list[str]:
    return [step["run"] for step in steps() if "run" in step]


def test_actionlint_has_nothing_to_say() -> None:
    words = [charts.built("actionlint"), "-no-color", *map(str, WORKFLOWS)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", [*WORKFLOWS, *ACTIONS], ids=lambda path: path.name)
def test_code_of_others_is_named_by_its_hash_and_its_version(path: Path) -> None:
    used = re.findall(r"uses:\s*(\S+)(.*)", path.read_text())
    assert used
    for action, comment in used:
        if not action.startswith("./"):
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action), action
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
        else:
            assert (ROOT / action).exists()


def test_one_action_has_one_hash_everywhere() -> None:
    used = {step["uses"] for step in steps() if "uses" in step}
    names = [action.partition("@")[0] for action in used]
    assert len(names) == len(set(names))


def test_every_target_that_is_made_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    made = set(re.findall(r"\bmake (?:-s )?([a-z0-9-]+)", "\n".join(scripts())))
    assert {"check", "check-wheels", "test", "e2e", "wheel", "chart-archive"} <= made
    assert made <= targets


def test_continuous_integration_runs_targets_of_make_and_nothing_else() -> None:
    found = [
        step["run"]
        for workflow, _name, job in jobs()
        if workflow == "ci.yaml"
        for step in job["steps"]
        if "run" in step
    ]
    assert all(re.fullmatch(r"make [a-z0-9-]+", script) for script in found)


def test_it_covers_what_people_run_before_a_push() -> None:
    (line,) = re.findall(r"^make (.*)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert {f"make {target}" for target in line.split()} <= set(scripts())


def test_it_tests_on_every_supported_python() -> None:
    (promised,) = re.findall(r"^PYTHONS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    matrix = read(FOLDER / "workflows" / "ci.yaml")["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == promised.split()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_do_nothing_until_a_job_says_what(path: Path) -> None:
    assert read(path)["permissions"] == {}


def test_jobs_write_what_they_have_to_and_nothing_more() -> None:
    written = {
        (workflow, name): {key for key, value in job["permissions"].items() if value != "read"}
        for workflow, name, job in jobs()
    }
    assert {job: rights for job, rights in written.items() if rights} == WRITES


def test_no_workflow_runs_a_strangers_code_with_our_rights() -> None:
    assert {path.name: set(read(path)["on"]) for path in WORKFLOWS} == TRIGGERS
    assert read(FOLDER / "workflows" / "release.yaml")["on"]["push"] == {"tags": ["v*"]}


def test_every_job_ends_by_itself() -> None:
    assert all("timeout-minutes" in job or "uses" in job for _file, _name, job in jobs())


def test_no_script_is_made_of_what_others_wrote() -> None:
    assert not [script for script in scripts() if "${{" in script]


def test_no_credentials_stay_in_the_checkout() -> None:
    checkouts = [step for step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)


def test_secrets_and_uploads_are_behind_an_environment() -> None:
    guarded = {name: job.get("environment") for _file, name, job in jobs()}
    assert (guarded["pypi"], guarded["image"], guarded["chart"]) == ("pypi", "registry", "registry")
    others = [job for _file, _name, job in jobs() if "environment" not in job]
    assert "secrets." not in yaml.safe_dump(others)


def test_what_cannot_be_taken_back_comes_after_everything_else_has_succeeded() -> None:
    found = read(FOLDER / "workflows" / "release.yaml")["jobs"]
    assert found["pypi"]["needs"] == "release"
    assert set(found["release"]["needs"]) == found.keys() - {"release", "pypi"}
    assert all("ci" in found[name]["needs"] for name in ("package", "image"))


def test_a_release_waits_for_the_success_of_each_job_by_its_name() -> None:
    """A job that ran out of time is neither skipped nor failed: only its success counts."""
    found = read(FOLDER / "workflows" / "release.yaml")["jobs"]
    condition = " ".join(found["release"]["if"].split())
    asked_for = set(re.findall(r"needs\.(\w+)\.result == (\([^)]*\)|'success')", condition))
    registry = f"({found['image']['if']} && 'success' || 'skipped')"
    assert asked_for == {("package", "'success'"), ("image", registry), ("chart", registry)}
    assert condition.count("&&") == len(asked_for) + registry.count("&&") * 2
    assert "contains(" not in condition


def test_what_a_release_downloads_is_named_and_was_uploaded() -> None:
    def named(action: str) -> list[str]:
        used = [step for step in steps() if step.get("uses", "").startswith(f"actions/{action}@")]
        return [step["with"]["name"] for step in used]

    assert {"dist", "chart"} <= set(named("download-artifact")) <= set(named("upload-artifact"))


def test_a_build_leaves_no_artifact_of_its_own() -> None:
    (build,) = (step for step in steps() if "docker/build-push-action@" in step.get("uses", ""))
    assert build["env"]["DOCKER_BUILD_RECORD_UPLOAD"] == "false"


def test_a_program_that_fails_before_a_pipe_ends_its_step() -> None:
    piped = [step for step in steps() if re.search(r"[^|]\|[^|]", step.get("run", ""))]
    assert piped
    assert all(step["shell"] == "bash" for step in piped)


def test_updates_are_asked_for_wherever_a_version_is_pinned() -> None:
    updates = yaml.safe_load((FOLDER / "dependabot.yml").read_text())["updates"]
    kinds = {update["package-ecosystem"] for update in updates}
    assert kinds == {"github-actions", "docker", "gomod"}
    assert all(update["cooldown"]["default-days"] == 7 for update in updates)
