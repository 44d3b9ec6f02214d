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


def make(
    folder: Path, pythons: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run `make` in an empty clone, where these are all the programs that it finds."""
    (folder / "tools").mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements-test.lock", "tools/uv.txt"):
        shutil.copy(ROOT / name, folder / name)
    path = folder / "bin"
    path.mkdir()
    for name, script in pythons.items():
        (path / name).write_text(script)
        (path / name).chmod(0o755)
    return subprocess.run(
        [str(shutil.which("make")), *arguments],
        cwd=folder,
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
    tmp_path: Path, pythons: dict[str, str], chosen: str
) -> None:
    done = make(tmp_path, pythons, "--eval=shown: ; @echo $(PYTHON);", "shown")
    assert done.stdout == f"{chosen}\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (OLD, "python3 is no Python 3.11 or newer: name one, as in make PYTHON=/opt/python/bin/"),
        (WITHOUT_VENV, "python3 comes without venv: apt-get install python3-venv\n"),
    ],
    ids=["old", "without venv"],
)
def test_a_machine_without_what_it_takes_gets_the_line_that_helps(
    tmp_path: Path, script: str, words: str
) -> None:
    done = make(tmp_path, {"python3": script}, "demo")
    assert done.returncode == 2
    assert done.stderr.startswith(words)
