"""Claims about kube-state-metrics: the query on a real Prometheus, and what its rows mean."""

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import promql_parser
import pytest
from prometheus_client.parser import text_string_to_metric_families

from keda_gpu_scaler.evidence.kube_state_metrics import read_evidence
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.snapshot.evidence import Evidence, PodStatement, Unschedulable
from keda_gpu_scaler.snapshot.observation import Row, Target
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.spec.workload import NO_OWNER, Owner
from testbed.prometheus import PrometheusServer
from tests.query.test_promql_texts import HOSTILE
from tests.support import kube_state as cluster
from tests.support.kube_state import KubePod, Listed
from tests.support.promql_texts import kube_state_text

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWNERS = frozenset({Owner("ReplicaSet", "bert-7b6667bd9"), Owner("Deployment", "bert")})
KSM = Target("kube-state-metrics", "10.0.1.1:8080")
_numbers = itertools.count()


@pytest.fixture(scope="module")
def now() -> float:
    """A time old enough that no server withholds its samples as possibly incomplete."""
    return (time.time() - 60) // 300 * 300


@pytest.fixture
def ns() -> str:
    """A namespace of its own for each test: they share a Prometheus."""
    return f"ns-{next(_numbers)}"


async def _said(
    server: PrometheusServer,
    now: float,
    ns: str,
    *parts: KubePod | Listed,
    ago: float = 0,
    without_gpus: frozenset[str] = frozenset(),
) -> Evidence:
    """Return what is said of a namespace after these pods and objects were stored in it."""
    mine = [
        replace(part, namespace=ns)
        if isinstance(part, KubePod)
        else replace(part, labels={**part.labels, "namespace": ns})
        for part in parts
    ]
    await server.write(cluster.history(now, [cluster.up(), *mine]))
    values = PrometheusSettings.model_validate({"url": server.url})
    client = PrometheusClient("default", values)
    source = PrometheusSource(client, without_gpus=without_gpus)
    try:
        said = await source.kube_state_metrics.evidence({ns}, now - ago, now)
    finally:
        await source.close()
    assert said is not None
    return said


async def test_a_ready_pod_of_a_deployment(server: PrometheusServer, now: float, ns: str) -> None:
    said = await _said(server, now, ns, KubePod(name="bert-0"), cluster.BERT)
    assert said == Evidence(
        {
            (ns, "bert-0"): PodStatement(
                owners=OWNERS,
                created_at=now - 7200,
                ready=True,
                ready_at=now - 3599,
                asks_gpu=True,
            )
        },
        covered=frozenset({ns}),
        scrapes={KSM: now},
        stable_since={KSM: 30.0},
    )
    assert said.is_whole


async def test_a_pod_that_left_just_before_the_first_list(
    server: PrometheusServer, now: float, ns: str
) -> None:
    """It is not taken for one that was never there; of an earlier one nothing is left to know."""
    lately, before = KubePod(name="bert-1", end=-60), KubePod(name="bert-2", end=-240)
    said = await _said(server, now, ns, KubePod(name="bert-0"), lately, before, cluster.BERT)
    assert {pod: statement.ended for (_, pod), statement in said.pods.items()} == {
        "bert-0": False,
        "bert-1": True,
    }
    left = said.pods[ns, "bert-1"]
    assert left == PodStatement(owners=OWNERS, ended=True, asks_gpu=None)


REPLICA_SET, JOB = ("ReplicaSet", "bert-7b6667bd9"), ("Job", "bert-123")
LINKS: dict[str, tuple[tuple[str, str], list[tuple[str, str]], set[Owner]]] = {
    "cron job": (JOB, [("CronJob", "bert")], {Owner(*JOB), Owner("CronJob", "bert")}),
    "stateful set": (("StatefulSet", "bert"), [], {Owner("StatefulSet", "bert")}),
    "replica set of somebody": (REPLICA_SET, [], {Owner(*REPLICA_SET)}),
    "replica set of nobody": (REPLICA_SET, [("", "")], {Owner(*REPLICA_SET), NO_OWNER}),
    "rollout": (REPLICA_SET, [("Rollout", "b")], {Owner(*REPLICA_SET), Owner("Rollout", "b")}),
    "nobody": (("", ""), [], set()),
}
"""The owner of a pod, the owner of that one if it is known, and those that are said to be its."""


