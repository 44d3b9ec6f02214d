"""Claims about what Kubernetes objects say."""

import json
from typing import Any

import msgspec
import pytest

from keda_gpu_scaler.snapshot.evidence import PodStatement, Unschedulable
from keda_gpu_scaler.sources.kubernetes import objects
from keda_gpu_scaler.sources.kubernetes.objects import Controller, Resource, Scale
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

NO_GPUS = frozenset({"nic", "rdma.example.com"})
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


@pytest.mark.parametrize(
    "parts",
    [
        {"metadata": {"deletionTimestamp": "2026-01-01T12:10:00Z"}},
        {"status": {"phase": "Succeeded"}},
        {"status": {"phase": "Failed"}},
    ],
    ids=["terminating", "succeeded", "failed"],
)
def test_what_cannot_be_undone_is_an_end(parts: dict[str, dict[str, Any]]) -> None:
    assert _statement(_pod(**parts)).ended
    assert not _statement(_pod()).ended


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


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"message": NO_ROOM}, Unschedulable(NOON + 30, NO_ROOM)),
        (
            {"message": f"{NO_ROOM} preemption: 0/12 nodes are available: 12 No victims found."},
            Unschedulable(NOON + 30, NO_ROOM),
        ),
        ({"lastTransitionTime": None}, Unschedulable(NOON)),
        ({"message": "a\nb\x1b[1m"}, Unschedulable(NOON + 30, "a b?[1m")),
        ({"message": "x" * 9999}, Unschedulable(NOON + 30, f"{'x' * 256}…")),
        ({"reason": "SchedulingGated"}, None),
        ({"status": "True", "reason": ""}, None),
    ],
    ids=[
        "no room",
        "nor by preemption",
        "no time",
        "control characters",
        "long",
        "gated",
        "placed",
    ],
)
def test_the_scheduler_says_since_when_and_why_a_pod_has_no_node(
    condition: dict[str, Any], expected: Unschedulable | None
) -> None:
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
        ({"containers": [{"resources": {"limits": {"example.com/nvidia.com/gpu": "1"}}}]}, False),
    ],
)  # fmt: skip
def test_a_gpu_is_asked_for_by_a_resource_or_a_claim(spec: dict[str, Any], *, asks: bool) -> None:
    pod = _read(api_server.pod("bert") | {"spec": spec})
    assert objects.pod(pod, NO_GPUS).statement.asks_gpu is asks
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


@pytest.mark.parametrize(
    ("reference", "kind"),
    [
        ({}, Kind.DEPLOYMENT),
        ({"kind": "StatefulSet"}, Kind.STATEFUL_SET),
        ({"apiVersion": "apps/v1", "kind": "ReplicaSet"}, Kind.REPLICA_SET),
        ({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}, Kind.ROLLOUT),
        (
            {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"},
            Kind.LEADER_WORKER_SET,
        ),
        (
            {"apiVersion": "workload.serving.volcano.sh/v1alpha1", "kind": "ModelServing"},
            Kind.MODEL_SERVING,
        ),
        ({"apiVersion": "grove.io/v1alpha1", "kind": "PodClique"}, Kind.POD_CLIQUE),
        (
            {"apiVersion": "production-stack.vllm.ai/v1alpha1", "kind": "VLLMRuntime"},
            Kind.DEPLOYMENT,
        ),
        (
            {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"},
            Kind.INFERENCE_SERVICE,
        ),
        ({"apiVersion": "serving.knative.dev/v1", "kind": "Service"}, Kind.KNATIVE_SERVICE),
    ],
)
def test_a_scale_target_is_a_workload_by_its_group_and_kind(
    reference: dict[str, str], kind: Kind
) -> None:
    scaled = api_server.scaled_object("scaler", name="bert", **reference)
    assert objects.target(_read(scaled)) == Workload(kind, "ml", "bert")


@pytest.mark.parametrize(
    ("reference", "shown"),
    [
        ({"apiVersion": "example.com/v1", "kind": "Deployment"}, "a Deployment.example.com,"),
        ({"kind": "Rollout"}, "a Rollout.apps,"),
        ({"apiVersion": "v1", "kind": "ReplicationController"}, "a ReplicationController,"),
    ],
)
def test_a_scale_target_of_another_kind_is_said_to_be_one(
    reference: dict[str, str], shown: str
) -> None:
    target = objects.target(_read(api_server.scaled_object("scaler", name="bert", **reference)))
    assert isinstance(target, str)
    assert shown in target


MODEL = {"apiVersion": "example.com/v1", "kind": "Model"}
FOUND = {"group": "example.com", "version": "v1", "kind": "Model", "resource": "models"}


def _found(reference: dict[str, str], **found: str) -> Workload | Scale | str:
    """Return the target of a ScaledObject with the scale target that KEDA resolved."""
    scaled = api_server.scaled_object("scaler", **{"name": "bert", **reference})
    return objects.target(_read(scaled | {"status": {"scaleTargetGVKR": found}}))


def test_a_target_of_another_kind_is_the_scale_of_what_keda_has_found() -> None:
    scale = _found(MODEL, **FOUND)
    assert scale == Scale("ml", Resource("example.com", "v1", "models"), "bert")
    assert scale.path == "/apis/example.com/v1/namespaces/ml/models/bert/scale"
    assert str(scale.pods) == "models.example.com/bert"
    core = {"group": "", "version": "v1", "kind": "Model", "resource": "models"}
    scale = _found({"apiVersion": "v1", "kind": "Model"}, **core)
    assert isinstance(scale, Scale)
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


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        ({"app": "bert"}, {"app": "bert"}),
        (None, {}),
        ({f"label-{number}": "x" for number in range(objects.LABELS + 1)}, {}),
    ],
    ids=["usual", "none", "more than any usual pod has"],
)
def test_the_labels_of_a_pod_are_kept_with_its_statement(
    labels: dict[str, str] | None, kept: dict[str, str]
) -> None:
    assert objects.pod(_pod(metadata={"labels": labels})) == objects.Pod(READY, kept)
