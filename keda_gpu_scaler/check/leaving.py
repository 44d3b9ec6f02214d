"""Rules about pods that are deleted: whether they finish their requests. Pure."""

import math
from collections.abc import Iterator

from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.nodes import Block
from keda_gpu_scaler.check.objects import Manifest, shown
from keda_gpu_scaler.check.workloads import World, pod_paths
from keda_gpu_scaler.spec import durations

LONGEST_REQUEST = "keda-gpu-scaler/longest-request"
"""The annotation of a ScaledObject that says how long a request to its workload can take."""
_GRACE_SECONDS = 30
"""Kubernetes' default."""
_MOST_SECONDS = 7 * 86_400.0
_NOT_FOR_REQUESTS = "metrics"


def check(of: Manifest, world: World) -> Iterator[Finding]:
    """Yield what a scale-in would cut off in the workload of a ScaledObject."""
    if not of.ours:
        return
    seconds, wrong = _longest_request_seconds(of)
    yield from wrong
    found = world.workload(of)
    if found is None:
        return
    for path in pod_paths(found):
        if seconds is not None:
            yield from _grace(found, path, seconds)
        for container in found.node.blocks(*path, "containers"):
            yield from _stop(found, container)


def _longest_request_seconds(of: Manifest) -> tuple[float | None, list[Finding]]:
    text = of.node.text("metadata", "annotations", LONGEST_REQUEST)
    if not text:
        return of.terms.longest_request_seconds, []
    expected = f"at most {durations.text(_MOST_SECONDS)}"
    try:
        seconds = durations.parse(text)
    except ValueError as error:
        seconds, expected = math.inf, str(error)
    if seconds > _MOST_SECONDS:
        why = f'{LONGEST_REQUEST} is "{shown(text)}", so no grace period is compared with it'
        place = of.node.place("metadata", "annotations", LONGEST_REQUEST)
        return None, [of.find("short-grace", place, why, f"Expected {expected}.")]
    return seconds, []


def _grace(found: Manifest, path: tuple[str, ...], seconds: float) -> Iterator[Finding]:
    given = found.node.integer(*path, "terminationGracePeriodSeconds")
    grace = _GRACE_SECONDS if given is None else given
    # The grace period runs from the beginning of preStop.
    sleeps = ("lifecycle", "preStop", "sleep", "seconds")
    containers = found.node.blocks(*path, "containers")
    pause = max((each.integer(*sleeps) or 0 for each in containers), default=0)
    needed = seconds + pause
    if grace < needed:
        what = f"{grace} s" if given is not None else f"not given, which means {grace} s"
        before = f" after a preStop of {pause} s" if pause else ""
        why = (
            f"terminationGracePeriodSeconds is {what}, and a request takes up to "
            f"{durations.text(seconds)}{before}: a deleted pod is killed in the middle of it"
        )
        place = found.node.place(*path, "terminationGracePeriodSeconds")
        fix = f"Write {math.ceil(needed)} or more."
        yield found.find("short-grace", place, why, fix)


def _stop(found: Manifest, container: Block) -> Iterator[Finding]:
    serves = container.has("readinessProbe") or any(
        _NOT_FOR_REQUESTS not in port.text("name") for port in container.blocks("ports")
    )
    if serves and not container.has("lifecycle", "preStop"):
        why = (
            f"container {shown(container.text('name'))} serves and has no preStop: it is told to "
            "stop while Services and gateways still send it requests, for a second or more, and "
            "those fail"
        )
        fix = (
            "Add lifecycle: {preStop: {sleep: {seconds: 10}}}, which Kubernetes has since 1.30, or "
            "an exec of sleep."
        )
        yield found.find("no-pre-stop", container.place("name"), why, fix)
