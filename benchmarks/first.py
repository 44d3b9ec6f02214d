"""From `helm install` to the first right decision, by the quick start's commands.

On the real KEDA and API server of `make e2e`, whose nodes run the pods of our image as processes:
no image is pulled. The workload has its load before the scaler is there.
"""

import datetime as dt
import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.comparison import Detail, Measured
from testbed import guides
from testbed.cluster.cluster import Cluster
from testbed.cluster.generation import CLUSTER
from testbed.cluster.shell import Shell, open_shell

PROGRAMS = (*CLUSTER, "helm", "kubectl")
COUNTS = "curl --silent http://keda-gpu-scaler-http.keda.svc:8080/metrics"
LOGS = "kubectl logs -n keda -l app.kubernetes.io/name=keda-gpu-scaler --tail=-1"
SCALED = (
    "kubectl wait -n quickstart --for=jsonpath='{.spec.replicas}'=2 deployment/bert --timeout=3m"
)
AGAIN = """kubectl delete -f examples/quickstart/scaledobject.yaml
helm uninstall keda-gpu-scaler -n keda --wait
kubectl scale -n quickstart deployment/bert --replicas=1"""


class Round(NamedTuple):
    """Seconds of one installation."""

    install: float
    """Of `helm install --wait`."""
    start: float
    """Of it, from the scaler's process to its open port."""
    decision: float
    """From `kubectl apply` of the ScaledObject to the first decision."""
    calls: float
    """Of all calls of KEDA and of the HPA since then."""
    replicas: float
    """From `kubectl apply` to the replicas that the load needs: the first right decision."""


async def measure(directory: Path, rounds: int) -> Measured:
    """Follow the page's sections, the fourth and the fifth of them once for each round."""
    typed = _sections()
    (data := directory / "cluster").mkdir()
    with Cluster.running(data, runs_pods=True) as cluster:
        shell = open_shell(cluster, directory / "home")
        for commands in (*typed["2"], *typed["3"], typed["6"][0]):
            await shell.expect(commands)
        found = [await _round(shell, typed) for _ in range(rounds)]
    return Measured(details=[detail(found)], raw={"rounds": found})


def _sections() -> dict[str, list[str]]:
    """Return the commands of each numbered section, by Services' names."""
    typed: dict[str, list[str]] = {}
    here, there = "", ""
    for step in guides.steps(guides.page("quickstart")):
        if step.forwarded:
            here, there = step.forwarded
        elif not step.is_(guides.NOT_RUN):
            typed.setdefault(step.section[0], []).append(step.commands.replace(here, there))
    return typed


async def _round(shell: Shell, typed: dict[str, list[str]]) -> Round:
    began = time.time()
    await shell.expect(typed["4"][0])
    applied = time.time()
    await shell.expect(typed["5"][0])
    await shell.expect(SCALED)
    scaled = time.time()
    families = text_string_to_metric_families(await shell.expect(COUNTS))
    samples = [sample for family in families for sample in family.samples]
    process, calls = (
        sum(sample.value for sample in samples if sample.name == name)
        for name in ("process_start_time_seconds", "keda_gpu_scaler_rpc_duration_seconds_sum")
    )
    lines = [json.loads(line) for line in (await shell.expect(LOGS)).splitlines()]
    await shell.expect(AGAIN)
    listening = (_seconds(line) for line in lines if line["event"] == "serve.listening")
    decided = (_seconds(line) for line in lines if line["event"] == "decision.changed")
    return Round(
        applied - began,
        next(listening) - process,
        next(decided) - applied,
        calls,
        scaled - applied,
    )


def _seconds(line: dict[str, str]) -> float:
    return dt.datetime.fromisoformat(line["timestamp"]).timestamp()


def detail(rounds: Sequence[Round]) -> Detail:
    """Return the table of the stages."""
    found = Round(*map(median, zip(*rounds, strict=True)))
    cells = [
        ("`helm install --wait`", found.install, found.start),
        ("`kubectl apply` of the ScaledObject → the first decision", found.decision, found.calls),
        ("`kubectl apply` → the Deployment has the right number, 2", found.replicas, found.calls),
    ]
    return Detail(
        "first",
        "From the installation to the first right decision",
        ["from → to", f"seconds, median of {len(rounds)}", "of them the scaler's"],
        [[name, *(f"{seconds:.2f}" for seconds in each)] for name, *each in cells],
    )
