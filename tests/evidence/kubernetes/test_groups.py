"""Claims about scale targets of which a replica is a group of pods, with pods of each kind."""

from collections import defaultdict
from typing import NamedTuple

import pytest

from keda_gpu_scaler.evidence.kubernetes.groups import GROUPED, group
from keda_gpu_scaler.evidence.kubernetes.selections import every_pod, parse_selector
from keda_gpu_scaler.snapshot.evidence import Evidence
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.spec.workload import Selected
from tests.evidence.kubernetes.bench import (
    BERT,
    PATIENCE_SECONDS,
    Bench,
    fetch_evidence,
    until_evidence,
)
from tests.support import api_server
from tests.support.api_server import ApiServer

Labels = dict[str, str]


class Target(NamedTuple):
    """A scale target that is called `llm`."""

    resource: str
    selector: str
    """As its scale subresource shows it."""
    pods: dict[str, list[tuple[str, Labels]]]
    """Its pods, by the replicas that they belong to."""

    @property
    def selected(self) -> Selected:
        return Selected("ml", self.resource, "llm")

    def add(self, api: ApiServer, scaled_object: str) -> None:
        """Let a ScaledObject scale it."""
        plural, _, group = self.resource.partition(".")
        reference = {"apiVersion": f"{group}/v1", "kind": "Kind", "name": "llm"}
        found = {"group": group, "version": "v1", "kind": "Kind", "resource": plural}
        scaled = api_server.scaled_object(scaled_object, **reference)
        scaled["status"] = {"scaleTargetGVKR": found}
        api.objects[api_server.SCALED_OBJECTS].append(scaled)
        path = f"/apis/{group}/v1/namespaces/ml/{plural}/llm/scale"
        api.selectors[path] = self.selector


DGD = "nvidia.com/dynamo-graph-deployment-name"
COMPONENT = "nvidia.com/dynamo-component"
DYNAMO = {DGD: "llm", COMPONENT: "decode"}
GROVE = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "llm"}
PCS_INDEX = "grove.io/podcliqueset-replica-index"
CLIQUE, PCSG = "grove.io/podclique", "grove.io/podcliquescalinggroup"
PCSG_INDEX = f"{PCSG}-replica-index"
LWS = "leaderworkerset.sigs.k8s.io"
ROLE_OF = {"disaggregatedset.x-k8s.io/name": "llm", "disaggregatedset.x-k8s.io/role": "prefill"}


def _cliques(index: int) -> list[tuple[str, Labels]]:
    """Return the pods of one replica of a scaling group of Grove, the leader's and a worker's."""
    group = f"llm-0-decode-{index}"
    labels = {PCSG: "llm-0-decode", PCSG_INDEX: str(index), PCS_INDEX: "0"}
    return [
        (f"{group}-decode-ldr-bcdfg", GROVE | labels | {CLIQUE: f"{group}-decode-ldr"}),
        (f"{group}-decode-wkr-x2kqz", GROVE | labels | {CLIQUE: f"{group}-decode-wkr"}),
    ]


def _leaders(name: str, group: int) -> list[tuple[str, Labels]]:
    """Return the pods of one group of a LeaderWorkerSet, the leader and a worker."""
    labels = {f"{LWS}/name": name, f"{LWS}/group-index": str(group)}
    return [
        (f"{name}-{group}", labels | {f"{LWS}/worker-index": "0"}),
        (f"{name}-{group}-1", labels | {f"{LWS}/worker-index": "1"}),
    ]


def _with(pods: list[tuple[str, Labels]], labels: Labels) -> list[tuple[str, Labels]]:
    return [(name, labels | own) for name, own in pods]


def _adapter(pods: dict[str, list[tuple[str, Labels]]]) -> Target:
    return Target(
        "dynamographdeploymentscalingadapters.nvidia.com",
        f"{DGD}=llm,{COMPONENT}=decode",
        {replica: _with(members, DYNAMO) for replica, members in pods.items()},
    )


