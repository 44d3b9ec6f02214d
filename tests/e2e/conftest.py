"""One cluster for the whole run, and a lab in it for each scenario.

The process that pytest was started as runs the cluster. With pytest-xdist its workers are other
processes: they learn where the cluster is, and never start or stop it. Beside what the cluster
consists of, a scenario's fixtures determine the programs it uses: only these are built.
"""

import itertools
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed import programs
from testbed.cluster.cluster import Cluster
from testbed.cluster.generation import CLUSTER
from testbed.cluster.shell import Shell, open_shell
from tests.e2e.counts import Counts
from tests.e2e.furnishing import open_lab
from tests.e2e.lab import Lab
from tests.e2e.recorder import Recorder, recording

_CLUSTER = pytest.StashKey[Cluster]()
_VERSIONS = pytest.StashKey[tuple[str, str]]()
_KUBECONFIG = "e2e_kubeconfig"
_KEDA_METRICS = "e2e_keda_metrics"
_serial = itertools.count()
_FIXTURES: Mapping[str, Iterable[str]] = {
    "defined": ("kubectl", "cert-manager-crds.yaml", "prometheus-operator-crds.yaml"),
    "helm": ("helm",),
    "shell": ("helm", "kubectl"),
}
"""Further programs that some fixtures use."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each scenario with the programs it uses: those of the cluster, and of its fixtures."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            fixtures = _FIXTURES.keys() & set(getattr(item, "fixturenames", ()))
            more = [name for fixture in fixtures for name in _FIXTURES[fixture]]
            item.add_marker(pytest.mark.needs(*CLUSTER, *more))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the cluster, before xdist starts its workers."""
    if session.config.option.collectonly or hasattr(session.config, "workerinput"):
        return
    programs.build(CLUSTER)
    directory = Path(tempfile.mkdtemp(prefix="keda-gpu-scaler-e2e-"))
    cluster = Cluster.create(directory)
    cluster.start()
    session.config.stash[_CLUSTER] = cluster
    session.config.stash[_VERSIONS] = cluster.versions()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker where the cluster is."""
    node.workerinput.update(_where(node.config))


def _where(config: pytest.Config) -> dict[str, str]:
    """Return how the cluster of this run is reached: a worker was told."""
    told: dict[str, str] | None = getattr(config, "workerinput", None)
    if told is not None:
        return told
    cluster = config.stash[_CLUSTER]
    return {_KUBECONFIG: str(cluster.kubeconfig), _KEDA_METRICS: cluster.keda.metrics_url}


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Stop the cluster; its logs stay when a scenario failed."""
    cluster = session.config.stash.get(_CLUSTER, None)
    if cluster is None:
        return
    cluster.stop()
    if exitstatus == pytest.ExitCode.OK:
        shutil.rmtree(cluster.directory)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Print what ran on what, and where the logs of the cluster are when a scenario failed."""
    cluster = config.stash.get(_CLUSTER, None)
    if cluster is None:
        return
    keda, kubernetes = config.stash[_VERSIONS]
    terminalreporter.write_line(f"on KEDA {keda} with Kubernetes {kubernetes}")
    if exitstatus != pytest.ExitCode.OK:
        terminalreporter.write_line(f"the cluster's logs are in {cluster.directory}")


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """How to reach the cluster of this run."""
    return Path(_where(request.config)[_KUBECONFIG])


@pytest.fixture(scope="session")
def keda_counts(request: pytest.FixtureRequest) -> Counts:
    """What the KEDA of this run counts."""
    return Counts(_where(request.config)[_KEDA_METRICS])


@pytest.fixture
def lab_name(request: pytest.FixtureRequest, worker_id: str) -> str:
    """Return a valid namespace name that no other lab has."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
    return f"{words[:30].strip('-')}-{worker_id}-{next(_serial)}"


@pytest_asyncio.fixture
async def lab(
    request: pytest.FixtureRequest, kubeconfig: Path, lab_name: str, tmp_path: Path
) -> AsyncIterator[Lab]:
    """A lab in the cluster of this run, with the evidence that a parameter names."""
    evidence = getattr(request, "param", EvidenceSource.KUBE_STATE_METRICS)
    async with open_lab(lab_name, kubeconfig, tmp_path, evidence) as opened:
        yield opened


@pytest.fixture(scope="session")
def helm() -> str:
    """The program, for tests that render the chart."""
    return programs.path("helm")


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A second cluster, whose pods of our image run: for what is installed as users install it.

    Its KEDA may be killed. Each worker that uses it has one; tests that share one belong to one
    xdist_group, and leave nothing behind.
    """
    with Cluster.running(tmp_path_factory.mktemp("live"), runs_pods=True) as cluster:
        yield cluster


@pytest.fixture
def shell(live: Cluster, tmp_path: Path) -> Shell:
    """A terminal on that cluster."""
    return open_shell(live, tmp_path / "home")


@pytest_asyncio.fixture
async def recorder() -> AsyncIterator[Recorder]:
    """A scaler that writes down what KEDA asks, for tests of KEDA itself."""
    async with recording() as opened:
        yield opened
