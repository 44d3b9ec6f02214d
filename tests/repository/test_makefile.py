"""`make` on a machine whose Python is old, or has parts missing: it finds another, or says how."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository.test_docs import ROOT

NEW = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
OLD = "#!/bin/sh\nexit 1\n"
WITHOUT_VENV = f'#!/bin/sh\ncase $2 in *ensurepip*) exit 1 ;; esac\nexec {sys.executable} "$@"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The only folder in which `make` finds programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def make(path: Path, pythons: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    for name, script in pythons.items():
        (path / name).write_text(script)
        (path / name).chmod(0o755)
    return subprocess.run(
        [str(shutil.which("make")), "--no-print-directory", *arguments],
        cwd=ROOT,
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("pythons", "chosen"),
    [
        ({"python3": NEW, "python3.12": NEW}, "python3"),
        ({"python3": OLD, "python3.11": OLD, "python3.12": NEW, "python3.13": NEW}, "python3.12"),
        ({"python3.13": NEW}, "python3.13"),
        ({"python3": OLD, "python3.12": OLD}, "python3"),
    ],
)
def test_the_first_python_that_is_new_enough_is_taken(
    path: Path, pythons: dict[str, str], chosen: str
) -> None:
    assert make(path, pythons, "--eval=shown: ; @echo $(PYTHON);", "shown").stdout == f"{chosen}\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (OLD, "python3 is no Python 3.11 or newer: name one, as in make PYTHON=/opt/python/bin/"),
        (WITHOUT_VENV, "python3 comes without venv: apt-get install python3-venv\n"),
    ],
)
def test_a_machine_without_what_it_takes_gets_the_line_that_helps(
    path: Path, tmp_path: Path, script: str, words: str
) -> None:
    uv = str(tmp_path / "uv")
    done = make(path, {"python3": script}, f"UV={uv}", uv)
    assert done.returncode == 2
    assert done.stderr.startswith(words)
