"""Claims about finding pods by the beginning of their names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.snapshot.observation import Observation
from keda_gpu_scaler.snapshot.pod_status import PodStatuses, build_snapshot
from keda_gpu_scaler.snapshot.reported_pods import ReportedPods
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot, Snapshot
from tests.support.snapshots import pod, snapshot

_NAMES = st.text("ab-", min_size=1, max_size=5)
_BOTH = ("ml", "web")


@given(st.sets(_NAMES, max_size=12), st.text("ab-", max_size=3))
def test_bisection_finds_what_a_scan_would_find(names: set[str], prefix: str) -> None:
    found = NamespaceSnapshot(0.0, tuple(sorted(names)), {name: pod(name) for name in names})
    expected = sorted(name for name in names if name.startswith(prefix))
    assert [one.name for one in found.starting_with(prefix)] == expected


def test_a_namespace_that_is_not_there_has_no_pods() -> None:
    assert list(Snapshot(900.0, {"ml": snapshot(pod("bert-0"))}).of("web").starting_with("")) == []


def test_a_snapshot_answers_for_every_namespace_that_was_asked_about() -> None:
    reported_pods = ReportedPods(900.0, {("ml", "bert-0"): pod("bert-0")})
    observation = Observation(
        (900.0,),
        (),
        {},
        absence_known=True,
        refused_samples=3,
        unmatched_elements=2,
        unmatched_labels=frozenset({"gpu"}),
    )
    taken = build_snapshot(reported_pods, PodStatuses(), observation, _BOTH, {"ml"})
    assert taken.namespaces.keys() == {"ml", "web"}
    assert [taken.of(namespace).absence_known for namespace in _BOTH] == [True, False]
    assert [taken.of(namespace).is_complete for namespace in _BOTH] == [True, False]
    assert [taken.of(namespace).unmatched_elements for namespace in _BOTH] == [2, 2]
    assert taken.of("web").unmatched_labels == {"gpu"}
    assert [taken.of(namespace).at for namespace in _BOTH] == [900.0, 900.0]
    assert (taken.pod_count, taken.refused_samples, taken.at) == (1, 3, 900.0)


@pytest.mark.parametrize("how", [{}, {"misses_targets": True}])
def test_what_is_known_of_a_namespace_while_the_source_may_overlook_something(
    how: dict[str, bool],
) -> None:
    """It has not watched for long enough, or it misses a target."""
    observation = Observation((900.0,), (), {}, **how)  # type: ignore[arg-type]  # a table of any
    taken = build_snapshot(ReportedPods(), PodStatuses(), observation, _BOTH, {"ml"})
    assert not taken.of("ml").absence_known
    assert taken.of("ml").is_complete is not bool(how)
