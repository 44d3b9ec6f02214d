"""`keda-gpu-scaler simulate` as a user runs it: a process, a port, a signal."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from typer.testing import CliRunner

from keda_gpu_scaler import cli

COMMAND = [sys.executable, "-m", "keda_gpu_scaler", "simulate"]
PATIENCE_SECONDS = 30


@contextmanager
def simulating(*flags: str, host: str = "127.0.0.1") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command on a free port, and give it with the address it says it listens on."""
    command = [*COMMAND, "--address", f"{host}:0", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith(f"listening on http://{host}:")
            yield process, said.removeprefix("listening on ").strip()
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_flags_shape_the_cluster_and_a_signal_ends_it(host: str) -> None:
    flags = ["--workload", "team-a/bert=3:250", "--workload", "team-b/llm=1:80:2"]
    with simulating(*flags, host=host) as (process, url):
        found = httpx.get(f"{url}/workloads").json()["workloads"]
        page = httpx.get(f"{url}/metrics").text
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert process.stdout is not None
        assert process.stdout.read() == ""
    assert [(each["name"], each["replicas"], each["gpus_per_pod"]) for each in found] == [
        ("bert", 3, 1),
        ("llm", 1, 2),
    ]
    assert [pod["gpu_percent"] for each in found for pod in each["pods"]] == [83.333] * 3 + [40]
    assert page.count("DCGM_FI_PROF_GR_ENGINE_ACTIVE{") == 5


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--workload", "bert"], "is not namespace/name=replicas:load[:gpus]"),
        (["--address", "127.0.0.1:99999"], "'--address': '127.0.0.1:99999' is not an address"),
        (
            ["--kubernetes", "--workload", "team-a/bert=1:1"],
            "'--workload': not together with --kubernetes",
        ),
        (["--namespace", "team-a"], "'--namespace': it needs --kubernetes"),
        (["--node-selector", "a=b"], "'--node-selector': it needs --kubernetes"),
        (["--kubernetes", "--node-selector", "a"], "'--node-selector': 'a' is not KEY=VALUE"),
    ],
)
def test_a_wrong_flag_is_refused_with_status_2_and_says_why(flags: list[str], message: str) -> None:
    runner = CliRunner(env={"COLUMNS": "300"})
    # On a port that is taken, so that a flag that is not refused ends too, with another message.
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = runner.invoke(cli.app, ["simulate", "--address", address, *flags])
    assert ended.exit_code == 2
    assert message in ended.stderr


def test_without_a_cluster_to_follow_it_ends_with_1_and_no_library_is_named() -> None:
    ended = CliRunner(env={"KUBECONFIG": "/none"}).invoke(cli.app, ["simulate", "--kubernetes"])
    assert ended.exit_code == 1
    assert ended.stderr.startswith("keda-gpu-scaler: no cluster to follow: Configuration file ")
    assert "Error" not in ended.stderr


def test_a_taken_port_ends_it_with_status_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = CliRunner().invoke(cli.app, ["simulate", "--address", f"127.0.0.1:{port}"])
    assert ended.exit_code == 1
    expected = f"keda-gpu-scaler: cannot listen on port {port} of 127.0.0.1: Address already in use"
    assert ended.stderr.startswith(expected)
