"""`keda-gpu-scaler observe`: what the scaler would ask for, decided for ScaledObjects in files."""

from pathlib import Path
from typing import Annotated

import typer

from keda_gpu_scaler.cli import serve


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
    """Decide the triggers of ScaledObjects in files until a signal ends it.

    It has the pages, metrics and history of serve, and no gRPC port: neither KEDA nor the HPA can
    ask it, so it scales nothing.

    Settings, signals and the exit status are those of serve.
    """
    serve.start(folder)
