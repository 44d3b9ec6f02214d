"""Claims about what Kubernetes objects say."""

import json
from typing import Any

import msgspec
import pytest

from keda_gpu_scaler.evidence.kubernetes import objects
from keda_gpu_scaler.evidence.kubernetes.objects import Controller, Resource, ScaleReference
from keda_gpu_scaler.snapshot.evidence import PodStatement, Unschedulable
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.workload import Kind, Owner, Workload
from tests.support import api_server
from tests.support.api_server import NOON

READY = PodStatement(
    owners=frozenset({Owner("ReplicaSet", "bert-5d4f8")}),
    created_at=NOON,
    ready=True,
    ready_at=NOON + 31,
    asks_gpu=True,
)

NO_GPUS = frozenset({"nic", "rdma.example.com", "example.org/", "nvidia.com/hostdev"})
CLASS = "deviceclass.resource.kubernetes.io/"


def _read(item: dict[str, Any]) -> objects.Item:
    """Return an object as it is read from the API server."""
    return msgspec.json.decode(json.dumps(item), type=objects.Item)


def _pod(**parts: dict[str, Any]) -> objects.Item:
    """Return a Ready pod of a ReplicaSet with these fields of its parts changed."""
    pod = api_server.pod("bert-5d4f8-aaaaa", ("ReplicaSet", "bert-5d4f8"))
    return _read(pod | {part: pod[part] | fields for part, fields in parts.items()})


def _statement(item: objects.Item) -> PodStatement:
    return objects.pod(item).statement


def _conditions(status: str, changed: str) -> list[dict[str, str]]:
    scheduled = {"type": "PodScheduled", "status": "True"}
    return [scheduled, {"type": "Ready", "status": status, "lastTransitionTime": changed}]


def test_a_ready_pod_says_since_when_and_whose_it_is() -> None:
    assert _statement(_pod()) == READY
    assert _pod().key == ("ml", "bert-5d4f8-aaaaa")


def test_what_cannot_be_undone_is_an_end() -> None:
    assert not _statement(_pod()).ended
    assert _statement(_pod(metadata={"deletionTimestamp": "2026-01-01T12:10:00Z"})).ended
    for phase in ("Succeeded", "Failed"):
        assert _statement(_pod(status={"phase": phase})).ended


def test_a_pod_without_a_node_or_an_owner_says_little() -> None:
    bare = {"metadata": api_server.metadata("bert")}
    assert _statement(_read(bare)) == PodStatement(ready=False)
    assert not _statement(_pod(status={"conditions": None})).was_ready


@pytest.mark.parametrize(
    ("changed", "started", "once"),
    [
        ("2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z", False),
        ("2026-01-01T12:00:10Z", "2026-01-01T12:00:00Z", False),
        ("2026-01-01T12:00:11.5Z", "2026-01-01T12:00:00Z", True),
        ("2026-01-01T13:00:00+00:00", "2026-01-01T12:00:00Z", True),
        ("2026-01-01T13:00:00Z", None, False),
    ],
)
def test_a_pod_not_ready_any_more_was_ready_once(
    changed: str, started: str | None, *, once: bool
) -> None:
    """It changed to not Ready long after it started, so it was Ready before."""
    pod = _pod(status={"conditions": _conditions("False", changed), "startTime": started})
    statement = _statement(pod)
    assert (statement.ready, statement.ready_at, statement.was_ready) == (False, None, once)


NO_ROOM = "0/12 nodes are available: 12 Insufficient nvidia.com/gpu."


NO_VICTIMS = f"{NO_ROOM} preemption: 0/12 nodes are available: 12 No victims found."
SCHEDULED: dict[str, tuple[dict[str, Any], Unschedulable | None]] = {
    "no room": ({"message": NO_ROOM}, Unschedulable(NOON + 30, NO_ROOM)),
    "nor by preemption": ({"message": NO_VICTIMS}, Unschedulable(NOON + 30, NO_ROOM)),
    "no time": ({"lastTransitionTime": None}, Unschedulable(NOON)),
    "control characters": ({"message": "a\nb\x1b[1m"}, Unschedulable(NOON + 30, "a b?[1m")),
    "long": ({"message": "x" * 9999}, Unschedulable(NOON + 30, f"{'x' * 256}…")),
    "gated": ({"reason": "SchedulingGated"}, None),
    "placed": ({"status": "True", "reason": ""}, None),
}


@pytest.mark.parametrize("case", SCHEDULED)
def test_the_scheduler_says_since_when_and_why_a_pod_has_no_node(case: str) -> None:
    condition, expected = SCHEDULED[case]
    usual = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    known = usual | {"lastTransitionTime": api_server.CHANGED} | condition
    statement = _statement(_pod(status={"conditions": [known], "startTime": None}))
    assert (statement.unschedulable, statement.ready) == (expected, False)


