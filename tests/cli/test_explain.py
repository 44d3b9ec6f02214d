"""`keda-gpu-scaler explain`: what it prints of a running scaler, over real connections."""

import asyncio
import functools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from keda_gpu_scaler import cli
from keda_gpu_scaler.spec.spec import Demand
from testbed.processes import free_port
from testbed.triggers import demanding, spec
from tests.service.harness import QUIET, Script
from tests.service.harness import serving as our_own
from tests.support.answers import answering
from tests.support.records import record
from tests.support.snapshots import bert, said, snapshot, unseen
from tests.web.test_triggers import DECIDED, TOKEN, serving
from tests.workbench.explain.test_fetching import Kubernetes


def explaining(
    *arguments: str, kubeconfig: Path | None = None, environ: dict[str, str] | None = None
) -> Result:
    """Run the command; without a kubeconfig it asks no cluster, whatever there is."""
    behind = ["--no-cluster"] if kubeconfig is None else ["--kubeconfig", str(kubeconfig)]
    return CliRunner().invoke(cli.app, ["explain", *arguments, *behind], env=environ)


async def explained(
    *arguments: str, token: str | None = None, kubeconfig: Path | None = None
) -> Result:
    async with serving(token=token) as client:
        asked = functools.partial(explaining, kubeconfig=kubeconfig)
        return await asyncio.to_thread(
            asked, "ml/bert", "--server", str(client.base_url), *arguments
        )


def answered(status: int, body: bytes, **environ: str) -> Result:
    """Run the command against a server that answers every request so."""
    with answering(lambda _path, _token: (status, body)) as port:
        return explaining("ml/bert", "--server", f"http://127.0.0.1:{port}", environ=environ)


async def test_of_the_grpc_port_it_says_which_port_it_needs() -> None:
    async with our_own(Script(QUIET)) as served:
        server = f"http://127.0.0.1:{served.port}"
        result = await asyncio.to_thread(explaining, "ml/bert", "--server", server)
    assert result.exit_code == 1
    assert "this is no HTTP port; the scaler's is 8080 by default" in result.stderr


async def test_a_record_is_shown_in_words_with_its_pods_signals_and_arithmetic() -> None:
    result = await explained()
    assert result.exit_code == 0
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[0] == "ml/bert: deployment/bert is measured, active"
    assert lines[1] == DECIDED.reason  # one line in a pipe
    assert "Pods (1)" in lines
    assert "bert-7b6667bd9-bbbbb  measured  90 %  90    its load is in the value" in lines
    assert any(line.startswith("gpus ") and " active " in line for line in lines)
    assert any(line.startswith("gpu-utilization  AverageValue") for line in lines)
    assert any(line.startswith("window ") and line.endswith("default") for line in lines)
    assert "PromQL: value" in lines
    assert "\x1b" not in result.stdout


async def test_what_holds_the_replicas_is_shown_below_the_records(tmp_path: Path) -> None:
    with Kubernetes.of("full", "bert").serving(tmp_path) as path:
        result = await explained(kubeconfig=path)
        found = json.loads((await explained("--output", "json", kubeconfig=path)).stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[0] == "ml/bert: deployment/bert is measured, active"
    title = lines.index("From the value to 2 replicas, in staging")
    reason = "maxReplicaCount 2 is reached, and the metrics need 3 replicas"
    assert lines[title + 1 :] == [f"max: {reason} (ScalingLimited=True/TooManyReplicas)"]
    assert "\x1b" not in result.stdout
    assert [one["version"] for one in found["triggers"]] == [1, 1]
    assert found["gates"]["asked"] == 2
    assert [gate["name"] for gate in found["gates"]["gates"]] == ["max"]


async def test_without_access_to_kubernetes_one_line_says_so(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("clusters: []\ncontexts: []\n")
    result = await explained(kubeconfig=path)
    assert result.exit_code == 0
    assert result.stdout.startswith("ml/bert: deployment/bert is measured, active")
    assert result.stderr.count("\n") == 1
    assert "--no-cluster" in result.stderr


def test_where_the_scaler_cannot_be_asked_the_gates_alone_are_shown(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    with Kubernetes.of("wrong", "bert").serving(tmp_path) as path:
        server = f"http://ops:p@ss@{address}"
        result = explaining("ml/bert", "--server", server, kubeconfig=path)
    assert result.exit_code == 1
    assert result.stdout.startswith("From the value to 1 replica, in staging\nready: KEDA")
    assert f"keda-gpu-scaler: http://{address}: " in result.stderr
    assert result.stderr.count("\n") == 1


def test_where_the_usual_server_is_not_reachable_the_command_that_helps_is_shown() -> None:
    result = explaining("ml/bert", environ={"HTTP_PROXY": f"http://127.0.0.1:{free_port()}"})
    assert result.exit_code == 1
    command = "kubectl port-forward -n keda service/keda-gpu-scaler-http 8080"
    assert result.stderr.startswith("keda-gpu-scaler: http://localhost:8080: ")
    assert result.stderr.endswith(f"\n  {command}\n")


def test_a_wrong_ca_is_named_and_not_in_the_words_of_openssl(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")
    ca_file = str(tmp_path / "ca.crt")
    result = explaining("ml/bert", "--server", "https://127.0.0.1:1", "--ca-file", ca_file)
    assert result.exit_code == 1
    assert result.stderr.endswith(f": {ca_file} holds no certificate in PEM\n")


def test_a_proxy_that_no_request_can_go_through_is_named_by_its_variable() -> None:
    result = explaining("ml/bert", environ={"HTTPS_PROXY": "socks5://proxy:1080"})
    assert result.exit_code == 1
    assert "HTTPS_PROXY: socks5://…; expected" in result.stderr


async def test_what_would_give_another_number_is_said() -> None:
    assert (await explained("--why-not", "2")).stdout.splitlines()[:2] == [
        "ml/bert at 1 replica: does gpu-utilization want 2? yes",
        "- the trigger wants 2",
    ]
    assert (await explained("--why-not", "3")).stdout.splitlines()[:4] == [
        "ml/bert at 1 replica: does gpu-utilization want 3? no",
        "- no value of gpu-utilization gives 3: each replica would need a load above 100 %",
        "What would change it:",
        "- threshold at most 44.999 % (is 70 %), if the value stays",
    ]
    found = json.loads((await explained("--why-not", "3", "--output", "json")).stdout)
    assert [way["key"] for way in found[0]["ways"]] == ["threshold"]


async def test_the_costs_of_pods_are_printed_ready_to_run() -> None:
    result = await explained("--drain")
    assert (result.exit_code, result.stdout.count("\n")) == (0, 3)
    command = "kubectl annotate pod --namespace ml bert-7b6667bd9-bbbbb --overwrite "
    assert result.stdout.splitlines()[2].startswith(command)


async def test_the_token_comes_out_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert (await explained("--token-file", str(file), token=TOKEN)).exit_code == 0
    refused = await explained(token=TOKEN)
    assert refused.exit_code == 1
    assert "--token-file" in refused.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("bert",),
        ("ml/bert", "--server", "localhost:8080"),
        ("ml/bert", "--prometheus-url", "http://prometheus:9090"),
        ("ml/bert", "--at", "2h"),
        ("ml/bert", "--drain", "--why-not", "1"),
        ("ml/bert", "--drain", "--output", "json"),
        ("-f", "-", "--drain", "--at", "2h"),
        ("-f", "-", "--server", "http://localhost:8080"),
    ],
)
def test_what_cannot_be_asked_is_a_wrong_argument(arguments: Sequence[str]) -> None:
    result = explaining(*arguments)
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>", "is this the HTTP port of a scaler"),
        (200, b'{"triggers": [{"version": 1}]}', "is this the HTTP port of a scaler"),
        (500, b"\x1b[31mno", "HTTP 500: ?[31mno"),
        (503, b"", "its own token"),
        (404, b"; ".join([b"key: unknown key"] * 50), "key; key: unknown key\n"),
    ],
)
def test_another_server_is_said_to_be_one(status: int, body: bytes, said: str) -> None:
    result = answered(status, body)
    assert result.exit_code == 1
    assert said in result.stderr


