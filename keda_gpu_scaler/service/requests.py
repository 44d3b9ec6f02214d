"""What a request asks for: which ScaledObject and which spec. Parsed triggers are cached.

KEDA sends the whole trigger with every call, about 0.3 times per second and ScaledObject. The same
strings give the same spec or the same mistakes: those of the last few thousand triggers are kept.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

import structlog

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.service import responses
from keda_gpu_scaler.service.interceptor import status_message
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.trigger.access import Access

log = structlog.get_logger()

# Together these bound the memory of cached triggers to about 128 MiB, whatever clients send. In
# practice a trigger has a few hundred characters.
_REMEMBERED_TRIGGERS = 8192
_REMEMBERED_CHARACTERS = 16_384

# KEDA 2.5 and 2.6 send the HPA's name of the metric, which begins with the trigger's index.
_LEAKED_PREFIX = re.compile(r"s[0-9]+-")
_SHOWN_CHARACTERS = 100

_Items = frozenset[tuple[str, str]]


class Trigger(NamedTuple):
    """One trigger that a request is about."""

    scaled_object: ScaledObject
    spec: TriggerSpec


class Triggers:
    """The triggers KEDA asks about; each is parsed again only when it changes."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._remembered = lru_cache(_REMEMBERED_TRIGGERS)(self._parse)
        self._note_once = lru_cache(_REMEMBERED_TRIGGERS)(_note)

    def read(self, reference: pb.ScaledObjectRef) -> Trigger:
        """Return the trigger that a reference names.

        Raises:
            errors.RequestError: the reference does not name a ScaledObject.
            errors.SpecError: the trigger is wrong.
        """
        scaled_object = _scaled_object(reference)
        items = frozenset(reference.scalerMetadata.items())
        size = sum(len(key) + len(value) for key, value in items)
        parse = self._remembered if size <= _REMEMBERED_CHARACTERS else self._parse
        parsed = parse(scaled_object, items)
        if isinstance(parsed, str):
            self._note_once("trigger.refused", scaled_object, status_message(parsed))
            raise errors.SpecError(parsed)
        return Trigger(scaled_object, parsed)

    def _parse(self, scaled_object: ScaledObject, items: _Items) -> TriggerSpec | str:
        """Return the spec, or the mistakes: KEDA sends a wrong trigger as often as a right one."""
        # Sorted, so that the mistakes of one trigger are always listed in the same order.
        metadata = dict(sorted(items))
        try:
            parsed = trigger.parse(scaled_object, metadata, self._access)
        except errors.SpecError as error:
            return str(error)
        for name, target in responses.targets(parsed).items():
            rounding = responses.rounding_warning(name, target)
            if rounding is not None:
                self._note_once("trigger.target_rounded", scaled_object, rounding)
        return parsed


def reference_of(request: pb.GetMetricsRequest) -> pb.ScaledObjectRef:
    """Return the reference within a GetMetricsRequest, which may lack it."""
    if not request.HasField("scaledObjectRef"):
        raise errors.RequestError("scaledObjectRef is missing: it names the ScaledObject")
    return request.scaledObjectRef


def metric_name(requested: str, names: Collection[str]) -> str:
    """Return the trigger's metric that the caller asks for.

    Args:
        requested: the name in the request.
        names: the names of the trigger's metrics.

    Raises:
        errors.RequestError: the trigger has no such metric.
    """
    for name in (requested, _LEAKED_PREFIX.sub("", requested, count=1)):
        if name in names:
            return name
    shown, expected = requested[:_SHOWN_CHARACTERS], " or ".join(map(repr, names))
    raise errors.RequestError(f"metricName {shown!r} is unknown, expected {expected}")


def _scaled_object(reference: pb.ScaledObjectRef) -> ScaledObject:
    fields = (
        ("namespace", reference.namespace, workload.is_namespace),
        ("name", reference.name, workload.is_name),
    )
    mistakes = [
        f"{field} {value[:_SHOWN_CHARACTERS]!r} is not the name of a Kubernetes object"
        for field, value, is_name in fields
        if not is_name(value)
    ]
    if mistakes:
        raise errors.RequestError("scaledObjectRef: " + "; ".join(mistakes))
    return ScaledObject(reference.namespace, reference.name)


def _note(event: str, scaled_object: ScaledObject, text: str) -> None:
    log.warning(
        event, namespace=scaled_object.namespace, scaled_object=scaled_object.name, reason=text
    )
