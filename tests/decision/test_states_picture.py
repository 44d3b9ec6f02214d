"""The picture of the states: each arrow is walked, and each box says what is answered there."""

from dataclasses import dataclass, replace

import pytest

from keda_gpu_scaler.decision.decision import Context, Decision, State, decide
from keda_gpu_scaler.snapshot.evidence import EvidenceSource, NamespaceEvidence
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot, Pod
from tests.repository import states_picture
from tests.repository.states_picture import ARROWS, BOXES, Arrow
from tests.support.snapshots import BERT_DEPLOYMENT, NOW, bert, said, snapshot, unseen
from tests.support.triggers import spec

LISTED = NamespaceEvidence(
    NOW - 10, absence_known=True, evidence_source=EvidenceSource.KUBE_STATE_METRICS
)
COUNTS_NONE = replace(LISTED, without_pods=frozenset({BERT_DEPLOYMENT}))
STALE = 200.0
"""Longer than maxAge, which is 3 minutes."""


@dataclass(frozen=True, slots=True)
class World:
    """What is seen of a workload, and how long ago its newest sample is."""

    pods: tuple[Pod, ...] = ()
    evidence: NamespaceEvidence | None = LISTED
    age: float = 0.0

    @property
    def view(self) -> NamespaceSnapshot:
        """The namespace as the source shows it."""
        return snapshot(*self.pods, evidence=self.evidence)


def ready(suffix: str, value: float, **how: float) -> Pod:
    return bert(suffix, value, status=said(), **how)


BUSY = World((ready("b", 50), ready("c", 50)))
STARTS = World((unseen("z", said(never=True, created=NOW - 60)),))
TOO_YOUNG = World((ready("b", 0), bert("z", 0, first_seen=NOW - 40, status=said(ready=NOW - 40))))
ONE_SILENT = World((ready("b", 50), ready("c", 50, last_seen=NOW - 90)))
NONE_REPORTS = World((ready("b", 0, last_seen=NOW - 150), ready("c", 0, last_seen=NOW - 150)))
LAST_ENDED = World((bert("b", 50, ended=True, status=said(ended=True)),))
NO_PODS = World()
COUNTED = World(evidence=COUNTS_NONE)
NO_SAMPLE = replace(World((ready("b", 0), ready("c", 0))), age=STALE)
WALKS: dict[tuple[State, State], tuple[World, World]] = {
    (State.EMPTY, State.STARTING): (COUNTED, STARTS),
    (State.ENDED, State.STARTING): (NO_PODS, STARTS),
    (State.STARTING, State.MEASURED): (STARTS, BUSY),
    (State.MEASURED, State.STARTING): (BUSY, TOO_YOUNG),
    (State.MEASURED, State.ENDED): (BUSY, LAST_ENDED),
    (State.ENDED, State.EMPTY): (LAST_ENDED, COUNTED),
    (State.MEASURED, State.PARTIAL): (BUSY, ONE_SILENT),
    (State.PARTIAL, State.MEASURED): (ONE_SILENT, BUSY),
    (State.MEASURED, State.UNKNOWN): (BUSY, NO_SAMPLE),
    (State.UNKNOWN, State.MEASURED): (NO_SAMPLE, BUSY),
    (State.PARTIAL, State.UNKNOWN): (ONE_SILENT, NONE_REPORTS),
    (State.UNKNOWN, State.ENDED): (NONE_REPORTS, NO_PODS),
}
"""What is seen before and after the event of each arrow."""


def decided(world: World, remembered: State | None) -> Decision:
    """Return what is decided of a world, with what was known before it."""
    return decide(spec(), world.view, Context(NOW + world.age, 3600, remembered=remembered))


def answered(decision: Decision) -> str:
    """Return the answer to GetMetrics in the words of the picture."""
    if decision.value is None:
        return "hold"
    return "the load" if decision.value > 0 else "0"


def walk_id(arrow: Arrow) -> str:
    return f"{arrow.before} to {arrow.after}"


def test_every_arrow_has_a_walk_and_every_state_a_box() -> None:
    assert sorted(WALKS) == sorted((arrow.before, arrow.after) for arrow in ARROWS)
    assert set(BOXES) == set(State)


@pytest.mark.parametrize("arrow", ARROWS, ids=walk_id)
def test_the_event_of_an_arrow_leads_from_its_first_state_to_its_second(arrow: Arrow) -> None:
    before, after = WALKS[arrow.before, arrow.after]
    first = decided(before, State.MEASURED)
    then = decided(after, first.state)
    assert (first.state, then.state) == (arrow.before, arrow.after)


@pytest.mark.parametrize("arrow", ARROWS, ids=walk_id)
def test_the_box_that_an_arrow_leads_to_says_what_is_answered_there(arrow: Arrow) -> None:
    _, after = WALKS[arrow.before, arrow.after]
    reached = decided(after, arrow.before)
    box = BOXES[arrow.after]
    assert answered(reached) == box.value
    if box.active in ("active", "inactive"):
        assert reached.active is (box.active == "active")
    else:
        assert reached.active is True


@pytest.mark.parametrize(
    ("state", "active"), [(State.MEASURED, True), (State.ENDED, False), (State.EMPTY, False)]
)
def test_an_unknown_load_is_as_active_as_it_was_before(state: State, *, active: bool) -> None:
    assert BOXES[State.UNKNOWN].active == "as it was before"
    assert decided(NO_SAMPLE, state).active is active


@pytest.mark.parametrize(("load", "active"), [(50, True), (0, False)])
def test_a_measured_workload_is_active_while_it_is_busy(load: float, *, active: bool) -> None:
    assert BOXES[State.MEASURED].active == "active while busy"
    idle_or_busy = World((ready("b", load), ready("c", load)))
    assert decided(idle_or_busy, State.MEASURED).active is active


@pytest.mark.parametrize("world", [TOO_YOUNG, ONE_SILENT], ids=["starting", "partial"])
def test_what_is_held_is_a_value_where_the_measured_pods_alone_ask_for_more(world: World) -> None:
    others = tuple(ready(suffix, 100) for suffix in "dfghjkl")
    told = decided(replace(world, pods=(*world.pods, *others)), State.MEASURED)
    assert told.state in (State.STARTING, State.PARTIAL)
    assert told.value is not None
    assert told.value >= 700


def test_the_picture_is_the_one_that_is_drawn_now() -> None:
    assert states_picture.FILE.read_text() == states_picture.text(), "run make schema"
