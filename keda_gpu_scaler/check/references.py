"""Rules about what a ScaledObject refers to: KEDA's API, its scale target, the scaler. Pure."""

import re
from collections.abc import Iterator
from difflib import get_close_matches

from keda_gpu_scaler.check.documents import shown
from keda_gpu_scaler.check.findings import Wrong
from keda_gpu_scaler.check.objects import EXTERNAL, OUR_NAME, Manifest

_KEDA = "keda.sh/v1alpha1"
_APPS = "apps/v1"
"""Where KEDA looks for a scale target without apiVersion."""
_BUILT_IN = frozenset({"", "apps", "batch", "extensions"})
"""The API groups of Kubernetes itself that have workloads, or once had."""
_SCALABLE = {
    _APPS: ("Deployment", "StatefulSet", "ReplicaSet"),
    "argoproj.io/v1alpha1": ("Rollout",),
    "disaggregatedset.x-k8s.io/v1": ("DisaggregatedSetRoleScaler",),
    "grove.io/v1alpha1": ("PodClique", "PodCliqueScalingGroup", "PodCliqueSet"),
    "kaito.sh/v1beta1": ("InferenceSet",),
    "leaderworkerset.x-k8s.io/v1": ("LeaderWorkerSet",),
    "nvidia.com/v1beta1": ("DynamoGraphDeploymentScalingAdapter",),
    "orchestration.aibrix.ai/v1alpha1": ("StormService", "RayClusterFleet"),
    "production-stack.vllm.ai/v1alpha1": ("VLLMRuntime",),
    "workload.serving.volcano.sh/v1alpha1": ("ModelServing",),
}
"""Kinds with a scale subresource, by their newest apiVersion."""
_KINDS = {kind.lower(): (kind, api) for api, kinds in _SCALABLE.items() for kind in kinds}
_OTHERS = {
    "CronJob": ("batch", "a Deployment: a CronJob runs at fixed times"),
    "DaemonSet": ("apps", "a Deployment: a DaemonSet has one pod on each node"),
    "DynamoGraphDeployment": ("nvidia.com", "a component's DynamoGraphDeploymentScalingAdapter"),
    "InferenceService": ("serving.kserve.io", "its Deployment, NAME-predictor"),
    "Job": ("batch", "a Deployment: a Job ends by itself"),
    "LLMInferenceService": ("serving.kserve.io", "its workload NAME-kserve, or NAME-kserve-mn"),
    "RayCluster": ("ray.io", "nothing with KEDA: Ray's own autoscaler scales its workers"),
    "RayService": ("ray.io", "nothing with KEDA: Ray's own autoscaler scales its workers"),
    "Workspace": ("kaito.sh", "an InferenceSet, which creates Workspaces"),
}
"""Kinds without one: their API group, and what to scale of an object called NAME."""
_ADDRESS = re.compile(
    r"(?:(?P<scheme>[^:/]*+)://)?(?:.*/)?"  # dns://SERVER/ names a name server
    r"(?P<service>[^.:/]*+)(?P<domain>[^:/]*+)(?::(?P<port>[0-9]*+))?"
)
_GRPC_SCHEMES = frozenset({"", "dns", "passthrough"})
_GRPC_PORT, _HTTP_PORT, _HTTP_SERVICE = "6000", "8080", "-http"
"""Of the chart's two Services."""
_MOST_COMPARED = 100


def wrong_api_version(manifest: Manifest) -> Iterator[Wrong]:
    version = manifest.node.text("apiVersion")
    if version != _KEDA and (version or manifest.is_whole):
        why = f"apiVersion is {shown(version) or 'missing'}; expected {_KEDA} for a ScaledObject"
        yield Wrong(manifest.node.place("apiVersion"), why, f"Write apiVersion: {_KEDA}.")


def wrong_target(manifest: Manifest) -> Iterator[Wrong]:
    target = manifest.node.block("spec", "scaleTargetRef")
    kind, given = target.text("kind") or "Deployment", target.text("apiVersion")
    name, right_api = _KINDS.get(kind.lower(), (kind, given))
    other_group, instead = _OTHERS.get(kind, ("", ""))
    api = given or _APPS
    group, right_group = api.rpartition("/")[0], right_api.rpartition("/")[0]
    if instead and group in {other_group, *_BUILT_IN}:
        why = f"KEDA cannot scale a {kind}, which has no scale subresource"
        fix = f"Scale {instead.replace('NAME', shown(target.text('name')))}."
    # Another API group may have a kind of the same name, or a newer version.
    elif (group in _BUILT_IN and api != right_api) or (group == right_group and kind != name):
        default = "" if given else ", where KEDA looks for a kind without apiVersion"
        why = f"there is no {shown(kind)} in {shown(api)}{default}"
        fix = f"Write kind: {shown(name)} with {right_api or 'the API that has it'} as apiVersion."
    else:
        return
    yield Wrong(manifest.node.place("spec", "scaleTargetRef", "kind"), why, fix)


def wrong_trigger_type(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.triggers:
        if trigger.type not in EXTERNAL and trigger.names_scaler:
            written = trigger.type.lower()[:_MOST_COMPARED]
            for right in get_close_matches(written, sorted(EXTERNAL), n=1):
                why = f"KEDA has no trigger type {shown(trigger.type)}"
                yield Wrong(trigger.node.place("type"), why, f"Write type: {right}.")


def wrong_address(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.ours:
        address = trigger.metadata.get("scalerAddress", "")
        match = _ADDRESS.fullmatch(address.rstrip("/"))
        is_known = address in manifest.terms.addresses or address.startswith("unix:")
        if match is None or not address or is_known:
            continue
        scheme, service, domain, port = match.groups("")
        has_tls = trigger.metadata.get("enableTLS", "").lower() == "true"
        is_http = service.endswith(_HTTP_SERVICE) or (port == _HTTP_PORT and OUR_NAME in address)
        if scheme.lower() not in _GRPC_SCHEMES:
            why = f"scalerAddress begins with {shown(scheme)}://, which is not a scheme of gRPC"
        elif is_http:
            why = "scalerAddress is the scaler's HTTP port, which does not answer KEDA"
        elif not port and not has_tls:
            why = "scalerAddress has no port, and gRPC then uses 443"
        else:
            continue
        port = _GRPC_PORT if is_http or not port else port
        right = f"{service.removesuffix(_HTTP_SERVICE)}{domain}:{port}"
        yield Wrong(trigger.place("scalerAddress"), why, f"Write {shown(right)}.")
