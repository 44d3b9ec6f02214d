"""A Prometheus that holds several clusters, and one behind a proxy that keeps tenants apart.

One server and one proxy serve the whole module; every test has namespaces of its own.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from keda_gpu_scaler import errors, promql
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.snapshot.observation import Observation
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.spec.spec import ScaledObject, Signal, SnapshotQuery
from keda_gpu_scaler.spec.workload import Kind, Workload
from keda_gpu_scaler.telemetry import facts
from testbed import gpus, triggers
from testbed.gpus import Gpu, Up
from testbed.prometheus import PrometheusServer
from testbed.series import Series
from tests.support import kube_state as listed
from tests.support.kube_state import KubePod
from tests.support.label_proxy import NAMED_BY_HEADER, NAMED_BY_PARAMETER, LabelProxy
from tests.support.prometheus_source import connected

pytestmark = [
    pytest.mark.needs("prometheus", "prom-label-proxy"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest.fixture(scope="module")
def now() -> float:
    """When the server begins."""
    return lately()


def lately() -> float:
    return time.time() // 15 * 15


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(
    tmp_path_factory: pytest.TempPathFactory, now: float
) -> AsyncIterator[PrometheusServer]:
    async with PrometheusServer(tmp_path_factory.mktemp("prometheus")) as running:
        await running.write(gpus.history(now, [Up(begin=-3600)]))
        yield running


def snapshot_query(*namespaces: str) -> SnapshotQuery:
    return SnapshotQuery(Signal.UTILIZATION, "auto", frozenset(namespaces), 300, 120)


def in_cluster(history: Iterable[Series], cluster: dict[str, str]) -> list[Series]:
    """Return the same series as an agent of this cluster sends them."""
    return [replace(series, labels={**series.labels, **cluster}) for series in history]


async def observed(source: PrometheusSource, namespace: str, at: float) -> Observation:
    return await source.ports().within(namespace).samples.fetch(snapshot_query(namespace), at)


def newest(observation: Observation) -> dict[str, float]:
    return {gpu.pod: gpu.values[-1] for gpu in observation.series}


async def decided(namespace: str, url: str) -> tuple[Decision, list[facts.Fact]]:
    """Decide about the Deployment bert of a namespace, with all facts that were stated."""
    seen: list[facts.Fact] = []
    spec = replace(triggers.spec(), pods=Workload(Kind.DEPLOYMENT, namespace, "bert"))
    async with connected(url, seen.append, namespace_parameter="namespace") as source:
        evaluator = Evaluator({"default": source.ports()}, seen.append)
        try:
            return await evaluator.evaluate(ScaledObject(namespace, "bert"), spec, None), seen
        finally:
            await evaluator.close()


def bert(namespace: str, letter: str, value: float = 90, end: float | None = None) -> Gpu:
    """Return a GPU of one pod of the Deployment bert, as an exporter with honor_labels shows it."""
    return Gpu(f"bert-7b6667bd9-{letter * 5}", value, namespace, convention="plain", end=end)


# Several clusters behind one server


async def test_samples_health_and_lists_are_those_of_one_cluster(
    server: PrometheusServer, now: float, ns: str
) -> None:
    job = f"exporter-of-{ns}"
    for cluster, value, replicas, down in (("eu-1", 20.0, 0, -150.0), ("us-1", 80.0, 3, None)):
        shown = gpus.history(now, [replace(bert(ns, "b", value), job=job), Up(job=job, down=down)])
        said = listed.history(now, [listed.replicas(replicas, namespace=ns), listed.up()])
        await server.write(in_cluster([*shown, *said], {"cluster": cluster}))

    for text, value in (
        ('cluster="eu-1"', 20),
        ('cluster="us-1"', 80),
        ('cluster!="us-1"', 20),
        (f'cluster=~"us-.+",job=~"{job}|kube-state-metrics"', 80),
    ):
        async with connected(server.url, matchers=text) as source:
            observation = await observed(source, ns, now)
            evidence = await source.kube_state_metrics.evidence({ns}, now, now)
        assert newest(observation) == {"bert-7b6667bd9-bbbbb": value}
        (good_scrapes,) = observation.good_scrapes.values()
        assert (now in good_scrapes) is (value == 80)
        assert evidence is not None
        assert bool(evidence.without_pods) is (value == 20)


# One namespace at a time


@pytest.mark.parametrize(
    ("flags", "setting"),
    [
        (NAMED_BY_PARAMETER, {"namespace_parameter": "namespace"}),
        (NAMED_BY_HEADER, {"namespace_header": "X-Namespace"}),
    ],
)
async def test_every_question_names_its_one_namespace(
    server: PrometheusServer,
    tmp_path: Path,
    now: float,
    ns: str,
    flags: tuple[str, ...],
    setting: dict[str, Any],
) -> None:
    await server.write(gpus.history(now, [bert(ns, "b"), bert(f"{ns}-other", "c", 10)]))
    await server.write(listed.history(now, [KubePod(name="bert-7b6667bd9-bbbbb", namespace=ns)]))
    async with (
        LabelProxy(tmp_path, upstream=server.url, flags=flags) as proxy,
        connected(proxy.url, **setting) as source,
    ):
        ports = source.ports().within(ns)
        tenant, (evidence,), numbers = ports.samples, ports.evidence_providers, ports.numbers
        await tenant.synchronize()
        asked = snapshot_query(ns)
        assert newest(await tenant.fetch(asked, now)) == {"bert-7b6667bd9-bbbbb": 90}
        history = await tenant.history(asked, now)
        assert history is not None
        assert newest(history).keys() == {"bert-7b6667bd9-bbbbb"}
        assert (await tenant.locate(["GPU-bert-7b6667bd9-bbbbb"], now)).reported
        said = await evidence.evidence({ns}, now, now)
        assert said is not None
        assert said.pods
        assert newest(await observed(source, f"{ns}-other", now)) == {"bert-7b6667bd9-ccccc": 10}
        assert numbers is not None
        total = promql.number("sum(DCGM_FI_DEV_GPU_UTIL)", promql.Policy.NAMESPACED, ns)
        assert await numbers.number(total) == 90
        with pytest.raises(errors.SourceRefusedError, match="HTTP 400"):
            await source.number(total)


def _other_targets(ns: str, now: float) -> list[Series]:
    """Healthy for hours in the namespace: that says nothing about exporters."""
    return in_cluster(gpus.history(now, [Up(job="web", begin=-7200)]), {"namespace": ns})


def _another_list(ns: str, now: float) -> list[Series]:
    """Return what a kube-state-metrics in the tenant's own namespace says, without the pod b.

    The proxy hides how many of them there are, and whether they are healthy.
    """
    owner = listed.link("ReplicaSet", "bert-7b6667bd9", ("Deployment", "bert"), ns)
    pod = KubePod(name="bert-7b6667bd9-ccccc", namespace=ns)
    return listed.history(now, [pod, owner, replace(listed.up(), labels={"namespace": ns})])


@pytest.mark.parametrize(
    ("shown", "others", "state", "active"),
    [
        pytest.param([], _other_targets, State.UNKNOWN, None, id="no GPU series"),
        pytest.param([("b", -300), ("c", None)], _another_list, State.PARTIAL, True, id="no list"),
    ],
)
async def test_of_one_tenant_absence_proves_nothing(
    server: PrometheusServer,
    tmp_path: Path,
    ns: str,
    shown: list[tuple[str, float | None]],
    others: Callable[[str, float], list[Series]],
    state: State,
    active: bool | None,
) -> None:
    now = lately()
    pods = [bert(ns, letter, 0, end) for letter, end in shown]
    await server.write([*gpus.history(now, pods), *others(ns, now)])
    flags = (*NAMED_BY_PARAMETER, "-error-on-replace")
    async with LabelProxy(tmp_path, upstream=server.url, flags=flags) as proxy:
        decision, seen = await decided(ns, proxy.url)

    assert (decision.state, decision.value, decision.active) == (state, None, active)
    assert {fact.source for fact in seen if isinstance(fact, facts.Queried)} == {"default"}
    assert {fact.source for fact in seen if isinstance(fact, facts.SnapshotTaken)} == {
        f"default/{ns}"
    }


async def test_a_query_that_the_matchers_do_not_fit_is_refused_with_the_reason(
    server: PrometheusServer,
) -> None:
    own = replace(promql.own("x", promql.Policy.ALLOW, "ml"), text="x(")
    asked = SnapshotQuery(Signal.NUMBER, own.name, frozenset({"ml"}), 60, 30, query=own)
    async with connected(server.url, matchers='cluster="eu-1"') as source:
        with pytest.raises(errors.SourceRefusedError, match="matchers do not fit this query"):
            await source.fetch(asked, time.time())
