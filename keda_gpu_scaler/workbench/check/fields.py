"""Rules about a trigger's keys, KEDA's fields beside them, and what these refer to. Pure.

They are those of KEDA 2.21.

The scaler's own parser says what is wrong with a key: `trigger/` alone defines what a trigger may
contain.
"""

import re
from collections.abc import Iterator

from keda_gpu_scaler import errors
from keda_gpu_scaler.spec.spec import OnUnknown
from keda_gpu_scaler.spec.workload import Kind, PodPattern
from keda_gpu_scaler.trigger.keys import FROM_ENV
from keda_gpu_scaler.workbench.check.demands import DEMANDS
from keda_gpu_scaler.workbench.check.documents import shown
from keda_gpu_scaler.workbench.check.findings import Wrong
from keda_gpu_scaler.workbench.check.manifests import OUR_NAME, Manifest, Trigger

_APPS = "apps/v1"
"""Where KEDA looks for a scale target without apiVersion."""
_OTHERS = {
    "CronJob": ("batch", "a Deployment: a CronJob runs at fixed times"),
    "DaemonSet": ("apps", "a Deployment: a DaemonSet has one pod on each node"),
    "DynamoGraphDeployment": ("nvidia.com", "a component's DynamoGraphDeploymentScalingAdapter"),
    "InferenceService": ("serving.kserve.io", "its Deployment, NAME-predictor"),
    "Job": ("batch", "a Deployment: a Job ends by itself"),
    "LLMInferenceService": ("serving.kserve.io", "its workload NAME-kserve, or NAME-kserve-mn"),
    "NIMService": ("apps.nvidia.com", "its Deployment NAME"),
    "RayCluster": ("ray.io", "nothing with KEDA: Ray's own autoscaler scales its workers"),
    "RayService": ("ray.io", "nothing with KEDA: Ray's own autoscaler scales its workers"),
    "Workspace": ("kaito.sh", "an InferenceSet, which creates Workspaces"),
}
"""Kinds without a scale subresource: their API group, and what to scale of an object NAME."""
_OF_APPS = ("Deployment", "StatefulSet", "ReplicaSet")
"""Kinds of apps/v1 that KEDA can scale."""
_HTTP_PORT, _HTTP_SERVICE = "8080", "-http"
"""Of the chart's Service for people."""

TYPESET = re.compile("[\u00a0\u2018-\u201f\u200b\u202f]")
"""What word processors and web pages write for quotes and spaces."""
_PLAIN_NAME = re.compile("[a-z0-9.-]+")
_GLOB = re.compile("[a-z0-9-](?:[*]|[?][?]|[?]$)")
_POD_SUFFIXES = {"deployment": "-5d8f7c9b4d-x2x7z", "statefulset": "-0"}
"""What follows the name in that of a pod."""


def doubtful_value(manifest: Manifest) -> Iterator[Wrong]:
    for trigger, spec in manifest.accepted:
        if spec.unit == "%" and spec.threshold <= 1 and not manifest.formula:
            continue  # that is another rule's, and the cause
        for warning in spec.warnings:
            # Every warning begins with the key that it is about.
            key = warning.partition(" ")[0]
            fix = f"Change {key}, or the value that it is compared with."
            yield Wrong(trigger.place(key), warning, fix)


