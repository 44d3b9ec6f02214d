"""Which program a test runs, and which tests run without any program."""

import subprocess
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.programs import PROGRAMS, ROOT

SUITE = """\
import pytest

def test_python_only(): pass

@pytest.mark.needs("prometheus")
def test_a_prometheus(): pass

@pytest.mark.needs("prometheus", "helm")
def test_two_programs(): pass

@pytest.mark.slow
def test_real_time(): pass

@pytest.mark.nightly
@pytest.mark.needs("helm")
def test_another_seed(): pass
"""


def script(path: Path, says: str) -> str:
    """Write a program that says something, and return where it is."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A PATH with nothing but a folder of the test's own on it, and no program named."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for variable in (programs.ASSETS, *(each.variable for each in PROGRAMS.values())):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "bin"


def test_the_environment_goes_before_the_path(
    monkeypatch: pytest.MonkeyPatch, alone: Path, tmp_path: Path
) -> None:
    installed = script(alone / "prometheus", "prometheus, version 3.15.0")
    assert PROGRAMS["prometheus"].at_hand() == installed
    named = script(tmp_path / "mine", "prometheus, version 9.0.0")
    monkeypatch.setenv("PROMETHEUS", named)
    assert PROGRAMS["prometheus"].at_hand() == named


def test_a_folder_of_programs_can_be_named(
    monkeypatch: pytest.MonkeyPatch, alone: Path, tmp_path: Path
) -> None:
    assert PROGRAMS["kube-apiserver"].at_hand() is None
    assert not (alone / "kube-apiserver").exists()
    there = script(tmp_path / "assets" / "kube-apiserver", "Kubernetes v1.29.0")
    monkeypatch.setenv(programs.ASSETS, str(tmp_path / "assets"))
    assert PROGRAMS["kube-apiserver"].at_hand() == there


def test_a_version_on_the_path_that_tests_are_not_right_on_is_not_taken(alone: Path) -> None:
    script(alone / "prometheus", "prometheus, version 2.42.0")
    assert PROGRAMS["prometheus"].at_hand() is None
    assert PROGRAMS["prometheus-2"].at_hand() == str(alone / "prometheus")


def test_a_name_that_leads_to_no_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROM_LABEL_PROXY", "/nowhere")
    with pytest.raises(RuntimeError, match="PROM_LABEL_PROXY is '/nowhere', which is no program"):
        programs.path("prom-label-proxy")


def test_every_program_can_be_built_by_its_name() -> None:
    targets = [str(each.built.relative_to(ROOT)) for each in PROGRAMS.values()]
    words = ["make", "--file", "tools/programs.mk", "--dry-run", "--always-make", *targets]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(each.name.rpartition("/")[2] in done.stdout for each in PROGRAMS.values())


@pytest.fixture
def suite(pytester: pytest.Pytester, alone: Path) -> pytest.Pytester:
    """Those tests, where no program is at hand."""
    assert list(alone.iterdir()) == []
    pytester.makepyfile(SUITE)
    pytester.makeini(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\n"
        "markers =\n    needs\n    slow\n    nightly\n"
    )
    return pytester


def ran(suite: pytest.Pytester, *flags: str) -> list[str]:
    """Return what pytest says at the end."""
    return suite.runpytest_inprocess("-p", "tests.conftest", "-q", *flags).outlines


@pytest.mark.slow
def test_what_needs_a_program_or_time_is_left_out_and_counted(suite: pytest.Pytester) -> None:
    """By pytest-xdist too, where the workers collect the tests."""
    for flags in ([], ["-n", "1"]):
        *_, told, end = ran(suite, *flags)
        assert told == (
            "left out, because they need helm, more than a moment, prometheus: 4"
            " (make test-servers and make test-nightly run them)"
        )
        assert end.startswith("1 passed")


def test_a_prometheus_at_hand_is_used_at_once(
    suite: pytest.Pytester, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS", script(alone / "mine", "prometheus, version 3.15.0"))
    *_, told, end = ran(suite)
    assert "helm, more than a moment, prometheus: 3 (make test-servers" in told
    assert end.startswith("2 passed")


def test_servers_runs_the_others_and_no_more(
    suite: pytest.Pytester, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("prometheus", "helm"):
        monkeypatch.setenv(name.upper(), script(alone / name, "fine"))
    *_, end = ran(suite, "--servers")
    assert end.startswith("3 passed, 2 deselected")
    *_, end = ran(suite, "--nightly")
    assert end.startswith("1 passed, 4 deselected")