def _workspace(name: str) -> list[tuple[str, Labels]]:
    labels = {"inferenceset.kaito.sh/created-by": "llm", "kaito.sh/workspace": name}
    return [(f"{name}-0", labels), (f"{name}-1", labels)]


def _role_set(name: str) -> list[tuple[str, Labels]]:
    labels = {"storm-service-name": "llm", "roleset-name": name}
    return [
        (f"{name}-prefill-bcdfg", labels | {"role-name": "prefill"}),
        (f"{name}-decode-6f7c9-0", labels | {"role-name": "decode"}),
    ]


ALONE = {"llm-decode-7b9f8-bcdfg": [("llm-decode-7b9f8-bcdfg", {"pod-template-hash": "7b9f8"})]}
IN_A_CLIQUE = {"llm-0-decode-x2kqz": [("llm-0-decode-x2kqz", GROVE | {CLIQUE: "llm-0-decode"})]}
TARGETS = {
    "Dynamo by Deployments": _adapter(ALONE),
    "Dynamo by a PodClique": _adapter(IN_A_CLIQUE),
    "Dynamo by a scaling group": _adapter({f"llm-0-decode-{n}": _cliques(n) for n in (0, 1)}),
    "Dynamo by LeaderWorkerSets": _adapter(
        {f"llm-decode-{n}-0": _leaders(f"llm-decode-{n}", 0) for n in (0, 1)}
    ),
    "InferenceSet": Target(
        "inferencesets.kaito.sh",
        "inferenceset.kaito.sh/created-by=llm",
        {name: _workspace(name) for name in ("llm-bcdfg", "llm-x2kqz")},
    ),
    "StormService": Target(
        "stormservices.orchestration.aibrix.ai",
        "storm-service-name=llm",
        {name: _role_set(name) for name in ("llm-roleset-bcdfg", "llm-roleset-x2kqz")},
    ),
    "DisaggregatedSetRoleScaler": Target(
        "disaggregatedsetrolescalers.disaggregatedset.x-k8s.io",
        "disaggregatedset.x-k8s.io/name=llm,disaggregatedset.x-k8s.io/role=prefill"
        f",{LWS}/worker-index=0",
        {
            f"llm-0-5f7c9-prefill-{n}": _with(_leaders("llm-0-5f7c9-prefill", n), ROLE_OF)
            for n in (0, 1)
        },
    ),
    "PodCliqueScalingGroup": Target(
        "podcliquescalinggroups.grove.io",
        f"app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=llm,{PCSG}"
        "=llm-0-decode",
        {f"llm-0-decode-{n}": _cliques(n) for n in (0, 1)},
    ),
    "PodCliqueSet": Target(
        "podcliquesets.grove.io",
        "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=llm",
        {"llm-0": [*_cliques(0), *_cliques(1)]},
    ),
}


def _replicas(evidence: Evidence, pods: Selected) -> dict[str, set[str]]:
    """Return the names of the selected pods by their replicas."""
    replicas = defaultdict[str, set[str]](set)
    for (_, name), pod in evidence.pods.items():
        if pods.owns(pod.owners):
            replicas[pods.replica_of(name, pod.owners)].add(name)
    return dict(replicas)


@pytest.fixture
def bench(bench: Bench) -> Bench:
    """A cluster with a pod that is nobody's."""
    other = api_server.pod("other", labels={"pod-template-hash": "x", DGD: "other"})
    bench.api.objects[api_server.PODS] = [other]
    return bench


def test_every_kind_with_groups_has_an_example() -> None:
    assert {target.resource for target in TARGETS.values()} == GROUPED.keys()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
async def test_all_pods_of_a_target_are_known_and_each_group_is_a_replica(
    bench: Bench, target: Target
) -> None:
    target.add(bench.api, BERT.name)
    bench.api.objects[api_server.PODS] += [
        api_server.pod(name, labels=labels)
        for members in target.pods.values()
        for name, labels in members
    ]
    expected = {replica: {name for name, _ in members} for replica, members in target.pods.items()}
    async with bench.watching() as following:
        assert await following.target(BERT, PATIENCE_SECONDS) == target.selected
        evidence = await fetch_evidence(following)
    assert _replicas(evidence, target.selected) == expected
    assert evidence.selected == {("ml", target.selected.selected_by)}


