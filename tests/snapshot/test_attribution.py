"""Whose GPUs a series shows: of two jobs, of two pods, of a pod that the cluster does not list."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from keda_gpu_scaler.snapshot.attribution import (
    FAR_WIDER,
    Breadth,
    Showing,
    attributed,
    believed,
)
from keda_gpu_scaler.snapshot.evidence import (
    EvidenceSource,
    NamespaceEvidence,
    PodKey,
    PodStatus,
)
from keda_gpu_scaler.snapshot.observation import Observation, Series, Target
from keda_gpu_scaler.snapshot.pod_status import PodStatuses, Watch
from keda_gpu_scaler.spec.workload import Owner

AT = 10_000.0
WEB = Owner("Deployment", "web")
HONEST, TENANT = "dcgm", "team-a/app"
WIDE = {HONEST: Breadth(10, 3), TENANT: Breadth(1, 40)}


def showing(job: str, rank: int = 0, first: float = 0, last: float = 300) -> Showing:
    return Showing(job, rank, first, last)


# Jobs


@pytest.mark.parametrize(
    ("breadths", "winner"),
    [
        pytest.param(WIDE, HONEST, id="more targets, however many namespaces the other one shows"),
        pytest.param({HONEST: Breadth(1, 3), TENANT: Breadth(1, 1)}, HONEST, id="more namespaces"),
        pytest.param({TENANT: Breadth(1, 1)}, TENANT, id="one of which something is known"),
    ],
)
def test_of_two_jobs_that_show_a_pod_the_wider_one_counts(
    breadths: Mapping[str, Breadth], winner: str
) -> None:
    showings = [showing(HONEST), showing(TENANT)]
    (loser,) = {HONEST, TENANT} - {winner}
    for given in (showings, showings[::-1]):
        assert believed(given, breadths) == (frozenset({(winner, 0)}), {loser: winner})


def test_of_two_that_are_equally_wide_the_one_that_showed_it_last_counts_then_any_one() -> None:
    assert believed([showing("a"), showing("b", last=285)], {})[0] == {("a", 0)}
    assert len(believed([showing("a"), showing("b")], {})[0]) == 1


def test_jobs_that_show_a_pod_one_after_the_other_all_count() -> None:
    before, after = showing("old", last=150), showing("new", first=165)
    assert believed([before, after], WIDE) == (frozenset({("old", 0), ("new", 0)}), {})


def test_of_jobs_that_both_show_a_pod_at_one_instant_the_wider_one_counts() -> None:
    for first, second in ((HONEST, TENANT), (TENANT, HONEST)):
        showings = [showing(first, last=150), showing(second, first=150)]
        assert believed(showings, WIDE) == (frozenset({(HONEST, 0)}), {TENANT: HONEST})


@pytest.mark.parametrize(
    ("targets", "counts"), [(FAR_WIDER - 1, ("narrow", 0)), (FAR_WIDER, ("wide", 1))]
)
def test_another_exporter_counts_before_the_preferred_one_only_if_it_is_far_wider(
    targets: int, counts: tuple[str, int]
) -> None:
    breadths = {"narrow": Breadth(1, 9), "wide": Breadth(targets, 1)}
    found, overruled = believed([showing("narrow"), showing("wide", 1)], breadths)
    assert found == {counts}
    assert overruled == ({"narrow": "wide"} if targets == FAR_WIDER else {})


def test_of_two_exporters_in_one_job_the_preferred_one_that_showed_it_last_counts() -> None:
    assert believed([showing("gpu"), showing("gpu", 1)], {}) == (frozenset({("gpu", 0)}), {})
    assert believed([showing("gpu", last=60), showing("gpu", 1)], {}) == (
        frozenset({("gpu", 1)}),
        {},
    )


# Pods


def series(pod: str, *rivals: PodKey, until: float = AT) -> Series:
    times = (until - 15, until)
    target = Target(HONEST, "10.0.0.1:9400")
    values = (50.0, 50.0)
    return Series("ml", pod, "GPU-a", target, times, times, values, averaged=False, rivals=rivals)


def statuses(
    *pods: str,
    wanted: int | None = 2,
    covered: Collection[str] = ("ml",),
    source: EvidenceSource = EvidenceSource.KUBE_STATE_METRICS,
    is_whole: bool = True,
) -> PodStatuses:
    """Return what the cluster says: `pods` of deployment/web in the namespace ml, of `wanted`."""
    evidence = NamespaceEvidence(
        AT - 10,
        absence_known=is_whole,
        evidence_source=source,
        wanted={} if wanted is None else {WEB: wanted},
    )
    status = PodStatus(owners=frozenset({WEB}), listed_at=AT - 10)
    return PodStatuses(
        AT - 10,
        {("ml", pod): status for pod in pods},
        Watch(is_whole=is_whole, evidence_source=source),
        dict.fromkeys(covered, evidence),
    )


def named(pod_statuses: PodStatuses, *shown: Series) -> list[str]:
    observation = Observation((AT - 15, AT), shown, {})
    return [each.pod for each in attributed(observation, pod_statuses)[0].series]


LISTED = ("web-1-a", "web-1-b")


def test_of_two_pods_it_is_the_only_one_that_is_listed() -> None:
    assert named(statuses(*LISTED), series("node-7", ("ml", "web-1-a"))) == ["web-1-a"]
    for pod_statuses, rival in (
        (PodStatuses(), ("ml", "web-1-a")),
        (statuses(), ("ml", "web-1-a")),
        (statuses(*LISTED), ("ml", "web-1-b")),
        (statuses(*LISTED), ("other", "web-1-a")),
    ):
        assert named(pod_statuses, series("web-1-a", rival)) == []


def test_the_series_is_about_that_pod_in_its_namespace() -> None:
    shown = replace(series("node-7", ("ml", "web-1-a")), namespace="gpu-operator")
    both = statuses(*LISTED, covered=("ml", "gpu-operator"))
    found, _ = attributed(Observation((AT - 15, AT), (shown,), {}), both)
    assert found.series == (series("web-1-a"),)


def test_a_pod_that_a_whole_list_lacks_counts_for_nothing() -> None:
    assert named(statuses(*LISTED), series("web-1-a"), series("web-1-x")) == ["web-1-a"]
    ended = statuses(*LISTED)
    gone = replace(ended.pods["ml", "web-1-b"], ended=True)
    ended = replace(ended, pods={**ended.pods, ("ml", "web-1-b"): gone})
    assert named(ended, series("web-1-x")) == ["web-1-x"]


@pytest.mark.parametrize(
    "pod_statuses",
    [
        pytest.param(statuses(*LISTED, wanted=3), id="its owner asks for more than are listed"),
        pytest.param(statuses(*LISTED, wanted=None), id="it is not known how many it asks for"),
        pytest.param(statuses(*LISTED, is_whole=False), id="the list is not whole"),
        pytest.param(statuses(*LISTED, covered=()), id="the list is not about its namespace"),
        pytest.param(replace(statuses(*LISTED), scraped_at=AT - 600), id="the list is old"),
        pytest.param(PodStatuses(), id="there is no list"),
    ],
)
def test_a_pod_counts_while_the_list_may_be_late(pod_statuses: PodStatuses) -> None:
    assert named(pod_statuses, series("web-1-x")) == ["web-1-x"]


def test_a_pod_of_a_workload_with_no_replicas_counts_for_nothing() -> None:
    pod_statuses = statuses(wanted=None)
    none = replace(pod_statuses.evidence["ml"], without_pods=frozenset({WEB}))
    assert named(replace(pod_statuses, evidence={"ml": none}), series("web-1-x")) == []


def test_the_list_of_the_kubernetes_api_is_not_late() -> None:
    api = statuses(*LISTED, wanted=None, source=EvidenceSource.KUBERNETES)
    assert named(api, series("batch-x"), series("web-1-b")) == ["web-1-b"]


def test_a_pod_that_is_not_shown_any_more_is_kept_whether_it_is_listed_or_not() -> None:
    assert named(statuses(*LISTED), series("web-1-x", until=AT - 15)) == ["web-1-x"]
