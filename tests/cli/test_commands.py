"""The command line as a whole."""

import importlib
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from keda_gpu_scaler import __version__, cli
from keda_gpu_scaler.cli import lean

MODULE = [sys.executable, "-m", "keda_gpu_scaler"]


def test_the_version_is_shown() -> None:
    result = CliRunner().invoke(cli.app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"keda-gpu-scaler {__version__}\n")


def test_every_command_is_shown_with_what_it_does() -> None:
    output = CliRunner().invoke(cli.app, ["--help"]).output
    for name in cli.COMMANDS:
        assert f"\n  {name} " in output


def test_an_unknown_command_is_refused() -> None:
    result = CliRunner().invoke(cli.app, ["sevre"])
    assert result.exit_code == 2
    assert "No such command 'sevre'" in result.output


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    result = CliRunner().invoke(cli.app, [name, "--help"])
    assert result.exit_code == 0
    assert f"{name} [OPTIONS]" in result.output


def test_the_module_is_the_command() -> None:
    done = subprocess.run([*MODULE, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"keda-gpu-scaler {__version__}\n"


def test_a_signal_before_anything_has_started_ends_with_0() -> None:
    script = (
        "import os, signal, typer\n"
        "from keda_gpu_scaler import cli\n"
        "cli.app = lambda: os.kill(os.getpid(), signal.SIGTERM) or print('went on')\n"
        "cli.main()\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_command_that_fails_does_not_show_the_values_of_variables() -> None:
    script = (
        "from keda_gpu_scaler.cli import app, probe\n"
        "def fail():\n"
        "    secret = 'hun' + 'ter2'\n"
        "    raise RuntimeError('broken')\n"
        "probe.probe = fail\n"
        "app(['probe'])\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("RuntimeError: broken\n")
    assert "hunter2" not in done.stderr


def test_a_package_can_be_left_out_of_imports_and_is_there_again_afterwards() -> None:
    with lean.without("json", "colorsys"):
        for name in ("json", "colorsys"):
            with pytest.raises(ModuleNotFoundError):
                importlib.import_module(name)
    assert sys.modules["json"] is json
    assert importlib.import_module("colorsys") is sys.modules["colorsys"]
