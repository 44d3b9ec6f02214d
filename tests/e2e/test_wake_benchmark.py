"""The benchmark of waking workloads works: once around, nothing is compared."""

from pathlib import Path

from benchmarks import wake
from benchmarks.waking import Kind


async def test_every_kind_of_trigger_wakes_its_workload(kubeconfig: Path, tmp_path: Path) -> None:
    found = await wake.measure(kubeconfig, tmp_path, [1.0])
    assert {kind: len(seconds) for kind, seconds in found.seconds.items()} == dict.fromkeys(Kind, 1)
