"""`keda-gpu-scaler explain`: say why a workload was (not) scaled, with everything behind it.

A running scaler's record is read into the same values that the scaler wrote it from, so that the
text needs no knowledge of JSON.
"""

import asyncio
import re
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from keda_gpu_scaler import errors
from keda_gpu_scaler.cli import flags
from keda_gpu_scaler.cli.flags import file_option, option
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.transport import http_client, proxies
from keda_gpu_scaler.workbench import manifest_files
from keda_gpu_scaler.workbench.explain import gates, text
from keda_gpu_scaler.workbench.explain.drain import drain
from keda_gpu_scaler.workbench.explain.why_not import why_not

SERVER = "http://localhost:8080"
"""Where kubectl makes the HTTP port reachable; `_REACH_IT` says how."""
_OF_A_RUNNING_SCALER = ("server", "token_file", "ca_file", "kubeconfig", "context")
_FOR_A_RUNNING_SCALER = (
    "it is for a running scaler; with --file, set the connection to the source in "
    "KEDA_GPU_SCALER_PROMETHEUS_… variables"
)
_OF_A_FILE = ("prometheus_url", "at")
_FOR_A_FILE = "it needs --file: a running scaler uses its own sources, and decides now"
_STATUSES = {
    401: "it requires a token: name its file with --token-file",
    503: "it cannot read its own token",
}
_NOT_FOUND = 404
_REACH_IT = "; to reach it:\n  kubectl port-forward -n keda service/keda-gpu-scaler-http 8080"
_REASON_SHOWN = 8192
"""Characters: every mistake of a trigger that was refused."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to explain, where it is decided, and how it is shown."""

    scaled_object: Annotated[
        ScaledObject | None,
        typer.Argument(
            metavar="NAMESPACE/NAME",
            help="The ScaledObject to explain. With --file, by default all in the file.",
            parser=flags.read_scaled_object,
        ),
    ] = None
    file: Annotated[
        str | None,
        option("FILE|-", "Decide the ScaledObjects in a file, without a scaler.", "--file", "-f"),
    ] = None
    prometheus_url: Annotated[
        str | None, option("URL", "With --file: URL of the source, instead of the settings'.")
    ] = None
    at: Annotated[
        str | None,
        option(
            "TIME",
            "With --file: time of the decision: RFC 3339, Unix seconds, or how long ago (2h).",
        ),
    ] = None
    namespace: Annotated[str, option("NAME", "With --file: namespace of objects without one.")] = (
        "default"
    )
    server: Annotated[
        str | None, option("URL", f"URL of the scaler's HTTP port, by default {SERVER}.")
    ] = None
    token_file: Annotated[Path | None, file_option("File with the token of the HTTP port.")] = None
    ca_file: Annotated[Path | None, file_option("With https: the server's CA in PEM.")] = None
    why_not: Annotated[
        int | None,
        option(
            "N",
            "Only show what would give this number of replicas, or zero.",
            min=0,
            max=10_000,
        ),
    ] = None
    drain: Annotated[
        bool,
        typer.Option(
            "--drain", help="Only print the annotations that let the least busy pods go first."
        ),
    ] = False
    output: flags.Output = "text"
    timeout: Annotated[float, option("SECONDS", "Longest wait for each answer.", min=0.1)] = 10
    cluster: Annotated[
        bool, typer.Option(help="Show from Kubernetes what KEDA and the HPA do.")
    ] = True
    kubeconfig: Annotated[Path | None, file_option("Kubeconfig, by default kubectl's.")] = None
    context: Annotated[str | None, option("NAME", "Context, by default the current one.")] = None


def explain(options: Options) -> None:
    """Show the decision for a ScaledObject, with everything that it depends on.

    A running scaler decides again, as for a call of KEDA, and changes nothing. With --file, the
    command itself decides as a scaler that has just started, without KEDA, from the sources in the
    settings of serve (KEDA_GPU_SCALER_… variables) or from --prometheus-url.

    For a running scaler, it also shows from Kubernetes what holds the replicas, or why it cannot.

    Exit status: 0 if there is a decision, 1 if the scaler or the source does not answer, or the
    scaler has no such ScaledObject, 2 for a wrong argument, file or setting.
    """
    _refuse_combinations(options)

    if options.file is not None:
        asyncio.run(_explain_file(options, options.file))
    elif options.scaled_object is None:
        raise flags.wrong("NAMESPACE/NAME", "name a ScaledObject, or give --file")
    else:
        server = (options.server or SERVER).rstrip("/")
        if not server.startswith(("http://", "https://")):
            what = f"{server!r} is not a URL: expected http://… or https://…"
            raise flags.wrong("--server", what)
        asyncio.run(_explain_running(options, options.scaled_object, server))


