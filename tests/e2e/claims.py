"""Devices by Dynamic Resource Allocation without a driver: what a driver would publish, by hand.

The scheduler allocates them as real ones; no kubelet prepares them, because none runs here.
"""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from lightkube.resources.core_v1 import Pod
from lightkube.resources.resource_v1 import DeviceClass, ResourceClaim, ResourceSlice

from tests.e2e.lab import Lab
from tests.e2e.manifests import Manifest

TEMPLATE = "one-gpu"
"""The ResourceClaimTemplate of one device."""
_DRIVER = "gpu.example.com"
_API = "resource.k8s.io/v1"
_DEVICES = 8


@contextlib.asynccontextmanager
async def published(lab: Lab) -> AsyncIterator[None]:
    """Have devices on every node of a lab, and a template for claims of one of them."""
    objects = [_device_class(lab.name), *(_slice(node) for node in lab.exporters)]
    for manifest in [*objects, _template(lab.name)]:
        await lab.apply(manifest)
    try:
        yield
    finally:
        # These belong to no namespace; the template goes with the lab's.
        await lab.client.delete(DeviceClass, lab.name)
        for node in lab.exporters:
            await lab.client.delete(ResourceSlice, node)


def pod_template(manifest: Manifest) -> Manifest:
    """Return the pod template with a claim in place of the request for a GPU."""
    container = {**manifest["spec"]["containers"][0]}
    container["resources"] = {"claims": [{"name": "gpu"}]}
    spec = {
        **manifest["spec"],
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": TEMPLATE}],
        # The plugin that adds it looks at extended resources alone.
        "tolerations": [{"operator": "Exists"}],
    }
    return {**manifest, "spec": spec}


async def pods_with_devices(lab: Lab) -> set[str]:
    """Return the Ready pods that have a device by a claim of their own."""
    allocated = {
        claim.metadata.name
        async for claim in lab.client.list(ResourceClaim, namespace=lab.name)
        if claim.metadata and claim.status and claim.status.allocation and claim.status.reservedFor
    }
    pods = [pod async for pod in lab.client.list(Pod, namespace=lab.name)]
    return {
        str(pod.metadata and pod.metadata.name)
        for pod in pods
        if _is_ready(pod) and _claims(pod) and _claims(pod) <= allocated
    }


def _claims(pod: Any) -> set[str | None]:  # noqa: ANN401 - a Pod, with or without its parts
    return {each.resourceClaimName for each in pod.status.resourceClaimStatuses or ()}


def _is_ready(pod: Any) -> bool:  # noqa: ANN401 - a Pod, with or without its parts
    conditions = pod.status.conditions or ()
    return any(each.type == "Ready" and each.status == "True" for each in conditions)


def _device_class(name: str) -> Manifest:
    return {
        "apiVersion": _API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{_DRIVER}"'}}]},
    }


def _slice(node: str) -> Manifest:
    return {
        "apiVersion": _API,
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {
            "driver": _DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{index}"} for index in range(_DEVICES)],
        },
    }


def _template(lab: str) -> Manifest:
    request = {"name": "gpu", "exactly": {"deviceClassName": lab, "count": 1}}
    return {
        "apiVersion": _API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"namespace": lab, "name": TEMPLATE},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
