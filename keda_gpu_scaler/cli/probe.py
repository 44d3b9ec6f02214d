"""`keda-gpu-scaler probe`: ask a scaler what KEDA asks, and explain what is wrong."""

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from keda_gpu_scaler.cli import flags
from keda_gpu_scaler.cli.flags import Pair, file_option, option
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.workbench import check, manifest_files, probing


def probe(  # noqa: PLR0913 - each argument is one flag of the command line
    target: Annotated[
        str,
        typer.Argument(
            metavar="HOST[:PORT]", help="Address of the scaler's gRPC port, by default port 6000."
        ),
    ],
    *,
    file: Annotated[
        str | None, option("FILE|-", "Send the triggers of its ScaledObjects.", "--file", "-f")
    ] = None,
    scaled_object: Annotated[
        ScaledObject | None,
        option(
            "NAMESPACE/NAME",
            "ScaledObject in the calls. With --file, by default all in the file.",
            parser=flags.read_scaled_object,
        ),
    ] = None,
    metadata: Annotated[
        list[Pair] | None,
        option(
            "KEY=VALUE",
            "A key of the trigger; may be repeated. Without it and --file, probe sends a sample "
            "and asks for no values.",
            parser=flags.read_pair,
        ),
    ] = None,
    spec_only: Annotated[
        bool,
        typer.Option("--spec-only", help="Ask for no values, which need a source and a workload."),
    ] = False,
    sources: Annotated[
        bool, typer.Option("--sources", help="Ask also whether the scaler's sources answer.")
    ] = False,
    ca_file: Annotated[Path | None, file_option("Use TLS, with the server's CA in PEM.")] = None,
    cert_file: Annotated[Path | None, file_option("With --ca-file: client certificate.")] = None,
    key_file: Annotated[Path | None, file_option("With --cert-file: its private key.")] = None,
    server_name: Annotated[
        str | None,
        option("NAME", "With --ca-file: the name in the server's certificate, if not HOST."),
    ] = None,
    timeout: Annotated[float, option("SECONDS", "Longest wait for all answers.", min=0.1)] = 5,
) -> None:
    """Call a scaler as KEDA does, and show its answers.

    After the health check, GetMetricSpec returns the HPA's metric and its target, GetMetrics the
    number that KEDA would get now, and IsActive whether KEDA would activate the workload. Nothing
    is changed. Proxies in the environment are used.

    Exit status: 0 if all answers are good, 1 if one is not, 2 for a wrong argument or file.
    """
    if file is not None and metadata:
        raise flags.wrong("--metadata", "not together with --file, which has the keys")
    if (cert_file is None) != (key_file is None):
        raise flags.wrong("--cert-file, --key-file", "give both or neither")
    for flag, value in {"--cert-file": cert_file, "--server-name": server_name}.items():
        if ca_file is None and value is not None:
            raise flags.wrong(flag, "it needs --ca-file")
    try:
        target = probing.address(target)
    except ValueError as error:
        raise flags.wrong("HOST[:PORT]", error) from error
    if file is None:
        keys = dict(metadata) if metadata else {"workload": "probe", "threshold": "70"}
        triggers = [probing.reference(scaled_object or ScaledObject("default", "probe"), keys)]
    else:
        triggers = _triggers_of(file, scaled_object)
    try:
        channel = probing.open_channel(target, ca_file, cert_file, key_file, server_name)
    except ValueError as error:
        raise flags.wrong("--ca-file, --cert-file, --key-file", error) from error

    with channel:
        scaler = probing.Scaler(
            channel, timeout, typer.echo, lambda what: flags.failure(f"{target}: {what}")
        )
        values = not spec_only and (file is not None or bool(metadata))
        scaler.ask(triggers, values=values, sources=sources)
    if not scaler.is_good:
        raise typer.Exit(1)


def _triggers_of(file: str, wanted: ScaledObject | None) -> list[pb.ScaledObjectRef]:
    try:
        texts = {file: manifest_files.read_text(file)}
        triggers = manifest_files.triggers(texts, "default", wanted)
        manifest_files.refuse(chain.from_iterable(map(check.from_env, triggers)))
    except ValueError as error:
        raise flags.wrong("--file", error) from error
    return [probing.reference(trigger.of.scaled_object, trigger.metadata) for trigger in triggers]
