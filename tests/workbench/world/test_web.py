"""The simulated exporter: its page, what may be changed, and its interface over a real socket."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from keda_gpu_scaler.workbench.world import cluster, exposition, web
from tests.support.scripted import Clock

KEY = cluster.WorkloadKey("team-a", "bert")
UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
EXPORTER_LABELS = {"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname"}
POD_LABELS = {"container", "namespace", "pod"}


def samples(page: bytes, name: str) -> list[Sample]:
    families = text_string_to_metric_families(page.decode())
    return [sample for family in families for sample in family.samples if sample.name == name]


def page_of(replicas: int, load: float) -> bytes:
    simulated = cluster.MadeUp()
    simulated.put(KEY, cluster.Wanted(replicas=replicas, load=load), 0)
    return exposition.gpu_page(simulated.gpus(0))


# The page


def test_the_page_has_the_names_labels_and_units_of_the_exporter() -> None:
    page = page_of(replicas=1, load=41.4)
    for name, value in ((UTILIZATION, 41), (ENGINE, 0.414), ("DCGM_FI_DEV_FB_USED", 48935)):
        (sample,) = samples(page, name)
        assert sample.value == pytest.approx(value)
        assert sample.labels.keys() == EXPORTER_LABELS | POD_LABELS
        assert f"# TYPE {name} gauge\n".encode() in page
    assert page.count(b"# HELP DCGM_FI_") == 10
    assert sample.labels["pod"].startswith("bert-")


def test_idle_gpus_carry_no_pod_labels_and_use_no_memory() -> None:
    shown = cluster.Cluster()
    shown.show({"blue": 2, "green": 2}, [])
    page = exposition.gpu_page(shown.gpus(0))
    found = samples(page, UTILIZATION)
    assert [sample.value for sample in found] == [0] * 4
    assert all(sample.labels.keys() == EXPORTER_LABELS for sample in found)
    assert {sample.value for sample in samples(page, "DCGM_FI_DEV_FB_USED")} == {0}
    assert len({sample.labels["UUID"] for sample in found}) == 4


# What may be asked


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bert=3:250", "is not namespace/name=replicas:load"),
        ("Team/bert=3:1", "namespace 'Team' is no Kubernetes namespace name"),
        ("team-a/be_rt=3:1", "name 'be_rt' is no Kubernetes object name"),
    ],
)
def test_a_wrong_workload_text_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        cluster.read_workload(text)


# HTTP


class Simulator:
    """A running simulator and a client for it."""

    def __init__(self, clock: Clock, client: httpx.AsyncClient) -> None:
        self.clock = clock
        self.client = client

    async def put(self, json: object) -> httpx.Response:
        return await self.client.put("/workloads/team-a/bert", json=json)

    async def pods(self) -> list[dict[str, object]]:
        response = await self.client.get("/workloads")
        (found,) = response.json()["workloads"]
        pods: list[dict[str, object]] = found["pods"]
        return pods


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    clock = Clock(0)
    server = web.server(web.application(cluster.MadeUp(), clock))
    url = f"http://127.0.0.1:{await server.start()}"
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        yield Simulator(clock, client)
    await server.stop()


async def test_a_workload_is_made_and_changed_over_http(simulator: Simulator) -> None:
    made = await simulator.put({"replicas": 2, "load": 150, "startup_seconds": 5})
    assert (made.status_code, made.json()["load"]) == (200, 150)
    assert [pod["ready"] for pod in await simulator.pods()] == [False, False]
    simulator.clock.seconds = 5
    changed = await simulator.put({"load": 30})
    assert changed.status_code == 200
    assert changed.json()["replicas"] == 2
    assert [pod["gpu_percent"] for pod in await simulator.pods()] == [15, 15]


async def test_the_pages_are_scraped_over_http(simulator: Simulator) -> None:
    await simulator.put({"replicas": 1, "load": 60})
    whole = await simulator.client.get("/metrics")
    router = await simulator.client.get("/router/metrics")
    for page, name in ((whole, UTILIZATION), (router, exposition.ROUTER_METRIC)):
        assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert [sample.value for sample in samples(page.content, name)] == [60]
    assert b"DCGM" not in router.content


WRONG_BODIES = (
    (b"\xff", "Invalid JSON"),
    (b'{"load": NaN}', "load: Input should be a finite number"),
    (b'{"replica": 1}', "replica: Extra inputs are not permitted"),
    (b'{"replicas": -1, "load": -1}', "; load: "),
)


async def test_a_wrong_body_is_refused(simulator: Simulator, subtests: pytest.Subtests) -> None:
    for body, message in WRONG_BODIES:
        response = await simulator.client.put("/workloads/team-a/bert", content=body)
        with subtests.test(repr(body)):
            assert response.status_code == 422
            assert message in response.text
            assert (await simulator.client.get("/workloads")).json() == {"workloads": []}
    response = await simulator.client.put("/workloads/Team/bert", content=b"{}")
    assert response.status_code == 422
    assert response.text == "namespace 'Team' is no Kubernetes namespace name"
