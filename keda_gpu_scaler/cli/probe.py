"""`keda-gpu-scaler probe`: ask a scaler what KEDA asks, and explain what is wrong."""

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keda_gpu_scaler.cli.mistakes import Mistakes

if TYPE_CHECKING:
    from keda_gpu_scaler.cli.probing import Found, Trigger

_SCALED_OBJECT = "default/probe"
_SAMPLE = ("workload=probe", "threshold=70")


class Output(StrEnum):
    """How answers are written."""

    TEXT = "text"
    JSON = "json"


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
    namespace: Annotated[
        str,
        typer.Option(metavar="NAME", help="With --file: the namespace of objects that name none."),
    ] = "default",
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
    output: Annotated[
        Output,
        typer.Option("--output", "-o", metavar="|".join(Output), help="How to write the answers."),
    ] = Output.TEXT,
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
        target = probing.address(target, tls=ca_file is not None)
    triggers: list[Trigger] = []
    if file is not None:
        if metadata:
            wrong.note("--metadata", "it does not go with --file, which has the keys")
        with wrong.of("--file"):
            triggers = _of_file(file, namespace, scaled_object)
    else:
        with wrong.of("--scaled-object"):
            whose = _named(scaled_object or _SCALED_OBJECT)
        with wrong.of("--metadata"):
            keys = dict(map(_pair, metadata or _SAMPLE))
    for name, mistake in _unfitting(ca_file, server_name, cert_file, key_file):
        wrong.note(name, mistake)
    wrong.raise_any()
    tls = probing.Tls(ca_file, cert_file, key_file, server_name) if ca_file else None
    with wrong.of("--ca-file" if cert_file is None else "--cert-file"):
        opened = probing.open_channel(target, tls)
    wrong.raise_any()
    is_sample = file is None and not metadata
    question = probing.Question(
        triggers or [probing.Trigger(*whose, keys)], not spec_only and not is_sample, timeout
    )
    found = probing.Found(target)
    with opened:
        for line in probing.ask(opened, question, found, tls=tls is not None):
            if line.is_trouble:
                said = probing.lines(f"keda-gpu-scaler: {target}: {line.text}")
                typer.echo("\n".join(said), err=True)
            elif output is Output.TEXT:
                typer.echo(line.text)
    if output is Output.JSON:
        typer.echo(_json(found), nl=False)
    if not found.is_good:
        raise typer.Exit(1)


def _json(found: "Found") -> str:
    import orjson  # noqa: PLC0415 - for this output only

    return orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() + "\n"


def _named(scaled_object: str) -> tuple[str, str]:
    namespace, _, name = scaled_object.partition("/")
    if not namespace or not name:
        raise ValueError(f"{scaled_object!r} is not NAMESPACE/NAME")
    return namespace, name


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"{text!r} is not KEY=VALUE")
    return key, value


def _of_file(file: str, namespace: str, wanted: str | None) -> "list[Trigger]":
    """Return the triggers of a file, as KEDA would send them."""
    from keda_gpu_scaler.check.objects import Terms  # noqa: PLC0415 - for a file only
    from keda_gpu_scaler.cli import check, files, probing  # noqa: PLC0415 - likewise

    found = files.chosen({file: check.read(file)}, Terms(namespace), wanted)
    ours = [each for one in found.objects for each in one.ours]
    unknown = [finding for each in ours for finding in files.from_env(each)]
    files.require(found, ours, [*found.refused, *unknown])
    return [probing.Trigger(one.of.namespace, one.of.name, one.metadata) for one in ours]


def _unfitting(
    ca_file: Path | None, server_name: str | None, cert_file: Path | None, key_file: Path | None
) -> Iterator[tuple[str, str]]:
    """Yield the flags that would have no effect."""
    if (cert_file is None) != (key_file is None):
        yield "--cert-file, --key-file", "they go together"
    given = {"--cert-file": cert_file, "--key-file": key_file, "--server-name": server_name}
    for name, value in given.items():
        if ca_file is None and value is not None:
            yield name, "it goes only with --ca-file"
