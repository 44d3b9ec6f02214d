"""`keda-gpu-scaler backtest`: replay recorded load under other thresholds, recipes and sizes."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from keda_gpu_scaler.cli import arguments
from keda_gpu_scaler.cli.arguments import option
from keda_gpu_scaler.spec.spec import ScaledObject


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to replay, what is assumed of its pods, and how the result is shown."""

    file: Annotated[str, typer.Argument(metavar="FILE|-", help="YAML with ScaledObjects.")]
    scaled_object: Annotated[
        ScaledObject | None,
        typer.Argument(
            metavar="NAMESPACE/NAME",
            help="The ScaledObject to replay; all in the file unless one is named.",
            parser=arguments.read_scaled_object,
        ),
    ] = None
    prometheus_url: Annotated[
        str | None, option("URL", "The Prometheus, over that of the settings.")
    ] = None
    namespace: Annotated[str, option("NAME", "The namespace of objects that name none.")] = (
        "default"
    )
    since: Annotated[str, option("DURATION", "How far back to read, such as 36h.")] = "7d"
    cache: Annotated[
        Path | None,
        option(
            "FILE", "Keep what is read; the next run reads only what is missing.", dir_okay=False
        ),
    ] = None
    threshold: Annotated[
        list[float] | None, option("NUMBER", "A threshold to try; may be repeated.")
    ] = None
    start_up: Annotated[str, option("DURATION", "Time from a pod's node to Ready.")] = "2m"
    node: Annotated[str, option("DURATION", "How long a pod waits for its node.")] = "0s"
    loading: Annotated[
        float, option("PERCENT", "GPU load while a model loads.", min=0, max=100)
    ] = 100
    capacity: Annotated[
        float | None,
        option("NUMBER", "Without threshold: the most demand that one replica can serve."),
    ] = None
    overloaded: Annotated[
        float, option("PERCENT", "Share of the time that may be overloaded.", min=0, max=100)
    ] = 1
    price: Annotated[float | None, option("NUMBER", "Price of a GPU for an hour.", min=0)] = None
    html: Annotated[
        Path | None, option("FILE", "Also write a page with plots.", dir_okay=False)
    ] = None
    output: Annotated[
        Literal["text", "json"], option("text|json", "How to write it.", "--output", "-o")
    ] = "text"


def backtest(options: Options) -> None:
    """Replay recorded load under this trigger, other thresholds and KEDA's prometheus trigger.

    Reads the samples of the last days from Prometheus, at most two queries a second, and computes
    the replicas of each alternative with the scaler's code and the rules of KEDA and the HPA. It
    changes nothing. The Prometheus is that of the settings of serve (KEDA_GPU_SCALER_… variables),
    or --prometheus-url.

    With a document of kind Episode in the file it is a test: it replays the load of the Episode and
    queries no source.

    Exit status: 0 when the load was replayed, 1 when the source has nothing to replay or the
    replicas are not as an Episode expects, 2 for a wrong argument, file or setting.
    """
    from keda_gpu_scaler.cli import backtesting, episodes, files  # noqa: PLC0415 - they load what --help does not need

    try:
        text = files.read(options.file)
    except ValueError as error:
        raise arguments.failure(error, status=2) from error
    if not episodes.run(options, text):
        asyncio.run(backtesting.run(options, text))
