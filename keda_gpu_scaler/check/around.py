"""Rules about KEDA's other fields beside a trigger, and the way to the scaler. Pure."""

import ipaddress
from collections.abc import Iterator

from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.objects import Manifest, Trigger
from keda_gpu_scaler.check.workloads import World
from keda_gpu_scaler.spec.spec import OnUnknown
from keda_gpu_scaler.trigger.keys import FROM_ENV

_TLS = ("caCert", "tlsClientCert", "tlsClientKey")
"""KEDA reads these from authentication alone."""
_PAIR = frozenset({"tlsClientCert", "tlsClientKey"})
_VAULTS = frozenset(
    {
        "awsSecretManager",
        "azureKeyVault",
        "boundServiceAccountToken",
        "filePath",
        "gcpSecretManager",
        "hashiCorpVault",
    }
)
"""Of a TriggerAuthentication: where parameters come from as well, and are not looked at here."""
_DEMANDS = frozenset({"demandQuery", "demandPreset"})
_SHRINKS = ("static", "currentReplicasIfLower")
_WITHOUT_FALLBACK = frozenset({"cpu", "memory"})


def check(of: Manifest, world: World) -> Iterator[Finding]:
    """Yield what KEDA's other fields make of the triggers of a ScaledObject."""
    if not of.ours:
        return
    yield from _polling(of)
    yield from _fallback(of)
    for one in of.ours:
        if one.node.text("useCachedMetrics").lower() == "true":
            why = (
                "useCachedMetrics answers the HPA from the last poll: scaling out waits for up to "
                "a pollingInterval more, and the scaler cannot see that there are replicas"
            )
            fix = "Remove it: the scaler asks its source once for all triggers anyway."
            yield of.find("cached-metrics", one.node.place("useCachedMetrics"), why, fix)
        yield from _modifiers(one)
        yield from _address(one, world)
        yield from _tls(one)


def jobs(of: Manifest) -> Iterator[Finding]:
    """Yield each trigger for this scaler in a ScaledJob."""
    for one in of.ours:
        why = (
            "ScaledJobs are not supported: one busy job keeps the load up, and starts more of them"
        )
        fix = "Use a ScaledObject, or a trigger on the queue that the jobs work on."
        yield of.find("scaled-job", one.node.place("type"), why, fix)


def authentications(world: World) -> Iterator[Finding]:
    """Yield what is wrong with the TriggerAuthentications that triggers for this scaler use."""
    references = [each for of in world.manifests for each in _references(of)]
    ours = {name for is_ours, name in references if is_ours}
    others = {name for is_ours, name in references if not is_ours}
    for of in world.manifests:
        name = (of.kind, of.namespace if of.kind == "TriggerAuthentication" else "", of.name)
        if name in ours:
            yield from _parameters(of, is_shared=name in others)


def _polling(of: Manifest) -> Iterator[Finding]:
    spec = of.node.block("spec")
    is_polled = (
        of.goes_to_zero
        or spec.has("idleReplicaCount")
        or of.formula
        or any(one.node.text("useCachedMetrics").lower() == "true" for one in of.triggers)
    )
    if spec.has("pollingInterval") and not is_polled:
        why = (
            "since KEDA 2.21 pollingInterval has no effect where minReplicaCount is 1 or more, "
            "without idleReplicaCount and useCachedMetrics: KEDA takes what the HPA asks for every "
            "15 s"
        )
        fix = "Remove it; with KEDA 2.20 and older it only adds calls."
        yield of.find("polling-without-effect", spec.place("pollingInterval"), why, fix)


