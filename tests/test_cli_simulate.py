"""`keda-gpu-scaler simulate` as people run it: a process, a port, a signal."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

COMMAND = [sys.executable, "-m", "keda_gpu_scaler", "simulate"]
PATIENCE_SECONDS = 30


@contextmanager
def simulating(*flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command on a free port, and give it with the address it says it listens on."""
    command = [*COMMAND, "--address", "127.0.0.1:0", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("listening on http://127.0.0.1:")
            yield process, said.removeprefix("listening on ").strip()
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_0(number: signal.Signals) -> None:
    with simulating() as (process, url):
        assert httpx.get(f"{url}/metrics").status_code == 200
        process.send_signal(number)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert process.stdout is not None
        assert process.stdout.read() == ""


def test_the_flags_shape_the_cluster() -> None:
    flags = ["--workload", "team-a/bert=3:250", "--workload", "team-b/llm=1:80:2"]
    with simulating(*flags, "--nodes", "2", "--idle-gpus", "4", "--startup", "3600") as (_, url):
        found = httpx.get(f"{url}/workloads").json()["workloads"]
        page = httpx.get(f"{url}/nodes/1/metrics").text
    assert [(each["name"], each["replicas"], each["gpus_per_pod"]) for each in found] == [
        ("bert", 3, 1),
        ("llm", 1, 2),
    ]
    assert [pod["ready"] for each in found for pod in each["pods"]] == [False] * 4
    assert page.count("DCGM_FI_PROF_GR_ENGINE_ACTIVE{") == 4


def test_mig_and_plain_utilization_can_be_asked_for() -> None:
    flags = ["--workload", "team-a/bert=1:50", "--mig", "1g.10gb", "--no-engine-active"]
    with simulating(*flags) as (_, url):
        page = httpx.get(f"{url}/metrics").text
    assert page.count("DCGM_FI_DEV_GPU_UTIL{") == 1
    assert page.count('DCGM_FI_PROF_GR_ENGINE_ACTIVE{GPU_I_ID="') == 7
    with simulating(*flags, "--mig-shows-zero") as (_, url):
        assert httpx.get(f"{url}/metrics").text.count("DCGM_FI_DEV_GPU_UTIL{") == 1 + 7


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--workload", "bert"], "is not namespace/name=replicas:load[:gpus]"),
        (["--mig", "8g"], "mig: String should match pattern"),
        (["--address", "9400"], "address '9400' is not HOST:PORT"),
        (["--address", "127.0.0.1:99999"], "address '127.0.0.1:99999' is not HOST:PORT"),
        (["--nodes", "0"], "Invalid value for '--nodes'"),
    ],
)
def test_a_wrong_flag_ends_it_with_status_2_and_says_why(flags: list[str], message: str) -> None:
    ended = subprocess.run(
        [*COMMAND, *flags],
        capture_output=True,
        check=False,
        env={**os.environ, "COLUMNS": "300"},
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert ended.returncode == 2
    assert message in ended.stderr


def test_a_taken_port_ends_it_with_status_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = subprocess.run(
            [*COMMAND, "--address", address],
            capture_output=True,
            check=False,
            env={**os.environ, "COLUMNS": "300"},
            text=True,
            timeout=PATIENCE_SECONDS,
        )
    assert ended.returncode == 2
    assert "cannot listen on" in ended.stderr


def test_an_ipv6_address_is_shown_as_a_url() -> None:
    command = [*COMMAND, "--address", "[::1]:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on http://[::1]:")
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0
