"""The messages of KEDA's contract: a request → one trigger, a decision → the answer.

KEDA sends the whole trigger with every call, about 0.3 times per second and ScaledObject. The same
strings give the same spec or the same mistakes, so these are kept. Go sends the entries of a map in
any order, so a trigger is found by the bytes of its reference with the entries sorted.

KEDA 2.17 and later read the float fields if they are above 0. Older versions know only the
integers. Both are always set, so that every version scales on the same number.

Since 2.20, and still in 2.21, KEDA takes a poll that fails after a request of the HPA's has failed
for "inactive, no error": an error about a busy workload can then scale it to zero. The HPA asks
only about workloads with replicas, and KEDA passes on its deadline; polls have none. For workloads
that it asked about the answer is "active" instead of an error, which costs nothing. A workload
without replicas would be scaled up by that answer.
"""

import hashlib
import math
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from cachetools import LRUCache

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.evaluator.tracked_trigger import deep_size
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.service.interceptor import status_message
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.spec import (
    DEMAND_METRIC,
    Demand,
    OnUnknown,
    ScaledObject,
    TriggerSpec,
    is_countable,
)
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.trigger.keys import is_of_keda

# A usual trigger takes 3 KiB, the largest 150 KiB: room for those that are tracked.
_REMEMBERED_BYTES = 48 * 2**20
# What an entry takes beside its value.
_ENTRY_BYTES = 512

_SHOWN_CHARACTERS = 100
# The HPA itself ignores a deviation of 10 %; half of that needs no warning.
_UNNOTICED_ROUNDING = 0.05


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
        by_name = targets(spec)
        warnings = (rounding_warning(*metric) for metric in by_name.items())
        rounded = tuple(warning for warning in warnings if warning is not None)
        self._observe(facts.TriggerChanged(scaled_object, rounded))
        answer = metric_spec(*by_name.items())
        return ParsedTrigger(scaled_object, spec, tuple(by_name), answer)


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


def targets(trigger_spec: TriggerSpec) -> dict[str, float]:
    """Return the target of each metric of a trigger, by the metric's name.

    Where there are two, the HPA computes the replicas for each and takes the larger number.
    """
    by_name = {trigger_spec.metric_name: trigger_spec.threshold}
    if trigger_spec.demand is not None and trigger_spec.demand.threshold is not None:
        by_name[DEMAND_METRIC] = trigger_spec.demand.threshold
    return by_name


@lru_cache(maxsize=256)
def metric_spec(*metrics: tuple[str, float]) -> pb.GetMetricSpecResponse:
    """Return an answer, the same for all triggers with these targets: thousands may keep it."""
    answer = pb.GetMetricSpecResponse()
    for name, target in metrics:
        threshold = _countable(target)
        answer.metricSpecs.add(
            metricName=name, targetSize=_whole_target(threshold), targetSizeFloat=threshold
        )
    return answer


def rounding_warning(name: str, threshold: float) -> str | None:
    """Return a warning if a KEDA that reads only integers would use a clearly different target."""
    target = _whole_target(threshold)
    if abs(target - threshold) <= _UNNOTICED_ROUNDING * threshold:
        return None
    return (
        f"KEDA 2.16 and older read whole targets only: for {name} they use {target}, "
        f"not {threshold:g}"
    )


def metric_value(metric_name: str, decision: Decision) -> pb.GetMetricsResponse:
    """Answer with one value, with none to hold the replicas, or raise UnknownLoadError."""
    if decision.refused:
        raise errors.UnknownLoadError(decision.reason)
    return _values(metric_name, decision.value)


def formula_value(
    metric_name: str, decision: Decision, threshold: float, *, has_replicas: bool
) -> pb.GetMetricsResponse:
    """Answer a poll with a number that says what `activity` says, or raise UnknownLoadError.

    With a formula KEDA judges activity by its value alone. A hold would give it none, which KEDA
    takes for inactive. If the workload is active, the number is at least one replica's, so that an
    `activationTarget` below that never calls it idle. The HPA never gets this number: during a
    hold it would scale by it.
    """
    if not activity(decision, has_replicas=has_replicas).result:
        return _values(metric_name, 0.0)
    return _values(metric_name, max(decision.value or 0.0, threshold))


def demand_value(metric_name: str, demand: Demand, on_unknown: OnUnknown) -> pb.GetMetricsResponse:
    """Answer with the demand, with none to hold the replicas, or raise UnknownLoadError.

    `on_unknown` is the trigger's answer to an unknown load; it never makes a demand 0. One that is
    held as a lower bound is known.
    """
    if demand.value is None and not demand.is_least and on_unknown is OnUnknown.ERROR:
        raise errors.UnknownLoadError(f"{demand.trouble}: an error by onUnknown error")
    return _values(metric_name, demand.value)


def _values(metric_name: str, number: float | None) -> pb.GetMetricsResponse:
    if number is None:
        return pb.GetMetricsResponse()
    value = _countable(number)
    metric = pb.MetricValue(
        metricName=metric_name, metricValue=math.ceil(value), metricValueFloat=value
    )
    return pb.GetMetricsResponse(metricValues=[metric])


def depends_on_replicas(decision: Decision) -> bool:
    """Tell whether `activity` depends on whether the workload has replicas: nothing else is known.

    If it is known to have no pods, "active" would scale it up.
    """
    return decision.active is None and not decision.refused and not decision.state.is_gone


def activity(decision: Decision, *, has_replicas: bool) -> pb.IsActiveResponse:
    """Answer whether the workload is active, or raise UnknownLoadError.

    With `has_replicas` the HPA asked recently, so the workload has replicas or had them until just
    now. If nothing more is known, it counts as active: an error could cost it its replicas.
    """
    may_assume_active = has_replicas and depends_on_replicas(decision)
    if decision.active is None and not may_assume_active:
        raise errors.UnknownLoadError(decision.reason)
    return pb.IsActiveResponse(result=decision.active is not False)


def _whole_target(threshold: float) -> int:
    # The API server refuses a target of 0, and the workload would have no HPA.
    return max(1, round(threshold))


def _countable(value: float) -> float:
    """Return the value, or raise ValueError if KEDA would turn it into another number.

    Negative values have scaled workloads to their maximum, NaN and infinity to zero.
    """
    if not is_countable(value):
        raise ValueError(f"{value} is not a number that KEDA can count with")
    return value
