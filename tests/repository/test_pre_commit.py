"""The hook that is offered to others, run by pre-commit itself in a repository of theirs.

Installing is left out: pre-commit would ask an index of packages. The wheel's tests install.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.check.cases import FAILS, STAYS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CLEAN, WRONG, DOUBTFUL = STAYS, FAILS["unknown-key"], FAILS["cached-metrics"]


class Repository:
    """Somebody's repository, with our hook in its configuration."""

    def __init__(self, folder: Path, arguments: str) -> None:
        self.folder = folder / "theirs"
        tools = Path(sys.executable).parent
        self._environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PRE_COMMIT_HOME": str(folder / "home"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{
                f"GIT_{who}_{what}": "a@b"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }
        ours = folder / "ours"
        hooks = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
        assert "language: python" in hooks
        self._create(
            ours, {".pre-commit-hooks.yaml": hooks.replace("language: python", "language: system")}
        )
        revision = self._git(ours, "rev-parse", "HEAD").strip()
        configuration = (
            f"repos:\n- repo: {ours}\n  rev: {revision}\n"
            f"  hooks:\n  - id: keda-gpu-scaler-check\n    args: [{arguments}]\n"
        )
        self._create(self.folder, {".pre-commit-config.yaml": configuration})

    def commit(self, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Add files as for a commit, and run the hooks on them."""
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        self._git(self.folder, "add", "--all")
        command = [sys.executable, "-m", "pre_commit", "run", "--color", "never"]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def _create(self, folder: Path, files: dict[str, str]) -> None:
        folder.mkdir()
        self._git(folder, "init", "--quiet")
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
        self._git(folder, "add", "--all")
        self._git(folder, "commit", "--quiet", "--message", "first")

    def _git(self, folder: Path, *arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=True
        )
        return done.stdout


def test_a_commit_with_a_mistake_is_stopped_and_one_without_is_not(tmp_path: Path) -> None:
    repository = Repository(tmp_path, "")
    stopped = repository.commit({"deploy/bert.yaml": WRONG, "README.md": "a: ["})
    assert stopped.returncode == 1
    assert "exit code: 1" in stopped.stdout
    assert "deploy/bert.yaml:17:9: error unknown-key:" in stopped.stdout
    goes = repository.commit({"deploy/bert.yaml": CLEAN})
    assert (goes.returncode, "Passed" in goes.stdout) == (0, True)


def test_templates_of_charts_and_other_files_are_passed_over(tmp_path: Path) -> None:
    files = {"chart/templates/x.yaml": "{{ x }}: [", "notes.txt": "a: ["}
    done = Repository(tmp_path, "").commit(files)
    assert (done.returncode, "(no files to check)" in done.stdout) == (0, True)


@pytest.mark.parametrize(("arguments", "status"), [("", 0), ("--fail-on, warning", 1)])
def test_arguments_decide_what_stops_a_commit(tmp_path: Path, arguments: str, status: int) -> None:
    done = Repository(tmp_path, arguments).commit({"scaled.yaml": DOUBTFUL})
    assert done.returncode == status
    assert ("warning cached-metrics" in done.stdout) == bool(status)
