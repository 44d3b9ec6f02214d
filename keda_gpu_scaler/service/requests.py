"""What a request asks for: which ScaledObject and which spec. Parsed triggers are cached.

KEDA sends the whole trigger with every call, about 0.3 times per second and ScaledObject. The same
strings give the same spec or the same mistakes, so these are kept. Go sends the entries of a map in
any order, so a trigger is found by the bytes of its reference with the entries sorted.
"""

import hashlib
import operator
import re
from collections.abc import Collection
from typing import NamedTuple

import msgspec
import structlog
from cachetools import LRUCache

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.service import responses
from keda_gpu_scaler.service.interceptor import status_message
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.sizes import deep_size
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.trigger.keys import is_of_keda

log = structlog.get_logger()

# A usual trigger takes 3 KiB, the largest 150 KiB: room for those that are tracked.
_REMEMBERED_BYTES = 48 * 2**20
# What an entry takes beside its strings and its value.
_ENTRY_BYTES = 512
# Of a reference with more only a hash is kept; a usual one has a few hundred bytes.
_LARGE_BYTES = 16 * 1024
_NOTED = 8192

# KEDA 2.5 and 2.6 send the HPA's name of the metric, which begins with the trigger's index.
_LEAKED_PREFIX = re.compile(r"s[0-9]+-")
_SHOWN_CHARACTERS = 100


class _Parsed(NamedTuple):
    """What a trigger's strings give: the trigger, or the mistakes in it."""

    result: "Trigger | str"
    kept_bytes: int


class Trigger(NamedTuple):
    """One trigger that a request is about."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    metric_names: tuple[str, ...]
    metric_spec: pb.GetMetricSpecResponse
    """What KEDA is told of its metrics."""


class Triggers:
    """The triggers KEDA asks about; each is parsed again only when it changes."""

    def __init__(self, access: Access, observe: facts.Observer = facts.ignore) -> None:
        self._access, self._observe = access, observe
        self._parsed: LRUCache[bytes, _Parsed] = LRUCache(
            _REMEMBERED_BYTES, operator.attrgetter("kept_bytes")
        )
        self._noted: LRUCache[bytes, None] = LRUCache(_NOTED)

    def read(self, reference: pb.ScaledObjectRef) -> Trigger:
        """Return the trigger that a reference names.

        Raises:
            errors.RequestError: the reference does not name a ScaledObject.
            errors.SpecError: the trigger is wrong.
        """
        key = reference.SerializeToString(deterministic=True)
        if len(key) > _LARGE_BYTES:
            key = hashlib.sha256(key).digest()
        try:
            result, _ = self._parsed[key]
        except KeyError:
            result = self._parse(reference)
            kept_bytes = _ENTRY_BYTES + len(key) + deep_size(result)
            self._parsed[key] = _Parsed(result, kept_bytes)
        if isinstance(result, str):
            scaled_object = ScaledObject(reference.namespace, reference.name)
            self._observe(facts.TriggerRefused(scaled_object, status_message(result)))
            raise errors.SpecError(result)
        return result

    def _parse(self, reference: pb.ScaledObjectRef) -> "Trigger | str":
        """Return what a trigger asks for, or the mistakes in it."""
        scaled_object = _scaled_object(reference)
        # Sorted, so that its mistakes are always listed in the same order.
        metadata = {
            key: text
            for key, text in sorted(reference.scalerMetadata.items())
            if not is_of_keda(key)
        }
        try:
            spec = trigger.parse(scaled_object, metadata, self._access)
        except errors.SpecError as error:
            self._note_once("trigger.refused", scaled_object, status_message(str(error)))
            return str(error)
        self._observe(facts.TriggerChanged(scaled_object))
        targets = responses.targets(spec)
        for name, target in targets.items():
            rounding = responses.rounding_warning(name, target)
            if rounding is not None:
                self._note_once("trigger.target_rounded", scaled_object, rounding)
        return Trigger(scaled_object, spec, tuple(targets), responses.metric_spec(spec))

    def _note_once(self, event: str, scaled_object: ScaledObject, text: str) -> None:
        warning = msgspec.json.encode((event, *scaled_object, text))
        digest = hashlib.sha256(warning).digest()
        if digest not in self._noted:
            self._noted[digest] = None
            namespace, name = scaled_object
            log.warning(event, namespace=namespace, scaled_object=name, reason=text)


def reference_of(request: pb.GetMetricsRequest) -> pb.ScaledObjectRef:
    """Return the reference within a GetMetricsRequest, which may lack it."""
    if not request.HasField("scaledObjectRef"):
        raise errors.RequestError("scaledObjectRef is missing: it names the ScaledObject")
    return request.scaledObjectRef


def metric_name(requested: str, names: Collection[str]) -> str:
    """Return which of a trigger's metrics a request is for, or raise RequestError if none."""
    if requested in names:
        return requested
    name = _LEAKED_PREFIX.sub("", requested, count=1)
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
