"""How long a survey of a week takes, and whether it is right: `make bench-survey`.

200 workloads, of which each sample is known, in a real Prometheus: some are never idle, some idle
for hours or days, and of some the exporter was down. The survey's hours are compared with a count
of the samples.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from testbed import programs
from testbed.prometheus import PrometheusServer

WORKLOADS, DAYS = 200, 7
SCRAPE_SECONDS, LIST_SECONDS = 30, 120
"""How often exporters and kube-state-metrics are scraped."""
MOST_SECONDS, MOST_MIB = 120, 400
"""The goals."""
WITHIN = 0.01
"""The share by which hours may differ from a count of the samples."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How the GPUs of a workload are used."""

    name: str
    idle: float
    """The share of its hours that are idle."""
    lost: float = 0.0
    """The share of the days, at the end, in which its exporter is down."""


VERDICTS = {"busy": "never idle", "part": "scale it", "forgotten": "idle for", "lost": "not known"}
"""How the sentence about each of them has to begin."""
KINDS = (Kind("busy", 0.0), Kind("part", 0.4), Kind("forgotten", 1.0), Kind("lost", 0.3, 0.7))


@dataclass(frozen=True, slots=True)
class Made:
    """One workload, a Deployment."""

    number: int

    @property
    def kind(self) -> Kind:
        return KINDS[self.number % len(KINDS)]

    @property
    def name(self) -> str:
        return f"{self.kind.name}-{self.number}"

    @property
    def pods(self) -> list[str]:
        return [f"{self.name}-7b6667bd9-{letter * 5}" for letter in "bcd"[: 1 + self.number % 3]]

    def loads(self, pod: int) -> list[int | None]:
        """Return what its GPU shows at each scrape; None: nothing."""
        chance = random.Random(f"{self.number} {pod}")  # noqa: S311 - a made-up load
        count = DAYS * 86_400 // SCRAPE_SECONDS
        per_hour, shown = 3600 // SCRAPE_SECONDS, round(count * (1 - self.kind.lost))
        loads: list[int | None] = []
        while len(loads) < count:
            is_idle = chance.random() < self.kind.idle
            loads += [0 if is_idle else chance.randint(30, 90) for _ in range(per_hour)]
        return [load if step < shown else None for step, load in enumerate(loads[:count])]


def exposition(end: float, workloads: list[Made]) -> Iterator[str]:
    """Yield the samples as OpenMetrics text, each metric by itself."""
    yield "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
    for made in workloads:
        for number, pod in enumerate(made.pods):
            labels = (
                f'job="dcgm-exporter",instance="10.0.{made.number}.{number}:9400",gpu="0",'
                f'UUID="GPU-{made.number}-{number}",exported_namespace="ml",exported_pod="{pod}"'
            )
            begin = end - DAYS * 86_400
            for step, load in enumerate(made.loads(number), 1):
                if load is not None:
                    at = begin + step * SCRAPE_SECONDS
                    yield f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {load} {at:.0f}\n"
    of_pod = 'namespace="ml",pod="{pod}"'
    owned = f'{of_pod},owner_kind="ReplicaSet",owner_name="{{owner}}",owner_is_controller="true"'
    yield from _listed("kube_pod_owner", owned, end, workloads)
    yield from _listed("kube_pod_status_phase", f'{of_pod},phase="Running"', end, workloads)
    asked = f'{of_pod},container="main",resource="nvidia_com_gpu"'
    yield from _listed("kube_pod_container_resource_requests", asked, end, workloads)
    above = 'namespace="ml",replicaset="{owner}",owner_kind="Deployment",owner_name="{name}"'
    yield from _listed(
        "kube_replicaset_owner", f'{above},owner_is_controller="true"', end, workloads
    )
    yield "# EOF\n"


def _listed(metric: str, labels: str, end: float, workloads: list[Made]) -> Iterator[str]:
    """Yield a metric of kube-state-metrics, at all times the same."""
    yield f"# TYPE {metric} gauge\n"
    begin = round(end) - DAYS * 86_400
    for made in workloads:
        owner = f"{made.name}-7b6667bd9"
        series = [labels.format(pod=pod, owner=owner, name=made.name) for pod in made.pods]
        for each in dict.fromkeys(series):
            for at in range(begin + LIST_SECONDS, round(end) + 1, LIST_SECONDS):
                yield f"{metric}{{{each}}} 1 {at}\n"


def counted(made: Made) -> tuple[float, float]:
    """Return the GPU-hours and the idle ones by a count of the samples."""
    loads = [load for pod in range(len(made.pods)) for load in made.loads(pod)]
    shown = [load for load in loads if load is not None]
    hours = SCRAPE_SECONDS / 3600
    return len(shown) * hours, shown.count(0) * hours


def write(folder: Path, end: float, workloads: list[Made]) -> None:
    """Write the samples as blocks of a Prometheus into a folder."""
    text = folder / "history"
    with text.open("w") as file:
        file.writelines(exposition(end, workloads))
    blocks = ["tsdb", "create-blocks-from", "openmetrics", "--quiet", "--max-block-duration=7d"]
    promtool = programs.path("promtool")
    subprocess.run([promtool, *blocks, text, folder / "server" / "data"], check=True)
    text.unlink()


def survey(url: str, answer: Path) -> tuple[float, float]:
    """Run the command, and return its seconds and the most MiB that it had in memory."""
    began = time.monotonic()
    command = [sys.executable, "-m", "keda_gpu_scaler", "survey", "-o", "json", "--replay", "0"]
    with answer.open("wb") as file:
        process = subprocess.Popen([*command, "--prometheus-url", url], stdout=file)
        _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit("the survey failed")
    return time.monotonic() - began, used.ru_maxrss / 1024


async def main() -> None:
    """Measure it once, print one table, and end with 1 if a goal is missed."""
    programs.build({"prometheus", "promtool"})
    workloads = [Made(number) for number in range(WORKLOADS)]
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        folder = Path(directory)
        await asyncio.to_thread(write, folder, time.time() // 300 * 300, workloads)
        answer = folder / "answer"
        async with PrometheusServer(folder / "server") as prometheus:
            seconds, mib = await asyncio.to_thread(survey, prometheus.url, answer)
        found = {
            workload["name"]: workload for workload in json.loads(answer.read_bytes())["workloads"]
        }
    worst, wrong = 0.0, []
    for made in workloads:
        hours, idle = counted(made)
        workload = found[made.name]
        worst = max(worst, abs(workload["gpu_hours"] / hours - 1))
        worst = max(worst, abs(workload["idle_gpu_hours"] - idle) / max(idle, 1.0))
        begins = VERDICTS[made.kind.name]
        if not workload["verdict"].startswith(begins):
            wrong.append(f"{made.name}: {workload['verdict']}")
    table = Table("what", "measured", "goal", title=f"{WORKLOADS} workloads, {DAYS} days")
    table.add_row("time of the survey", f"{seconds:.0f} s", f"≤ {MOST_SECONDS} s")
    table.add_row("memory of its process", f"{mib:.0f} MiB", f"≤ {MOST_MIB} MiB")
    table.add_row("largest difference of hours", f"{worst:.2%}", f"≤ {WITHIN:.0%}")
    table.add_row("wrong verdicts", str(len(wrong)), "0")
    console = Console()
    console.print(table)
    if wrong or worst > WITHIN or seconds > MOST_SECONDS or mib > MOST_MIB:
        console.print("\n".join(wrong[:10]))
        raise SystemExit(1)


if __name__ == "__main__":
    asyncio.run(main())
