"""`keda-gpu-scaler observe` as a person runs it: a folder, the pages, its signals."""

import sys
from pathlib import Path

import pytest

from tests.observing.test_manifests import written
from tests.support.serving import serving


@pytest.mark.slow
def test_it_observes_until_a_signal_and_opens_no_grpc_port(tmp_path: Path) -> None:
    (tmp_path / "bert.yaml").write_text(written())
    command = [sys.executable, "-m", "keda_gpu_scaler", "observe", str(tmp_path)]
    with serving(command, GRPC_ADDRESS="192.0.2.1:6000") as scaler:
        assert scaler.grpc_port == 0
        assert scaler.get("/readyz") == "ready\n"
        assert scaler.end() == 0
