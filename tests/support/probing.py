"""`keda-gpu-scaler probe` as tests run it, in this process or in one of its own."""

import os
import subprocess
import sys

from typer.testing import CliRunner, Result

from keda_gpu_scaler import cli
from tests.support.pki import Pki

HEALTHY = "health: SERVING\n"
ANSWERED = HEALTHY + "GetMetricSpec: gpu-utilization with target 70\n"
PATIENCE_SECONDS = 30


def probing(port: int | str, *flags: str) -> Result:
    target = port if isinstance(port, str) else f"127.0.0.1:{port}"
    return CliRunner().invoke(cli.app, ["probe", target, "--timeout", "20", *flags])


def failed(result: Result) -> str:
    """Return what is said of a probe that failed: one line, and nothing but text."""
    (line,) = failures(result)
    return line


def failures(result: Result) -> list[str]:
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 1
    line, *more = result.stderr.splitlines()
    assert line.startswith("keda-gpu-scaler: ")
    return [line, *more]


def trusting(pki: Pki) -> tuple[str, ...]:
    return ("--ca-file", str(pki.ca_file))


def run_alone(target: str, *flags: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "keda_gpu_scaler", "probe", target, *flags]
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return subprocess.run(
        command,
        env=kept | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
