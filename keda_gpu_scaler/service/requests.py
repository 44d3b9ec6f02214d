"""What a request asks for: which ScaledObject and which spec. Parsed triggers are cached.

KEDA sends the whole trigger with every call, about 0.3 times per second and ScaledObject. The same
strings give the same spec or the same mistakes, so these are kept. Go sends the entries of a map in
any order, so a trigger is found by the bytes of its reference with the entries sorted.
"""

import hashlib
from collections.abc import Collection
from typing import NamedTuple

from cachetools import LRUCache

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.evaluator.tracked_trigger import deep_size
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.service import responses
from keda_gpu_scaler.service.interceptor import status_message
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.trigger.keys import is_of_keda

# A usual trigger takes 3 KiB, the largest 150 KiB: room for those that are tracked.
_REMEMBERED_BYTES = 48 * 2**20
# What an entry takes beside its value.
_ENTRY_BYTES = 512

_SHOWN_CHARACTERS = 100


class ParsedTrigger(NamedTuple):
    """One trigger that a request is about."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    metric_names: tuple[str, ...]
    metric_spec: pb.GetMetricSpecResponse


class ParsedTriggers:
    """The triggers KEDA asks about; each is parsed again only when it changes."""

    def __init__(self, access: Access, observe: facts.Observer = facts.ignore) -> None:
        self._access, self._observe = access, observe
        self._parsed: LRUCache[bytes, ParsedTrigger | str] = LRUCache(
            _REMEMBERED_BYTES, lambda result: _ENTRY_BYTES + deep_size(result)
        )
        """By a hash of the strings: the trigger, or the mistakes in it."""

    def read(self, reference: pb.ScaledObjectRef) -> ParsedTrigger:
        """Return the trigger that a reference names; RequestError, SpecError: there is none."""
        key = hashlib.blake2b(reference.SerializeToString(deterministic=True)).digest()
        try:
            result = self._parsed[key]  # `get` takes twice the time
        except KeyError:
            self._parsed[key] = result = self._parse(reference)
        if isinstance(result, str):
            scaled_object = ScaledObject(reference.namespace, reference.name)
            self._observe(facts.TriggerRefused(scaled_object, status_message(result)))
            raise errors.SpecError(result)
        return result

    def _parse(self, reference: pb.ScaledObjectRef) -> ParsedTrigger | str:
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
            return str(error)
        targets = responses.targets(spec)
        warnings = (responses.rounding_warning(*metric) for metric in targets.items())
        rounded = tuple(warning for warning in warnings if warning is not None)
        self._observe(facts.TriggerChanged(scaled_object, rounded))
        metric_spec = responses.metric_spec(*targets.items())
        return ParsedTrigger(scaled_object, spec, tuple(targets), metric_spec)


def check_metric_name(requested: str, names: Collection[str]) -> None:
    """Raise RequestError if none of these names is requested."""
    if requested not in names:
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
