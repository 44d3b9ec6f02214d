"""What kube-state-metrics in the same Prometheus makes certain, from end to end."""

import pytest

from tests.stories.promises.stack import Poll, Stack, running
from tests.support import kube_state
from tests.support.gpus import Gpu, Up, history
from tests.support.kube_state import KubePod, Listed
from tests.support.prometheus import ON_EVERY_SERVER, PrometheusServer

pytestmark = ON_EVERY_SERVER

PODS = [f"bert-7b6667bd9-{letter * 5}" for letter in "bcd"]
HOLD_ACTIVE = Poll(70, None, active=True)


async def _stored(
    prometheus: PrometheusServer, gpus: list[Gpu | Up], said: list[KubePod | Listed]
) -> None:
    now = prometheus.now()
    await prometheus.write(history(now, [Up(), *gpus]))
    await prometheus.write(kube_state.history(now, [kube_state.up(), kube_state.BERT, *said]))


def _asked_with_the_snapshot(stack: Stack) -> bool:
    """A snapshot may take two queries: the first answer shows which jobs there are."""
    return 1 <= stack.queries("evidence") <= stack.queries("snapshot")


async def test_only_pods_the_workload_owns_count(prometheus: PrometheusServer) -> None:
    """The second pod has a name of deployment/bert's, and belongs to another deployment."""
    gpus: list[Gpu | Up] = [Gpu(pod, 90) for pod in PODS]
    other: Listed = kube_state.link("ReplicaSet", "other", ("Deployment", "bert-7b6667bd9"))
    said: list[KubePod | Listed] = [
        KubePod(name=PODS[0]),
        KubePod(name=PODS[1], owner=("ReplicaSet", "other")),
        other,
    ]
    await _stored(prometheus, gpus, said)
    async with running(prometheus.url, step="15s") as stack:
        poll = await stack.poll()
    assert poll == Poll(70, 180, active=True), "the third is not listed yet and counts by its name"


@pytest.mark.parametrize(
    "gone",
    [
        {"deleting": True},
        {"phase": "Succeeded", "ready": False},
        {"phase": "Failed", "ready": False},
    ],
    ids=["terminating", "succeeded", "failed"],
)
async def test_a_pod_that_has_ended_does_not_count_while_it_is_still_shown(
    prometheus: PrometheusServer, gone: dict[str, object]
) -> None:
    gpus: list[Gpu | Up] = [Gpu(pod, 90) for pod in PODS]
    ended = KubePod(name=PODS[2], **gone)  # type: ignore[arg-type]  # a table of any
    await _stored(prometheus, gpus, [KubePod(name=PODS[0]), KubePod(name=PODS[1]), ended])
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == Poll(70, 180, active=True)


async def test_an_owner_without_replicas_is_zero_and_inactive(
    prometheus: PrometheusServer,
) -> None:
    """The exporter and its node went together with the last pod: nothing reports its end."""
    lost: list[Gpu | Up] = [
        Up(instance="10.0.0.9:9400", gone=-300),
        Gpu(PODS[0], 90, instance="10.0.0.9:9400", end=-300),
    ]
    await _stored(prometheus, lost, [kube_state.replicas(0)])
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == Poll(70, 0, active=False)


async def test_a_pod_without_its_exporter_is_missing_and_nothing_falls(
    prometheus: PrometheusServer,
) -> None:
    node = "10.0.0.9:9400"
    lost: list[Gpu | Up] = [Up(instance=node, gone=-300), Gpu(PODS[1], 90, instance=node, end=-300)]
    said: list[KubePod | Listed] = [
        KubePod(name=PODS[0]),
        KubePod(name=PODS[1]),
        kube_state.replicas(2),
    ]
    await _stored(prometheus, [Gpu(PODS[0], 0), *lost], said)
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == HOLD_ACTIVE


CLAIM = {"claim_name": "gpu", "resourceclaim_name": "", "resourceclaim_template_name": "one-gpu"}
"""A ResourceClaim of a pod, as kube-state-metrics shows it."""
AN_HOUR: list[Gpu | Up] = [
    Gpu(PODS[0], 60, begin=-3600),
    Gpu(PODS[1], 60, begin=-3600),
]


