"""`keda-gpu-scaler survey`: a week that Prometheus has recorded, and what it says of it."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from keda_gpu_scaler import cli
from testbed.prometheus import PrometheusServer
from testbed.series import Series
from tests.support import kube_state
from tests.support.kube_state import KubePod

HOURS = 9


async def surveyed(*arguments: str, **environment: str) -> Result:
    runner = CliRunner(env={"COLUMNS": "140"})
    return await asyncio.to_thread(runner.invoke, cli.app, ["survey", *arguments], env=environment)


def gpu(number: int, pod: str, end: float, loads: list[float]) -> Iterator[Series]:
    """Yield the samples of one pod's GPU, one every 30 s, and its exporter's health."""
    times = [end - 30 * step for step in range(len(loads) - 1, -1, -1)]
    target = {"job": "dcgm-exporter", "instance": f"10.0.0.{number}:9400"}
    named = {"exported_pod": pod, "exported_namespace": "ml", "UUID": f"GPU-{number}", "gpu": "0"}
    yield Series("DCGM_FI_DEV_GPU_UTIL", target | named, list(zip(times, loads, strict=True)))
    yield Series("up", target, [(at, 1.0) for at in times])


async def write(prometheus: PrometheusServer) -> None:
    end, samples = time.time() // 300 * 300, HOURS * 120
    begin, owner = -3600.0 * HOURS, ("ReplicaSet", "bert-7b6667bd9")
    await prometheus.write(
        [
            # Half of its time idle; one that is never idle; one of which the exporter was lost.
            *gpu(1, "bert-7b6667bd9-bbbbb", end, [0.0] * (samples // 2) + [60.0] * (samples // 2)),
            *gpu(2, "queue-0", end, [40.0] * samples),
            *kube_state.history(
                end,
                [
                    KubePod(name="bert-7b6667bd9-bbbbb", owner=owner, begin=begin),
                    KubePod(name="queue-0", owner=("StatefulSet", "queue"), begin=begin),
                    KubePod(name="lost-0", owner=("StatefulSet", "lost"), begin=begin),
                    KubePod(name="web", owner=("", ""), begin=begin, asks_gpu=False),
                    kube_state.Listed(
                        metric="kube_replicaset_owner",
                        labels={
                            "namespace": "ml",
                            "replicaset": owner[1],
                            "owner_kind": "Deployment",
                            "owner_name": "bert",
                            "owner_is_controller": "true",
                        },
                        begin=begin,
                    ),
                    kube_state.up(begin),
                ],
            ),
        ]
    )


@pytest.mark.slow
async def test_every_workload_of_the_past_is_told(
    prometheus: PrometheusServer, tmp_path: Path
) -> None:
    await write(prometheus)
    cache, page, report = (tmp_path / name for name in ("cache", "page.html", "report.json"))
    # Whole parts of four hours are read, so that nothing of the five is left out.
    arguments = ("--prometheus-url", prometheus.url, "--since", "5h", "--cache", str(cache))
    result = await surveyed(
        *arguments,
        "--price",
        "2",
        *("--html", str(page), "--report", str(report), "--write", str(tmp_path / "objects")),
    )
    assert result.exit_code == 0, result.output
    for shown in (
        "ml/deployment/bert",
        "scale it by its load",
        "never idle: do not touch",
        "not known: no exporter shows",
        "Not judged: 1,",
        "Job dcgm-exporter shows DCGM_FI_DEV_GPU_UTIL (profile dcgm-exported), and names pods.",
        "threshold 70, as it is",
    ):
        assert shown in result.stdout
    assert page.read_text().count("<svg") == 3
    assert {file.name for file in (tmp_path / "objects").iterdir()} == {
        "ml-deployment-bert.yaml",
        "ml-statefulset-queue.yaml",
    }
    told = report.read_text()
    assert "exported_pod" in told
    for name in ("bert", "queue", "ml", "10.0.0.1", "dcgm-exporter"):
        assert f'"{name}' not in told, name
    queries = await prometheus.requests()
    again = await surveyed(*arguments, "-o", "json")
    assert await prometheus.requests() - queries < queries, "whole parts are not read again"
    told = json.loads(again.stdout)
    assert [replay["scaled_object"] for replay in told["replays"]] == ["ml/bert"]
    found = {workload["name"]: workload for workload in told["workloads"]}
    assert found.keys() == {"bert", "queue", "lost"}
    hours = found["queue"]["gpu_hours"]
    assert 8 <= hours <= 12
    assert found["bert"]["gpu_hours"] == pytest.approx(hours, rel=0.01)
    assert found["lost"]["gpus_per_replica"] is None
    markdown = await surveyed(*arguments, "-o", "markdown")
    assert "| ml/statefulset/queue | 1 | 1 |" in markdown.stdout
    # The settings keep the source for another namespace, and so nothing can be replayed.
    settings = {"KEDA_GPU_SCALER_PROMETHEUS_URL": prometheus.url}
    settings["KEDA_GPU_SCALER_PROMETHEUS_NAMESPACES"] = "web"
    refused = await surveyed(*arguments[2:], **settings)
    assert (refused.exit_code, "scale it by its load" in refused.stdout) == (0, True)
    assert "The scaler refuses source" in refused.stderr


@pytest.mark.slow
async def test_a_source_without_gpus_is_told(prometheus: PrometheusServer) -> None:
    result = await surveyed("--prometheus-url", prometheus.url, "--since", "8h")
    assert result.exit_code == 1
    assert "no pod with a GPU in the last 8h" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prometheus-url", "http://127.0.0.1:1", "--since", "1h"], "--since"),
        (["--prometheus-url", "http://127.0.0.1:1", "--source", "other"], "--source other"),
        ([], "--prometheus-url"),
    ],
)
async def test_wrong_arguments_are_named(arguments: list[str], message: str) -> None:
    result = await surveyed(*arguments)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
