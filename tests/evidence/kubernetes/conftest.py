"""What tests of the Kubernetes API share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.evidence.kubernetes.bench import Bench
from tests.support import api_server
from tests.support.api_server import ApiServer


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """A cluster without objects, which the environment names."""
    api = ApiServer()
    async with api_server.serving(api):
        monkeypatch.setenv("KUBECONFIG", api.kubeconfig(tmp_path, token=api_server.TOKEN))
        yield Bench(api)