@pytest.mark.parametrize(
    ("spec", "asks"),
    [
        ({"containers": [{"resources": {"requests": {"amd.com/gpu": "2"}}}]}, True),
        ({"containers": [{}, {"resources": {"limits": {"nvidia.com/mig-1g.5gb": "1"}}}]}, True),
        ({"initContainers": [{"resources": {"limits": {"habana.ai/gaudi": 1}}}]}, True),
        ({"containers": [{}], "resourceClaims": [{"name": "gpu"}]}, True),
        ({"resourceClaims": [{"name": "nic"}, {"name": "gpu"}]}, True),
        ({"resourceClaims": [{"name": "nic"}]}, False),
        ({"resourceClaims": [{"name": "a", "resourceClaimName": "nic"}]}, False),
        ({"resourceClaims": [{"name": "nic-a"}]}, True),
        ({"containers": [{"resources": {"limits": {f"{CLASS}gpu.nvidia.com": "1"}}}]}, True),
        ({"containers": [{"resources": {"limits": {f"{CLASS}rdma.example.com": "1"}}}]}, False),
        ({"containers": [{"resources": {"limits": {"nvidia.com/gpu": "0", "cpu": "1"}}}]}, False),
        ({"containers": [{"resources": {"limits": None}}], "resourceClaims": None}, False),
        ({"containers": [{"resources": {"limits": {"example.com/nvidia.com/gpu": "1"}}}]}, None),
        ({"containers": [{"resources": {"limits": {"example.com/npu": "1"}}}]}, None),
        ({"containers": [{"resources": {"limits": {"example.com/npu": "0"}}}]}, False),
        ({"containers": [{"resources": {"limits": {"example.org/nic": "1"}}}]}, False),
        ({"containers": [{"resources": {"limits": {"nvidia.com/hostdev": "1"}}}]}, False),
        ({"containers": [{"resources": {"limits": {"nic.example.com/a": "1"}}}]}, None),
        ({"containers": [{"resources": {"limits": {"volcano.sh/vgpu-number": "1"}}}]}, True),
        ({"containers": [{"resources": {"limits": {"huawei.com/Ascend910": "1"}}}]}, True),
        ({"containers": [{"resources": {"limits": {"vpc.amazonaws.com/efa": "1"}}}]}, False),
        ({"containers": [{"resources": {"limits": {"hugepages-2Mi": "4Mi"}}}]}, False),
        ({"containers": [{"resources": {"limits": {
            "example.com/npu": "1", "rdma/hca": "1", "amd.com/gpu": "1"}}}]}, True),
    ],
)  # fmt: skip
def test_a_gpu_is_asked_for_by_a_resource_or_a_claim(
    spec: dict[str, Any], *, asks: bool | None
) -> None:
    pod = _read(api_server.pod("bert") | {"spec": spec})
    statement = objects.pod(pod, NO_GPUS).statement
    assert statement.asks_gpu is asks
    assert bool(statement.devices) is (asks is None)
    claims = "resourceClaims" in spec and spec["resourceClaims"] is not None
    assert objects.pod(pod).statement.asks_gpu or not claims, "unless it is said to be for none"


@pytest.mark.parametrize("prefix", ["deployment.kubernetes.io", "rollout.argoproj.io"])
def test_a_replica_set_says_how_many_replicas_its_owner_asks_for(prefix: str) -> None:
    notes = {f"{prefix}/desired-replicas": "12", f"{prefix}/revision": "7"}
    owned = api_server.metadata("bert-5d4f8", ("Deployment", "bert"), annotations=notes)
    owner = Owner("Deployment", "bert")
    assert objects.controller(_read({"metadata": owned})) == Controller(owner, 7, 12)
    del notes[f"{prefix}/revision"]
    assert objects.controller(_read({"metadata": owned})) == Controller(owner, 0, 12)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e9", "²", "1" * 11])
def test_what_is_no_count_of_replicas_says_nothing(text: str) -> None:
    notes = {"deployment.kubernetes.io/desired-replicas": text}
    alone = api_server.metadata("bert-5d4f8", annotations=notes)
    assert objects.controller(_read({"metadata": alone})) == Controller(workload.NO_OWNER)


def _reference(words: str) -> dict[str, str]:
    """Return a reference to an object, as `apiVersion kind`."""
    return dict(zip(("apiVersion", "kind"), words.split(), strict=True)) if words else {}


TARGETS = {
    "": Kind.DEPLOYMENT,
    "apps/v1 StatefulSet": Kind.STATEFUL_SET,
    "apps/v1 ReplicaSet": Kind.REPLICA_SET,
    "argoproj.io/v1alpha1 Rollout": Kind.ROLLOUT,
    "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet": Kind.LEADER_WORKER_SET,
    "workload.serving.volcano.sh/v1alpha1 ModelServing": Kind.MODEL_SERVING,
    "grove.io/v1alpha1 PodClique": Kind.POD_CLIQUE,
    "production-stack.vllm.ai/v1alpha1 VLLMRuntime": Kind.DEPLOYMENT,
    "serving.kserve.io/v1beta1 InferenceService": Kind.INFERENCE_SERVICE,
    "serving.knative.dev/v1 Service": Kind.KNATIVE_SERVICE,
}


