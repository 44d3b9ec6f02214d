"""`keda-gpu-scaler backtest`: a Prometheus's past, an episode, and what is refused."""

import asyncio
import json
import math
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from keda_gpu_scaler import cli
from testbed.prometheus import PrometheusServer
from testbed.series import Series

OBJECT = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: bert, namespace: ml}
spec:
  scaleTargetRef: {name: bert}
  maxReplicaCount: 12
  advanced:
    horizontalPodAutoscalerConfig:
      behavior: {scaleDown: {stabilizationWindowSeconds: 120, tolerance: "0.05"}}
  triggers:
    - type: external
      metadata:
        scalerAddress: keda-gpu-scaler.keda:6000
        workload: bert
        threshold: "70"
    - type: cron
"""
EPISODE = """\
kind: Episode
metadata: {name: bert}
spec:
  load: {0s: 40, 10m: 300}
  expect: {5m: 1, 25m: EXPECTED}
---
"""


async def backtested(text: str, *arguments: str) -> Result:
    runner = CliRunner(env={"COLUMNS": "120"})
    command = ["backtest", "-", *arguments]
    return await asyncio.to_thread(runner.invoke, cli.app, command, input=text, env={})


def load(at: float) -> float:
    return 60 + 35 * math.sin(at / 900)


async def write(prometheus: PrometheusServer, hours: int) -> None:
    """Store three pods under a load in waves, and their exporters: whole hours, and this one."""
    until = time.time() // 15 * 15
    times = [until - 15 * step for step in range((hours + 1) * 240, -1, -1)]
    for number in range(3):
        target = {"job": "dcgm-exporter", "instance": f"10.0.0.{number}:9400"}
        pod = {"exported_pod": f"bert-7b6667bd9-bbbb{'bcd'[number]}", "exported_namespace": "ml"}
        gpu = {**target, **pod, "UUID": f"GPU-{number}", "gpu": "0"}
        loads = [(at, load(at)) for at in times]
        await prometheus.write(
            [
                Series("DCGM_FI_DEV_GPU_UTIL", gpu, loads),
                Series("up", target, [(at, 1.0) for at in times]),
                Series("requests", {"namespace": "ml", "number": str(number)}, loads),
            ]
        )


@pytest.mark.slow
async def test_the_past_is_read_replayed_and_judged(
    prometheus: PrometheusServer, tmp_path: Path
) -> None:
    await write(prometheus, hours=2)
    cache = tmp_path / "cache"
    arguments = ("--prometheus-url", prometheus.url, "--since", "2h", "--cache", str(cache))
    page = tmp_path / "page.html"
    written = ("--threshold", "50", "--price", "2", "--html", str(page))
    result = await backtested(OBJECT, *arguments, *written)
    assert result.exit_code == 0, result.output
    assert page.read_text().count("<svg") == 3
    for shown in (
        "threshold 70, as it is",
        "threshold 50",
        "avg() with Value, threshold 70",
        "as it was (overloaded: at least)",
        "is known for 100 % of the time",
        "Not replayed: zero replicas",
        "Left out: trigger cron.",
        "Keep threshold 70",
    ):
        assert shown in result.stdout
    queries = await prometheus.requests()
    assert len(cache.read_text().splitlines()) == 2
    again = await backtested(OBJECT, *arguments, "--price", "2", "-o", "json")
    (found,) = json.loads(again.stdout)
    assert found["recommended"] == {"threshold": 80.0}
    assert found["coverage"] > 0.99
    alternatives = {one["name"]: one for one in found["alternatives"]}
    assert (
        alternatives["clairvoyant"]["gpu_hours"]
        < alternatives["threshold 70, as it is"]["gpu_hours"]
    )
    steps = len(found["work"])
    assert 480 <= steps == len(alternatives["threshold 80"]["replicas"])
    past = alternatives["as it was (overloaded: at least)"]
    assert past["cost"] == 2 * past["gpu_hours"] == pytest.approx(6 * 15 / 3600 * steps, rel=0.01)
    # The whole hours were not asked for again.
    assert await prometheus.requests() - queries < queries
    cache.write_text("{}\n")
    broken = await backtested(OBJECT, *arguments)
    assert (broken.exit_code, f"{cache}:1: not a line that --cache writes" in broken.stderr) == (
        2,
        True,
    )


@pytest.mark.slow
async def test_a_demand_is_replayed_with_the_capacity_of_a_replica(
    prometheus: PrometheusServer,
) -> None:
    await write(prometheus, hours=1)
    demand = OBJECT.replace(
        'threshold: "70"', 'demandThreshold: "50"\n        demandQuery: sum(requests)'
    )
    arguments = ("--since", "1h", "--capacity", "70", "-o", "json")
    result = await backtested(demand, "--prometheus-url", prometheus.url, *arguments)
    assert result.exit_code == 0, result.stderr
    (found,) = json.loads(result.stdout)
    assert found["saturation"] == 0
    assert "demandThreshold 50, as it is" in [each["name"] for each in found["alternatives"]]
    at = found["begin"] + 15 * 100
    assert found["work"][100] == pytest.approx(3 * load(at) / 70 * 100)
    ambiguous = demand.replace("sum(requests)", "requests")
    result = await backtested(ambiguous, "--prometheus-url", prometheus.url, *arguments)
    assert (result.exit_code, "elements instead of one number" in result.stderr) == (
        1,
        True,
    )


async def test_an_episode_is_a_test() -> None:
    passed = await backtested(EPISODE.replace("EXPECTED", "4-5") + OBJECT)
    assert (passed.exit_code, passed.stderr) == (0, "")
    assert passed.stdout == "-:1: Episode bert: 2 times, replicas as expected\n"
    failed = await backtested(EPISODE.replace("EXPECTED", "9") + OBJECT)
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr == "-:1: Episode bert: at 25m: expected 9 replicas, there are 4\n"


NO_WORKLOAD = OBJECT.replace("        workload: bert\n", "")
DEMAND = OBJECT.replace(
    'threshold: "70"', 'demandThreshold: "50"\n        demandPreset: vllm-requests'
)


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (OBJECT, (), "--prometheus-url"),
        (OBJECT, ("--since", "7"), "--since '7': expected a duration"),
        (OBJECT, ("--since", "91d"), "--since '91d': expected at most 90d"),
        (OBJECT, ("--threshold", "0"), "--threshold: expected a number above 0"),
        (OBJECT, ("--capacity", "nan"), "--capacity: expected a number above 0"),
        (OBJECT, ("--overloaded", "nan"), "--overloaded"),
        (OBJECT, ("--since", "59m"), "--since '59m': expected at least 1h"),
        (EPISODE.replace("EXPECTED", "1") + DEMAND, (), "demand: expected it"),
        (
            OBJECT,
            ("--capacity", "5"),
            "ml/bert: --capacity is only for a trigger without threshold",
        ),
        (DEMAND, (), "ml/bert: no threshold: expected --capacity"),
        (
            OBJECT.replace("workload: bert", "workload: bert\n        gpuAggregation: sum"),
            (),
            "ml/bert: gpuAggregation sum: expected average",
        ),
        (
            OBJECT.replace(
                "workload: bert",
                "workload: bert\n        signal: memory\n        activationThreshold: '5'",
            ),
            (),
            "ml/bert: signal memory: expected utilization",
        ),
        (
            EPISODE.replace("EXPECTED", "1")
            + OBJECT.replace("workload: bert", "workload: bert\n        signal: tensor-activity"),
            (),
            "ml/bert: signal tensor-activity: expected utilization",
        ),
        (
            OBJECT.replace(
                "advanced:", "advanced:\n    scalingModifiers: {formula: a, target: '5'}"
            ),
            (),
            "ml/bert: scalingModifiers: their target scales",
        ),
        (
            OBJECT.replace("kind: ScaledObject", "kind: ScaledJob"),
            (),
            "ml/bert: expected a ScaledObject",
        ),
        (
            EPISODE.replace("EXPECTED", "1")
            + DEMAND.replace(
                'demandThreshold: "50"', 'threshold: "70"\n        demandThreshold: "50"'
            ),
            (),
            "Episode bert: demand: expected it",
        ),
        (
            OBJECT.replace("stabilizationWindowSeconds: 120", "stabilizationWindowSeconds: -1"),
            (),
            "advanced.horizontalPodAutoscalerConfig.behavior: Expected `int` >= 0",
        ),
        (OBJECT.replace("maxReplicaCount", "maxReplicas"), (), "Did you mean maxReplicaCount?"),
        (NO_WORKLOAD, (), "missing-key"),
        (EPISODE.replace("EXPECTED", "some") + OBJECT, (), "-:1: Episode bert: expect.25m 'some'"),
        (
            EPISODE.replace("EXPECTED", "1") + OBJECT + "---\n" + OBJECT,
            (),
            "metadata.name: expected",
        ),
        (EPISODE.replace("EXPECTED", "1"), (), "there is no ScaledObject"),
        (EPISODE + OBJECT, ("-o", "json"), "expected none beside an Episode"),
        (OBJECT, ("--html", "/nowhere/page.html"), "No such file or directory"),
    ],
)
async def test_what_cannot_be_replayed_is_refused(
    text: str, arguments: tuple[str, ...], message: str
) -> None:
    is_asked = message != "--prometheus-url" and "Episode" not in text
    known = ("--prometheus-url", "http://127.0.0.1:1") if is_asked else ()
    result = await backtested(text, *known, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