@pytest.mark.parametrize("more", ["", f",{COMPONENT}-group=pair"])
def test_a_selector_that_does_not_say_whose_pods_it_selects_is_refused(more: str) -> None:
    selector = parse_selector(f"{DGD}=llm{more}")
    with pytest.raises(ValueError, match=f"it gives no value for {COMPONENT}, the label that says"):
        every_pod(selector, GROUPED["dynamographdeploymentscalingadapters.nvidia.com"])


async def test_while_a_pod_does_not_show_its_group_the_pods_are_not_known(bench: Bench) -> None:
    target = TARGETS["InferenceSet"]
    target.add(bench.api, BERT.name)
    loose = api_server.pod("llm-bcdfg-0", labels={"inferenceset.kaito.sh/created-by": "llm"})
    bench.api.objects[api_server.PODS].append(loose)
    async with bench.watching() as following:
        await following.target(BERT, PATIENCE_SECONDS)
        evidence = await fetch_evidence(following)
        assert target.selected.owns(evidence.pods["ml", "llm-bcdfg-0"].owners)
        assert not evidence.selected
        lost = bench.changes("inferencesets.kaito.sh/scale")[-1]
        assert lost.reason == (
            "the selector of inferencesets.kaito.sh/llm in ml selects llm-bcdfg-0, which has no "
            "label that names its replica"
        )
        bench.api.tell(api_server.PODS, "DELETED", loose)
        await until_evidence(following, lambda evidence: bool(evidence.selected))


@pytest.mark.parametrize(
    ("resource", "labels", "named"),
    [
        ("dynamographdeploymentscalingadapters.nvidia.com", {}, None),
        (
            "dynamographdeploymentscalingadapters.nvidia.com",
            {CLIQUE: "llm-0-decode-0-wkr", PCSG: "llm-0-decode"},
            None,
        ),
        ("dynamographdeploymentscalingadapters.nvidia.com", {CLIQUE: "llm-0-decode"}, "llm-x"),
        ("stormservices.orchestration.aibrix.ai", {"roleset-name": ""}, None),
        ("stormservices.orchestration.aibrix.ai", {"pod-template-hash": "7b9f8"}, None),
    ],
    ids=["no label", "half of a name", "a clique of its own", "an empty label", "of no group"],
)
def test_a_replica_is_not_guessed(resource: str, labels: Labels, named: str | None) -> None:
    assert group(GROUPED[resource], "llm-x", labels) == named


async def test_a_target_within_another_one_leaves_out_none_of_its_pods(bench: Bench) -> None:
    """A whole PodCliqueSet is one replica of itself, and more than one of its scaling groups."""
    whole, part = TARGETS["PodCliqueSet"], TARGETS["PodCliqueScalingGroup"]
    whole.add(bench.api, "whole")
    part.add(bench.api, "part")
    labels = GROVE | {CLIQUE: "llm-0-frontend", PCS_INDEX: "0"}
    frontend = api_server.pod("llm-0-frontend-bcdfg", labels=labels)
    pods = [api_server.pod(name, labels=labels) for name, labels in whole.pods["llm-0"]]
    bench.api.objects[api_server.PODS] = [frontend, *pods]
    async with bench.watching() as following:
        for name in ("whole", "part"):
            await following.target(ScaledObject("ml", name), PATIENCE_SECONDS)
        evidence = await fetch_evidence(following)
    assert evidence.selected == {("ml", each.selected.selected_by) for each in (whole, part)}
    assert [len(pods) for pods in _replicas(evidence, whole.selected).values()] == [5]
    assert _replicas(evidence, part.selected).keys() == part.pods.keys()
