"""`keda-gpu-scaler probe`: make KEDA's first calls to a scaler, and explain what is wrong."""

import os
import re
from pathlib import Path
from typing import Annotated

import typer

_TARGET = re.compile(r"(?!https?://).+:\d{1,5}")
_LAST_PORT = 65535
_SAMPLE = ("workload=probe", "threshold=70")


def probe(  # noqa: PLR0913 - each argument is one flag of the command line
    target: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="Where the scaler's gRPC port is.")
    ],
    *,
    ca_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Speak TLS; the server's CA, in PEM."),
    ] = None,
    cert_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="With --ca-file: a certificate to show."),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="With --cert-file: its private key."),
    ] = None,
    server_name: Annotated[
        str | None,
        typer.Option(help="With --ca-file: the name in the server's certificate, if not HOST."),
    ] = None,
    scaled_object: Annotated[
        str, typer.Option(metavar="NAMESPACE/NAME", help="Whose trigger to ask about.")
    ] = "default/probe",
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A key of the trigger to ask about; without any, a sample is asked about.",
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for everything.")] = 5,
) -> None:
    """Ask a scaler for its health and for the metrics of a trigger, as KEDA does.

    No source and no cluster is asked, so that it says whether callers reach the scaler. A proxy
    that the environment names is used. Exit status: 0 when both are answered well, 1 when one is
    not, 2 for a wrong argument.
    """
    # Silences C-core's own messages about handshakes; it reads this variable when it is loaded.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from keda_gpu_scaler.cli import probing  # noqa: PLC0415 - as just said

    try:
        _require_port(target)
        trigger = probing.Trigger(*_named(scaled_object), dict(map(_pair, metadata or _SAMPLE)))
        _require_fitting(ca_file, server_name, cert_file, key_file)
        tls = probing.Tls(ca_file, cert_file, key_file, server_name) if ca_file else None
        opened = probing.open_channel(target, tls)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    with opened:
        try:
            for line in probing.ask(opened, trigger, timeout, tls=tls is not None):
                typer.echo(line)
        except probing.ProbeError as error:
            typer.echo(f"keda-gpu-scaler: {target}: {error}", err=True)
            raise typer.Exit(1) from error


def _require_port(target: str) -> None:
    if _TARGET.fullmatch(target) is None:
        raise ValueError(f"{target!r} is not HOST:PORT")
    # gRPC takes a port number modulo 65536.
    if int(target.rpartition(":")[2]) > _LAST_PORT:
        raise ValueError(f"the port of {target!r} is not below 65536")


def _named(scaled_object: str) -> tuple[str, str]:
    namespace, _, name = scaled_object.partition("/")
    if not namespace or not name:
        raise ValueError(f"scaled object {scaled_object!r} is not NAMESPACE/NAME")
    return namespace, name


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"metadata {text!r} is not KEY=VALUE")
    return key, value


def _require_fitting(
    ca_file: Path | None, server_name: str | None, cert_file: Path | None, key_file: Path | None
) -> None:
    """Refuse flags that would have no effect."""
    if (cert_file is None) != (key_file is None):
        raise ValueError("--cert-file and --key-file go together")
    if ca_file is None and (cert_file is not None or server_name is not None):
        raise ValueError("--cert-file, --key-file and --server-name go only with --ca-file")
