"""A lab in a cluster of its own, for tests that stop KEDA or bring another version of it."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from tests.e2e.cluster import Cluster
from tests.e2e.furnishing import open_lab
from tests.e2e.keda import Release
from tests.e2e.lab import Lab


@contextlib.asynccontextmanager
async def open_own_lab(
    name: str, release: Release, directory: Path
) -> AsyncIterator[tuple[Cluster, Lab]]:
    """Start a cluster with this release of KEDA, furnish a lab in it, and stop both afterwards."""
    data = directory / "cluster"
    data.mkdir()
    cluster = Cluster.create(data, release)
    cluster.start()
    try:
        async with open_lab(name, cluster.kubeconfig, directory) as lab:
            yield cluster, lab
    finally:
        cluster.stop()
