"""Reads what stands behind a value in Kubernetes: a ScaledObject, its HPA, its workload's scale.

It needs the verb `get` on `scaledobjects.keda.sh` and `horizontalpodautoscalers.autoscaling`, and,
where that is given, on the workload's `scale`. Texts of the cluster are foreign: control characters
stop here.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar, cast

import lightkube
import msgspec
from lightkube.config.kubeconfig import SingleConfig

from keda_gpu_scaler import errors
from keda_gpu_scaler.autoscaling import api_objects
from keda_gpu_scaler.evidence.kubernetes import api
from keda_gpu_scaler.evidence.kubernetes.following import HPAS, SCALED_OBJECTS
from keda_gpu_scaler.evidence.kubernetes.objects import Resource
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.transport import http_client
from keda_gpu_scaler.workbench.explain import gates

_Kind = TypeVar("_Kind", api_objects.ScaledObject, api_objects.HpaObject, api_objects.ScaleObject)


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
        errors.without_controls(configuration.context_name),
        time.time(),
        *fetched,
        active=True in activities or (False if activities == {False} else None),
        asked=max(known, default=None) if len(known) == len(desired) else None,
    )
    return gates.gates(facts)


async def _fetch_all(
    connection: api.Api, namespace: str, name: str
) -> tuple[api_objects.ScaledObject, api_objects.HpaObject | None, api_objects.ScaleObject | None]:
    scaled_object = await _fetch(
        connection, api_objects.ScaledObject, SCALED_OBJECTS, namespace, name
    )
    status, hpa, scale = scaled_object.status, None, None
    if status.hpa_name:
        with contextlib.suppress(api.AbsentError):
            hpa = await _fetch(connection, api_objects.HpaObject, HPAS, namespace, status.hpa_name)
    if (target := status.target) is not None:
        scaled = Resource(target.group, target.version, target.resource)
        workload_name = scaled_object.spec.scale_target_ref.name
        # Without this right, the HPA shows the replicas of its last sync.
        with contextlib.suppress(errors.SourceRefusedError):
            scale = await _fetch(
                connection, api_objects.ScaleObject, scaled, namespace, workload_name, part="/scale"
            )
    return scaled_object, hpa, scale


async def _fetch(  # noqa: PLR0913 - the names of one object
    connection: api.Api,
    kind: type[_Kind],
    resource: Resource,
    namespace: str,
    name: str,
    *,
    part: str = "",
) -> _Kind:
    """Return one object, or a part of it, without control characters in its texts."""
    for word in (resource.group or "core", resource.version, resource.plural, namespace, name):
        if not workload.is_name(word):  # it becomes part of a URL
            raise errors.SourceRefusedError(f"{word!r} is not a name in Kubernetes")
    what = f"{resource}{part} {namespace}/{name}"
    path = f"{resource.path(f'namespaces/{namespace}')}/{name}{part}"
    body = await connection.body(path, what)
    try:
        return msgspec.convert(_clean(msgspec.json.decode(body)), kind)
    except api.MALFORMED as error:
        message = f"cannot read {what}: {http_client.error_text(error)}"
        raise errors.SourceMalformedError(message) from error


def _clean(plain: object) -> object:
    if isinstance(plain, str):
        return errors.without_controls(plain)
    if isinstance(plain, list):
        return [_clean(item) for item in plain]
    if isinstance(plain, dict):
        return {errors.without_controls(key): _clean(value) for key, value in plain.items()}
    return plain
