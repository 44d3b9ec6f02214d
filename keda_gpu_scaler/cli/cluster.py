"""Reads what stands behind a value in Kubernetes: a ScaledObject, its HPA, its workload's scale.

It needs the verb `get` on `scaledobjects.keda.sh` and `horizontalpodautoscalers.autoscaling`, and,
where that is given, on the workload's `scale`. Texts of the cluster are foreign: control characters
stop here.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

import lightkube
import msgspec
from lightkube.config.kubeconfig import SingleConfig

from keda_gpu_scaler import errors
from keda_gpu_scaler.autoscaling import gates, objects
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.sources.kubernetes import api
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.transport import client

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_Kind = TypeVar("_Kind", objects.ScaledObject, objects.Hpa, objects.Scale)


async def fetch_gates(
    scaled_object: ScaledObject,
    records: Sequence[Record],
    kubeconfig: Path | None,
    context: str | None,
    timeout_seconds: float,
) -> gates.Gates:
    """Return what stands between the values of a ScaledObject's triggers and the replicas.

    `records` is empty if the scaler did not answer. Without a kubeconfig the environment names the
    cluster, as for kubectl, or in a pod its service account; without a context it is the current
    one. SourceError if the cluster cannot be asked, or does not show the ScaledObject.
    """
    try:
        if kubeconfig is None:
            contexts = lightkube.KubeConfig.from_env()
        else:
            contexts = lightkube.KubeConfig.from_file(kubeconfig)
        # Without a default, a missing context is an error and not None.
        configuration = cast("SingleConfig", contexts.get(context))
        connection = api.Api(configuration=configuration)
    except Exception as error:  # lightkube raises the errors of several libraries
        raise errors.SourceUnreachableError(api.configuration_text(error)) from error
    try:
        async with asyncio.timeout(timeout_seconds):
            fetched = await _fetch_all(connection, *scaled_object)
    except TimeoutError as error:
        message = f"no answer within {timeout_seconds:g} s"
        raise errors.SourceTimeoutError(message) from error
    finally:
        await connection.close()
    activities = {record.active for record in records}
    desired = [metric.desired for record in records for metric in record.metrics]
    known = [replicas for replicas in desired if replicas is not None]
    facts = gates.Facts(
        _printable(configuration.context_name),
        time.time(),
        *fetched,
        active=True in activities or (False if activities == {False} else None),
        asked=max(known, default=None) if len(known) == len(desired) else None,
    )
    return gates.gates(facts)


class _Place(NamedTuple):
    group: str
    version: str
    namespace: str
    resource: str
    name: str
    part: str = ""

    def __str__(self) -> str:
        group = f".{self.group}" if self.group else ""
        return f"{self.resource}{group}{self.part} {self.namespace}/{self.name}"

    @property
    def path(self) -> str:
        """Its URL path; SourceRefusedError for what cannot be part of one."""
        for word in (self.group or "core", *self[1:5]):
            if not _NAME.fullmatch(word):
                raise errors.SourceRefusedError(f"{word!r} is not a name in Kubernetes")
        start = f"/apis/{self.group}" if self.group else "/api"
        spaced = f"namespaces/{self.namespace}/{self.resource}/{self.name}"
        return f"{start}/{self.version}/{spaced}{self.part}"


async def _fetch_all(
    connection: api.Api, namespace: str, name: str
) -> tuple[objects.ScaledObject, objects.Hpa | None, objects.Scale | None]:
    place = _Place("keda.sh", "v1alpha1", namespace, "scaledobjects", name)
    scaled_object = await _fetch(connection, objects.ScaledObject, place)
    status, hpa, scale = scaled_object.status, None, None
    if status.hpa_name:
        place = _Place("autoscaling", "v2", namespace, "horizontalpodautoscalers", status.hpa_name)
        with contextlib.suppress(api.AbsentError):
            hpa = await _fetch(connection, objects.Hpa, place)
    if (target := status.target) is not None:
        workload = scaled_object.spec.scale_target_ref.name
        place = _Place(target.group, target.version, namespace, target.resource, workload, "/scale")
        # Without this right, the HPA shows the replicas of its last sync.
        with contextlib.suppress(errors.SourceRefusedError):
            scale = await _fetch(connection, objects.Scale, place)
    return scaled_object, hpa, scale


async def _fetch(connection: api.Api, kind: type[_Kind], place: _Place) -> _Kind:
    """Return one object, without control characters in its texts."""
    body = await connection.body(place.path, str(place))
    try:
        return msgspec.convert(_clean(msgspec.json.decode(body)), kind)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        message = f"cannot read {place}: {client.error_text(error)}"
        raise errors.SourceMalformedError(message) from error


def _clean(plain: object) -> object:
    if isinstance(plain, str):
        return _printable(plain)
    if isinstance(plain, list):
        return [_clean(item) for item in plain]
    if isinstance(plain, dict):
        return {_printable(key): _clean(value) for key, value in plain.items()}
    return plain


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
