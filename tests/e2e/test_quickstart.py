"""The quick starts, command by command, as they are printed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.cluster import Cluster
from tests.e2e.furnishing import open_lab
from tests.e2e.lab import Lab
from tests.e2e.longer_ago import ready_since
from tests.e2e.monitoring import monitoring
from tests.e2e.reader import prints, reader
from tests.e2e.release import everything
from tests.e2e.shell import Shell
from tests.support import guides
from tests.support.processes import until

pytestmark = [pytest.mark.xdist_group("pages"), pytest.mark.usefixtures("uninstalled")]
LONG_AGO_SECONDS = 300
REQUESTS = 40
"""From the page."""


@pytest_asyncio.fixture
async def uninstalled(shell: Shell) -> AsyncIterator[None]:
    """Uninstall what a page that failed has left, before the next one."""
    yield
    await shell.run("helm uninstall keda-gpu-scaler -n keda --ignore-not-found --wait")
    await shell.run("kubectl delete --ignore-not-found -f examples/quickstart/simulator.yaml")


async def test_the_quick_start_without_a_gpu_works_as_it_is_printed(shell: Shell) -> None:
    before = await everything(shell)
    async with reader(shell) as somebody:
        await somebody.follow(guides.page("quickstart"))
    await _nothing_is_left(shell, before)
    assert "nvidia" not in await shell.expect("kubectl get nodes -o json")


async def _nothing_is_left(shell: Shell, before: set[str]) -> None:
    """Wait until terminating objects are gone, and fail with those that stay."""
    left: set[str] = set()

    async def gone() -> bool:
        left.clear()
        left.update(await everything(shell) - before)
        return not left

    try:
        await until(gone, 30, "nothing is left of the quick start")
    except TimeoutError as error:
        raise AssertionError(f"{error}: {sorted(left)}") from error


async def test_the_quick_start_with_dcgm_exporter_works_as_it_is_printed(
    live: Cluster, shell: Shell, tmp_path: Path
) -> None:
    """The simulator stands where dcgm-exporter would; what else the page asks for is there."""
    async with open_lab("inference", live.kubeconfig, tmp_path) as lab, monitoring(lab):
        lab.scaler.stop()
        await lab.deploy("bert", replicas=1)
        await lab.reaches("bert", 1)
        await ready_since(lab, LONG_AGO_SECONDS)
        scenes = {
            "40 requests are in progress": lambda: lab.offer("bert", REQUESTS),
            "some minutes go by": lambda: _minutes_go_by(lab, shell),
        }
        async with reader(shell, scenes) as somebody:
            await somebody.follow(guides.page("quickstart-dcgm"))
        assert [each for each in lab.path("bert") if each != 1] == [0, 3], lab.story()


async def _minutes_go_by(lab: Lab, shell: Shell) -> None:
    """Let the pods have been Ready for so long that their load counts."""
    await ready_since(lab, LONG_AGO_SECONDS)
    target = "kubectl get hpa -n inference keda-hpa-bert | grep -o '[1-9][0-9]*m*/70'"
    await prints(lab, shell, target, "/70")