@pytest.mark.parametrize("case", LINKS)
async def test_owners_are_followed_upwards(
    server: PrometheusServer, now: float, ns: str, case: str
) -> None:
    owner, above, expected = LINKS[case]
    links = [cluster.link(*owner, one) for one in above]
    said = await _said(server, now, ns, KubePod(name="bert-0", owner=owner), *links)
    assert said.pods[ns, "bert-0"].owners == expected


YOUNG = KubePod(name="p", ready_since=None, begin=-300)
STATEMENTS: dict[str, tuple[KubePod, dict[str, object]]] = {
    "not ready": (KubePod(name="p", ready=False), {"ready": False}),
    "pending": (KubePod(name="p", ready=None, phase="Pending"), {"ready": False}),
    "unknown": (KubePod(name="p", ready=None), {"ready": None}),
    **{
        phase: (KubePod(name="p", ready=False, phase=phase), {"ready": False, "ended": True})
        for phase in ("Succeeded", "Failed")
    },
    "terminating": (KubePod(name="p", deleting=True), {"ready_at": -3599, "ended": True}),
    "without a GPU": (KubePod(name="p", asks_gpu=False), {"ready_at": -3599, "asks_gpu": False}),
    **{
        f"with {resource} {unit}": (
            KubePod(name="p", asks_gpu=False, resources={resource: unit}),
            {"ready_at": -3599, "asks_gpu": asks, "devices": frozenset(devices)},
        )
        for resource, unit, asks, devices in (
            ("volcano_sh_vgpu_number", "integer", True, ()),
            ("aws_amazon_com_neuroncore", "integer", True, ()),
            ("metax_tech_com_gpu", "", True, ()),
            ("example_com_npu", "integer", None, ("example_com_npu",)),
            ("example_com_npu", "", None, ("example_com_npu",)),
            ("rdma_hca_shared", "integer", False, ()),
            ("smarter_devices_fuse", "integer", False, ()),
            ("example_org_nic", "integer", False, ()),
            ("nvidia_com_hostdev", "integer", False, ()),
            ("hugepages_2Mi", "byte", False, ()),
            ("ephemeral_storage", "", False, ()),
        )
    },
    "Ready by a clock that is behind": (KubePod(name="p", ready_since=-7205), {"ready_at": -7204}),
    "old KSM": (KubePod(name="p", ready_since=None), {}),
    "old KSM, young pod": (YOUNG, {"ready_recently": True}),
    "without a node": (
        KubePod(name="p", ready=None, phase="Pending", unschedulable=True),
        {"ready": False, "unschedulable": Unschedulable(-7200)},
    ),
}


@pytest.mark.parametrize("case", STATEMENTS)
async def test_what_is_said_of_a_pod(
    server: PrometheusServer, now: float, ns: str, case: str
) -> None:
    pod, expected = STATEMENTS[case]
    known = frozenset({"example.org/", "nvidia.com/hostdev", "nic"})
    said = await _said(server, now, ns, pod, cluster.BERT, without_gpus=known)
    found = said.pods[ns, "p"]
    waiting, ready_at = found.unschedulable, found.ready_at
    from_now = replace(
        found,
        ready_at=None if ready_at is None else ready_at - now,
        unschedulable=None if waiting is None else Unschedulable(waiting.since - now),
    )
    usual = PodStatement(owners=OWNERS, created_at=now - 7200, ready=True, asks_gpu=True)
    assert from_now == replace(usual, **expected)  # type: ignore[arg-type]  # a table of any


@pytest.mark.parametrize("gone", [{"deleting": True}, {"phase": "Failed"}])
async def test_what_is_said_of_the_pod_before_is_not_said_of_one_with_its_name(
    server: PrometheusServer, now: float, ns: str, gone: dict[str, object]
) -> None:
    """Two kube-state-metrics are scraped at different times, or each has a part of the pods."""
    of_set = ("StatefulSet", "bert")
    old = KubePod(name="p", owner=of_set, extra={"instance": "10.0.1.2:8080"}, **gone)  # type: ignore[arg-type]
    new = KubePod(name="p", owner=of_set, created=-60, ready=False, extra={"uid": "new"})
    said = await _said(server, now, ns, old, new)
    assert said.pods[ns, "p"] == PodStatement(
        owners=frozenset({Owner(*of_set)}), created_at=now - 60, ready=False, asks_gpu=True
    )


