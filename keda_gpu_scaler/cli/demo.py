"""`keda-gpu-scaler demo`: this scaler beside recipes of others, on one machine."""

import asyncio
import os
import textwrap
from pathlib import Path

import typer
from rich.console import Console

from keda_gpu_scaler.cli import flags
from keda_gpu_scaler.telemetry import logs
from keda_gpu_scaler.workbench.demo import playing, scenes, screen

_WIDTH, _SCENE_SECONDS = 80, 14
_NEXT = """\
Next, in a cluster without a GPU: docs/quickstart.md.
There, `keda-gpu-scaler explain NAMESPACE/NAME` shows every pod behind a decision."""


def demo() -> None:
    """Play four scenes of a GPU workload, under this scaler and under recipes of others.

    It needs no cluster and no GPU: pods, exporters, Prometheus, KEDA and the HPA are simulated, and
    the scaler with its gRPC port is real. The recipes are queries of KEDA's prometheus trigger with
    its defaults, by the same rules of KEDA and the HPA. On a terminal it takes about a minute, else
    seconds.
    """
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        # Lines of the log would disturb the screen.
        log = logs.configure(logs.LogLevel.ERROR, logs.LogFormat.JSON, nowhere)
        try:
            world = playing.World()
            with asyncio.Runner(loop_factory=lambda: world) as runner:
                story = runner.run(_play(world, Console()))
        except asyncio.CancelledError as end:
            raise typer.Exit from end
        finally:
            log.finish(seconds=1)
    typer.echo("\n".join(["", *textwrap.wrap(story, _WIDTH, break_on_hyphens=False), "", _NEXT]))


async def _play(world: playing.World, console: Console) -> str:
    flags.cancel_at_sigterm()
    ends = []
    for scene in scenes.SCENES:
        with screen.opened(console, scene) as show:
            seconds = _SCENE_SECONDS if console.is_terminal else 0
            ends.append(await playing.play(world, scene, show, seconds))
    return scenes.summary(*ends)
