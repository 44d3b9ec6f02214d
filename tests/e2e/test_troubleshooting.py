"""The page on troubleshooting: each symptom is brought about, and its commands are typed.

What they print is what the page shows.
"""

from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.furnishing import open_lab
from tests.e2e.monitoring import gateway
from tests.e2e.reader import reader
from tests.e2e.release import Release
from tests.e2e.shell import Shell
from tests.e2e.troubles import Troubles, show_operator_log
from tests.support import guides

pytestmark = pytest.mark.xdist_group("pages")


async def test_every_symptom_shows_and_is_cured_as_the_page_says(
    live: Cluster, shell: Shell, tmp_path: Path
) -> None:
    async with open_lab("symptoms", live.kubeconfig, tmp_path) as lab, reader(shell) as somebody:
        lab.scaler.stop()
        await lab.prometheus.reload([*lab.prometheus.scrape_configs, gateway(lab)])
        release = Release(shell, lab)
        troubles = Troubles(lab, release, somebody)
        assert live.pods is not None
        operator_log = str(live.directory / "keda-operator.log")
        try:
            await release.install({"replicaCount": 1})
            await show_operator_log(lab, release, operator_log, str(live.pods.directory))
            await troubles.begin()
            somebody.scenes = troubles.scenes
            await somebody.follow(guides.page("troubleshooting"))
        finally:
            await shell.run("kubectl delete deployment -n keda keda-operator --ignore-not-found")
            await release.uninstall()