CLAIM = {"claim_name": "a", "resourceclaim_name": "b", "resourceclaim_template_name": ""}
GENERATED = {
    "claim_name": "a",
    "resourceclaim_name": "p-a-x7k2p",
    "resourceclaim_template_name": "c",
}
PENDING = {**GENERATED, "resourceclaim_name": ""}
"""The claim of a template is not there yet."""


@pytest.mark.parametrize("claim", [CLAIM, GENERATED, PENDING])
async def test_a_claim_counts_as_one_for_a_gpu_unless_it_is_said_to_be_for_none(
    server: PrometheusServer, now: float, ns: str, claim: dict[str, str]
) -> None:
    pod = KubePod(name="p", asks_gpu=False, claim=claim)
    for name in ("", "x7k2p", "p-a", *claim.values()):
        known = frozenset({name, "other"} if name else ())
        said = await _said(server, now, f"{ns}-{name}", pod, without_gpus=known)
        assert said.pods[f"{ns}-{name}", "p"].asks_gpu is (not known & set(claim.values())), name
    said = await _said(server, now, ns, replace(pod, asks_gpu=True), without_gpus=frozenset({"a"}))
    assert said.pods[ns, "p"].asks_gpu, "it asks for one beside the claim"


async def test_the_text_of_a_real_one_says_who_asks_for_a_gpu_by_a_claim(
    server: PrometheusServer, now: float, ns: str
) -> None:
    said = await _said(server, now, ns, *_real("claims.prom"))
    assert {key[1]: one.asks_gpu for key, one in said.pods.items()} == {
        "bert-5ff95fdc99-7fqsk": True,
        "bert-777b7d8766-9cvh8": True,
    }
    assert all(
        one.ready and Owner("Deployment", "bert") in one.owners for one in said.pods.values()
    )
    known = frozenset({"one-gpu"})
    said = await _said(server, now, ns, *_real("claims.prom"), without_gpus=known)
    assert not said.pods[ns, "bert-5ff95fdc99-7fqsk"].asks_gpu
    assert said.pods[ns, "bert-777b7d8766-9cvh8"].asks_gpu


def _real(page: str) -> Iterator[Listed]:
    text = (Path(__file__).parents[1] / "data" / "kube-state-metrics" / page).read_text()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield Listed(metric=sample.name, labels=sample.labels, value=sample.value)


async def test_a_pod_that_was_ready_within_the_hour_was_ready_once(
    server: PrometheusServer, now: float, ns: str
) -> None:
    before = KubePod(name="p", begin=-900, end=-300)
    after = KubePod(name="p", ready=False, begin=-270)
    ready = [one for one in before.listed(now) if one.metric == "kube_pod_status_ready"]
    said = await _said(server, now, ns, after, *ready)
    assert said.pods[ns, "p"].was_ready


async def test_pods_without_a_time_of_creation_are_listed(
    server: PrometheusServer, now: float, ns: str
) -> None:
    pod = KubePod(name="p", unschedulable=True)
    parts = [one for one in pod.listed(now) if one.metric != "kube_pod_created"]
    found = (await _said(server, now, ns, *parts)).pods[ns, "p"]
    assert (found.created_at, found.unschedulable) == (None, None)


async def test_an_owner_without_replicas_says_so(
    server: PrometheusServer, now: float, ns: str
) -> None:
    """A ReplicaSet does so only without an owner: a Deployment leaves many empty ones behind."""
    counts = "kube_replicaset_status_replicas"
    sets = [
        Listed(metric="kube_statefulset_status_replicas", labels={"statefulset": "store"}, value=0),
        Listed(metric=counts, labels={"replicaset": "r"}, value=0),
        cluster.link("ReplicaSet", "r", ("", "")),
        Listed(metric=counts, labels={"replicaset": "bert-7b6667bd9"}, value=0),
        cluster.BERT,
    ]
    said = await _said(server, now, ns, cluster.replicas(0), cluster.replicas(3, "busy"), *sets)
    assert said.without_pods == {
        (ns, Owner("Deployment", "bert")),
        (ns, Owner("StatefulSet", "store")),
        (ns, Owner("ReplicaSet", "r")),
    }


