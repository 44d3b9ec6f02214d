"""`keda-gpu-scaler probe`: what it asks, and what it prints, over real connections."""

import asyncio
import contextlib
import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from typer.testing import CliRunner

from keda_gpu_scaler import cli
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from tests.service.harness import QUIET, Script
from tests.service.harness import serving as our_own
from tests.support import scalers
from tests.support.pki import Pki
from tests.support.probing import ANSWERED, HEALTHY, PATIENCE_SECONDS, failed, probing, run_alone
from tests.support.processes import free_port
from tests.support.scalers import Scaler

COMMANDS_PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


async def test_the_scaler_itself_answers() -> None:
    async with our_own(Script(QUIET)) as served:
        result = await asyncio.to_thread(probing, served.port)
    assert (result.exit_code, result.output) == (0, ANSWERED)
    assert f"$ keda-gpu-scaler probe localhost:6000\n{ANSWERED}```" in COMMANDS_PAGE.read_text()


async def test_what_the_scaler_says_of_a_wrong_trigger_is_passed_on() -> None:
    flags = ("--metadata", "workload=bert", "--metadata", "treshold=70")
    async with our_own(Script(QUIET)) as served:
        result = await asyncio.to_thread(probing, served.port, *flags)
    assert result.stdout.startswith(HEALTHY)
    assert "GetMetricSpec: INVALID_ARGUMENT: " in failed(result)
    assert "treshold" in failed(result)


def test_the_trigger_that_is_asked_about_is_the_one_that_is_named() -> None:
    scaler = Scaler()
    flags = ("--scaled-object", "ml/bert", "--metadata", "workload=bert", "--metadata", "q=a=b")
    with scalers.serving(scaler) as port:
        assert probing(port, *flags).exit_code == 0
    metadata = {"workload": "bert", "q": "a=b"}
    assert scaler.asked == [
        pb.ScaledObjectRef(namespace="ml", name="bert", scalerMetadata=metadata)
    ]


def test_every_metric_has_a_line_and_an_old_target_is_read_too() -> None:
    specs = (scalers.ANSWER, pb.MetricSpec(metricName="old", targetSize=3))
    with scalers.serving(Scaler(specs=specs)) as port:
        assert probing(port).output == ANSWERED + "GetMetricSpec: old with target 3\n"


def test_a_scaler_that_drains_is_not_healthy() -> None:
    with scalers.serving(Scaler(serving=False)) as port:
        result = probing(port)
    assert failed(result).endswith("health: NOT_SERVING: it answers, and takes no calls now")
    assert result.stdout == ""


def test_a_refusal_without_words_is_still_one() -> None:
    with scalers.serving(Scaler(refusal=(grpc.StatusCode.UNAVAILABLE, ""))) as port:
        assert failed(probing(port)).endswith("GetMetricSpec: UNAVAILABLE: no reason given")


def test_both_calls_have_one_time() -> None:
    scaler = Scaler()
    scaler.gate.clear()
    with scalers.serving(scaler) as port:
        said = failed(probing(port, "--timeout", "0.2"))
    assert said.endswith("no answer in time: --timeout says how long to wait")


def test_a_name_that_nobody_has_is_named() -> None:
    said = failed(probing("no-such-name.invalid:6000"))
    assert said.startswith("keda-gpu-scaler: no-such-name.invalid:6000: health: the name cannot be")


def test_a_port_that_nobody_listens_on_is_named() -> None:
    assert "health: nothing listens there (UNAVAILABLE: " in failed(probing(free_port()))


class Quiet(http.server.BaseHTTPRequestHandler):
    """Refuses every request and writes nothing down."""

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def web_port() -> Iterator[int]:
    """The port of a server that speaks HTTP/1 only."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_http_port_is_named(web_port: int) -> None:
    assert "health: the server speaks no gRPC: is that its HTTP port?" in failed(probing(web_port))


@pytest.mark.parametrize(
    ("target", "flags", "words"),
    [
        ("scaler", (), "'scaler' is not HOST:PORT"),
        ("http://scaler:6000", (), "'http://scaler:6000' is not HOST:PORT"),
        ("scaler:65536", (), "the port of 'scaler:65536' is not below 65536"),
        ("scaler:99999", (), "the port of 'scaler:99999' is not below 65536"),
        ("scaler:6000", ("--scaled-object", "bert"), "'bert' is not NAMESPACE/NAME"),
        ("scaler:6000", ("--metadata", "workload"), "'workload' is not KEY=VALUE"),
        ("scaler:6000", ("--timeout", "0"), "0.1"),
        ("scaler:6000", ("--server-name", "a"), "only with --ca-file"),
        ("scaler:6000", ("--ca-file", "{empty}"), "holds no certificate in PEM"),
        ("scaler:6000", ("--ca-file", "{absent}"), "does not exist"),
        ("scaler:6000", ("--cert-file", "{ca}"), "go together"),
        ("scaler:6000", ("--cert-file", "{ca}", "--key-file", "{ca}"), "only with --ca-file"),
        (
            "scaler:6000",
            ("--ca-file", "{ca}", "--cert-file", "{ca}", "--key-file", "{empty}"),
            "are no certificate in PEM with its key",
        ),
    ],
)
def test_wrong_arguments_are_refused(
    target: str, flags: tuple[str, ...], words: str, pki: Pki
) -> None:
    empty = pki.file("empty")
    given = [flag.format(ca=pki.ca_file, empty=empty, absent=f"{empty}x") for flag in flags]
    result = CliRunner(env={"COLUMNS": "1000"}).invoke(cli.app, ["probe", target, *given])
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def _relay(listener: socket.socket, port: int, asked: list[bytes]) -> None:
    """Proxy one connection: every name it asks for leads to the server on this port."""
    caller, _ = listener.accept()
    with caller, socket.create_connection(("127.0.0.1", port)) as server:
        asked.append(caller.recv(65_536))
        caller.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        back = threading.Thread(target=_copy, args=(server, caller))
        back.start()
        _copy(caller, server)
        back.join()


def _copy(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):  # one end has closed already
        while received := one.recv(65_536):
            other.sendall(received)
        other.shutdown(socket.SHUT_WR)


def test_a_proxy_of_the_environment_is_used() -> None:
    asked: list[bytes] = []
    with scalers.serving(Scaler()) as port, socket.create_server(("127.0.0.1", 0)) as listener:
        relay = threading.Thread(target=_relay, args=(listener, port, asked))
        relay.start()
        proxy = f"http://127.0.0.1:{listener.getsockname()[1]}"
        done = run_alone("keda-gpu-scaler.keda.svc:6000", https_proxy=proxy)
        relay.join(PATIENCE_SECONDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, ANSWERED, "")
    assert asked[0].startswith(b"CONNECT keda-gpu-scaler.keda.svc:6000 HTTP/1.1\r\n")
