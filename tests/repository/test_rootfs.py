"""`make rootfs`: how it compares, measures and judges; what it does takes root, and minutes."""

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.repository.test_dockerfile import of
from tests.repository.test_docs import ROOT
from tests.repository.test_wheel import locked as locked_lines

SCRIPT = ROOT / "tools" / "rootfs.py"


@pytest.fixture(scope="module")
def rootfs() -> dict[str, Any]:
    """The names of the script, which is no module of a package."""
    return runpy.run_path(str(SCRIPT))


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders with the same in them, made at different times."""
    made = tmp_path / "one", tmp_path / "other"
    for number, top in enumerate(made):
        (top / "lib").mkdir(parents=True)
        (top / "lib" / "a.py").write_text("a = 1\n")
        (top / "lib" / "b.py").write_text("b = 1\n")
        (top / "link").symlink_to("lib/a.py")
        os.utime(top / "lib" / "a.py", (1000 * number, 1000 * number))
    return made


def test_the_debian_is_of_the_release_that_the_base_image_is_made_of(
    rootfs: dict[str, Any],
) -> None:
    (base,) = (rest for rest in of("ARG") if rest.startswith("PYTHON_IMAGE="))
    assert f"-slim-{rootfs['RELEASE']}@" in base


def test_two_builds_of_the_same_files_do_not_differ_whenever_they_were_made(
    rootfs: dict[str, Any], trees: tuple[Path, Path]
) -> None:
    one, other = map(rootfs["inventory"], trees)
    assert sorted(one) == ["lib", "lib/a.py", "lib/b.py", "link"]
    assert rootfs["differing"](one, other) == []


def _content(top: Path) -> None:
    (top / "lib" / "a.py").write_text("a = 2\n")


def _mode(top: Path) -> None:
    (top / "lib" / "a.py").chmod(0o755)


def _absence(top: Path) -> None:
    (top / "lib" / "a.py").unlink()


def _kind(top: Path) -> None:
    (top / "lib" / "a.py").unlink()
    (top / "lib" / "a.py").symlink_to("b.py")


@pytest.mark.parametrize("change", [_content, _mode, _absence, _kind])
def test_a_file_that_differs_is_named(
    rootfs: dict[str, Any], trees: tuple[Path, Path], change: Callable[[Path], None]
) -> None:
    change(trees[1])
    one, other = map(rootfs["inventory"], trees)
    assert rootfs["differing"](one, other) == rootfs["differing"](other, one) == ["lib/a.py"]


def test_a_link_that_leads_elsewhere_differs(
    rootfs: dict[str, Any], trees: tuple[Path, Path]
) -> None:
    (trees[1] / "link").unlink()
    (trees[1] / "link").symlink_to("lib/b.py")
    assert rootfs["differing"](*map(rootfs["inventory"], trees)) == ["link"]


def test_a_file_with_two_names_takes_its_room_once(
    rootfs: dict[str, Any], trees: tuple[Path, Path]
) -> None:
    before = rootfs["size"](trees[0])
    (trees[0] / "again").hardlink_to(trees[0] / "lib" / "a.py")
    assert rootfs["size"](trees[0]) == before == len("a = 1\n") + len("b = 1\n")


LOCK = """\
# Made by `make lock`.
annotated-types==0.8.0 \\
    --hash=sha256:00
Colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:01
only_old==1.0 ; python_full_version < '3.12' \\
    --hash=sha256:02
"""


def test_a_lock_says_what_is_installed_on_linux_and_a_python(rootfs: dict[str, Any]) -> None:
    assert rootfs["locked"](LOCK, "3.13") == {"annotated-types": "0.8.0"}
    assert rootfs["locked"](LOCK, "3.11") == {"annotated-types": "0.8.0", "only-old": "1.0"}


def test_all_of_the_runtime_lock_is_looked_for_in_the_sbom(rootfs: dict[str, Any]) -> None:
    lock = (ROOT / "requirements-runtime.lock").read_text()
    elsewhere = [
        line for line in locked_lines("requirements-runtime.lock") if "sys_platform" in line
    ]
    found = rootfs["locked"](lock, "3.13")
    assert {"grpcio", "httpx", "botocore"} <= found.keys()
    assert len(found) >= len(locked_lines("requirements-runtime.lock")) - len(elsewhere)


def test_a_package_that_an_sbom_lacks_is_named_with_its_version(rootfs: dict[str, Any]) -> None:
    listed = {"packages": [{"name": "Annotated_Types", "versionInfo": "0.8.0"}, {"name": "x"}]}
    assert rootfs["missing"](listed, {"annotated-types": "0.8.0"}) == []
    assert rootfs["missing"](listed, {"annotated-types": "0.9", "x": "1"}) == [
        "annotated-types 0.9",
        "x 1",
    ]


def test_a_machine_without_the_programs_is_told_which(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--syft", "syft"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("make rootfs needs mmdebstrap and buildah, and root")
    assert "install mmdebstrap, buildah" in done.stderr