def cached_metrics(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.ours:
        is_for_formula = bool(trigger.of.formula) and trigger.for_formula  # another rule's
        if trigger.node.text("useCachedMetrics").lower() == "true" and not is_for_formula:
            why = (
                "useCachedMetrics answers the HPA from the last poll: a scale-out waits up to one "
                "pollingInterval longer, and the scaler cannot see that replicas exist"
            )
            fix = "Remove it: the scaler already queries its source once for all triggers."
            yield Wrong(trigger.node.place("useCachedMetrics"), why, fix)


def fallback_to_zero(manifest: Manifest) -> Iterator[Wrong]:
    replicas = manifest.node.integer("spec", "fallback", "replicas")
    is_used = _is_error_counted(manifest) or manifest.goes_to_zero
    if manifest.ours and replicas == 0 and is_used:
        why = (
            "with 0 replicas, an error or a scaler that does not answer does not block the step to "
            "zero, even of a busy workload"
        )
        place = manifest.node.place("spec", "fallback", "replicas")
        yield Wrong(place, why, "Remove fallback, or write 1 or more.")


def fallback_scales_in(manifest: Manifest) -> Iterator[Wrong]:
    fallback = manifest.node.block("spec", "fallback")
    replicas, behavior = fallback.integer("replicas"), fallback.text("behavior") or "static"
    if (
        replicas is not None
        and 0 < replicas < manifest.maximum
        and behavior in ("static", "currentReplicasIfLower")
        and _is_error_counted(manifest)
    ):
        why = (
            f"behavior {behavior} sets {replicas} replicas while the load is unknown, and removes "
            "the busy ones above that"
        )
        fix = "Write behavior: currentReplicasIfHigher, which KEDA has since 2.17."
        yield Wrong(manifest.node.place("spec", "fallback", "behavior"), why, fix)


def _is_error_counted(manifest: Manifest) -> bool:
    """Tell whether a trigger for this scaler lets KEDA count errors, as far as it is known."""
    return any(
        trigger.metadata.get("onUnknown", "").strip() == OnUnknown.ERROR
        or "onUnknownFromEnv" in trigger.metadata
        for trigger in manifest.ours
    )


def modifiers_with_demand(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.ours if manifest.formula else ():
        if trigger.for_formula or (trigger.spec is not None and trigger.spec.is_by_demand):
            continue  # its number says whether it is active, or it has no other number
        keys = [key for key in trigger.metadata if key.removesuffix(FROM_ENV) in DEMANDS]
        if keys:
            why = (
                "with scalingModifiers KEDA uses one number of each trigger and ignores its "
                "activity: the demand replaces the load, or has no effect"
            )
            fix = "Move the demand to a separate trigger, and name it in the formula."
            yield Wrong(trigger.place(keys[0]), why, fix)


def scaled_job(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.ours:
        why = "ScaledJobs are not supported: one busy job keeps the load high, and KEDA starts more"
        fix = "Use a ScaledObject, or a trigger on the queue of the jobs."
        yield Wrong(trigger.node.place("type"), why, fix)


def wrong_target(manifest: Manifest) -> Iterator[Wrong]:
    target = manifest.node.block("spec", "scaleTargetRef")
    kind = target.text("kind")
    group = (target.text("apiVersion") or _APPS).rpartition("/")[0]
    # Another API group may have a kind of the same name.
    own_group, instead = _OTHERS.get(kind, ("", ""))
    if instead and group in (own_group, "apps"):
        why = f"KEDA cannot scale a {kind}, which has no scale subresource"
        fix = f"Scale {instead.replace('NAME', shown(target.text('name')))}."
    elif group == "apps" and kind and kind not in _OF_APPS:
        why = f"{_APPS} has no kind {shown(kind)} that KEDA can scale"
        meant = errors.nearest(kind.title(), _OF_APPS)
        fix = f"Did you mean {meant}?" if meant else f"Write {shown(kind)}'s apiVersion."
    else:
        return
    yield Wrong(manifest.node.place("spec", "scaleTargetRef", "kind"), why, fix)


def wrong_address(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.ours:
        address = trigger.metadata.get("scalerAddress", "")
        if not address or address.startswith("unix:"):
            continue
        scheme, _, target = address.rpartition("://")
        # Before a slash there is a name server: dns://SERVER/NAME.
        host, _, port = target.rstrip("/").rpartition("/")[2].rpartition(":")
        is_tls = trigger.metadata.get("enableTLS", "").lower() == "true"
        is_http = port == _HTTP_PORT and OUR_NAME in address
        if scheme.lower() not in {"", "dns", "passthrough"}:
            why = f"scalerAddress begins with {shown(scheme)}://, which is not a scheme of gRPC"
        elif is_http or host.partition(".")[0].endswith(_HTTP_SERVICE):
            why = "scalerAddress is the scaler's HTTP port, which does not answer KEDA"
        elif not (host or is_tls or trigger.node.has("authenticationRef")):  # it may bring a CA
            why = "scalerAddress has no port, and gRPC then uses 443"
        elif TYPESET.search(address):
            why = "scalerAddress has a curly quote or a no-break space in it"
        else:
            continue
        fix = "Write the scaler's Service with its gRPC port: keda-gpu-scaler.keda.svc:6000."
        yield Wrong(trigger.place("scalerAddress"), why, fix)


def other_project(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.triggers:
        keys = trigger.namesakes_keys
        if keys:
            why = (
                f"{shown(', '.join(keys))}: this is a trigger of pmady/keda-gpu-scaler, another "
                "project of the same name, and this scaler refuses it"
            )
            fix = "Write this scaler's keys: docs/migrate/exporters.md#pmadykeda-gpu-scaler."
            yield Wrong(trigger.place(*keys), why, fix)


def pod_pattern(manifest: Manifest) -> Iterator[Wrong]:
    target = manifest.node.text("spec", "scaleTargetRef", "name")
    for trigger, pods in _patterns(manifest):
        is_start = _PLAIN_NAME.fullmatch(pods.pattern) and target.startswith(
            pods.pattern.rstrip("-")
        )
        if is_start or pods.pattern.endswith("-") or _GLOB.search(pods.pattern):
            why = (
                "podPattern is a regular expression for the whole name, neither a prefix nor a "
                "glob: no pod has such a name, so nothing is measured"
            )
            fix = f"Write workload: {shown(target)}, or a pattern such as {shown(target)}-[0-9]+."
            yield Wrong(trigger.place("podPattern"), why, fix)


def wide_pod_pattern(manifest: Manifest) -> Iterator[Wrong]:
    scaled = manifest.node.block("spec", "scaleTargetRef")
    target, kind = scaled.text("name"), scaled.text("kind") or Kind.DEPLOYMENT
    suffix = _POD_SUFFIXES.get(kind.lower())
    for trigger, pods in _patterns(manifest):
        is_of_one = "|" not in pods.pattern and pods.matches(target + (suffix or ""))
        if suffix and is_of_one and pods.matches(f"{target}-canary{suffix}"):
            why = (
                f"podPattern also matches the pods of a {kind} {shown(target)}-canary, which then "
                "count as replicas"
            )
            name = target if kind.lower() == Kind.DEPLOYMENT else f"{kind.lower()}/{target}"
            fix = f"Write workload: {shown(name)} in its place."
            yield Wrong(trigger.place("podPattern"), why, fix)


def _patterns(manifest: Manifest) -> Iterator[tuple[Trigger, PodPattern]]:
    for trigger, spec in manifest.accepted:
        if isinstance(spec.pods, PodPattern) and "podPattern" in trigger.metadata:
            yield trigger, spec.pods


def idle_replicas(manifest: Manifest) -> Iterator[Wrong]:
    idle = manifest.node.integer("spec", "idleReplicaCount")
    if idle:
        why = (
            f"while the workload is inactive KEDA sets {idle} and the HPA minReplicaCount "
            f"{manifest.minimum}, in turn: a pod is created and removed for ever"
        )
        place = manifest.node.place("spec", "idleReplicaCount")
        yield Wrong(place, why, "Remove idleReplicaCount, or write 0.")


def unused_fallback(manifest: Manifest) -> Iterator[Wrong]:
    fallback = manifest.node.block("spec", "fallback")
    is_all_ours = 0 < len(manifest.ours) == len(manifest.triggers)
    if is_all_ours and fallback.integer("replicas") and not _is_error_counted(manifest):
        why = (
            "with onUnknown: hold an unknown load is no error, so that KEDA never uses this "
            "fallback for it, and keeps the replicas"
        )
        fix = "Remove fallback, or write onUnknown: error to have it used."
        yield Wrong(manifest.node.place("spec", "fallback"), why, fix)
