"""The environment variables of a container: what its pod says, and what every container has."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import lightkube
from lightkube.resources.core_v1 import Service
from lightkube.utils.quantity import parse_quantity

from tests.e2e.kubelet import files
from tests.e2e.kubelet.files import Manifest, NotReadyYetError

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Put variables where a pod says `$(NAME)`; unknown ones stay as they are written."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[1] is None else variables.get(found[1], found[0])

    return _REFERENCE.sub(value, text)


async def of_container(
    client: lightkube.AsyncClient, pod: Manifest, container: Manifest
) -> dict[str, str]:
    """Return the variables that a pod's container gets, those of the Services first.

    Raises:
        NotReadyYetError: a ConfigMap or a Secret of it is missing and not optional.
    """
    namespace = pod["metadata"]["namespace"]
    found = {} if pod["spec"].get("enableServiceLinks") is False else await _links(client, pod)
    for source in container.get("envFrom", []):
        found |= await _all_of(client, namespace, source)
    for each in container.get("env", []):
        value = await _value(client, pod, container, each)
        if value is not None:
            found[each["name"]] = expand(value, found)
    return found


async def _links(client: lightkube.AsyncClient, pod: Manifest) -> dict[str, str]:
    """Return the variables for the Services of a container's namespace, as Docker once set them."""
    services = client.list(Service, namespace=pod["metadata"]["namespace"])
    found = [service.to_dict() async for service in services]
    return {name: text for service in found for name, text in _link(service)}


def _link(service: Manifest) -> Iterable[tuple[str, str]]:
    address = service["spec"].get("clusterIP")
    if address in {None, "", "None"}:
        return
    name = service["metadata"]["name"].upper().replace("-", "_")
    yield f"{name}_SERVICE_HOST", address
    first, *_ = service["spec"]["ports"]
    yield f"{name}_SERVICE_PORT", str(first["port"])
    yield f"{name}_PORT", f"tcp://{address}:{first['port']}"
    for each in service["spec"]["ports"]:
        yield f"{name}_PORT_{each['port']}_TCP", f"tcp://{address}:{each['port']}"


async def _all_of(
    client: lightkube.AsyncClient, namespace: str, source: Manifest
) -> dict[str, str]:
    prefix = source.get("prefix", "")
    if "configMapRef" in source:
        read, reference = files.config_map, source["configMapRef"]
    else:
        read, reference = files.secret, source["secretRef"]
    try:
        entries = await read(client, namespace, reference["name"])
    except NotReadyYetError:
        if reference.get("optional"):
            return {}
        raise
    return {prefix + key: text.decode() for key, text in entries.items()}


async def _value(
    client: lightkube.AsyncClient, pod: Manifest, container: Manifest, variable: Manifest
) -> str | None:
    """Return the value of one variable; None if it has none and is optional."""
    match variable.get("valueFrom"):
        case None:
            return str(variable.get("value", ""))
        case {"fieldRef": {"fieldPath": path}}:
            return _field(pod, path)
        case {"resourceFieldRef": {"resource": resource}}:
            return _resource(container, resource)
        case {"configMapKeyRef": reference}:
            return await _keyed(files.config_map, client, pod, reference)
        case {"secretKeyRef": reference}:
            return await _keyed(files.secret, client, pod, reference)
    message = f"this kubelet knows no valueFrom such as {variable}"
    raise NotReadyYetError("CreateContainerConfigError", message)


async def _keyed(
    read: Any,  # noqa: ANN401 - one of the two in `files`
    client: lightkube.AsyncClient,
    pod: Manifest,
    reference: Manifest,
) -> str | None:
    try:
        entries = await read(client, pod["metadata"]["namespace"], reference["name"])
        return str(entries[reference["key"]].decode())
    except (NotReadyYetError, KeyError) as error:
        if reference.get("optional"):
            return None
        message = f"no {reference['key']!r} in {reference['name']!r}"
        raise NotReadyYetError("CreateContainerConfigError", message) from error


def _field(pod: Manifest, path: str) -> str:
    if keyed := _KEYED.fullmatch(path):
        return str(pod["metadata"].get(keyed[1], {}).get(keyed[2], ""))
    found: Any = pod
    for part in path.split("."):
        found = found[part]
    return str(found)


def _resource(container: Manifest, resource: str) -> str:
    """Return a limit as a whole number, which is what Kubernetes gives without a divisor."""
    kind, _, name = resource.partition(".")
    amount = parse_quantity(container.get("resources", {}).get(kind, {}).get(name, "1"))
    return str(math.ceil(amount or 0))