@pytest.mark.parametrize(("ready_since", "value"), [(-300, None), (-3600, 190)])
async def test_pods_that_moved_to_claims_and_are_not_shown_take_nothing_away(
    prometheus: PrometheusServer, ready_since: int, value: float | None
) -> None:
    """A rollout replaces requests by ResourceClaims, and the exporter names no pod with claims.

    By the load of the other two alone, two replicas would do.
    """
    by_request = [KubePod(name=pod) for pod in PODS[:2]]
    claims = KubePod(name=PODS[2], asks_gpu=False, claim=CLAIM, ready_since=ready_since)
    await _stored(prometheus, AN_HOUR, [*by_request, claims, kube_state.replicas(3)])
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == Poll(70, value, active=True)


async def test_a_claim_that_is_for_no_gpu_changes_nothing(prometheus: PrometheusServer) -> None:
    by_request = [KubePod(name=pod) for pod in PODS[:2]]
    network = KubePod(name=PODS[2], asks_gpu=False, claim=CLAIM, ready_since=-3600)
    await _stored(prometheus, AN_HOUR, [*by_request, network, kube_state.replicas(3)])
    known = frozenset({"one-gpu"})
    async with running(prometheus.url, step="15s", claims_without_gpus=known) as stack:
        assert await stack.poll() == Poll(70, 120, active=True)


async def test_a_model_that_loads_at_100_percent_asks_for_nothing(
    prometheus: PrometheusServer,
) -> None:
    gpus: list[Gpu | Up] = [Gpu(PODS[0], 50), Gpu(PODS[1], 100, begin=-300)]
    young = KubePod(name=PODS[1], created=-320, ready=False, begin=-300)
    await _stored(prometheus, gpus, [KubePod(name=PODS[0]), young, kube_state.replicas(2)])
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == Poll(70, 50, active=True)
        assert await stack.value(warmup="0s") == 50


async def test_samples_count_since_the_pod_became_ready(prometheus: PrometheusServer) -> None:
    ready = KubePod(name=PODS[0], created=-900, ready_since=-20)
    await _stored(prometheus, [Gpu(PODS[0], 100)], [ready, kube_state.replicas(1)])
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == HOLD_ACTIVE
        assert _asked_with_the_snapshot(stack)


async def test_a_pending_pod_keeps_its_workload_active_until_its_time_is_over(
    prometheus: PrometheusServer,
) -> None:
    pending = KubePod(name=PODS[0], created=-600, ready=None, phase="Pending", begin=-600)
    await _stored(prometheus, [], [pending, kube_state.replicas(1)])
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == HOLD_ACTIVE
        assert await stack.poll(startTimeout="5m") == Poll(70, None, active=False)


async def test_kube_state_metrics_that_is_down_proves_nothing(
    prometheus: PrometheusServer,
) -> None:
    """Its last word, two minutes old, was that there are no replicas; a pod was seen after it."""
    now = prometheus.now()
    silent: list[Gpu | Up] = [
        Up(instance="10.0.0.9:9400", gone=-100),
        Gpu(PODS[0], 0, instance="10.0.0.9:9400", end=-100),
    ]
    await prometheus.write(history(now, [Up(), *silent]))
    ended = [
        kube_state.up(end=-120),
        Listed(
            metric="kube_pod_owner",
            labels={"namespace": "ml", "pod": "other"},
            end=-120,
        ),
    ]
    await prometheus.write(kube_state.history(now, ended))
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.value() is None


async def test_without_honor_labels_a_list_that_looks_empty_is_no_evidence(
    prometheus: PrometheusServer,
) -> None:
    """The pod is in `exported_pod` then; nothing may follow from its absence in `pod`."""
    now, node = prometheus.now(), "10.0.0.9:9400"
    lost: list[Gpu | Up] = [Up(instance=node, gone=-300), Gpu(PODS[1], 90, instance=node, end=-300)]
    await prometheus.write(history(now, [Up(), Gpu(PODS[0], 0), *lost]))
    own = {"namespace": "monitoring", "pod": "kube-state-metrics-0"}
    labels = {**own, "exported_namespace": "ml", "exported_pod": PODS[0]}
    owned = Listed(metric="kube_pod_owner", labels=labels)
    await prometheus.write(kube_state.history(now, [kube_state.up(), owned]))
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == HOLD_ACTIVE
        assert stack.queries("evidence") == 0
