"""The life of the process: start in order, stop in reverse order.

    observers, certificates → sources → evaluator → HTTP → alerts of other replicas → gRPC
                          → ready … wait for the event …
    not ready → gRPC drains → HTTP → other replicas → evaluator → sources → the last spans

A process that observes has no gRPC: its caller brings what asks about ScaledObjects.

This module connects the parts; each gets what it needs as arguments. The caller handles signals: it
sets an event. If a part ends before it was asked to, the process ends too.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog

from keda_gpu_scaler import errors, service, sources, web
from keda_gpu_scaler.alerts import Alerts
from keda_gpu_scaler.alerts.forwarding import Replicas
from keda_gpu_scaler.alerts.replicas import Peers
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.settings import Settings
from keda_gpu_scaler.telemetry import facts, metrics
from keda_gpu_scaler.telemetry.history import History
from keda_gpu_scaler.telemetry.log_lines import LogObserver, Observers
from keda_gpu_scaler.trigger.access import Access

if TYPE_CHECKING:
    from keda_gpu_scaler.transport.certificates import CertificateFiles, Server


Asking = Callable[[Access, Evaluator, facts.Observer], Coroutine[None, None, None]]
"""Asks an evaluator about ScaledObjects until it is cancelled."""


class Listening(NamedTuple):
    """The ports that are open; without gRPC, as this process observes, its port is 0."""

    grpc_port: int
    http_port: int


async def _supervise(stop: asyncio.Event, parts: Mapping[str, asyncio.Task[None]]) -> None:
    """Wait for `stop`; RuntimeError if a part of the process ends before it was asked to."""
    stopped = asyncio.create_task(stop.wait(), name="stop")
    try:
        await asyncio.wait({stopped, *parts.values()}, return_when=asyncio.FIRST_COMPLETED)
        for name, task in parts.items():
            if task.done():
                cause = None if task.cancelled() else task.exception()
                raise RuntimeError(f"{name} ended by surprise") from cause
    finally:
        stopped.cancel()


def _in_background(
    stack: AsyncExitStack, work: Coroutine[None, None, None], name: str
) -> asyncio.Task[None]:
    """Begin a task that is cancelled with the stack."""
    task = asyncio.create_task(work, name=name)
    stack.push_async_callback(asyncio.wait, {task})
    stack.callback(task.cancel)
    return task


async def run(  # noqa: PLR0915 - what starts, one after the other
    settings: Settings,
    stop: asyncio.Event,
    on_listening: Callable[[Listening], None] = lambda _listening: None,
    lines_dropped: Callable[[], int] = int,
    *,
    asking: Asking | None = None,
) -> None:
    """Serve until `stop` is set, which may be before everything has started; then drain.

    `on_listening` is called with the ports once calls are answered; `lines_dropped` returns how
    many lines of the log were not written. `asking` asks about ScaledObjects in the place of KEDA,
    which cannot call this process then. SettingsError: a port, its certificate or the cluster
    cannot be used. RuntimeError: a part ended unexpectedly.
    """
    logger = structlog.get_logger()
    logger.info("serve.starting", **settings.model_dump(mode="json", exclude_none=True))
    async with AsyncExitStack() as stack:
        loop = asyncio.get_running_loop()
        telemetry = metrics.Telemetry(
            lines_dropped=lines_dropped, tasks=lambda: len(asyncio.all_tasks(loop))
        )
        history = History(time.time)
        observers = {"metrics": telemetry, "log": LogObserver(), "history": history}
        if settings.traces:
            from keda_gpu_scaler.telemetry import traces  # noqa: PLC0415 - it loads an extra that few install

            export = traces.Export()
            stack.push_async_callback(export.stop, settings.shutdown_grace_seconds)
            observers["traces"] = traces.SpanObserver(export.tracer)
        observe = Observers(observers)
        grpc_files = settings.grpc_cert_file, settings.grpc_key_file, settings.grpc_client_ca_file
        grpc_certificate = _certificate("grpc", grpc_files, telemetry, observe)
        http_files = settings.http_cert_file, settings.http_key_file, None
        http_certificate = _certificate("http", http_files, telemetry, observe)
        alerts = Alerts(settings.webhook_lifetime_seconds, time.time, observe)
        webhook_token = settings.webhook_secret
        replicas = Replicas(settings.webhook_peers, webhook_token, ca_file=settings.webhook_ca_file)
        stack.push_async_callback(replicas.close)
        peers = Peers(replicas, alerts, observe)
        hook = None
        if webhook_token is not None:
            hook = web.Webhook(alerts, webhook_token, peers.broadcast, observe)
        evaluator = await sources.start_evaluator(
            stack, settings, observe, alerts=alerts, is_observing=asking is not None
        )
        # Nothing waits for it: a source that is down makes no pod unready, and ends no process.
        _in_background(stack, evaluator.look_at_sources(), "sources")
        ready = asyncio.Event()
        pages = web.create_app(
            telemetry.registry,
            ready.is_set,
            hook,
            settings.http_secret,
            web.Shown(evaluator, history),
            allowed=settings.http_namespaces,
        )
        http = web.HttpServer(
            pages, *settings.http_address, http_certificate.current if http_certificate else None
        )
        with _named("KEDA_GPU_SCALER_HTTP_ADDRESS"):
            http_port = await http.start()
        stack.push_async_callback(http.stop)
        await peers.meet()
        parts = {
            "the exchange of alerts": _in_background(stack, peers.run(), "alerts"),
            "the HTTP server": http.serving,
        }
        if asking is None:
            server = service.GrpcServer(
                evaluator,
                access=settings.access,
                address=settings.grpc_address.explicit,
                observe=observe,
                max_concurrent_rpcs=settings.max_concurrent_rpcs,
                connection_max_age_seconds=settings.connection_max_age_seconds,
                certificate=grpc_certificate,
            )
            with _named("KEDA_GPU_SCALER_GRPC_ADDRESS"):
                grpc_port = await server.start()
            stack.push_async_callback(server.stop, settings.shutdown_grace_seconds)
        else:
            grpc_port = 0
            asked = asking(settings.access, evaluator, observe)
            parts["observing"] = _in_background(stack, asked, "observe")
        ready.set()
        stack.callback(ready.clear)
        listening = Listening(grpc_port, http_port)
        logger.info(
            "serve.listening",
            **listening._asdict(),
            grpc_tls=grpc_certificate is not None,
            grpc_client_ca=settings.grpc_client_ca_file is not None,
            http_tls=http_certificate is not None,
            http_token=settings.http_secret is not None,
        )
        on_listening(listening)
        await _supervise(stop, parts)
        logger.info("serve.stopping")
    logger.info("serve.stopped")


def _certificate(
    server: "Server",
    files: tuple[Path | None, Path | None, Path | None],
    telemetry: metrics.Telemetry,
    observe: facts.Observer,
) -> "CertificateFiles | None":
    """Follow the certificate files of a port, and show their expiry; None: no TLS."""
    cert, key, client_ca = files
    if cert is None:
        return None
    from keda_gpu_scaler.transport import certificates  # noqa: PLC0415 - it loads cryptography, for TLS only

    with _named(f"KEDA_GPU_SCALER_{server.upper()}_CERT_FILE"):
        certificate = certificates.CertificateFiles(
            cert,
            key,
            client_ca,
            loaded=lambda expiry: observe(facts.CertificateLoaded(server, expiry)),
            refused=lambda reason: observe(facts.CertificateRefused(server, reason)),
        )
    telemetry.follow_certificate(server, lambda: certificate.current().expiries)
    return certificate


@contextlib.contextmanager
def _named(setting: str) -> Iterator[None]:
    try:
        yield
    except errors.SettingsError as error:
        raise errors.SettingsError(f"{setting}: {error}") from error
