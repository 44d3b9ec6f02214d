"""`keda-gpu-scaler probe`: what it asks, and what it prints, over real connections."""

import asyncio
from pathlib import Path

import grpc
import pytest
from typer.testing import CliRunner

from keda_gpu_scaler import cli, errors
from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.evaluator.shared_source import SourceDown
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.workbench import probing as asking
from testbed.processes import free_port
from tests.service.harness import QUIET, SIGNAL, Script
from tests.service.harness import serving as our_own
from tests.support import scalers
from tests.support.answers import answering
from tests.support.forward_proxy import ForwardProxy
from tests.support.pki import Pki
from tests.support.probing import ANSWERED, HEALTHY, failed, probing, run_alone
from tests.support.scalers import Scaler


async def test_what_the_scaler_says_of_a_wrong_trigger_is_passed_on() -> None:
    flags = ("--metadata", "workload=bert", "--metadata", "treshold=70")
    async with our_own(Script(QUIET)) as served:
        result = await asyncio.to_thread(probing, served.port, *flags)
    assert result.stdout.startswith(HEALTHY)
    assert failed(result).endswith(
        "GetMetricSpec: INVALID_ARGUMENT: 2 mistakes in the trigger of ScaledObject default/probe: "
        '- "treshold": unknown key; did you mean threshold? '
        "- threshold: not given; expected the target per replica, such as 70, or a demand in its "
        "place: demandPreset, or demandQuery and demandThreshold"
    )


A_CENTURY_SECONDS = 3e9
IS_90 = "GetMetrics: gpu-utilization is 90\n"
UNKNOWN = errors.UnknownLoadError("no sample")
TRIGGER = (
    *("--scaled-object", "ml/bert-scaler"),
    *("--metadata", "workload=bert"),
    *("--metadata", "threshold=70"),
)


@pytest.mark.parametrize(
    ("first", "second", "words", "shown"),
    [
        (SIGNAL, SIGNAL, "", f"{IS_90}IsActive: true\n"),
        (UNKNOWN, SIGNAL, "gpu-utilization: UNAVAILABLE: no sample", "IsActive: true\n"),
        (SIGNAL, UNKNOWN, "IsActive: UNAVAILABLE: no sample", IS_90),
    ],
)
async def test_the_values_that_keda_would_get_are_shown_as_far_as_they_are_known(
    first: Decision | errors.UnknownLoadError,
    second: Decision | errors.UnknownLoadError,
    words: str,
    shown: str,
) -> None:
    async with our_own(Script(first, second)) as served:
        result = await asyncio.to_thread(probing, served.port, *TRIGGER)
    assert result.stdout == ANSWERED + shown
    assert (result.exit_code == 0) is (not words)
    assert result.stderr.rstrip().endswith(words)


def test_the_trigger_that_is_named_is_asked_about_and_without_a_deadline_as_by_a_poll() -> None:
    scaler = Scaler(active=False)
    flags = ("--scaled-object", "ml/bert", "--metadata", "workload=bert", "--metadata", "q=a=b")
    with scalers.serving(scaler) as port:
        result = probing(port, *flags)
    assert result.output == ANSWERED + "GetMetrics: gpu-utilization is 130\nIsActive: false\n"
    metadata = {"workload": "bert", "q": "a=b"}
    asked = pb.ScaledObjectRef(namespace="ml", name="bert", scalerMetadata=metadata)
    value = pb.GetMetricsRequest(scaledObjectRef=asked, metricName="gpu-utilization")
    assert scaler.asked == [asked, value, asked]
    assert min(scaler.deadlines) > A_CENTURY_SECONDS  # gRPC's word for none


UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
OLD = pb.MetricValue(metricName="gpu-utilization", metricValue=3)
OLD_TARGET = pb.MetricSpec(metricName="old", targetSize=3)
ONE_OF_TWO = Scaler(
    specs=(scalers.ANSWER, pb.MetricSpec(metricName="gpu-demand", targetSizeFloat=1)),
    value_refusal=(UNAVAILABLE, "not now"),
    refused_metric="gpu-utilization",
)


@pytest.mark.parametrize(
    ("scaler", "words", "shown"),
    [
        (Scaler(values=(OLD,)), "", "GetMetrics: gpu-utilization is 3\n"),
        (Scaler(values=()), "", "gpu-utilization has no value, so the HPA holds the replicas\n"),
        (Scaler(specs=(scalers.ANSWER, OLD_TARGET)), "", "GetMetricSpec: old with target 3\n"),
        (Scaler(specs=()), "GetMetricSpec: no metric", HEALTHY),
        (Scaler(serving=False), "health: NOT_SERVING: it answers, but accepts no calls now", ""),
        (Scaler(refusal=(UNAVAILABLE, "")), "Spec: UNAVAILABLE: no reason given", HEALTHY),
        (
            ONE_OF_TWO,
            "GetMetrics: gpu-utilization: UNAVAILABLE: not now",
            "is 130\nIsActive: true\n",
        ),
    ],
)
def test_whatever_the_contract_allows_is_shown_and_what_is_refused_is_said_in_one_line(
    scaler: Scaler, words: str, shown: str
) -> None:
    with scalers.serving(scaler) as port:
        result = probing(port, *TRIGGER)
    assert shown in result.stdout
    assert words in (failed(result) if words else result.stderr)
    assert (result.exit_code == 0) is (not words)


MANIFEST = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: NAME, namespace: ml}
spec:
  scaleTargetRef: {name: NAME}
  triggers:
    - type: external
      metadata: {scalerAddress: "keda-gpu-scaler.keda.svc:6000", workload: NAME, threshold: "70"}
