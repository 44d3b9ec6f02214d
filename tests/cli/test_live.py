"""`keda-gpu-scaler check --live`: the source is asked, and findings are where the keys are."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest_asyncio
from typer.testing import CliRunner, Result

from keda_gpu_scaler import cli
from tests.check.cases import SLEEPS, STAYS, changed
from tests.cli.test_local import healthy
from tests.support import api_server, gpus, kube_state
from tests.support import http_replies as web
from tests.support.api_server import ApiServer
from tests.support.gpus import Gpu, Up
from tests.support.http_replies import HttpServer
from tests.support.kube_state import KubePod
from tests.support.processes import free_port
from tests.support.prometheus import ON_EVERY_SERVER, PrometheusServer
from tests.support.series import Series

QUIET = {"KEDA_GPU_SCALER_PROMETHEUS_TIMEOUT": "20s"}
POD, OTHER = "bert-7b6667bd9-bbbbb", "bart-6f846897c4-66lpk"
HERE = STAYS.replace("namespace: inference", "namespace: ml")
SLEEPING = SLEEPS.replace("namespace: inference", "namespace: ml")


async def checked(given: str, *arguments: str, **environ: str | None) -> Result:
    command = ["check", "-", "--live", *arguments, "--output", "json"]
    runner = CliRunner(env={"COLUMNS": "200"})
    return await asyncio.to_thread(
        runner.invoke, cli.app, command, input=given, env={**QUIET, **environ}
    )


async def found(url: str, given: str = HERE, *arguments: str) -> dict[str, tuple[int, str]]:
    """Return the rules that find something, with the line and what they say."""
    result = await checked(given, "--prometheus-url", url, "--timeout", "20", *arguments)
    assert result.exit_code in (0, 1), result.output
    shown = json.loads(result.stdout)["findings"]
    return {one["rule"]: (one["line"], one["why"]) for one in shown}


async def written(prometheus: PrometheusServer, parts: Iterable[Gpu | Up], *pods: KubePod) -> str:
    """Let a Prometheus hold these series, and kube-state-metrics' of some pods; return its URL."""
    now = prometheus.now()
    kube: list[Series] = []
    if pods:
        kube = kube_state.history(now, [kube_state.up(), *pods, kube_state.wanted(len(pods))])
    await prometheus.write([*gpus.history(now, parts), *kube])
    return prometheus.url


async def test_nothing_is_found_where_the_source_shows_the_pods_and_the_cluster_them_ready(
    prometheus: PrometheusServer,
) -> None:
    url = await written(prometheus, [Up(), Gpu(POD, 90)], KubePod(name=POD))
    assert await found(url) == {}


async def test_exporters_alone_say_nothing_of_readiness(prometheus: PrometheusServer) -> None:
    url = await written(prometheus, [Up(), Gpu(POD, 90)])
    assert list(await found(url)) == ["no-readiness"]


def both(pod: str) -> list[Gpu]:
    """Return a GPU as dcgm-exporter shows it, by two metrics with the same labels."""
    return [Gpu(pod, 90), Gpu(pod, 0.9, metric="DCGM_FI_PROF_GR_ENGINE_ACTIVE")]


@ON_EVERY_SERVER
async def test_an_idle_gpu_that_names_its_exporter_names_no_pod(
    prometheus: PrometheusServer,
) -> None:
    url = await written(prometheus, [Up(), Gpu("", 0, convention="idle")], KubePod(name=POD))
    assert list(await found(url)) == ["no-pod-labels"]


async def test_the_pods_that_are_shown_are_named(prometheus: PrometheusServer) -> None:
    url = await written(prometheus, [Up(), *both(OTHER)], KubePod(name=POD))
    line, why = (await found(url))["no-pods"]
    assert line == 15
    assert why.endswith(f"of namespace ml that are shown: {OTHER}")


async def test_pods_of_other_namespaces_are_told_from_none(prometheus: PrometheusServer) -> None:
    url = await written(prometheus, [Up(), Gpu(OTHER, 90, namespace="web")], KubePod(name=POD))
    assert "no GPU is shown of any pod in namespace ml" in (await found(url))["no-pods"][1]


@ON_EVERY_SERVER
async def test_samples_that_have_ended_are_told_from_none(prometheus: PrometheusServer) -> None:
    ended = [replace(one, begin=-1500, end=-720) for one in both(OTHER)]
    url = await written(prometheus, [Up(), *ended], KubePod(name=POD))
    assert "the newest sample of any GPU is minutes old" in (await found(url))["late-samples"][1]


async def test_a_signal_that_no_exporter_shows_is_told_from_no_exporter(
    prometheus: PrometheusServer,
) -> None:
    url = await written(prometheus, [Up(), Gpu(POD, 90)], KubePod(name=POD))
    given = HERE + "        signal: sm-activity\n"
    line, why = (await found(url, given))["no-series"]
    assert (line, "none the signal sm-activity" in why) == (17, True)


@ON_EVERY_SERVER
async def test_a_window_is_compared_with_the_samples_themselves(
    prometheus: PrometheusServer,
) -> None:
    url = await written(prometheus, [Up(), *both(POD)], KubePod(name=POD))
    given = HERE + "        window: 5s\n"
    assert (
        "a sample comes every 15s, and window is 5s" in (await found(url, given))["slow-scrape"][1]
    )