def test_all_that_a_record_can_hold_is_shown() -> None:
    given = demanding("sum(x)", demandThreshold="5", threshold="85")
    view = snapshot(bert("b", 90, status=said()), unseen("c", said(never=True)))
    demand = Demand(None, "no answer")
    shown = record(given, view, trouble="no answer", lag_seconds=30, demand=demand)
    pods = tuple(replace(pod, shown_by=("UTIL by namespace, pod",)) for pod in shown.pods)
    shown = replace(shown, remembered="ended", pods=pods)
    text = answered(200, msgspec.json.encode({"triggers": [shown]})).stdout
    assert "warning: threshold 85 leaves little room" in text
    assert "all samples arrive 30s late" in text
    assert "trouble" in text
    assert "stalled" in text
    assert "last known" in text
    assert "UTIL by namespace, pod" in text


HOSTILE = "\x1b]0;x\x07\u202e\n"


@pytest.mark.parametrize("arguments", [(), ("--why-not", "0"), ("--why-not", "9")])
def test_no_text_of_a_tenant_reaches_the_terminal_as_it_is(arguments: Sequence[str]) -> None:
    answer = msgspec.json.encode(record(spec(), snapshot(bert("b", 90)), trouble="no answer"))
    shown = msgspec.json.decode(answer)
    body = msgspec.json.encode({"triggers": [{**hostile(shown), "pods_left_out": 1}]})
    with answering(lambda _path, _token: (200, body)) as port:
        result = explaining("ml/bert", "--server", f"http://127.0.0.1:{port}", *arguments)
    assert (result.exit_code, "?]0;x??" in result.stdout) == (0, True)
    assert {char for char in result.stdout if not char.isprintable()} == {"\n"}
    assert ("]0;x??\n" in result.stdout) == (not arguments)  # queries keep their lines


def hostile(plain: Any) -> Any:
    """Return a record with control characters in each text that is free."""
    if isinstance(plain, dict):
        fixed = ("says", "origin", "metric_type", "state")
        return {key: plain[key] if key in fixed else hostile(plain[key]) for key in plain}
    if isinstance(plain, list):
        return [hostile(item) for item in plain]
    return f"{plain}{HOSTILE}" if isinstance(plain, str) else plain


def test_what_is_left_out_is_counted() -> None:
    shown = record(spec(), snapshot(bert("b", *[5.0] * 100)))
    counts = tuple(replace(count, pods=231) for count in shown.pod_counts)
    many = replace(shown, pods_left_out=230, pod_counts=counts)
    text = answered(200, msgspec.json.encode({"triggers": [many]})).stdout
    assert "Pods (231)" in text
    assert "and 230 more: 231 measured in all" in text
    assert "and 36 more" in " ".join(text.split())
    body = msgspec.json.encode({"triggers": [many]})
    assert "\x1b[" in answered(200, body, FORCE_COLOR="1", NO_COLOR="").stdout
