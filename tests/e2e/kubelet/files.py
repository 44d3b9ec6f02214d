"""The volumes of a pod: what should be in them, and how it gets there.

Files change as the kubelet changes them: a new directory is written, and one symbolic link turned
to it, so that no process reads a certificate with the key of another.
"""

import base64
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightkube
from lightkube import ApiError
from lightkube.resources.core_v1 import ConfigMap, Secret

Manifest = dict[str, Any]
_DATA = "..data"
_NOT_FOUND = 404


class NotReadyYetError(Exception):
    """An object a pod refers to does not exist yet; the reason is what a kubelet reports."""

    def __init__(self, reason: str, message: str) -> None:
        """Keep the reason in one word, and in words."""
        super().__init__(message)
        self.reason = reason


async def config_map(client: lightkube.AsyncClient, namespace: str, name: str) -> dict[str, bytes]:
    """Return the entries of a ConfigMap.

    Raises:
        NotReadyYetError: there is none of this name.
    """
    found = await _get(client, ConfigMap, namespace, name)
    texts = {key: text.encode() for key, text in (found.data or {}).items()}
    return texts | _decoded(found.binaryData)


async def secret(client: lightkube.AsyncClient, namespace: str, name: str) -> dict[str, bytes]:
    """Return the entries of a Secret.

    Raises:
        NotReadyYetError: there is none of this name.
    """
    found = await _get(client, Secret, namespace, name)
    return _decoded(found.data)


async def contents(
    client: lightkube.AsyncClient, namespace: str, volume: Manifest
) -> dict[str, bytes]:
    """Return the files that a volume should have now, by their paths in it.

    Raises:
        NotReadyYetError: a ConfigMap or a Secret of it is missing and not optional.
    """
    match volume:
        case {"configMap": source}:
            return await _entries(config_map, client, namespace, source["name"], source)
        case {"secret": source}:
            return await _entries(secret, client, namespace, source["secretName"], source)
        case {"projected": {"sources": sources}}:
            parts = [await _part(client, namespace, source) for source in sources]
            return {path: text for part in parts for path, text in part.items()}
        case {"emptyDir": _}:
            return {}
    message = f"this kubelet has no volume such as {sorted(volume)}"
    raise NotReadyYetError("FailedMount", message)


def project(directory: Path, wanted: Mapping[str, bytes]) -> None:
    """Make these the files of a volume, all at once, if they differ."""
    link = directory / _DATA
    if link.exists() and _read(link.resolve()) == dict(wanted):
        return
    before = link.resolve() if link.exists() else None
    fresh = directory / f"..{time.time_ns()}"
    for path, content in wanted.items():
        (fresh / path).parent.mkdir(parents=True, exist_ok=True)
        (fresh / path).write_bytes(content)
    fresh.mkdir(parents=True, exist_ok=True)
    _turn(link, fresh.name)
    for name in {path.partition("/")[0] for path in wanted}:
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"{_DATA}/{name}")
    if before:
        shutil.rmtree(before)


def _turn(link: Path, target: str) -> None:
    turned = link.with_name("..turned")
    turned.symlink_to(target)
    turned.replace(link)


def _read(directory: Path) -> dict[str, bytes]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


async def _part(
    client: lightkube.AsyncClient, namespace: str, source: Manifest
) -> dict[str, bytes]:
    match source:
        case {"configMap": one}:
            return await _entries(config_map, client, namespace, one["name"], one)
        case {"secret": one}:
            return await _entries(secret, client, namespace, one["name"], one)
    message = f"this kubelet projects no {sorted(source)}"
    raise NotReadyYetError("FailedMount", message)


async def _entries(
    read: Any,  # noqa: ANN401 - one of the two above
    client: lightkube.AsyncClient,
    namespace: str,
    name: str,
    source: Manifest,
) -> dict[str, bytes]:
    """Return what a volume takes of an object: all of it, or the items it names."""
    try:
        found: dict[str, bytes] = await read(client, namespace, name)
    except NotReadyYetError:
        if source.get("optional"):
            return {}
        raise
    items = source.get("items")
    return {each["path"]: found[each["key"]] for each in items} if items else found


async def _get(
    client: lightkube.AsyncClient,
    kind: Any,  # noqa: ANN401 - one of lightkube's resources
    namespace: str,
    name: str,
) -> Any:  # noqa: ANN401 - an object of that kind
    try:
        return await client.get(kind, name, namespace=namespace)
    except ApiError as error:
        if error.status.code != _NOT_FOUND:
            raise
        message = f"{kind.__name__.lower()} {name!r} not found"
        raise NotReadyYetError("CreateContainerConfigError", message) from error


def _decoded(data: Mapping[str, str] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(text) for key, text in (data or {}).items()}
