"""What a Prometheus has recorded, replayed by `backtest`, gives the replicas that there were."""

import asyncio
import itertools
import json
from pathlib import Path

import yaml
from typer.testing import CliRunner

from keda_gpu_scaler import cli
from testbed.cluster import manifests
from tests.e2e.lab import Lab

STEP_SECONDS = 15
SETTLED_SECONDS = 3 * STEP_SECONDS
"""The replay syncs less often than the lab's HPA, and reaches a number so much later."""
START_SECONDS = 10
# Means of two of them ask for the same replicas as one of the two, so no other number is passed.
LOADS = {90: 2, 180: 3, 130: 2}


async def test_backtest_gives_the_replicas_that_there_were(lab: Lab, tmp_path: Path) -> None:
    await lab.scaler.restart(PROMETHEUS_STEP=f"{STEP_SECONDS}s")
    await lab.deploy("bert", replicas=1, load=40, startup_seconds=START_SECONDS)
    trigger = lab.gpu("bert", window="30s", warmup="15s", activationWindow="1m")
    await lab.reaches("bert", 1)
    await lab.autoscale("bert", trigger, stabilization_seconds=STEP_SECONDS)
    for load, replicas in LOADS.items():
        await lab.offer("bert", load)
        await lab.reaches("bert", replicas)
        await lab.stays("bert", replicas, for_seconds=SETTLED_SECONDS)
    # The newest step that can be read is up to half a minute old.
    await lab.stays("bert", replicas, for_seconds=SETTLED_SECONDS)
    file = tmp_path / "bert.yaml"
    scaled_object = manifests.scaled_object(
        lab.name,
        "bert",
        [trigger],
        min_replicas=1,
        max_replicas=12,
        polling_seconds=1,
        cooldown_seconds=6,
        stabilization_seconds=STEP_SECONDS,
    )
    file.write_text(yaml.safe_dump(scaled_object))
    command = [
        "backtest",
        str(file),
        *("--prometheus-url", lab.prometheus.url),
        *("--since", "1h", "--start-up", f"{START_SECONDS}s", "--loading", "0", "-o", "json"),
    ]
    result = await asyncio.to_thread(CliRunner().invoke, cli.app, command, env={})
    assert result.exit_code == 0, result.output
    (replayed,) = json.loads(result.stdout)
    sizes = {each["name"]: each["replicas"] for each in replayed["alternatives"]}
    known = [size for size in sizes["threshold 70, as it is"] if size is not None]
    passed = [size for size, _ in itertools.groupby(known)]
    assert passed == [1, *LOADS.values()], f"{known}\n{lab.story()}"
    assert lab.path("bert") == passed
