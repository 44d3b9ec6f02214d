"""`keda-gpu-scaler probe`: ask a scaler what KEDA asks, and explain what is wrong."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keda_gpu_scaler.cli.mistakes import Mistakes

if TYPE_CHECKING:
    from keda_gpu_scaler.cli.probing import Trigger

PORT = 6000
"""Where a scaler listens unless its settings say otherwise."""
_TARGET = re.compile(
    r"((?P<scheme>http|grpc)(?P<tls>s?)://)?"
    r"(?P<host>[^\s:/?#@\[\]]+|\[[0-9A-Fa-f:.%]+\])(:(?P<port>[0-9]{1,5}))?/?",
    re.IGNORECASE,
)
_LAST_PORT = 65535
_SCALED_OBJECT = "default/probe"
_SAMPLE = ("workload=probe", "threshold=70")


def probe(  # noqa: PLR0913 - each argument is one flag of the command line
    target: Annotated[
        str,
        typer.Argument(
            metavar="HOST[:PORT]", help="Where the scaler's gRPC port is; without a port, 6000."
        ),
    ],
    *,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", "-f", metavar="FILE|-", help="Ask about the triggers of its ScaledObjects."
        ),
    ] = None,
    scaled_object: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE/NAME",
            help="Whose trigger to ask about; with --file, all in it unless one is named.",
        ),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A key of the trigger to ask about; may be repeated. Without it and --file, a "
            "sample is asked about, and no value of it.",
        ),
    ] = None,
    spec_only: Annotated[
        bool,
        typer.Option(
            "--spec-only", help="Do not ask for values: no source and no workload is needed."
        ),
    ] = False,
    ca_file: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, metavar="FILE", help="Speak TLS; the server's CA, in PEM."
        ),
    ] = None,
    cert_file: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            metavar="FILE",
            help="With --ca-file: a certificate to show.",
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, metavar="FILE", help="With --cert-file: its private key."
        ),
    ] = None,
    server_name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --ca-file: the name in the server's certificate, if not HOST.",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How long to wait for everything.")
    ] = 5,
) -> None:
    """Ask a scaler for its health and for what KEDA asks about a trigger.

    GetMetricSpec says on which metric the HPA scales, and with which target; GetMetrics what number
    KEDA would get now; IsActive whether KEDA would activate the workload. Nothing is changed. A
    proxy that the environment names is used.

    Exit status: 0 when everything is answered well, 1 when something is not, 2 for a wrong argument
    or file.
    """
    # Silences C-core's own messages about handshakes; it reads this variable when it is loaded.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from keda_gpu_scaler.cli import probing  # noqa: PLC0415 - as just said

    wrong = Mistakes()
    with wrong.of("HOST[:PORT]"):
        target = address(target, tls=ca_file is not None)
    triggers: list[Trigger] = []
    with wrong.of("--file"):
        triggers = [] if file is None else _triggers_of(file, scaled_object)
    with wrong.of("--scaled-object"):
        namespace, name = _split(scaled_object or _SCALED_OBJECT, "/", "NAMESPACE/NAME")
    with wrong.of("--metadata"):
        keys = dict(_split(pair, "=", "KEY=VALUE") for pair in metadata or _SAMPLE)
    if file is not None and metadata:
        wrong.note("--metadata", "it does not go with --file, which has the keys")
    if (cert_file is None) != (key_file is None):
        wrong.note("--cert-file, --key-file", "they go together")
    for flag, value in {"--cert-file": cert_file, "--server-name": server_name}.items():
        if ca_file is None and value is not None:
            wrong.note(flag, "it goes only with --ca-file")
    wrong.raise_any()
    with wrong.of("--ca-file" if cert_file is None else "--cert-file"):
        channel = probing.open_channel(target, ca_file, cert_file, key_file, server_name)
    wrong.raise_any()

    is_sample = file is None and not metadata
    is_good = True
    with channel:
        scaler = probing.Scaler(channel, timeout, tls=ca_file is not None)
        for line in scaler.answers(
            triggers or [probing.Trigger(namespace, name, keys)],
            values=not spec_only and not is_sample,
        ):
            if isinstance(line, probing.ProbeError):
                is_good = False
                typer.echo(f"keda-gpu-scaler: {target}: {line}", err=True)
            else:
                typer.echo(line)
    if not is_good:
        raise typer.Exit(1)


def address(text: str, *, tls: bool) -> str:
    """Return where to connect to, as gRPC wants it: with a port, and without a URL's scheme."""
    match = _TARGET.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not HOST or HOST:PORT, such as keda-gpu-scaler.keda.svc:{PORT}"
        )
    if match["scheme"] and bool(match["tls"]) is not tls:
        fix = "plaintext: leave --ca-file out" if tls else "TLS: give --ca-file, the server's CA"
        raise ValueError(f"{text!r} means {fix}, or write no scheme")
    port = int(match["port"] or PORT)
    if port > _LAST_PORT:  # which gRPC would take modulo 65536
        raise ValueError(f"{text!r} has a port that is not below {_LAST_PORT + 1}")
    return f"{match['host']}:{port}"


def _split(text: str, separator: str, form: str) -> tuple[str, str]:
    first, separated, second = text.partition(separator)
    if not first or not separated or (separator == "/" and not second):
        raise ValueError(f"{text!r} is not {form}")
    return first, second


def _triggers_of(file: str, wanted: str | None) -> "list[Trigger]":
    """Return the triggers of a file, as KEDA would send them."""
    from keda_gpu_scaler import check as core  # noqa: PLC0415 - likewise
    from keda_gpu_scaler.check.objects import Terms  # noqa: PLC0415 - for a file only
    from keda_gpu_scaler.cli import check, files, probing  # noqa: PLC0415 - likewise

    chosen = files.chosen({file: check.read(file)}, Terms("default"), wanted)
    ours = [trigger for manifest in chosen.objects for trigger in manifest.ours]
    unknown = [finding for trigger in ours for finding in core.from_env(trigger)]
    files.require(chosen, ours, [*chosen.refused, *unknown])
    return [probing.Trigger(*trigger.of.scaled_object, trigger.metadata) for trigger in ours]
