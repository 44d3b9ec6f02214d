"""`keda-gpu-scaler explain --file`: the decision of a running scaler, without one."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from keda_gpu_scaler import cli
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.settings import PrometheusSettings, Settings
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access
from keda_gpu_scaler.workbench import local
from testbed import gpus
from testbed.gpus import Gpu, Up
from testbed.prometheus import PrometheusServer
from testbed.triggers import reference
from tests.support import api_server, kube_state
from tests.support import http_replies as web
from tests.support.api_server import ApiServer
from tests.support.each_prometheus import ON_EVERY_SERVER
from tests.support.http_replies import HttpServer
from tests.support.kube_state import KubePod
from tests.test_app import LOCAL, channel, running

OBJECT = """\
apiVersion: keda.sh/v1alpha1
kind: {kind}
metadata:
  name: {name}
spec:
  scaleTargetRef:
    name: bert
  triggers:
    - type: cpu
      metadata: {{value: "80"}}
    - type: external
      metadata:
        scalerAddress: keda-gpu-scaler.keda:6000
        workload: bert
        threshold: "{threshold}"
"""
EVERYTHING = Access({"default": EVERY_NAMESPACE})
QUIET = {"KEDA_GPU_SCALER_PROMETHEUS_TIMEOUT": "20s"}


def yaml(name: str = "bert", threshold: str = "70", more: str = "") -> str:
    text = OBJECT.format(kind="ScaledObject", name=name, threshold=threshold)
    return text + "".join(f"        {line}\n" for line in more.splitlines())


async def explained(
    *arguments: str, given: str | None = None, environ: Mapping[str, str] = QUIET
) -> Result:
    runner = CliRunner(env={"COLUMNS": "200"})
    command = ["explain", "--file", "-", "--namespace", "ml", *arguments]
    return await asyncio.to_thread(
        runner.invoke, cli.app, command, input=given or yaml(), env=dict(environ)
    )


async def healthy(request: web.Request, writer: asyncio.StreamWriter) -> None:
    """Answer that there is nothing."""
    query = request.form["query"]
    if query == "time()":
        await web.api("scalar", [0, f"{time.time():.3f}"])(request, writer)
    else:
        await web.api("matrix" if query.endswith("s]") else "vector", [])(request, writer)


@pytest_asyncio.fixture
async def empty() -> AsyncIterator[HttpServer]:
    """A Prometheus without any series."""
    async with HttpServer(healthy) as running:
        yield running


MOVES_ON = frozenset({"at", "age_seconds", "snapshot_at", "last_seen", "sampled_at", "active_at"})
"""Times of a record that differ from one decision to the next."""


def still(found: Any) -> Any:
    """Return a record without what moves on by itself."""
    if isinstance(found, dict):
        return {key: still(value) for key, value in found.items() if key not in MOVES_ON}
    return [still(value) for value in found] if isinstance(found, list) else found


async def test_a_running_scaler_has_the_same_record(prometheus: PrometheusServer) -> None:
    now = time.time()
    pods = {"bert-7b6667bd9-bbbbb": 90, "bert-7b6667bd9-ccccc": 60}
    other = KubePod(name="bert-7b6667bd9-ddddd", ready=False, created=-60)
    shown = [KubePod(name=pod) for pod in pods]
    # A little into the future: it is there to stay while two processes look.
    await prometheus.write(
        [
            *gpus.history(now + 60, [Up(), *(Gpu(pod, value) for pod, value in pods.items())]),
            *kube_state.history(now + 60, [kube_state.up(), *shown, other, kube_state.wanted(3)]),
        ]
    )
    source = PrometheusSettings(url=prometheus.url)
    chosen = Settings(grpc_address=LOCAL, http_address=LOCAL, sources={"default": source})
    async with running(chosen) as scaler:
        ports = await scaler.ports()
        async with channel(ports.grpc_port) as opened:
            stub = externalscaler_pb2_grpc.ExternalScalerStub(opened)
            assert (await stub.IsActive(reference())).result is True
        server = f"http://127.0.0.1:{ports.http_port}"
        asked = ["explain", "ml/bert", "--server", server, "--no-cluster"]
        theirs = await asyncio.to_thread(CliRunner().invoke, cli.app, [*asked, "--output", "json"])
    ours = await explained("--prometheus-url", prometheus.url, "--output", "json")
    (running_one,) = json.loads(theirs.stdout)["triggers"]
    (local_one,) = json.loads(ours.stdout)["triggers"]
    unknown = local_one["activation"][2]
    assert (unknown["signal"], unknown["says"]) == ("alert", "not set")
    assert unknown["reason"] == "only a running scaler receives alerts"
    local_one["activation"][2] = running_one["activation"][2]
    assert still(local_one) == still(running_one)
    assert {pod["state"] for pod in local_one["pods"]} == {"measured", "starting"}


@ON_EVERY_SERVER
async def test_the_past_is_decided_by_what_there_was_then(prometheus: PrometheusServer) -> None:
    then = (prometheus.now() - 6 * 3600) // 15 * 15
    pods = {"bert-7b6667bd9-bbbbb": 90, "bert-7b6667bd9-ccccc": 60}
    await prometheus.write(
        [
            *gpus.history(then, [Up(), *(Gpu(pod, value) for pod, value in pods.items())]),
            *gpus.history(then + 3600, [Up(), Gpu("bert-7b6667bd9-ddddd", 20)]),
        ]
    )
    url = ("--prometheus-url", prometheus.url, "--output", "json")
    given = yaml(more="demandQuery: sum(DCGM_FI_DEV_GPU_UTIL)\ndemandThreshold: '5'")
    environ = {**QUIET, "KEDA_GPU_SCALER_OWN_PROMQL": "allow"}
    for at, value, demand, count in ((then, 150, 150, 2), (then + 3600, 20, 20, 1)):
        result = await explained("--at", f"{at:.0f}", *url, given=given, environ=environ)
        assert result.exit_code == 0, result.stderr
        (record,) = json.loads(result.stdout)["triggers"]
        assert (record["state"], record["value"], record["at"]) == ("measured", value, at)
        assert record["metrics"][1]["value"] == demand
        assert sum(pod["counts"] for pod in record["pods"]) == count
        assert record["source"]["snapshot_at"] == at - 15
    (now,) = json.loads((await explained(*url)).stdout)["triggers"]
    assert (now["state"], now["pods"]) == ("unknown", [])


async def test_no_query_about_the_past_is_about_the_present(empty: HttpServer) -> None:
    at = time.time() - 7200
    given = yaml(more="demandQuery: sum(rate(http_requests_total[1m]))\nonUnknown: zero")
    kubernetes = {"KEDA_GPU_SCALER_KUBERNETES": "true", "KEDA_GPU_SCALER_OWN_PROMQL": "allow"}
    result = await explained(
        "--at", "2h", "--prometheus-url", empty.url, given=given, environ={**QUIET, **kubernetes}
    )
    assert result.exit_code == 0, result.stderr
    assert "decided at" in result.stdout
    asked = {request.form["query"]: float(request.form["time"]) for request in empty.requests}
    assert any("http_requests_total" in query for query in asked)
    assert all(at - 3600 < when <= at + 60 for when in asked.values())


IMPOSSIBLE = ["now", "", "-5m", "2026-11-22T10:00:00", "1e9", "9" * 12, f"{'9' * 400}h"]
IMPOSSIBLE += ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59"]


@pytest.mark.parametrize("text", IMPOSSIBLE)
def test_a_time_that_is_none_or_not_in_the_past_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time in the past"):
        local.instant(text, 1_800_000_000)


@given(st.floats(4e7, 1.79e9), st.timezones())
def test_a_time_can_be_written_in_three_ways(at: float, zone: tzinfo) -> None:
    now = 1_800_000_000
    written = datetime.fromtimestamp(at, zone).isoformat()
    assert local.instant(written, now) == pytest.approx(at, abs=1e-5)
    assert local.instant(f"{at:.6f}", now) == pytest.approx(at, abs=1e-6)
    assert local.instant(durations.text(now - at), now) == pytest.approx(at, abs=1e-3)


async def test_the_cluster_of_kubeconfig_is_asked(empty: HttpServer, tmp_path: Path) -> None:
    async with api_server.serving(ApiServer()) as api:
        environ = {
            **QUIET,
            "KEDA_GPU_SCALER_KUBERNETES": "true",
            "KUBECONFIG": api.kubeconfig(tmp_path, token=api_server.TOKEN),
        }
        arguments = ("--prometheus-url", empty.url, "--output", "json")
        result = await explained(*arguments, environ=environ)
        without = yaml().replace("        workload: bert\n", "")
        aimless = await explained(*arguments, "--timeout", "0.5", given=without, environ=environ)
    (record,) = json.loads(result.stdout)["triggers"]
    assert (record["source"]["evidence"], record["state"]) == ("kubernetes", "empty")
    assert "which pods ml/bert scales" in json.loads(aimless.stdout)["triggers"][0]["reason"]
    refused = await explained(*arguments, given=without)
    assert "missing-key" in refused.stderr


async def test_settings_are_those_of_serve_with_the_url_on_top(empty: HttpServer) -> None:
    variables = {
        "KEDA_GPU_SCALER_PROMETHEUS_URL": "http://elsewhere:9090",
        "KEDA_GPU_SCALER_PROMETHEUS_BEARER_TOKEN": "a-word",
        "KEDA_GPU_SCALER_PROMETHEUS_MATCHERS": 'cluster="eu-1"',
    }
    assert (
        await explained("--prometheus-url", empty.url, environ={**QUIET, **variables})
    ).exit_code == 0
    assert {request.headers["authorization"] for request in empty.requests} == {"Bearer a-word"}
    snapshot = next(one for one in empty.requests if one.form["query"].endswith("s]"))
    assert 'cluster="eu-1"' in snapshot.form["query"]


@pytest.mark.parametrize(
    ("reply", "seconds", "said"),
    [(web.hangs, "0.1", "no answer within 0.1 s"), (web.closes, "20", "disconnected")],
)
async def test_a_source_that_is_silent_is_an_error(
    reply: web.Reply, seconds: str, said: str
) -> None:
    async with HttpServer(reply) as server:
        result = await explained("--prometheus-url", server.url, "--timeout", seconds)
    assert result.exit_code == 1
    assert "holds the replicas" in result.stdout
    assert result.stderr.count(said) == 1


def wrong(text: str, wanted: ScaledObject | None = None) -> str:
    with pytest.raises(ValueError, match=r"a\.yaml") as raised:
        local.given({"a.yaml": text}, "ml", EVERYTHING, wanted)
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "a.yaml:1:1: error yaml-syntax: did not find expected node content"),
        ("kind: Pod", "a.yaml: there is no ScaledObject"),
        (yaml().replace("type: external", "type: kafka"), "no trigger of ml/bert is for this"),
        (yaml().replace('"70"', "70"), "error wrong-type: ScaledObject ml/bert: "),
    ],
)
def test_what_cannot_be_decided_is_said_with_its_place(text: str, said: str) -> None:
    assert said in wrong(text)


def test_a_value_from_the_environment_is_not_taken_from_the_file() -> None:
    """The file has the name of the variable; KEDA sends its value."""
    said = wrong(yaml(more="activationThresholdFromEnv: LEVEL"))
    assert said.count("\n") == 0
    assert "a.yaml:16:9: error wrong-value: " in said
    assert "Write activationThreshold with its value" in said


def test_one_of_several_is_picked_and_mistakes_of_others_do_not_matter() -> None:
    texts = "---\n".join(
        [
            yaml(),
            yaml("other", "much"),
            yaml("third", "60").replace("name: third", "name: third\n  namespace: web"),
        ]
    )
    (one,) = local.given({"a.yaml": texts}, "ml", EVERYTHING, ScaledObject("ml", "bert"))
    assert (one.scaled_object, one.spec.threshold) == (ScaledObject("ml", "bert"), 70)
    assert wrong(texts).startswith("a.yaml:31:9: error wrong-value")
    assert (
        wrong(texts, ScaledObject("ml", "x"))
        == "a.yaml: there is no ml/x, only ml/bert, ml/other, web/third"
    )
    right = texts.replace("much", "80")
    found = local.given({"a.yaml": right}, "ml", EVERYTHING)
    assert [str(one.scaled_object) for one in found] == ["ml/bert", "ml/other", "web/third"]


SCRAPED = {"KEDA_GPU_SCALER_SCRAPE_TARGETS": "http://127.0.0.1:9/metrics"}
CLUSTER = {"KEDA_GPU_SCALER_KUBERNETES": "true", "KUBECONFIG": "/nowhere/config"}
WRONG = {"KEDA_GPU_SCALER_PROMETHEUS_URL": "elsewhere"}
NOWHERE = ("--prometheus-url", "http://127.0.0.1:9")
MISTAKEN = yaml(threshold="much", more="tresholdd: x")


@pytest.mark.parametrize(
    ("arguments", "environ", "text", "status", "said"),
    [
        # The name is that under which a person gave the URL, or can give it here.
        ((), {}, "", 2, "set --prometheus-url, KEDA_GPU_SCALER_SCRAPE_TARGETS or "),
        (("--prometheus-url", "prometheus"), {}, "", 2, '- --prometheus-url: "prometheus"; '),
        (("--prometheus-url", "prometheus"), WRONG, "", 2, '- --prometheus-url: "prometheus"; '),
        ((), WRONG, "", 2, '- KEDA_GPU_SCALER_PROMETHEUS_URL: "elsewhere"; '),
        (NOWHERE, CLUSTER, "", 2, "KUBERNETES:"),
        # Only a Prometheus has a past here.
        (("--at", "2h"), SCRAPED, "", 2, "source default is of type"),
        (NOWHERE, {}, MISTAKEN, 2, "\n-:15:9: error wrong-value: ScaledObject ml/bert: "),
        (("-f", "/nowhere/a.yaml", *NOWHERE), {}, "", 2, "/nowhere/a.yaml"),
    ],
)
async def test_what_cannot_be_decided_is_said_in_one_message(
    arguments: tuple[str, ...], environ: Mapping[str, str], text: str, status: int, said: str
) -> None:
    result = await explained(*arguments, given=text, environ=environ)
    assert result.exit_code == status
    assert said in result.stderr
