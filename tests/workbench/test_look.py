"""`keda-gpu-scaler check --live`: the source is asked, and findings are where the keys are."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace

import pytest
import pytest_asyncio
from typer.testing import CliRunner, Result

from keda_gpu_scaler import cli
from testbed import gpus
from testbed.gpus import Gpu, Up, mig
from testbed.processes import free_port
from testbed.prometheus import PrometheusServer
from tests.support import kube_state
from tests.support.each_prometheus import ON_EVERY_SERVER
from tests.support.http_replies import HttpServer
from tests.support.kube_state import KubePod
from tests.workbench.check.cases import SLEEPS, STAYS, changed, key
from tests.workbench.test_local import healthy

QUIET = {"KEDA_GPU_SCALER_PROMETHEUS_TIMEOUT": "20s"}
POD, OTHER = "bert-7b6667bd9-bbbbb", "bart-6f846897c4-66lpk"
HERE = STAYS.replace("namespace: inference", "namespace: ml")
SLEEPING = SLEEPS.replace("namespace: inference", "namespace: ml")
GATEWAY = 'sum(gateway_requests_in_progress{service="bert"})'
OWN = key(HERE, 'query: "max by (pod, namespace) (x)"', 'activationThreshold: "1"')


async def checked(given: str, *arguments: str, **environ: str | None) -> Result:
    command = ["check", "-", "--live", *arguments, "--output", "sarif"]
    runner = CliRunner(env={"COLUMNS": "200"})
    return await asyncio.to_thread(
        runner.invoke, cli.app, command, input=given, env={**QUIET, **environ}
    )


async def found(url: str, given: str = HERE, *arguments: str) -> dict[str, tuple[int, str]]:
    """Return the rules that find something, with the line and what they say."""
    result = await checked(given, "--prometheus-url", url, "--timeout", "20", *arguments)
    assert result.exit_code in (0, 1), result.output
    (shown,) = json.loads(result.stdout)["runs"]
    return {
        one["ruleId"]: (
            one["locations"][0]["physicalLocation"]["region"]["startLine"],
            one["message"]["text"],
        )
        for one in shown["results"]
    }


def both(pod: str) -> list[Gpu]:
    """Return a GPU as dcgm-exporter shows it, by two metrics with the same labels."""
    return [Gpu(pod, 90), Gpu(pod, 0.9, metric="DCGM_FI_PROF_GR_ENGINE_ACTIVE")]


SHOWN = [Gpu(POD, 90)]
ENDED = [replace(one, begin=-1500, end=-720) for one in both(OTHER)]
AMD_IDLE = Gpu("", 0, convention="idle", metric="gpu_gfx_activity")
AMD_FAILED = Gpu(POD, 80, convention="plain", metric="gpu_gfx_activity", end=-30)
FB_SLICE = Gpu(POD, 3900, metric="DCGM_FI_DEV_FB_USED", extra=mig(1))
ENGINE, POWER = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_POWER_USAGE"
FROZEN = [Gpu(POD, 0, begin=-2700), Gpu(POD, 0.4, begin=-2700, metric=ENGINE)]
SLICES = [
    Gpu(POD, 0, begin=-2700, metric=ENGINE, extra=mig(1)),
    Gpu(OTHER, 0, begin=-2700, metric=ENGINE, extra=mig(2)),
    Gpu(POD, 50, begin=-7200, end=-3600, metric=POWER, extra=mig(1)),
]
DRAWS = Gpu(POD, 101, begin=-1800, metric=POWER, extra=mig(1))
RESTS = replace(DRAWS, value=99)
WORKS = Gpu(OTHER, 0.1, begin=-2700, metric=ENGINE, extra=mig(3))
LOOKS: Sequence[tuple[Iterable[Gpu], str, str, int, str]] = [
    (SHOWN, HERE, "", 0, ""),
    (both(OTHER), HERE, "no-pods", 15, f"none of deployment/bert ({OTHER})"),
    ([Gpu(OTHER, 90, namespace="web")], HERE, "no-pods", 15, "1 other namespace, and none"),
    (SHOWN, key(HERE, "signal: sm-activity"), "no-series", 17, "not show the signal sm"),
    (SHOWN, SLEEPING, "demand-unknown", 17, "the demand is unknown: its query gives nothing"),
    (SHOWN, changed(SLEEPING, (GATEWAY, "sum(kube_deployment_spec_replicas)")), "", 0, ""),
    ([Gpu("", 0, convention="idle")], HERE, "no-pod-labels", 15, ""),
    ([AMD_IDLE], HERE, "no-pod-labels", 15, "AMD device-metrics-exporter name no pod"),
    # Its last scrape has failed: the exporter is found by those before.
    ([AMD_FAILED], HERE, "", 0, ""),
    ([FB_SLICE], HERE, "no-series", 15, "MIG instances, which show no utilization but"),
    (ENDED, HERE, "late-samples", 15, "the newest sample of any GPU is minutes old"),
    (FROZEN, HERE, "stuck-metric", 13, "GR_ENGINE_ACTIVE has not changed for 30m"),
    (FROZEN, key(HERE, "profile: dcgm-exported"), "", 0, ""),
    ([*SLICES, DRAWS], HERE, "stuck-metric", 13, "is 0 on every MIG instance of an exporter"),
    ([*SLICES, RESTS], HERE, "", 0, ""),
    ([*SLICES, DRAWS, WORKS], HERE, "", 0, ""),
    (both(POD), key(HERE, "window: 5s"), "slow-scrape", 17, "every 15s, and window is 5s"),
]


@ON_EVERY_SERVER
@pytest.mark.parametrize(("parts", "given", "rule", "line", "said"), LOOKS)
async def test_what_a_server_shows_is_judged_at_the_key_to_blame(
    prometheus: PrometheusServer,
    parts: Iterable[Gpu],
    given: str,
    rule: str,
    line: int,
    said: str,
) -> None:
    """The server has these series, and those of one Ready pod."""
    now = prometheus.now()
    ready = kube_state.history(now, [kube_state.up(), KubePod(name=POD), kube_state.wanted(1)])
    await prometheus.write([*gpus.history(now, [Up(), *parts]), *ready])
    shown = await found(prometheus.url, given)
    assert list(shown) == ([rule] if rule else [])
    if rule:
        assert shown[rule][0] == line
        assert said in shown[rule][1]


@pytest_asyncio.fixture
async def empty() -> AsyncIterator[HttpServer]:
    """A Prometheus without any series."""
    async with HttpServer(healthy) as running:
        yield running


IGNORED = ("workload: bert", "workload: bert  # keda-gpu-scaler: ignore no-series, no-readiness")


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        (HERE, {"no-series", "no-readiness"}),
        (changed(HERE, IGNORED), {"no-readiness"}),
        # What the settings do not allow is found, and wrong triggers are not asked about.
        (key(HERE, "source: elsewhere"), {"wrong-value"}),
        (changed(HERE, ('"70"', '"much"')), {"wrong-value"}),
        (changed(HERE, ("workload: bert", "workloadFromEnv: WORKLOAD")), {"wrong-value"}),
        # A query of one's own is judged by what it gives.
        (OWN, {"no-pods", "no-readiness"}),
    ],
)
async def test_a_source_without_series(empty: HttpServer, given: str, rules: set[str]) -> None:
    assert set(await found(empty.url, given)) == rules


def test_where_nothing_listens_there_is_one_finding_and_the_status_says_so() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    command = ["check", "-", "--live", "--prometheus-url", url]
    result = CliRunner().invoke(cli.app, command, input=HERE)
    assert result.exit_code == 1
    assert "-:13:7: error no-answer: source default does not answer: " in result.output


@pytest.mark.parametrize("arguments", [(), ("--live",)], ids=["not live", "no URL"])
def test_a_source_that_cannot_be_asked_is_a_wrong_argument(arguments: Sequence[str]) -> None:
    url = "nowhere" if arguments else "http://localhost:9090"
    command = ["check", "-", *arguments, "--prometheus-url", url]
    assert CliRunner().invoke(cli.app, command, input=HERE).exit_code == 2