@pytest.mark.parametrize("words", TARGETS)
def test_a_scale_target_is_a_workload_by_its_group_and_kind(words: str) -> None:
    scaled = api_server.scaled_object("scaler", name="bert", **_reference(words))
    assert objects.target(_read(scaled)) == Workload(TARGETS[words], "ml", "bert")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("example.com/v1 Deployment", "a Deployment.example.com,"),
        ("apps/v1 Rollout", "a Rollout.apps,"),
        ("v1 ReplicationController", "a ReplicationController,"),
    ],
)
def test_a_scale_target_of_another_kind_is_said_to_be_one(words: str, shown: str) -> None:
    scaled = api_server.scaled_object("scaler", name="bert", **_reference(words))
    assert shown in str(objects.target(_read(scaled)))


MODEL = {"apiVersion": "example.com/v1", "kind": "Model"}
FOUND = {"group": "example.com", "version": "v1", "kind": "Model", "resource": "models"}


def _found(reference: dict[str, str], **found: str) -> Workload | ScaleReference | str:
    """Return the target of a ScaledObject with the scale target that KEDA resolved."""
    scaled = api_server.scaled_object("scaler", **{"name": "bert", **reference})
    return objects.target(_read(scaled | {"status": {"scaleTargetGVKR": found}}))


def test_a_target_of_another_kind_is_the_scale_of_what_keda_has_found() -> None:
    scale = _found(MODEL, **FOUND)
    assert scale == ScaleReference("ml", Resource("example.com", "v1", "models"), "bert")
    assert scale.path == "/apis/example.com/v1/namespaces/ml/models/bert/scale"
    assert str(scale.pods) == "models.example.com/bert"
    core = {"group": "", "version": "v1", "kind": "Model", "resource": "models"}
    scale = _found({"apiVersion": "v1", "kind": "Model"}, **core)
    assert isinstance(scale, ScaleReference)
    assert scale.path == "/api/v1/namespaces/ml/models/bert/scale"
    assert str(scale.pods) == "models/bert"


NO_NAME = "no object can be called what its scaleTargetRef names"
NO_RESOURCE = "its status.scaleTargetGVKR names no resource"
NOT_YET = (
    "its scaleTargetRef is a Model.example.com, and its status does not say yet what KEDA found"
)


@pytest.mark.parametrize(
    ("reference", "found", "reason"),
    [
        (MODEL, {"kind": "OtherModel"}, NOT_YET),
        (MODEL, {"group": "example.org"}, NOT_YET),
        (MODEL, {"resource": "../../pods"}, NO_RESOURCE),
        (MODEL, {"version": "v1/x"}, NO_RESOURCE),
        (MODEL | {"name": "../../secrets/x"}, {}, NO_NAME),
        ({"name": "../../secrets/x"}, {}, NO_NAME),
        ({"name": ""}, {}, NO_NAME),
    ],
)
def test_words_that_name_no_target_are_a_reason_and_no_part_of_a_url(
    reference: dict[str, str], found: dict[str, str], reason: str
) -> None:
    """The status of a ScaledObject follows its spec a moment later."""
    assert _found(reference, **FOUND | found) == reason


@pytest.mark.parametrize("reference", [None, {}], ids=["no reference", "no name"])
def test_a_scaled_object_without_a_target_hides_no_other(reference: dict[str, str] | None) -> None:
    scaled = {"metadata": api_server.metadata("scaler"), "spec": {"scaleTargetRef": reference}}
    assert objects.target(_read(scaled)) == NO_NAME


def test_the_labels_of_a_pod_are_kept_with_its_statement_up_to_their_limit() -> None:
    many = {f"label-{number}": "x" for number in range(objects.LABELS + 1)}
    for labels, kept in (({"app": "bert"}, {"app": "bert"}), (None, {}), (many, {})):
        assert objects.pod(_pod(metadata={"labels": labels})) == objects.ListedPod(READY, kept)


@pytest.mark.parametrize("annotation", ["gpu-fraction", "gpu-memory"])
def test_a_part_of_a_gpu_is_asked_for_by_an_annotation(annotation: str) -> None:
    """KAI and Run:ai give it without any resource."""
    pod = api_server.pod("bert") | {"spec": {"containers": [{}]}}
    assert objects.pod(_read(pod)).statement.asks_gpu is False
    pod["metadata"]["annotations"] = {annotation: "0.5"}
    assert objects.pod(_read(pod)).statement.asks_gpu is True
