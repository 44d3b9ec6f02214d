"""Every query of the dashboard and of the alerts finds its series, on a Prometheus that scrapes.

The scalers, the GPUs and the Prometheus are processes. What kube-state-metrics and KEDA would show
beside them is written into that Prometheus.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import httpx
import promql_parser
import pytest
import trustme

from keda_gpu_scaler.pb import externalscaler_pb2, externalscaler_pb2_grpc
from testbed import series
from testbed.processes import free_port, until
from testbed.prometheus import PrometheusServer
from tests.cli.test_simulate import simulating
from tests.repository import test_alerts, test_dashboard
from tests.support import api_server, kube_state
from tests.support.alert_messages import alert, group
from tests.support.api_server import ApiServer
from tests.support.kube_state import KubePod, Listed
from tests.support.serving import environment, said, started

PATIENCE_SECONDS = 60.0
LEAST = 60
"""Queries and selectors there are, roughly: an empty list would find everything."""
HPA = "kube_horizontalpodautoscaler"
TOKEN = "s3cr3t-t0ken"
SETTINGS = """\
sources:
  default: {{type: prometheus, url: "{prometheus}", step: 1s, collection: 2s}}
  lost: {{type: prometheus, url: "http://127.0.0.1:1", step: 1s}}
own_promql: allow
webhook_token: {token}
webhook_peers: http://127.0.0.1:{port},http://127.0.0.1:1
http_address: 127.0.0.1:{port}
grpc_cert_file: {directory}/tls.crt
grpc_key_file: {directory}/tls.key
"""
TRIGGERS = {
    "bert": {
        "workload": "bert",
        "window": "2s",
        "demandQuery": "sum(up) + 1",
        "demandThreshold": "10",
    },
    "unknown": {"workload": "bert", "source": "lost", "onUnknown": "error"},
    "refused": {"workload": "bert", "threshold": "none"},
}
"""One that is measured, one with an unknown load, one that is wrong."""
METRICS = ("gpu-utilization", "gpu-demand")


@dataclass(frozen=True, slots=True)
class Scaler:
    """One `keda-gpu-scaler serve` with TLS on its gRPC port."""

    http_port: int
    stub: externalscaler_pb2_grpc.ExternalScalerStub

    @property
    def target(self) -> str:
        """What a Prometheus scrapes."""
        return f"127.0.0.1:{self.http_port}"

    async def poll(self) -> None:
        """Ask about every trigger, as KEDA does; two of them are answered with an error."""
        for name, metadata in TRIGGERS.items():
            trigger = {"threshold": "70", **metadata}
            asked = externalscaler_pb2.ScaledObjectRef(
                name=name, namespace="ml", scalerMetadata=trigger
            )
            with contextlib.suppress(grpc.aio.AioRpcError):
                await self.stub.IsActive(asked)
            for metric in METRICS:
                wanted = externalscaler_pb2.GetMetricsRequest(
                    scaledObjectRef=asked, metricName=metric
                )
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await self.stub.GetMetrics(wanted)

    async def notify(self) -> None:
        """Send one message that is accepted, and one that is refused."""
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            for token in (TOKEN, "another"):
                known = {"authorization": f"Bearer {token}"}
                await client.post(
                    f"http://{self.target}/webhook", json=group(alert()), headers=known
                )


@dataclass(frozen=True, slots=True)
class Files:
    """A scaler's settings and its certificate, in a directory of its own."""

    directory: Path
    prometheus: str
    authority: trustme.CA = field(default_factory=trustme.CA)
    http_port: int = field(default_factory=free_port)

    def environment(self, kubeconfig: str) -> dict[str, str]:
        """Write the files and return the environment that names them."""
        self.directory.mkdir()
        leaf = self.authority.issue_cert("127.0.0.1")
        leaf.private_key_pem.write_to_path(str(self.directory / "tls.key"))
        leaf.cert_chain_pems[0].write_to_path(str(self.directory / "tls.crt"))
        settings = self.directory / "settings.yaml"
        settings.write_text(
            SETTINGS.format(
                prometheus=self.prometheus,
                token=TOKEN,
                port=self.http_port,
                directory=self.directory,
            )
        )
        given = environment(CONFIG=str(settings), KUBERNETES=str(bool(kubeconfig)).lower())
        elsewhere = {"KEDA_GPU_SCALER_SCRAPE_TARGETS", "KEDA_GPU_SCALER_HTTP_ADDRESS"}
        kept = {name: text for name, text in given.items() if name not in elsewhere}
        return kept | {"KUBECONFIG": kubeconfig}


@contextlib.asynccontextmanager
async def scaler(files: Files, kubeconfig: str = "") -> AsyncIterator[Scaler]:
    """Run a scaler; with a kubeconfig, it follows that cluster."""
    with started(files.environment(kubeconfig)) as process:
        listening = await asyncio.to_thread(said, process, "serve.listening")
        trusted = grpc.ssl_channel_credentials(files.authority.cert_pem.bytes())
        address = f"127.0.0.1:{listening['grpc_port']}"
        async with grpc.aio.secure_channel(address, trusted) as channel:
            yield Scaler(files.http_port, externalscaler_pb2_grpc.ExternalScalerStub(channel))


