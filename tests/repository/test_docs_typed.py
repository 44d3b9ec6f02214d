"""The commands of the pages that need no cluster: each is typed, or says why it is not."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository.test_docs import ROOT
from tests.support import guides, page_commands, printed, programs
from tests.support.page_commands import GUIDES, KINDS, PAGES, Command

pytestmark = pytest.mark.slow

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"sh", "text", "yaml", "promql", "json"}
"""Languages of blocks: what is typed is `sh`, so no command hides under another name."""
LOCAL = {"Wrong pods are measured", "It ends with status 2"}
"""Sections of the page on troubleshooting with commands that ask no cluster."""
FEWEST_WORDS = 4
"""A reason says more than that something is missing."""


def typed(*needs: str) -> list[Command]:
    """Return the commands that need these programs."""
    return [one for one in page_commands.typed() if one.needs == needs]


def checkout(folder: Path) -> Path:
    """Return a folder that looks like a checkout, and in which commands may write files."""
    made = folder / "checkout"
    made.mkdir()
    for path in ROOT.iterdir():
        (made / path.name).symlink_to(path)
    return made


def run(command: Command, folder: Path, *needs: str) -> subprocess.CompletedProcess[str]:
    """Type a command where a reader does: in a checkout, with the product on the PATH."""
    folders = {str(Path(programs.path(name)).parent) for name in needs}
    path = os.pathsep.join([str(Path(sys.executable).parent), *folders, os.environ["PATH"]])
    mine = {name: value for name, value in os.environ.items() if not name.startswith("KEDA_GPU_")}
    return subprocess.run(
        ["/bin/bash", "-eu", "-o", "pipefail", "-c", command.step.commands],
        cwd=checkout(folder),
        env=mine | {"PATH": path, "COLUMNS": "80", "HOME": str(folder), "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


def judge(command: Command, done: subprocess.CompletedProcess[str]) -> None:
    """Compare how a command ended, and what it printed, with the page."""
    assert (done.returncode != 0) == command.step.is_(guides.FAILS), done.stdout
    if command.step.output is not None:
        assert printed.is_shown_by(done.stdout, command.step.output), done.stdout


@pytest.mark.parametrize("command", typed(), ids=lambda one: one.name)
def test_a_command_of_a_page_prints_what_the_page_shows(command: Command, tmp_path: Path) -> None:
    judge(command, run(command, tmp_path))


def without_a_cluster() -> list[Command]:
    """Return those commands of the page on troubleshooting that ask no cluster."""
    every = page_commands.commands("troubleshooting")
    return [one for one in every if one.step.section in LOCAL and "$NAME" not in one.step.commands]


@pytest.mark.parametrize(
    "command",
    [one for one in without_a_cluster() if one.reason is None],
    ids=lambda one: one.name,
)
def test_a_symptom_that_needs_no_cluster_shows_what_the_page_shows(
    command: Command, tmp_path: Path
) -> None:
    judge(command, run(command, tmp_path))


@pytest.mark.needs("helm")
@pytest.mark.parametrize("command", typed("helm"), ids=lambda one: one.name)
def test_a_command_with_helm_prints_what_the_page_shows(command: Command, tmp_path: Path) -> None:
    judge(command, run(command, tmp_path, "helm"))


def test_every_command_is_typed_by_a_test_or_says_why_it_is_not() -> None:
    typed_here = {one.name for one in (*typed(), *typed("helm"))}
    for command in page_commands.commands(*PAGES):
        ways = (
            command.name in typed_here,
            page_commands.is_in_a_guide(command) and command.reason is None,
            command.reason is not None,
        )
        assert sum(ways) == 1, command.name


def test_a_test_that_a_reason_names_is_there() -> None:
    reasons = [one.reason for one in page_commands.commands(*PAGES) if one.reason is not None]
    named = {path for reason in reasons for path in re.findall(r"tests/[\w/]+\.py", reason)}
    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_a_reason_not_to_run_a_command_is_a_reason() -> None:
    every = page_commands.commands(*GUIDES, *PAGES)
    reasons = [one.reason for one in every if one.reason is not None]
    assert reasons
    for reason in reasons:
        assert len(reason.split()) >= FEWEST_WORDS, reason


@pytest.mark.parametrize("page", PAGES)
def test_what_is_typed_stands_in_blocks_that_a_test_reads(page: str) -> None:
    text = guides.page(page).read_text()
    assert {language for language, _ in FENCE.findall(text)} <= LANGUAGES
    assert [
        each for each in FENCE.sub("", text).splitlines() if page_commands.is_command(each)
    ] == []
    tables = {mark for name in re.findall(r"<!-- /(\S+) -->", text) for mark in (name, f"/{name}")}
    remarks = {one.kind for step in guides.steps(guides.page(page)) for one in step.remarks}
    assert remarks - tables <= KINDS


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("    keda-gpu-scaler check a.yaml", True),
        ("    $ helm template a b", True),
        ("      kubectl get pods", True),
        ("    some words about kubectl", False),
        ("kubectl is a program", False),
    ],
)
def test_an_indented_command_is_found(line: str, *, expected: bool) -> None:
    assert page_commands.is_command(line) == expected


def test_make_docs_prints_how_many_commands_are_typed_and_why_others_are_not() -> None:
    every = list(page_commands.commands(*GUIDES, *PAGES))
    reasons = [f"  docs/{one.page}.md: {one.reason}" for one in every if one.reason is not None]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.page_commands"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    first, *others = done.stdout.splitlines()
    numbers = [int(number) for number in re.findall(r"\d+", first)]
    assert (sum(numbers), numbers[-1], others) == (len(every), len(reasons), reasons)
    recipe = (ROOT / "Makefile").read_text().partition("\ndocs: ")[2].partition("\n\n")[0]
    assert "$(BIN)/python -m tests.support.page_commands" in recipe
