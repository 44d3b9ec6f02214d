"""A scaler to observe: one with TLS, peers and a webhook, and triggers of every outcome."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import httpx
import trustme

from keda_gpu_scaler.pb import externalscaler_pb2, externalscaler_pb2_grpc
from tests.support.alert_messages import alert, group
from tests.support.processes import free_port
from tests.support.serving import environment, said, started

TOKEN = "s3cr3t-t0ken"  # noqa: S105 - no secret
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
