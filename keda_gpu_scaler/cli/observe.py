"""`keda-gpu-scaler observe`: the scaler without KEDA, which asks about ScaledObjects in files."""

from pathlib import Path
from typing import Annotated

import typer

from keda_gpu_scaler.cli import serve
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.workbench.observing import Observing


def observe(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Folder with ScaledObjects in YAML; read again when a file changes.",
        ),
    ],
) -> None:
    """Evaluate the triggers of ScaledObjects in files, until a signal ends it.

    It has the pages, metrics and history of serve, but no gRPC port: KEDA and the HPA cannot call
    it, so it scales nothing.

    Settings, signals and the exit status are those of serve.
    """

    async def ask(access: Access, evaluator: Evaluator, observe: facts.Observer) -> None:
        await Observing(folder, access=access, evaluator=evaluator, observe=observe).run()

    serve.start(ask)