async def test_a_demand_is_asked_for(prometheus: PrometheusServer) -> None:
    url = await written(prometheus, [Up(), Gpu(POD, 90)], KubePod(name=POD))
    assert (await found(url, SLEEPING))["demand-unknown"] == (
        17,
        "the demand is not known: its query gives nothing",
    )
    many = changed(
        SLEEPING, ('sum(gateway_requests_in_progress{service="bert"})', "kube_pod_status_phase")
    )
    assert "instead of one number" in (await found(url, many))["demand-unknown"][1]
    good = changed(
        SLEEPING,
        ('sum(gateway_requests_in_progress{service="bert"})', "sum(kube_deployment_spec_replicas)"),
    )
    assert "demand-unknown" not in await found(url, good)


@pytest_asyncio.fixture
async def empty() -> AsyncIterator[HttpServer]:
    """A Prometheus without any series."""
    async with HttpServer(healthy) as running:
        yield running


async def test_a_source_without_series_is_told_from_one_without_an_answer(
    empty: HttpServer,
) -> None:
    assert set(await found(empty.url)) == {"no-series", "no-readiness"}
    async with HttpServer(web.closes) as broken:
        line, why = (await found(broken.url))["no-answer"]
    assert line == 13
    assert why.startswith("source default gives nothing: ")


def test_where_nothing_listens_there_is_one_finding_and_the_status_says_so() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    command = ["check", "-", "--live", "--prometheus-url", url]
    result = CliRunner().invoke(cli.app, command, input=HERE)
    assert result.exit_code == 1
    assert "-:13:7: error no-answer: source default gives nothing: " in result.output


async def test_a_finding_of_the_source_is_left_out_like_any_other(empty: HttpServer) -> None:
    given = changed(HERE, ("workload: bert", "workload: bert  # keda-gpu-scaler: ignore no-series"))
    assert set(await found(empty.url, given, "--ignore", "no-readiness")) == set()


async def test_what_the_settings_do_not_allow_is_found(empty: HttpServer) -> None:
    given = HERE + "        source: elsewhere\n"
    assert "elsewhere" in (await found(empty.url, given))["wrong-value"][1]


async def test_wrong_triggers_and_those_of_the_environment_are_not_asked_about(
    empty: HttpServer,
) -> None:
    wrong = changed(HERE, ('"70"', '"much"'))
    assert set(await found(empty.url, wrong)) == {"wrong-value"}
    elsewhere = changed(HERE, ("workload: bert", "workloadFromEnv: WORKLOAD"))
    assert set(await found(empty.url, elsewhere)) == set()


async def test_a_query_of_ones_own_is_judged_by_what_it_gives(empty: HttpServer) -> None:
    given = (
        HERE + '        query: "max by (pod, namespace) (x)"\n        activationThreshold: "1"\n'
    )
    line, why = (await found(empty.url, given))["no-pods"]
    assert (line, why) == (17, "the source shows no GPU of deployment/bert")


async def test_a_namespace_is_named_to_a_server_that_keeps_tenants_apart(
    empty: HttpServer,
) -> None:
    given = f"{HERE}---\nkind: Service\n"
    environ = {"KEDA_GPU_SCALER_PROMETHEUS_NAMESPACE_PARAMETER": "tenant"}
    result = await checked(given, "--prometheus-url", empty.url, **environ)
    assert "no-series" in result.stdout
    own = [one for one in empty.requests if "count(" in one.form["query"]]
    assert own
    assert all("tenant=ml" in one.path for one in own)


async def test_exporters_that_are_scraped_directly_are_judged_by_their_records() -> None:
    page = "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
    async with HttpServer(web.says(page, content_type="text/plain")) as exporter:
        result = await checked(
            HERE,
            KEDA_GPU_SCALER_PROMETHEUS_TIMEOUT=None,
            KEDA_GPU_SCALER_SCRAPE_TARGETS=exporter.url,
        )
    assert [one["rule"] for one in json.loads(result.stdout)["findings"]] == [
        "no-readiness",
        "no-pods",
    ]


async def test_a_server_that_refuses_our_own_questions_is_judged_by_its_answers() -> None:
    async def picky(request: web.Request, writer: asyncio.StreamWriter) -> None:
        reply = web.says("{}", status=422) if "count(" in request.form["query"] else healthy
        await reply(request, writer)

    async with HttpServer(picky) as server:
        why = (await found(server.url))["no-pods"][1]
    assert why == "the source shows no GPU of deployment/bert"


async def test_the_kubernetes_api_is_asked_where_the_settings_say_so(
    empty: HttpServer, tmp_path: Path
) -> None:
    async with api_server.serving(ApiServer()) as api:
        result = await checked(
            SLEEPING,
            "--prometheus-url",
            empty.url,
            KEDA_GPU_SCALER_KUBERNETES="true",
            KUBECONFIG=api.kubeconfig(tmp_path, token=api_server.TOKEN),
        )
    # It lists no pods: the workload is known to be empty, and readiness to be known.
    assert {one["rule"] for one in json.loads(result.stdout)["findings"]} == {"demand-unknown"}


def test_a_source_is_refused_without_live() -> None:
    command = ["check", "-", "--prometheus-url", "http://localhost:9090"]
    assert CliRunner().invoke(cli.app, command, input=HERE).exit_code == 2


async def test_a_wrong_setting_is_a_wrong_argument() -> None:
    assert (await checked(HERE, "--prometheus-url", "nowhere")).exit_code == 2
