"""Claims about finding kube-state-metrics in a server."""

import time
from collections.abc import Callable

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.kube_state_texts import JOBS, PODS
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources.prometheus.source import KubeStateMetrics
from testbed.clocks import Clock
from tests.sources.prometheus.scripted import ScriptedClient, rows
from tests.support.promql_texts import kube_state_text

COVERED = rows({"stat": "covered", "namespace": "ml"})
SETTLED = rows({"stat": "settled", "job": "ksm"}, value=4.0)


def job(name: str, metric: str = PODS) -> list[Row]:
    return rows({"job": name, "__name__": metric})


def server(clock: Callable[[], float] = time.monotonic, **answers: object) -> ScriptedClient:
    """Return a server with a kube-state-metrics, unless `answers` say something else."""
    given = {"jobs": job("ksm"), "evidence": [*COVERED, *SETTLED], **answers}
    return ScriptedClient(given, clock=clock)


async def test_it_is_looked_for_each_time_until_it_is_there_and_rarely_afterwards() -> None:
    clock = Clock()
    client = server(clock, jobs=[])
    metrics = KubeStateMetrics(client)
    for _ in range(2):
        assert await metrics.evidence({"ml"}, 0.0, 0.0) is None
        clock.now += 15
    assert client.queries == [("jobs", JOBS, 0.0)] * 2
    client.answers["jobs"] = job("ksm")
    for _ in range(21):
        assert await metrics.evidence({"ml"}, 0.0, 0.0) is not None
        clock.now += 15
    assert len(client.texts("jobs")) == 4
    assert client.texts("evidence")[-1] == kube_state_text({"ml"}, {"ksm"})


async def test_the_past_is_asked_about_where_nobody_watched_it() -> None:
    """Of a namespace that is new, was not covered, or that no trigger asked about for long."""
    client = server()
    metrics = KubeStateMetrics(client)
    steps = [({"ml"}, 0.0), ({"ml", "new"}, 15.0), ({"ml", "new"}, 300.0), ({"ml"}, 601.0)]
    for namespaces, at in steps:
        await metrics.evidence(namespaces, at, at)
    assert client.texts("evidence") == [
        kube_state_text({"ml"}, {"ksm"}, {"ml"}),
        kube_state_text({"ml", "new"}, {"ksm"}, {"new"}),
        kube_state_text({"ml", "new"}, {"ksm"}, {"new"}),
        kube_state_text({"ml"}, {"ksm"}, {"ml"}),
    ]


async def test_an_answer_that_did_not_come_leaves_the_past_to_be_asked_about() -> None:
    client = server(evidence=errors.SourceTimeoutError("no answer"))
    metrics = KubeStateMetrics(client)
    with pytest.raises(errors.SourceTimeoutError):
        await metrics.evidence({"ml"}, 0.0, 0.0)
    client.answers["evidence"] = COVERED
    await metrics.evidence({"ml"}, 15.0, 15.0)
    assert client.texts("evidence") == [kube_state_text({"ml"}, {"ksm"}, {"ml"})] * 2


@pytest.mark.parametrize(
    ("metric", "namespace", "stable_since"),
    [
        (PODS, None, True),
        pytest.param("kube_deployment_status_replicas", None, False, id="it lists no pods"),
        pytest.param(PODS, "ml", False, id="a proxy hides targets"),
    ],
)
async def test_only_a_list_of_all_pods_proves_absence(
    metric: str, namespace: str | None, *, stable_since: bool
) -> None:
    client = server(jobs=job("ksm", metric))
    client.namespace = namespace
    evidence = await KubeStateMetrics(client).evidence({"ml"}, 0.0, 0.0)
    assert evidence is not None
    assert bool(evidence.stable_since) is stable_since


@pytest.mark.parametrize(
    ("shown", "kinds"),
    [
        ((), set()),
        (("kube_statefulset_status_replicas",), {"StatefulSet"}),
        (
            ("kube_deployment_status_replicas", "kube_statefulset_status_replicas"),
            {"StatefulSet", "Deployment"},
        ),
    ],
)
async def test_owners_are_listed_of_the_kinds_that_it_shows_in_namespaces_that_show_any(
    shown: tuple[str, ...], kinds: set[str]
) -> None:
    """Of another namespace it may not be allowed to list them."""
    jobs = [*job("ksm"), *(row for metric in shown for row in job("ksm", metric))]
    ours = rows({"stat": "replicas", "namespace": "ml", "statefulset": "bert"}, value=2.0)
    elsewhere = rows({"stat": "covered", "namespace": "web"})
    client = server(jobs=jobs, evidence=[*COVERED, *elsewhere, *SETTLED, *ours])
    evidence = await KubeStateMetrics(client).evidence({"ml", "web"}, 0.0, 0.0)
    assert evidence is not None
    names = {"StatefulSet": {"bert"}, "Deployment": set[str]()}
    assert evidence.owners == {("ml", kind): names[kind] for kind in kinds}


async def test_known_ones_stay_in_use_while_new_ones_cannot_be_looked_for() -> None:
    clock = Clock()
    client = server(clock)
    metrics = KubeStateMetrics(client)
    assert await metrics.evidence({"ml"}, 0.0, 0.0) is not None
    client.answers["jobs"] = errors.SourceRefusedError("too many series")
    clock.now += 300
    for _ in range(2):
        assert await metrics.evidence({"ml"}, 0.0, 0.0) is not None
    assert len(client.texts("jobs")) == 2
    with pytest.raises(errors.SourceRefusedError):
        await KubeStateMetrics(client).evidence({"ml"}, 0.0, 0.0)


async def test_one_that_is_down_is_not_one_that_was_never_there() -> None:
    clock = Clock()
    client = server(clock)
    metrics = KubeStateMetrics(client)
    await metrics.evidence({"ml"}, 0.0, 0.0)
    client.answers["jobs"] = job("other")
    clock.now += 300
    assert await metrics.evidence({"ml"}, 0.0, 0.0) is not None
    assert client.texts("evidence")[-1] == kube_state_text({"ml"}, {"ksm", "other"})