"""


def manifests(tmp_path: Path, text: str = MANIFEST) -> str:
    path = tmp_path / "scaledobjects.yaml"
    path.write_text("---".join(text.replace("NAME", name) for name in ("bert", "llm")))
    return str(path)


def test_the_triggers_of_a_file_are_asked_about_as_keda_sends_them(tmp_path: Path) -> None:
    scaler = Scaler()
    with scalers.serving(scaler) as port:
        everything = probing(port, "--file", manifests(tmp_path))
        one = probing(port, "-f", manifests(tmp_path), "--scaled-object", "ml/llm", "--spec-only")
    assert (everything.exit_code, one.exit_code) == (0, 0)
    assert "ml/llm: GetMetrics: gpu-utilization is 130\n" in everything.output
    assert one.output == ANSWERED
    assert len(scaler.asked) == 2 * 3 + 1
    metadata = {"scalerAddress": "keda-gpu-scaler.keda.svc:6000", "workload": "llm"}
    asked = pb.ScaledObjectRef(
        namespace="ml", name="llm", scalerMetadata=metadata | {"threshold": "70"}
    )
    assert scaler.asked[-1] == asked


def test_a_value_of_the_environment_in_a_file_is_said_to_be_unknown(tmp_path: Path) -> None:
    text = MANIFEST.replace('threshold: "70"', "thresholdFromEnv: LIMIT")
    result = CliRunner().invoke(cli.app, ["probe", "scaler", "--file", manifests(tmp_path, text)])
    assert result.exit_code == 2
    assert "thresholdFromEnv" not in result.stdout
    assert "The value of threshold is in the environment of the scale target" in result.stderr


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("scaler", "scaler:6000"),
        ("[::1]", "[::1]:6000"),
        ("[2001:db8::1]:7000", "[2001:db8::1]:7000"),
    ],
)
def test_an_address_needs_no_port(text: str, address: str) -> None:
    assert asking.address(text) == address


def test_both_calls_have_one_time() -> None:
    scaler = Scaler()
    scaler.gate.clear()
    with scalers.serving(scaler) as port:
        said = failed(probing(port, "--timeout", "0.2"))
    assert "no answer within --timeout" in said


def test_what_is_no_scaler_is_named() -> None:
    said = failed(probing("no-such-name.invalid:6000"))
    assert said.startswith(
        "keda-gpu-scaler: no-such-name.invalid:6000: health: the name has no address"
    )
    assert "health: nothing listens there: check the port" in failed(probing(free_port()))
    with answering(lambda _path, _token: (404, b"")) as port:
        said = failed(probing(port))
    assert "health: this is no gRPC port: the scaler's is 6000 by default" in said


@pytest.mark.parametrize(
    ("target", "flags", "words"),
    [
        ("scaler:port", (), "'scaler:port' is not HOST or HOST:PORT"),
        ("http://scaler", (), "'http://scaler' is not HOST or HOST:PORT"),
        ("scaler:65536", (), "'HOST[:PORT]': 'scaler:65536' is not HOST or HOST:PORT"),
        ("scaler", ("--scaled-object", "bert"), "'--scaled-object': 'bert' is not NAMESPACE/NAME"),
        ("scaler", ("--metadata", "workload"), "'--metadata': 'workload' is not KEY=VALUE"),
        ("scaler", ("-f", "{empty}"), "there is no ScaledObject"),
        ("scaler", ("-f", "{absent}"), "'--file': cannot read {absent}: No such file"),
        ("scaler", ("-f", "{empty}", "--metadata", "a=b"), "'--metadata': not together with"),
        ("scaler:6000", ("--server-name", "a"), "it needs --ca-file"),
        ("scaler:6000", ("--ca-file", "{empty}"), "contains no certificate in PEM"),
        ("scaler:6000", ("--cert-file", "{ca}"), "give both or neither"),
        ("scaler:6000", ("--cert-file", "{ca}", "--key-file", "{ca}"), "it needs --ca-file"),
        (
            "scaler:6000",
            ("--ca-file", "{ca}", "--cert-file", "{ca}", "--key-file", "{empty}"),
            "are not a certificate in PEM and its unencrypted key",
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
    assert words.format(absent=f"{empty}x") in " ".join(result.stderr.split())


async def test_a_source_that_is_down_fails_the_probe_that_asks_about_sources() -> None:
    script = Script(QUIET)
    async with our_own(script) as served:
        good = await asyncio.to_thread(probing, served.port, "--sources")
        script.down = [SourceDown("default", "http://a:9090", "HTTP 404; set url", 1.0)]
        unasked = await asyncio.to_thread(probing, served.port)
        bad = await asyncio.to_thread(probing, served.port, "--sources")
    assert good.output == ANSWERED.replace(HEALTHY, f"{HEALTHY}sources: each of them answers\n")
    assert unasked.output == bad.stdout == ANSWERED
    words = "sources: FAILED_PRECONDITION: source default at http://a:9090: HTTP 404; set url"
    assert failed(bad).endswith(words)


async def test_a_proxy_of_the_environment_is_used() -> None:
    target = "keda-gpu-scaler.keda.svc:6000"
    with scalers.serving(Scaler()) as port:
        async with ForwardProxy({("keda-gpu-scaler.keda.svc", 6000): port}) as proxy:
            done = await asyncio.to_thread(run_alone, target, https_proxy=proxy.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, ANSWERED, "")
    assert proxy.requests == [f"CONNECT {target} HTTP/1.1"]
