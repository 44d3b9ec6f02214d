"""The command line as a whole."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from keda_gpu_scaler import __version__, cli


def test_the_version_is_shown() -> None:
    result = CliRunner().invoke(cli.app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"keda-gpu-scaler {__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sevre"], "No such command 'sevre'. Did you mean 'serve'"),
        (["serve", "--print-confg"], "(Possible options: --print-config)"),
    ],
)
def test_what_is_unknown_is_refused_with_what_was_meant(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    result = CliRunner().invoke(cli.app, [name, "-h"])
    assert result.exit_code == 0
    assert f"{name} [OPTIONS]" in result.output


LOADED = """
import sys
sys.argv = ["keda-gpu-scaler", *sys.argv[1:]]
from keda_gpu_scaler import cli
try:
    cli.main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
HEAVY = {"asyncio", "grpc", "httpx", "lightkube", "rich", "structlog", "yaml"}
COMPLETING = {
    "_KEDA_GPU_SCALER_COMPLETE": "complete_bash",
    "COMP_WORDS": "keda-gpu-scaler ",
    "COMP_CWORD": "1",
}


def alone(script: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own."""
    detected = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=os.environ | detected | environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argument", "environ", "status"),
    [("--help", {}, 0), ("sevre", {}, 2), ("completion", COMPLETING, 0)],
)
def test_the_list_loads_no_command(argument: str, environ: dict[str, str], status: int) -> None:
    done = alone(LOADED, argument, **environ)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert done.returncode == status
    assert "keda_gpu_scaler.cli" in loaded
    assert loaded & HEAVY == set()
    assert [name for name in cli.COMMANDS if f"keda_gpu_scaler.cli.{name}" in loaded] == []


def test_a_signal_before_anything_has_started_ends_with_0() -> None:
    done = alone(
        "import os, signal, typer\n"
        "from keda_gpu_scaler import cli\n"
        "cli.app = lambda: os.kill(os.getpid(), signal.SIGTERM) or print('went on')\n"
        "cli.main()\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_command_that_fails_does_not_show_the_values_of_variables() -> None:
    done = alone(
        "from keda_gpu_scaler.cli import app, probe\n"
        "def fail():\n"
        "    secret = 'hun' + 'ter2'\n"
        "    raise RuntimeError('broken')\n"
        "probe.probe = fail\n"
        "app(['probe'])\n"
    )
    assert done.returncode == 1
    assert done.stderr.endswith("RuntimeError: broken\n")
    assert "hunter2" not in done.stderr