async def test_an_owner_says_how_many_replicas_it_asks_for(
    server: PrometheusServer, now: float, ns: str
) -> None:
    """A ReplicaSet does so only without an owner; one that asks for none has no row."""
    sets = [
        Listed(metric="kube_statefulset_replicas", labels={"statefulset": "store"}, value=3),
        Listed(metric="kube_replicaset_spec_replicas", labels={"replicaset": "r"}, value=2),
        cluster.link("ReplicaSet", "r", ("", "")),
        Listed(metric="kube_replicaset_spec_replicas", labels={"replicaset": "bert-7b6667bd9"}),
        cluster.BERT,
    ]
    deployments = cluster.wanted(12), cluster.wanted(0, "asleep"), cluster.wanted(math.inf, "odd")
    none = cluster.replicas(0)  # as while all pods of a rollout that recreates them are ending
    said = await _said(server, now, ns, KubePod(name="bert-0"), none, *deployments, *sets)
    assert not said.without_pods
    assert said.wanted == {
        (ns, Owner("Deployment", "bert")): 12,
        (ns, Owner("StatefulSet", "store")): 3,
        (ns, Owner("ReplicaSet", "r")): 2,
    }


async def test_the_owner_that_controls_a_pod_counts_and_no_other(
    server: PrometheusServer, now: float, ns: str
) -> None:
    other = {"owner_kind": "Workflow", "owner_name": "other", "owner_is_controller": "false"}
    labels = {"pod": "bert-0", "uid": "uid-bert-0", **other}
    second = Listed(metric="kube_pod_owner", labels=labels)
    alone = replace(second, labels={**labels, "pod": "bert-1", "uid": "uid-bert-1"})
    said = await _said(server, now, ns, KubePod(name="bert-0"), cluster.BERT, second, alone)
    assert said.pods[ns, "bert-0"].owners == OWNERS
    assert said.pods[ns, "bert-1"].owners == frozenset()


async def test_of_a_pod_the_owner_s_owner_is_known_while_the_owner_has_replicas(
    server: PrometheusServer, now: float, ns: str
) -> None:
    """A Deployment leaves ten ReplicaSets behind; their names are enough for their last pods."""
    labels = {"replicaset": "bert-7b6667bd9"}
    counts = "kube_replicaset_status_replicas"
    for count, owners in ((0, {Owner("ReplicaSet", "bert-7b6667bd9")}), (2, OWNERS)):
        of = f"{ns}-{count}"
        counted = Listed(metric=counts, labels=labels, value=count)
        said = await _said(server, now, of, KubePod(name="bert-0"), cluster.BERT, counted)
        assert said.pods[of, "bert-0"].owners == owners


async def test_two_replicas_of_kube_state_metrics_say_it_once(
    server: PrometheusServer, now: float, ns: str
) -> None:
    other = {"instance": "10.0.1.2:8080"}
    parts: list[KubePod | Listed] = [KubePod(name="p"), KubePod(name="p", extra=other)]
    again = replace(cluster.BERT, labels={**cluster.BERT.labels, **other})
    said = await _said(server, now, ns, *parts, cluster.BERT, again)
    assert said.pods.keys() == {(ns, "p")}
    assert said.pods[ns, "p"].owners == OWNERS


async def test_another_namespace_is_not_spoken_of(
    server: PrometheusServer, now: float, ns: str
) -> None:
    await _said(server, now, f"{ns}-other", KubePod(name="p"))
    said = await _said(server, now, ns, cluster.BERT)
    assert not said.pods
    assert not said.covered


async def test_a_list_that_was_just_restarted_is_not_settled(
    server: PrometheusServer, now: float
) -> None:
    """Asked where its stored history begins; it has not listed for long enough."""
    early = await _said(server, now, "ml", KubePod(name="p"), ago=840)
    assert early.scrapes.keys() == {KSM}
    assert not early.is_whole


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_name_breaks_out_of_the_query(text: str) -> None:
    promql_parser.parse(kube_state_text({text, "ml"}, {text}, {text}))


async def test_rows_that_fit_no_table_are_harmless() -> None:
    """Another application's metrics with the same names must cause no failure."""
    rows = [
        Row.of({"stat": stat}, [(60.0, 1.0)])
        for stat in ("pod", "owner", "ready", "phase", "empty", "scraped", "settled", "")
    ]
    said = read_evidence(rows)
    assert said.pods.keys() == {("", "")}
    odd = [Row.of({"stat": stat}, [(60.0, -1e308)]) for stat in ("created", "unschedulable")]
    (pod,) = read_evidence([*rows, *odd]).pods.values()
    assert pod.unschedulable == Unschedulable(0.0)
