"""The commands of the pages that need no cluster: each is typed as a reader does.

A block `sh` of a page is a step (`tests/support/guides.py`). A remark above it says
`not run: reason`, `needs: helm`, or `fails`. Pages for readers with a cluster are not typed.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import charts, guides, programs
from testbed.guides import Step
from tests.repository.test_docs import ROOT
from tests.support import printed

IN_A_CLUSTER = (*guides.QUICK_STARTS, "troubleshooting")
"""Pages for readers with a cluster."""
PAGES = (
    "install",
    "arithmetic",
    "backtest",
    "operations",
)
"""Pages whose commands are typed without a cluster, or say why not."""


def in_a_cluster() -> set[str]:
    """Return what a reader types in a cluster."""
    steps = [step for name in IN_A_CLUSTER for step in guides.steps(guides.page(name))]
    return {step.commands for step in steps if not step.is_(guides.NOT_RUN)}


def typed(*needs: str) -> list[object]:
    """Return the steps that a test types with these programs, as parameters."""
    elsewhere = in_a_cluster()
    return [
        pytest.param(step, id=f"{name}-{number}")
        for name in PAGES
        for number, step in enumerate(guides.steps(guides.page(name)), 1)
        if not step.is_(guides.NOT_RUN) and step.commands not in elsewhere
        if tuple(remark.words for remark in step.remarks if remark.kind == "needs") == needs
    ]


def check(step: Step, folder: Path, *needs: str) -> None:
    """Type a step in a checkout, with the product on the PATH, and compare what it prints."""
    checkout = folder / "checkout"
    checkout.mkdir()
    for file in ROOT.iterdir():
        (checkout / file.name).symlink_to(file)
    folders = [str(Path(programs.path(name)).parent) for name in needs]
    path = os.pathsep.join([str(Path(sys.executable).parent), *folders, os.environ["PATH"]])
    mine = {name: value for name, value in os.environ.items() if not name.startswith("KEDA_GPU_")}
    done = subprocess.run(
        ["/bin/bash", "-eu", "-o", "pipefail", "-c", step.commands],
        cwd=checkout,
        env=mine | {"PATH": path, "COLUMNS": "80", "HOME": str(folder), "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode != 0) == step.is_(guides.FAILS), done.stdout
    if step.output is not None:
        assert printed.is_shown_by(done.stdout, step.output), done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("step", typed())
def test_a_command_of_a_page_prints_what_the_page_shows(step: Step, tmp_path: Path) -> None:
    check(step, tmp_path)


@pytest.mark.needs("helm")
@pytest.mark.parametrize("step", typed("helm"))
def test_a_command_with_helm_prints_what_the_page_shows(step: Step, tmp_path: Path) -> None:
    check(step, tmp_path, "helm")


@pytest.mark.needs("helm")
def test_helm_takes_what_the_readme_installs() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ((release, chart, flags),) = re.findall(
        r"^ {4}helm install (\S+) (\S+) (.*)$", text, re.MULTILINE
    )
    assert charts.run("helm", "template", release, str(ROOT / chart), *flags.split())