def beside(now: float, pods: Iterable[str]) -> Iterator[series.Series]:
    """Yield what kube-state-metrics and KEDA show: owners, the HPA, and errors that KEDA counts."""
    named = {"namespace": "ml", "horizontalpodautoscaler": "keda-hpa-bert"}
    replicas = {"current": 2, "desired": 2}
    statuses = [
        Listed(metric=f"{HPA}_status_{what}_replicas", labels=named, value=count)
        for what, count in replicas.items()
    ]
    specs = [
        Listed(metric=f"{HPA}_spec_{what}_replicas", labels=named, value=count)
        for what, count in {"min": 1, "max": 8}.items()
    ]
    specs += [
        Listed(
            metric=f"{HPA}_status_condition",
            labels={**named, "condition": "ScalingActive", "status": "false"},
            value=1,
        ),
        Listed(
            metric=f"{HPA}_spec_target_metric",
            labels={
                **named,
                "metric_name": "s0-gpu-utilization",
                "metric_target_type": "average",
            },
            value=70,
        ),
    ]
    listed = [KubePod(name=name, owner=owner(name)) for name in pods]
    more = KubePod(name="bert-more", owner=listed[0].owner, ready=None, phase="Pending")
    listed.append(replace(more, unschedulable=True))
    owners = {each.owner for each in listed}
    links = [kube_state.link(*each, ("Deployment", "bert")) for each in owners]
    yield from kube_state.history(now, [*listed, *links, *statuses, *specs, kube_state.up()])
    counted = [(now - 600 + 30 * count, float(count)) for count in range(21)]
    yield series.Series("keda_scaled_object_errors_total", KEDA, counted)


KEDA = {"namespace": "keda", "exported_namespace": "ml", "scaledObject": "bert"}


def owner(pod: str) -> tuple[str, str]:
    return "ReplicaSet", pod.rpartition("-")[0]


def selectors(query: str) -> list[str]:
    """Return every selector of a query, as it is written there but for its range."""
    found: list[str] = []

    def note(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node.prettify())

    promql_parser.walk(promql_parser.parse(query), note)
    return found


def wanted() -> dict[str, str]:
    """Return whatever has to find series, by where it stands."""
    alerts = {
        f"{name}: {selector}": selector
        for name, rule in test_alerts.rules().items()
        for selector in selectors(rule["expr"])
    }
    return alerts | {f"{title}: {query}": query for title, query in test_dashboard.queries()}


@dataclass(frozen=True, slots=True)
class Scene:
    """A Prometheus that scrapes two scalers, of which the second follows a Kubernetes API."""

    prometheus: PrometheusServer
    scalers: tuple[Scaler, Scaler]

    async def finds(self, missing: dict[str, str]) -> bool:
        """Poll and notify the scalers once; leave in `missing` which queries find nothing yet."""
        for each in self.scalers:
            await each.poll()
            await each.notify()
        for place, query in list(missing.items()):
            if await self.prometheus.query(query):
                del missing[place]
        return not missing


@contextlib.asynccontextmanager
async def scene(directory: Path) -> AsyncIterator[Scene]:
    async with contextlib.AsyncExitStack() as stack:
        _, gpus = stack.enter_context(simulating("--workload", "ml/bert=2:90"))
        exporters = scraping(gpus.removeprefix("http://"), job="dcgm")
        prometheus = await stack.enter_async_context(PrometheusServer(directory, [exporters]))
        api = await stack.enter_async_context(api_server.serving(ApiServer()))
        kubeconfig = api.kubeconfig(directory, token=api_server.TOKEN)
        one, other = (Files(directory / name, prometheus.url) for name in ("one", "other"))
        scalers = (
            await stack.enter_async_context(scaler(one)),
            await stack.enter_async_context(scaler(other, kubeconfig)),
        )
        shown = await prometheus.wait_for('DCGM_FI_PROF_GR_ENGINE_ACTIVE{pod=~"bert-.+"}')
        await prometheus.write(beside(time.time(), {each["metric"]["pod"] for each in shown}))
        targets = [each.target for each in scalers]
        await prometheus.reload([exporters, scraping(*targets, job="keda-gpu-scaler")])
        yield Scene(prometheus, scalers)


def scraping(*targets: str, job: str) -> dict[str, Any]:
    static = [{"targets": list(targets)}]
    return {"job_name": job, "static_configs": static, "honor_labels": True}


@pytest.mark.needs("prometheus")
async def test_every_query_of_the_dashboard_and_every_selector_of_an_alert_finds_series(
    tmp_path: Path,
) -> None:
    missing = wanted()
    assert len(missing) > LEAST
    async with scene(tmp_path) as set_up:
        with contextlib.suppress(TimeoutError):
            await until(lambda: set_up.finds(missing), PATIENCE_SECONDS, "all find series")
    assert not missing