def _fallback(of: Manifest) -> Iterator[Finding]:
    fallback = of.node.block("spec", "fallback")
    if not fallback.entries:
        return
    place = of.node.place("spec", "fallback")
    unread = any("onUnknownFromEnv" in one.metadata for one in of.ours)
    asked = {one.metadata.get("onUnknown", OnUnknown.HOLD).strip() for one in of.ours}
    others = any(not one.is_ours and one.type not in _WITHOUT_FALLBACK for one in of.triggers)
    is_counted = OnUnknown.ERROR in asked or unread
    replicas = fallback.integer("replicas")
    behavior = fallback.text("behavior") or "static"
    if replicas == 0 and (is_counted or of.goes_to_zero):
        why = (
            "with 0 replicas neither an error nor a scaler that does not answer blocks the last "
            "step to zero, busy or not"
        )
        fix = "Remove fallback, or write 1 or more."
        yield of.find("fallback-to-zero", fallback.place("replicas"), why, fix)
    elif not is_counted and not others:
        why = (
            f"KEDA counts no error: onUnknown {', '.join(sorted(asked))} sends none, and KEDA does "
            "not count those of a scaler that does not answer"
        )
        fix = "Remove fallback, or write onUnknown: error in the trigger."
        yield of.find("unused-fallback", place, why, fix)
    elif is_counted and behavior in _SHRINKS and replicas is not None and replicas < of.maximum:
        why = (
            f"behavior {behavior} sets {replicas} replicas while the load is unknown, and takes "
            "the busy ones above that away"
        )
        fix = "Write behavior: currentReplicasIfHigher, which KEDA has since 2.17."
        found = fallback.place("behavior") if fallback.has("behavior") else place
        yield of.find("fallback-scales-in", found, why, fix)


def _modifiers(one: Trigger) -> Iterator[Finding]:
    keys = [key for key in one.metadata if key.removesuffix(FROM_ENV) in _DEMANDS]
    if one.of.formula and keys:
        why = (
            "with scalingModifiers KEDA sees one number of each trigger and ignores its activity: "
            "the demand takes the place of the load, or counts for nothing"
        )
        fix = "Give the demand a trigger of its own, and name it in the formula."
        yield one.of.find("modifiers-with-demand", one.place(keys[0]), why, fix)


def _address(one: Trigger, world: World) -> Iterator[Finding]:
    address = one.metadata.get("scalerAddress", "")
    place = one.place("scalerAddress")
    fix = "Name a headless Service (clusterIP: None), which shows KEDA every replica."
    if _is_ip(address):
        why = "an IP address leads KEDA to one replica of the scaler, and to none when that moves"
        yield one.of.find("cluster-ip-address", place, why, fix)
        return
    service = world.service(address, one.of.namespace)
    if service is None or service.node.text("spec", "clusterIP") == "None":
        return
    replicas = world.replicas_behind(service)
    if service.node.text("spec", "type") != "ExternalName" and (replicas is None or replicas > 1):
        why = (
            f"{service.subject} is not headless: KEDA keeps one connection to its address, so one "
            "replica of the scaler gets every call and the others none"
        )
        yield one.of.find("cluster-ip-address", place, why, fix)


def _is_ip(address: str) -> bool:
    host = address.rpartition(":")[0] or address
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _tls(one: Trigger) -> Iterator[Finding]:
    for key in _TLS:
        if key in one.metadata:
            why = f"in the metadata {key} does nothing: KEDA takes it from a TriggerAuthentication"
            fix = "Put it into a Secret, and name that in a TriggerAuthentication."
            yield one.of.find("tls-in-metadata", one.place(key), why, fix)


def _references(of: Manifest) -> Iterator[tuple[bool, tuple[str, str, str]]]:
    """Yield kind, namespace and name of what triggers authenticate with, and whether of ours."""
    for one in of.triggers if of.kind in ("ScaledObject", "ScaledJob") else ():
        reference = one.node.block("authenticationRef")
        kind = reference.text("kind") or "TriggerAuthentication"
        namespace = of.namespace if kind == "TriggerAuthentication" else ""
        yield one.is_ours, (kind, namespace, reference.text("name"))


def _parameters(of: Manifest, *, is_shared: bool) -> Iterator[Finding]:
    entries = [
        entry
        for reference in ("secretTargetRef", "configMapTargetRef", "env")
        for entry in of.node.blocks("spec", reference)
        if entry.text("parameter")
    ]
    given = {entry.text("parameter"): entry for entry in entries}
    half = _PAIR & given.keys()
    if len(half) == 1 and _VAULTS.isdisjoint(of.node.block("spec").entries):
        (key,) = half
        (other,) = _PAIR - half
        why = f"{key} is there and {other} is not: KEDA shows no certificate, and does not say so"
        fix = f"Add {other}."
        yield of.find("half-client-certificate", given[key].place("parameter"), why, fix)
    for key, entry in given.items():
        if key not in _TLS and not is_shared:
            why = "KEDA's external trigger has no such parameter, and the scaler never sees it"
            fix = f"Known are {', '.join(_TLS)}; what the scaler needs for its source is a setting."
            yield of.find("unused-authentication", entry.place("parameter"), why, fix)
