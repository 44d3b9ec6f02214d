"""`keda-gpu-scaler deletion-cost`: let the least busy pods go first when the HPA scales in."""

from typing import Annotated

import typer

from keda_gpu_scaler.cli import flags, serve
from keda_gpu_scaler.cli.flags import option
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.evidence.kubernetes.api import Api
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.workload import is_namespace
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.workbench.costs import CostWriter

LONGEST_SECONDS, SHORTEST_SECONDS = 300.0, 1.0


def deletion_cost(
    *,
    namespace: Annotated[
        list[str], option("NAME", "Namespace with ScaledObjects and pods; may be repeated.")
    ],
    ahead: Annotated[
        str, option("DURATION", "How long before a possible scale-in costs are written.")
    ] = "30s",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only log which pods would go first.")
    ] = False,
) -> None:
    """Write pod-deletion-cost on pods of Deployments shortly before the HPA can scale in.

    The least busy pods get the lowest cost. It evaluates the triggers as observe does, and removes
    what it wrote when the scale-in is over, when the load is unknown, and at its own start and end.
    A cost that someone else has written stays.

    Run one at a time. Settings, signals, pages and the exit status are those of observe.
    """
    try:
        ahead_seconds = durations.bounded("--ahead", ahead, LONGEST_SECONDS, SHORTEST_SECONDS)
    except ValueError as error:
        raise flags.failure(error, status=2) from error
    for name in namespace:
        if not is_namespace(name):
            raise flags.wrong("--namespace", f"{name!r} is no Kubernetes namespace name")

    async def ask(access: Access, evaluator: Evaluator, observe: facts.Observer) -> None:
        writer = CostWriter(
            Api(),
            dict.fromkeys(namespace),
            access=access,
            evaluator=evaluator,
            observe=observe,
            ahead_seconds=ahead_seconds,
            dry_run=dry_run,
        )
        await writer.run()

    serve.start(ask)
