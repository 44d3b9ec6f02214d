"""Claims about asking a source for evidence: once for all triggers, and never delaying them."""

import asyncio

import pytest

from keda_gpu_scaler.evaluator.shared_snapshot import SnapshotFetcher
from keda_gpu_scaler.evaluator.shared_source import EvidenceFetcher
from keda_gpu_scaler.snapshot.evidence import Evidence, EvidenceSource, PodStatement, Readiness
from keda_gpu_scaler.snapshot.observation import Target
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from keda_gpu_scaler.telemetry import facts
from tests.support.scripted import AWAY, REFUSED, Clock, ScriptedCluster, ScriptedSource
from tests.support.worlds import World, WorldPod, until

AT = 99_990.0
KSM = Target("ksm", "10.0.1.1:8080")


def _said(at: float) -> Evidence:
    return Evidence({("ml", "bert-0"): PodStatement(ready=True)}, scrapes={KSM: at})


@pytest.fixture
def source() -> ScriptedSource:
    return ScriptedSource(World(()), Clock(), said=_said(AT))


@pytest.fixture
def seen() -> list[facts.Fact]:
    return []


@pytest.fixture
def evidence_fetcher(source: ScriptedSource, seen: list[facts.Fact]) -> EvidenceFetcher:
    return EvidenceFetcher("default", source.ports(), seen.append)


async def test_what_decisions_rest_on_is_stated_when_it_changes(
    source: ScriptedSource, evidence_fetcher: EvidenceFetcher, seen: list[facts.Fact]
) -> None:
    await evidence_fetcher.pod_statuses({"ml"}, AT)
    source.evidence_trouble = REFUSED
    await evidence_fetcher.pod_statuses({"ml"}, AT + 15)
    await evidence_fetcher.pod_statuses({"ml"}, AT + 300)
    source.evidence_trouble, source.said = None, _said(AT + 315)
    await evidence_fetcher.pod_statuses({"ml"}, AT + 315)
    assert seen == [
        facts.EvidenceChanged(
            "default", EvidenceSource.KUBE_STATE_METRICS, "kube-state-metrics answers"
        ),
        facts.EvidenceChanged(
            "default", EvidenceSource.EXPORTERS, f"kube-state-metrics: {REFUSED}"
        ),
        facts.EvidenceChanged(
            "default", EvidenceSource.KUBE_STATE_METRICS, "kube-state-metrics answers"
        ),
    ]


@pytest.mark.slow
async def test_evidence_that_takes_too_long_is_not_waited_for(
    source: ScriptedSource, evidence_fetcher: EvidenceFetcher, seen: list[facts.Fact]
) -> None:
    source.evidence_gate = asyncio.Event()
    found = await asyncio.wait_for(evidence_fetcher.pod_statuses({"ml"}, AT), timeout=30)
    assert not found.pods
    assert seen == [
        facts.EvidenceChanged("default", EvidenceSource.EXPORTERS, "no answer within 2 s")
    ]


async def test_one_whose_samples_cannot_be_had_leaves_the_evidence_to_the_next(
    source: ScriptedSource, evidence_fetcher: EvidenceFetcher
) -> None:
    source.evidence_gate = asyncio.Event()
    first = asyncio.create_task(evidence_fetcher.pod_statuses({"ml"}, AT))
    for _ in range(5):
        await asyncio.sleep(0)
    assert source.questioned
    first.cancel()
    source.evidence_gate.set()
    assert (await evidence_fetcher.pod_statuses({"ml"}, AT)).pods.keys() == {("ml", "bert-0")}


API = Target("kubernetes", "api")
KEY = ("ml", "bert-0")


def _listed(at: float, *, ready: bool = True) -> Evidence:
    return Evidence(
        {KEY: PodStatement(ready=ready)},
        covered=frozenset({"ml"}),
        scrapes={API: at},
        stable_since={API: 0.0},
        evidence_source=EvidenceSource.KUBERNETES,
    )


@pytest.fixture
def cluster() -> ScriptedCluster:
    return ScriptedCluster(_listed(AT))


@pytest.fixture
def believer(
    source: ScriptedSource, seen: list[facts.Fact], cluster: ScriptedCluster
) -> EvidenceFetcher:
    return EvidenceFetcher("default", source.ports(cluster), seen.append)


async def test_the_kubernetes_api_is_asked_first_and_the_source_only_without_it(
    source: ScriptedSource,
    cluster: ScriptedCluster,
    believer: EvidenceFetcher,
    seen: list[facts.Fact],
) -> None:
    await believer.pod_statuses({"ml"}, AT)
    assert cluster.asked == [(frozenset({"ml"}), AT, source.now())]
    assert source.questioned == []
    cluster.said, source.said = None, _said(AT + 15)
    await believer.pod_statuses({"ml"}, AT + 15)
    cluster.said = _listed(AT + 30)
    await believer.pod_statuses({"ml"}, AT + 30)
    answers = "kube-state-metrics answers; the Kubernetes API: cannot list pods: nobody answers"
    assert seen == [
        facts.EvidenceChanged("default", EvidenceSource.KUBERNETES, "the Kubernetes API answers"),
        facts.EvidenceChanged("default", EvidenceSource.KUBE_STATE_METRICS, answers),
        facts.EvidenceChanged("default", EvidenceSource.KUBERNETES, "the Kubernetes API answers"),
    ]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (None, "the source has no kube-state-metrics"),
        (Evidence({}, down=frozenset({KSM})), "kube-state-metrics shows nothing"),
    ],
    ids=["none", "silent"],
)
async def test_without_the_kubernetes_api_absence_proves_nothing_any_more(
    source: ScriptedSource,
    cluster: ScriptedCluster,
    believer: EvidenceFetcher,
    seen: list[facts.Fact],
    said: Evidence | None,
    reason: str,
) -> None:
    """A pod counts as never Ready for two more minutes; no pod counts as gone."""
    cluster.said = _listed(AT, ready=False)
    assert (await believer.pod_statuses({"ml"}, AT)).proves_gone(("ml", "other"), AT - 1)
    cluster.said, source.said = None, said
    lost = await believer.pod_statuses({"ml"}, AT + 15)
    assert not lost.proves_gone(("ml", "other"), AT - 1)
    assert not lost.evidence
    for at, readiness in ((AT + 120, Readiness.NEVER), (AT + 121, Readiness.UNKNOWN)):
        status = (await believer.pod_statuses({"ml"}, at)).status(KEY, at)
        assert status is not None
        assert status.readiness is readiness
    assert seen[1:] == [
        facts.EvidenceChanged(
            "default", EvidenceSource.EXPORTERS, f"the Kubernetes API: {AWAY}; {reason}"
        )
    ]


QUERY = SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({"ml"}), 300, 120)


def _fetcher(source: ScriptedSource) -> SnapshotFetcher:
    return SnapshotFetcher(source, EvidenceFetcher("default", source.ports(), facts.ignore))


async def test_where_all_pods_report_nothing_is_looked_for(source: ScriptedSource) -> None:
    source.world = World((WorldPod("bert-0"),))
    await _fetcher(source).fetch(QUERY, AT)
    source.world = World((WorldPod("bert-0", there=until(AT - 60)),))
    source.is_selective = True
    await _fetcher(source).fetch(QUERY, AT)
    assert source.located == []