def _refuse_combinations(options: Options) -> None:
    if options.drain and options.why_not is not None:
        raise flags.wrong("--why-not, --drain", "give only one of them")
    if options.drain and options.at is not None:
        raise flags.wrong("--at", "--drain is about the pods that there are now")
    if options.drain and options.output == "json":
        what = "--drain prints commands; the loads of pods are in the record"
        raise flags.wrong("--output", what)
    is_file = options.file is not None
    unfitting = _OF_A_RUNNING_SCALER if is_file else _OF_A_FILE
    why = _FOR_A_RUNNING_SCALER if is_file else _FOR_A_FILE
    for name in unfitting:
        if getattr(options, name) is not None:
            raise flags.wrong(f"--{name.replace('_', '-')}", why)


async def _explain_running(options: Options, scaled_object: ScaledObject, server: str) -> None:
    records, behind, failure = [], None, None
    try:
        records = await _fetch_records(f"{server}/api/v1/triggers/{scaled_object}", options)
    except (errors.SourceError, OSError, UnicodeError) as error:
        is_closed = isinstance(error, errors.SourceUnreachableError) and options.server is None
        shown = re.sub("//.*@", "//", server)  # without a password
        hint = _REACH_IT if is_closed else ""
        if str(error) == "illegal request line":  # h11's words for an answer that is not HTTP
            hint = ": this is no HTTP port; the scaler's is 8080 by default, and 6000 is for gRPC"
        failure = flags.failure(f"{shown}: {error}{hint}")
    if options.cluster and options.why_not is None and not options.drain:
        from keda_gpu_scaler.workbench.explain import fetching  # noqa: PLC0415 - it loads what speaks to Kubernetes

        try:
            behind = await fetching.fetch_gates(
                scaled_object, records, options.kubeconfig, options.context, options.timeout
            )
        except errors.SourceError as error:
            flags.failure(
                "cannot show what holds the replicas (--no-cluster leaves it out): "
                f"{errors.without_controls(str(error))}"
            )
    if records or behind is not None:
        _show(records, options, behind)
    if failure is not None:
        raise failure


async def _explain_file(options: Options, file: str) -> None:
    """Decide the triggers of a file here; a source that gives nothing is a failure."""
    from keda_gpu_scaler.workbench import local  # noqa: PLC0415 - it loads all that `serve` does

    is_past = options.at is not None
    try:
        at = None if options.at is None else local.instant(options.at, time.time())
        settings = local.source_settings(options.prometheus_url, is_past=is_past)
        texts = {file: manifest_files.read_text(file)}
        triggers = local.given(texts, options.namespace, settings.access, options.scaled_object)
        specs = [trigger.spec for trigger in triggers]
        async with local.open_evaluator(
            specs, settings, slow_seconds=options.timeout, at=at
        ) as evaluator:
            records = await asyncio.gather(*(evaluator.record(*trigger) for trigger in triggers))
    except (errors.SettingsError, OSError, ValueError) as error:
        raise flags.failure(error, status=2) from error
    _show(records, options)
    sources = [record.source for record in records]
    troubles = {source.trouble: None for source in sources if source.snapshot_at is None}
    for trouble in filter(None, troubles):
        flags.failure(trouble)
    if troubles:
        raise typer.Exit(1)


def _show(records: Sequence[Record], options: Options, behind: gates.Gates | None = None) -> None:
    answers = None
    if options.why_not is not None:
        answers = [why_not(record, options.why_not) for record in records]
    if options.drain:  # one pod has one cost: that of the first trigger
        first = {record.scaled_object: record for record in reversed(records)}
        for record in reversed(first.values()):
            typer.echo("\n".join(drain(record)))
    elif options.output == "json":
        values = {"triggers": records, "gates": behind} if answers is None else answers
        typer.echo(msgspec.json.format(msgspec.json.encode(values)))
    elif answers is None:
        text.write(records, behind)
    else:
        text.write_why_not(answers)


@dataclass(frozen=True)
class _Records:
    triggers: list[Record]


async def _fetch_records(url: str, options: Options) -> list[Record]:
    if mistakes := proxies.mistakes():
        raise errors.SourceUnreachableError("; ".join(mistakes))
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
    except ssl.SSLError as error:
        message = f"{options.ca_file} holds no certificate in PEM"
        raise errors.SourceUnreachableError(message) from error
    auth = None
    if options.token_file is not None:
        token = options.token_file.read_text(errors="replace").strip()
        auth = http_client.Bearer(lambda: token)
    requests = http_client.Client(
        timeout_seconds=options.timeout, auth=auth, verify=context, proxy=proxies.of(url)
    )
    try:
        answer = await requests.fetch(url)
    finally:
        await requests.close()
    if answer.status != http_client.OK:
        text = bytes(answer.body).decode(errors="replace")
        message = (
            _STATUSES.get(answer.status) or f"HTTP {answer.status}: {http_client.printable(text)}"
        )
        if answer.status == _NOT_FOUND:
            message = http_client.printable(text, _REASON_SHOWN)
        raise errors.SourceRefusedError(message)
    try:
        return msgspec.json.decode(answer.body, type=_Records).triggers
    except msgspec.MsgspecError as error:
        why = http_client.error_text(error)
        message = f"no records: is this the HTTP port of a scaler of this version? ({why})"
        raise errors.SourceMalformedError(message) from error
