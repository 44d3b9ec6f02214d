"""Claims about asking a source for evidence: once for everybody, and never in the way."""

import asyncio

import pytest

from keda_gpu_scaler import facts
from keda_gpu_scaler.evidence import Basis, Evidence, Statement
from keda_gpu_scaler.observation import Target
from keda_gpu_scaler.witness import Witness
from tests.scripted import REFUSED, Clock, ScriptedSource
from tests.worlds import World

AT = 99_990.0
KSM = Target("ksm", "10.0.1.1:8080")


def _said(at: float) -> Evidence:
    return Evidence({("ml", "bert-0"): Statement(ready=True)}, scrapes={KSM: at})


@pytest.fixture
def source() -> ScriptedSource:
    return ScriptedSource(World(()), Clock(), said=_said(AT))


@pytest.fixture
def seen() -> list[facts.Fact]:
    return []


@pytest.fixture
def witness(source: ScriptedSource, seen: list[facts.Fact]) -> Witness:
    return Witness("default", source, seen.append)


async def test_an_instant_is_asked_about_once_for_everybody(
    source: ScriptedSource, witness: Witness
) -> None:
    await asyncio.gather(*(witness.roster({"ml"}, AT) for _ in range(5)))
    await witness.roster({"ml"}, AT - 15)
    assert source.questioned == [(frozenset({"ml"}), AT)]


async def test_a_new_namespace_is_asked_about_together_with_the_others(
    source: ScriptedSource, witness: Witness
) -> None:
    await witness.roster({"ml"}, AT)
    await witness.roster({"web"}, AT)
    await witness.roster({"ml"}, AT + 15)
    await witness.roster({"ml"}, AT + 601)
    assert [names for names, _ in source.questioned] == [
        {"ml"},
        {"ml", "web"},
        {"ml", "web"},
        {"ml"},
    ]


async def test_what_decisions_rest_on_is_stated_when_it_changes(
    source: ScriptedSource, witness: Witness, seen: list[facts.Fact]
) -> None:
    await witness.roster({"ml"}, AT)
    source.evidence_trouble = REFUSED
    await witness.roster({"ml"}, AT + 15)
    await witness.roster({"ml"}, AT + 300)
    source.evidence_trouble, source.said = None, _said(AT + 315)
    await witness.roster({"ml"}, AT + 315)
    assert seen == [
        facts.EvidenceChanged("default", Basis.KUBE_STATE_METRICS, "kube-state-metrics answers"),
        facts.EvidenceChanged("default", Basis.EXPORTERS, str(REFUSED)),
        facts.EvidenceChanged("default", Basis.KUBE_STATE_METRICS, "kube-state-metrics answers"),
    ]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (None, "the source has no kube-state-metrics"),
        (Evidence({}, down=frozenset({KSM})), "kube-state-metrics shows nothing"),
    ],
)
async def test_no_evidence_is_said_with_its_reason(
    source: ScriptedSource,
    witness: Witness,
    seen: list[facts.Fact],
    said: Evidence | None,
    reason: str,
) -> None:
    source.said = said
    await witness.roster({"ml"}, AT)
    assert seen == [facts.EvidenceChanged("default", Basis.EXPORTERS, reason)]


async def test_evidence_that_takes_too_long_is_not_waited_for(
    source: ScriptedSource, witness: Witness, seen: list[facts.Fact]
) -> None:
    source.evidence_gate = asyncio.Event()
    found = await asyncio.wait_for(witness.roster({"ml"}, AT), timeout=5)
    assert not found.pods
    assert seen == [facts.EvidenceChanged("default", Basis.EXPORTERS, "no answer within 2 s")]
