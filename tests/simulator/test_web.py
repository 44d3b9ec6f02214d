"""The simulated exporter: its model, its page and its HTTP interface over a real socket."""

import asyncio
import re
from collections.abc import AsyncIterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from keda_gpu_scaler.simulator import changes, cluster, exposition, web

KEY = cluster.Key("team-a", "bert")
SAFE = "b-df-hj-np-tv-xz24-9"
UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
EXPORTER_LABELS = {"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname"}
POD_LABELS = {"container", "namespace", "pod"}


class Clock:
    """A time that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def wanted(**fields: object) -> cluster.Wanted:
    return changes.checked(cluster.Wanted(), **fields)


def samples(page: bytes, name: str) -> list[Sample]:
    families = text_string_to_metric_families(page.decode())
    return [sample for family in families for sample in family.samples if sample.name == name]


def page_of(simulated: cluster.Cluster, now: float = 0) -> bytes:
    return exposition.whole_page(simulated, now)


def pod_percents(simulated: cluster.Cluster, now: float = 0) -> list[float]:
    return [percent for _, percent in simulated.workloads[KEY].percents(now)]


# Names


@given(
    name=st.from_regex(r"[a-z0-9]([-a-z0-9]{0,77}[a-z0-9])?", fullmatch=True),
    serial=st.integers(min_value=1, max_value=10_000),
)
def test_a_deployment_pod_is_named_by_kubernetes_rules(name: str, serial: int) -> None:
    pod = cluster.deployment_pod("team-a", name, "template", serial)
    base = f"{name}-{cluster.template_hash(f'team-a/{name}/template')}-"
    assert len(pod) <= 63
    assert re.fullmatch(f"{re.escape(base[:58])}[{SAFE}]{{5}}", pod)


def test_the_template_hash_is_the_decimal_fnv_in_the_safe_alphabet() -> None:
    # FNV-32a of "a" is 0xE40C292C = 3826002220; the digits 0123456789 become 456789bcdf.
    assert cluster.template_hash("a") == "7d6b446664"


def test_equal_draws_are_drawn_again() -> None:
    simulated = cluster.Cluster()
    workload = simulated.put(KEY, wanted(replicas=10_000), 0)
    assert len(workload.pods) == 10_000
    assert workload.created > 10_000


# Pods over time


def test_pods_keep_their_names_and_the_newest_go_first() -> None:
    simulated = cluster.Cluster()
    first = list(simulated.put(KEY, wanted(replicas=2), 0).pods)
    more = list(simulated.put(KEY, wanted(replicas=5), 0).pods)
    fewer = list(simulated.put(KEY, wanted(replicas=3), 0).pods)
    assert more[:2] == first
    assert fewer == more[:3]


def test_a_deployment_never_gives_a_name_twice_and_a_stateful_set_does() -> None:
    simulated = cluster.Cluster()
    for kind, reused in ((cluster.Kind.DEPLOYMENT, False), (cluster.Kind.STATEFULSET, True)):
        before = list(simulated.put(KEY, wanted(kind=kind, replicas=2), 0).pods)
        simulated.put(KEY, wanted(kind=kind, replicas=1), 0)
        after = list(simulated.put(KEY, wanted(kind=kind, replicas=2), 0).pods)
        assert (before == after) is reused
    assert after == ["bert-0", "bert-1"]


def test_another_template_replaces_every_pod() -> None:
    simulated = cluster.Cluster()
    before = simulated.put(KEY, wanted(replicas=3), 0).pods.copy()
    after = simulated.put(KEY, wanted(replicas=3, gpus_per_pod=2), 5).pods
    assert not before.keys() & after.keys()
    assert {len(pod.devices) for pod in after.values()} == {2}


def test_a_deleted_workload_gives_its_gpus_back() -> None:
    simulated = cluster.Cluster()
    simulated.put(KEY, wanted(replicas=3), 0)
    simulated.delete(KEY)
    assert simulated.nodes[0].taken == 0
    assert not simulated.workloads


def test_a_cluster_refuses_more_devices_than_it_can_show() -> None:
    simulated = cluster.Cluster()
    simulated.put(cluster.Key("team-b", "other"), wanted(replicas=10_000, gpus_per_pod=8), 0)
    with pytest.raises(ValueError, match="100008 devices, more than 100000"):
        simulated.put(KEY, wanted(replicas=2501, gpus_per_pod=8), 0)
    assert KEY not in simulated.workloads


# Load


@pytest.mark.parametrize(
    ("load", "replicas", "gpus", "expected"),
    [
        pytest.param(430, 7, 1, 430 / 7, id="spread over the pods"),
        pytest.param(430, 2, 1, 100, id="capped at a full card"),
        pytest.param(430, 2, 4, 430 / 8, id="spread over the GPUs of a pod"),
        pytest.param(0, 2, 1, 0, id="idle"),
    ],
)
def test_load_spreads_over_the_devices(
    load: float, replicas: int, gpus: int, expected: float
) -> None:
    simulated = cluster.Cluster()
    simulated.put(KEY, wanted(load=load, replicas=replicas, gpus_per_pod=gpus), 0)
    assert pod_percents(simulated) == pytest.approx([expected] * replicas)


@pytest.mark.parametrize("loading", [0, 100])
def test_a_starting_pod_shows_its_loading_and_takes_no_load(loading: float) -> None:
    simulated = cluster.Cluster()
    begin = wanted(load=90, replicas=1, startup_seconds=30, loading_percent=loading)
    simulated.put(KEY, begin, 0)
    assert pod_percents(simulated, 29.9) == [loading]
    simulated.put(KEY, wanted(load=90, replicas=2, startup_seconds=30, loading_percent=loading), 30)
    assert pod_percents(simulated, 59.9) == [90, loading]
    assert pod_percents(simulated, 60) == [45, 45]


@given(
    load=st.floats(min_value=0, max_value=5000),
    replicas=st.integers(min_value=0, max_value=30),
    gpus=st.integers(min_value=1, max_value=8),
)
def test_load_served_is_the_load_offered_or_all_there_is(
    load: float, replicas: int, gpus: int
) -> None:
    simulated = cluster.Cluster(nodes=3)
    simulated.put(KEY, wanted(load=load, replicas=replicas, gpus_per_pod=gpus), 0)
    served = sum(pod_percents(simulated)) * gpus
    assert served == pytest.approx(min(load, 100 * replicas * gpus))


# Devices


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.integers(min_value=0, max_value=9),
            st.integers(min_value=1, max_value=3),
        ),
        max_size=12,
    )
)
def test_no_device_is_held_twice_and_none_is_lost(
    steps: list[tuple[str, int, int]],
) -> None:
    simulated = cluster.Cluster(nodes=2, spare_gpus=1)
    for name, replicas, gpus in steps:
        key = cluster.Key("team-a", name)
        simulated.put(key, wanted(replicas=replicas, gpus_per_pod=gpus), 0)
        held = [
            device
            for workload in simulated.workloads.values()
            for pod in workload.pods.values()
            for device in pod.devices
        ]
        known = {device for node in simulated.nodes for device in node.devices}
        assert len(held) == len(set(held)) == sum(node.taken for node in simulated.nodes)
        assert set(held) <= known


def test_pods_spread_over_the_nodes_and_one_pod_stays_on_one() -> None:
    simulated = cluster.Cluster(nodes=3)
    pods = simulated.put(KEY, wanted(replicas=6, gpus_per_pod=2), 0).pods.values()
    homes = [{device.node for device in pod.devices} for pod in pods]
    assert sorted(node for home in homes for node in home) == [0, 0, 1, 1, 2, 2]


# The page


def test_the_page_has_the_names_labels_and_units_of_the_exporter() -> None:
    simulated = cluster.Cluster()
    pods = simulated.put(KEY, wanted(replicas=1, load=41.4), 0).pods
    page = page_of(simulated)
    expected = {
        UTILIZATION: 41,
        "DCGM_FI_DEV_ENC_UTIL": 0,
        "DCGM_FI_DEV_DEC_UTIL": 0,
        "DCGM_FI_DEV_GPU_TEMP": 47,
        "DCGM_FI_DEV_POWER_USAGE": 330.82,
        "DCGM_FI_DEV_FB_USED": 48935,
        "DCGM_FI_DEV_FB_FREE": 32624,
        ENGINE: 0.414,
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.2484,
        "DCGM_FI_PROF_DRAM_ACTIVE": 0.207,
    }
    for name, value in expected.items():
        (sample,) = samples(page, name)
        assert sample.value == pytest.approx(value)
        assert sample.labels.keys() == EXPORTER_LABELS | POD_LABELS
        assert f"# TYPE {name} gauge\n".encode() in page
        assert f"# HELP {name} ".encode() in page
    assert sample.labels["pod"] in pods
    assert sample.labels["namespace"] == "team-a"
    assert sample.labels["Hostname"] == "gpu-node-0"


def test_idle_gpus_carry_no_pod_labels_and_use_no_memory() -> None:
    page = page_of(cluster.Cluster(nodes=2, spare_gpus=2))
    found = samples(page, UTILIZATION)
    assert [sample.value for sample in found] == [0] * 4
    assert all(sample.labels.keys() == EXPORTER_LABELS for sample in found)
    assert {sample.value for sample in samples(page, "DCGM_FI_DEV_FB_USED")} == {0}
    assert len({sample.labels["UUID"] for sample in found}) == 4


def test_a_gpu_stays_on_the_page_when_its_pod_is_gone() -> None:
    simulated = cluster.Cluster()
    simulated.put(KEY, wanted(replicas=1), 0)
    simulated.put(KEY, wanted(replicas=0), 0)
    (sample,) = samples(page_of(simulated), UTILIZATION)
    assert "pod" not in sample.labels


def test_the_router_shows_its_load_at_zero_replicas_too() -> None:
    simulated = cluster.Cluster()
    simulated.put(KEY, wanted(replicas=0, load=430), 0)
    (sample,) = samples(page_of(simulated), exposition.ROUTER_METRIC)
    assert sample.labels == {"namespace": "team-a", "workload": "bert"}
    assert sample.value == 430


def test_the_pages_of_the_nodes_together_are_the_whole_page() -> None:
    simulated = cluster.Cluster(nodes=3, spare_gpus=1)
    simulated.put(KEY, wanted(replicas=7, load=300), 0)
    pages = [exposition.node_page(simulated, 0, node) for node in range(3)]
    assert [s for page in pages for s in samples(page, ENGINE)] == samples(
        page_of(simulated), ENGINE
    )
    assert exposition.ROUTER_METRIC.encode() not in b"".join(pages)


# What may be asked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("team-a/bert=3:250", (3, 250, 1)),
        ("team-a/bert=0:12.5:4", (0, 12.5, 4)),
    ],
)
def test_a_workload_text_is_read(text: str, expected: tuple[int, float, int]) -> None:
    key, found = changes.from_text(text, wanted(startup_seconds=9))
    assert key == KEY
    assert (found.replicas, found.load, found.gpus_per_pod) == expected
    assert found.startup_seconds == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bert=3:250", "is not namespace/name=replicas:load"),
        ("team-a/bert=3", "is not namespace/name=replicas:load"),
        ("team-a/bert=3:1.2.3", "is not namespace/name=replicas:load"),
        ("team-a/bert=3:-1", "is not namespace/name=replicas:load"),
        ("team-a/bert=99999:1", "replicas: Input should be less than or equal to 10000"),
        ("team-a/bert=3:1:0", "gpus_per_pod: Input should be greater than or equal to 1"),
        ("Team/bert=3:1", "namespace 'Team' is no Kubernetes namespace name"),
        ("team-a/be_rt=3:1", "name 'be_rt' is no Kubernetes object name"),
    ],
)
def test_a_wrong_workload_text_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        changes.from_text(text, cluster.Wanted())


# HTTP


class Simulator:
    """A running simulator and a client for it."""

    def __init__(self, clock: Clock, client: httpx.AsyncClient, stop: asyncio.Event) -> None:
        self.clock = clock
        self.client = client
        self.stop = stop

    async def put(self, json: object) -> httpx.Response:
        """Change the one workload of these tests."""
        return await self.client.put("/workloads/team-a/bert", json=json)

    async def pods(self) -> list[dict[str, object]]:
        """Return the pods of the only workload."""
        response = await self.client.get("/workloads")
        (found,) = response.json()["workloads"]
        pods: list[dict[str, object]] = found["pods"]
        return pods


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    clock, stop = Clock(), asyncio.Event()
    listener = web.bind("127.0.0.1", 0)
    api = web.Api(cluster.Cluster(nodes=2, spare_gpus=1), clock)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with asyncio.TaskGroup() as tasks, httpx.AsyncClient(base_url=url) as client:
        tasks.create_task(web.serve(web.application(api), listener, stop), name="simulator")
        yield Simulator(clock, client, stop)
        stop.set()


async def test_a_workload_is_made_changed_and_removed_over_http(simulator: Simulator) -> None:
    made = await simulator.put({"replicas": 2, "load": 150, "startup_seconds": 5})
    assert (made.status_code, made.json()["load"]) == (201, 150)
    assert [pod["ready"] for pod in await simulator.pods()] == [False, False]
    simulator.clock.now = 5
    changed = await simulator.put({"load": 30})
    assert changed.status_code == 200
    assert changed.json()["replicas"] == 2
    assert [pod["gpu_percent"] for pod in await simulator.pods()] == [15, 15]
    removed = await simulator.client.delete("/workloads/team-a/bert")
    assert removed.status_code == 204
    assert (await simulator.client.get("/workloads")).json() == {"workloads": []}


async def test_the_pages_are_scraped_over_http(simulator: Simulator) -> None:
    await simulator.put({"replicas": 1, "load": 60, "kind": "statefulset"})
    whole = await simulator.client.get("/metrics")
    assert whole.headers["content-type"].startswith("text/plain; version=0.0.4")
    busy = [s for s in samples(whole.content, UTILIZATION) if s.labels.get("pod") == "bert-0"]
    assert [sample.value for sample in busy] == [60]
    nodes = [await simulator.client.get(f"/nodes/{node}/metrics") for node in range(2)]
    assert [len(samples(page.content, UTILIZATION)) for page in nodes] == [1, 1]
    named = await simulator.client.get("/nodes/gpu-node-1/metrics")
    assert named.content == nodes[1].content
    router = await simulator.client.get("/router/metrics")
    assert router.headers["content-type"] == whole.headers["content-type"]
    assert samples(router.content, exposition.ROUTER_METRIC)[0].value == 60
    assert b"DCGM" not in router.content


async def test_another_exporters_page_is_asked_for_by_name(simulator: Simulator) -> None:
    await simulator.put({"replicas": 1, "load": 60, "kind": "statefulset"})
    for path in ("/metrics", "/nodes/0/metrics"):
        page = await simulator.client.get(path, params={"exporter": "ack-legacy"})
        (busy,) = [
            sample
            for sample in samples(page.content, "nvidia_gpu_duty_cycle")
            if sample.labels["pod_name"] == "bert-0"
        ]
        assert (busy.value, busy.labels["namespace_name"]) == (60, "team-a")
        assert samples(page.content, UTILIZATION) == []
        named = await simulator.client.get(path, params={"exporter": "dcgm"})
        assert named.content == (await simulator.client.get(path)).content
    refused = await simulator.client.get("/metrics", params={"exporter": "amd"})
    assert refused.status_code == 400
    assert refused.json() == {
        "error": "no exporter 'amd': there are dcgm, ack-dcgm-custom, ack-legacy"
    }


WRONG_BODIES = (
    (b"{", 400, "Invalid JSON"),
    (b"\xff", 400, "Invalid JSON"),
    (b"[]", 422, "Input should be an object"),
    (b'{"replicas": -1}', 422, "replicas: Input should be greater than or equal to 0"),
    (b'{"replicas": 1.5}', 422, "replicas: Input should be a valid integer"),
    (b'{"replicas": null}', 422, "replicas: Input should be a valid integer"),
    (b'{"load": NaN}', 422, "load: Input should be a finite number"),
    (b'{"load": "9"}', 422, "load: Input should be a valid number"),
    (b'{"kind": "daemonset"}', 422, "kind: Input should be 'deployment' or 'statefulset'"),
    (b'{"draining_percent": 1}', 422, "draining_percent: not up to the simulator here"),
    (b'{"completed_percent": 1}', 422, "completed_percent: not up to the simulator here"),
    (b'{"replica": 1}', 422, "replica: Extra inputs are not permitted"),
    (b'{"replicas": -1, "load": -1}', 422, "; load: "),
    (b'{"replicas": 10000, "gpus_per_pod": 64}', 422, "640000 devices, more than 100000"),
)


async def test_a_wrong_body_is_refused_in_words_and_changes_nothing(
    simulator: Simulator, subtests: pytest.Subtests
) -> None:
    for body, status, message in WRONG_BODIES:
        response = await simulator.client.put("/workloads/team-a/bert", content=body)
        with subtests.test(repr(body)):
            assert response.status_code == status
            assert message in response.json()["error"]
            assert (await simulator.client.get("/workloads")).json() == {"workloads": []}


WRONG_REQUESTS = (
    ("PUT", "/workloads/Team/bert", 422, "namespace 'Team' is no Kubernetes namespace name"),
    ("DELETE", "/workloads/team-a/none", 404, "no workload team-a/none"),
    ("GET", "/nodes/2/metrics", 404, "no node 2: there are 2, counted from 0"),
    ("GET", "/nodes/blue/metrics", 404, "no node blue: there are 2, counted from 0"),
    ("POST", "/metrics", 405, "Method Not Allowed"),
    ("GET", "/", 404, "Not Found"),
)


async def test_a_wrong_request_is_refused_in_words(
    simulator: Simulator, subtests: pytest.Subtests
) -> None:
    for method, path, status, message in WRONG_REQUESTS:
        response = await simulator.client.request(method, path, content=b"{}")
        with subtests.test(f"{method} {path}"):
            assert (response.status_code, response.json()["error"]) == (status, message)


async def test_a_large_body_is_refused_before_it_is_read(simulator: Simulator) -> None:
    response = await simulator.client.put("/workloads/team-a/bert", content=b" " * 20_000)
    assert response.status_code == 413
    assert response.json()["error"] == "the body has more than 16384 bytes"


def test_an_ipv6_address_can_be_bound() -> None:
    with web.bind("::1", 0) as listener:
        assert listener.getsockname()[0] == "::1"
