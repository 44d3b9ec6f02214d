"""`keda-gpu-scaler explain`: what it prints of a running scaler, over real connections."""

import asyncio
import http.server
import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import yaml
from typer.testing import CliRunner, Result

from keda_gpu_scaler import cli
from keda_gpu_scaler.decision.decision import Context, decide
from keda_gpu_scaler.record.build import Answered, record
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.history import History
from tests.support.processes import free_port
from tests.support.snapshots import NOW, bert, said, snapshot, unseen
from tests.support.triggers import BERT, demanding, spec
from tests.web.test_triggers import DECIDED, TOKEN, serving


def explaining(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["explain", *arguments])


async def explained(*arguments: str, token: str | None = None) -> Result:
    async with serving(token=token) as url:
        return await asyncio.to_thread(explaining, "ml/bert", "--server", url, *arguments)


async def test_a_record_is_shown_in_words_with_its_pods_signals_and_arithmetic() -> None:
    result = await explained()
    assert result.exit_code == 0
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[0] == "ml/bert: deployment/bert is measured, active"
    assert "Pods (1)" in lines
    assert "bert-7b6667bd9-bbbbb  measured  90 %  90    its load is in the value" in lines
    assert any(line.startswith("gpus ") and " active " in line for line in lines)
    assert any(line.startswith("gpu-utilization  AverageValue") for line in lines)
    assert any(line.startswith("window ") and line.endswith("default") for line in lines)
    assert "PromQL: value" in lines
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
async def test_programs_get_the_record_itself(output: str, read: object) -> None:
    result = await explained("--output", output)
    assert callable(read)
    found = read(result.stdout)
    assert [one["version"] for one in found] == [1, 1]
    assert found[0]["pods"][0]["gpus"][0]["value"] == 90


async def test_the_token_comes_out_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert (await explained("--token-file", str(file), token=TOKEN)).exit_code == 0
    refused = await explained(token=TOKEN)
    assert refused.exit_code == 1
    assert "--token-file" in refused.stderr


async def test_what_is_not_known_there_is_said() -> None:
    async with serving() as url:
        result = await asyncio.to_thread(explaining, "ml/other", "--server", url)
    assert result.exit_code == 1
    assert "KEDA has not asked this replica about such a ScaledObject" in result.stderr


def test_where_nothing_listens_there_is_one_line() -> None:
    result = explaining("ml/bert", "--server", f"http://127.0.0.1:{free_port()}")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("bert",),
        ("ml/",),
        ("a/b/c",),
        ("ml/bert", "--server", "localhost:8080"),
        ("ml/bert", "--prometheus-url", "http://prometheus:9090"),
        ("ml/bert", "--at", "2h"),
        ("-f", "-", "--server", "http://localhost:8080"),
    ],
)
def test_what_cannot_be_asked_is_a_wrong_argument(arguments: Sequence[str]) -> None:
    result = explaining(*arguments)
    assert result.exit_code == 2


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """Serve one answer to every request."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>", "is that the HTTP port of a scaler"),
        (200, b'{"triggers": [{"version": 1}]}', "is that the HTTP port of a scaler"),
        (500, b"\x1b[31mno", "HTTP 500: ?[31mno"),
        (503, b"", "its own token"),
    ],
)
def test_another_server_is_said_to_be_one(status: int, body: bytes, said: str) -> None:
    with answering(status, body) as url:
        result = explaining("ml/bert", "--server", url)
    assert result.exit_code == 1
    assert said in result.stderr


def test_all_that_a_record_can_hold_is_shown() -> None:
    given = demanding("sum(x)", demandThreshold="5", threshold="85")
    view = snapshot(bert("b", 90, status=said()), unseen("c", said(never=True)))
    decided = decide(given, view, Context(NOW, 3600))
    shown = record(
        Answered(
            scaled_object=BERT,
            spec=given,
            decision=decided,
            now=NOW,
            view=view,
            trouble="no answer",
            lag_seconds=30,
            demand=Demand(None, "no answer"),
        )
    )
    shown = replace(shown, at=1e300)  # no scaler's, and no calendar has it
    with answering(200, orjson.dumps({"triggers": [shown]})) as url:
        text = explaining("ml/bert", "--server", url).stdout
    assert "warning: threshold 85 leaves little room" in text
    assert "all samples arrive 30s late" in text
    assert "trouble" in text
    assert "stalled" in text
    assert "1e+300 s since 1970" in text


def noted() -> History:
    """Return the history of a workload that goes from one replica's load to three and to none."""
    kept = History(lambda: NOW)
    context = Context(NOW, 3600)
    for pods in ([bert("b", 90)], [bert(letter, 90) for letter in "bcd"], []):
        kept(facts.Evaluated(BERT, spec(), decide(spec(), snapshot(*pods), context), 1.0))
    return kept


async def remembered(*arguments: str, changes: History) -> Result:
    async with serving(changes=changes) as url:
        command = ("ml/bert", "--server", url, "--history", *arguments)
        return await asyncio.to_thread(explaining, *command)


async def test_the_history_is_a_line_for_each_change() -> None:
    kept = noted()
    result = await remembered(changes=kept)
    assert result.exit_code == 0, result.output
    first, *lines = result.stdout.splitlines()
    assert re.fullmatch(
        r"ml/bert: 3 changes since \S+Z, when this replica of the scaler started", first
    )
    assert [re.sub(r"^\S+Z ", "", line) for line in lines] == [
        f"measured, active, value 90: {kept.of(BERT)[0].reason}",
        f"measured, active, value 270: {kept.of(BERT)[1].reason}",
        f"ended, inactive, no value: {kept.of(BERT)[2].reason}",
    ]


async def test_the_history_names_metrics_where_there_are_several() -> None:
    kept = History(lambda: NOW)
    decided = decide(spec(), snapshot(bert("b", 90)), Context(NOW, 3600))
    kept(facts.Evaluated(BERT, spec(), decided, 1.0))
    assert "1 change since" in (await remembered(changes=kept)).stdout
    kept(facts.Evaluated(BERT, spec(metricName="other"), decided, 1.0))
    _, first, second = (await remembered(changes=kept)).stdout.splitlines()
    assert " gpu-utilization measured, active" in first
    assert " other measured, active" in second


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
async def test_programs_get_the_history_itself(output: str, read: object) -> None:
    result = await remembered("--output", output, changes=noted())
    assert callable(read)
    found = read(result.stdout)
    assert found["since"] == NOW
    assert [one["value"] for one in found["changes"]] == [90, 270, None]


def test_a_history_is_of_a_running_scaler() -> None:
    assert explaining("--file", "-", "--history").exit_code == 2


async def test_a_reason_is_one_line_in_a_pipe() -> None:
    result = await explained()
    assert result.stdout.splitlines()[1] == DECIDED.reason
    assert len(DECIDED.reason) > 100
