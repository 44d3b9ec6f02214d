"""`keda-gpu-scaler observe` as a person runs it: a folder, the pages, its signals."""

import signal
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from keda_gpu_scaler import cli
from tests.cli.test_serve import PATIENCE_SECONDS, serving
from tests.observing.test_manifests import written


@pytest.mark.slow
def test_it_observes_until_a_signal_and_opens_no_grpc_port(tmp_path: Path) -> None:
    (tmp_path / "bert.yaml").write_text(written())
    command = [sys.executable, "-m", "keda_gpu_scaler", "observe", str(tmp_path)]
    with serving(command, GRPC_ADDRESS="192.0.2.1:6000") as (process, ports):
        assert ports["grpc_port"] == 0
        ready = httpx.get(f"http://127.0.0.1:{ports['http_port']}/readyz", trust_env=False)
        assert ready.status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0


def test_without_a_folder_it_does_not_start(tmp_path: Path) -> None:
    for arguments, words in [
        ([], "Missing argument 'FOLDER'"),
        ([str(tmp_path / "none")], "does not exist"),
    ]:
        result = CliRunner().invoke(cli.app, ["observe", *arguments])
        assert result.exit_code == 2
        assert words in result.output
