"""Rules about the numbers that replicas follow, by what is known of their metrics. Pure.

They are the same for a preset, for a user's PromQL and for KEDA's own prometheus trigger.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import re2

from keda_gpu_scaler.demand import metrics
from keda_gpu_scaler.demand.metrics import Owner, Unit
from keda_gpu_scaler.demand.presets import PRESETS
from keda_gpu_scaler.promql import tree
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.spec.spec import GpuAggregation, TriggerSpec
from keda_gpu_scaler.trigger import values
from keda_gpu_scaler.trigger.keys import FROM_ENV
from keda_gpu_scaler.workbench.check import readings
from keda_gpu_scaler.workbench.check.documents import Position, shown
from keda_gpu_scaler.workbench.check.findings import Wrong
from keda_gpu_scaler.workbench.check.objects import Manifest, Trigger
from keda_gpu_scaler.workbench.check.readings import Reading

_MOST_PODS = 16
"""Of a replica that is a group: more than engines are spread over."""
_PODS_LABELS = frozenset(profiles.POD_LABELS)
_NAME = re.compile(r"^(?:[a-z0-9]+(?:-(?=[a-z0-9]))?)*")
"""What a pattern begins with, as far as it is a name."""


class Number(NamedTuple):
    """A number that replicas follow, where it is known what it is made of."""

    trigger: Trigger
    key: str
    """Where it is written."""
    reading: Reading
    threshold_key: str = "threshold"

    @property
    def place(self) -> Position:
        return self.trigger.place(self.key)

    @property
    def is_demand(self) -> bool:
        return self.threshold_key != "threshold"

    @property
    def threshold(self) -> float | None:
        """What one replica has of it; None: not known here."""
        preset = PRESETS.get(self.trigger.metadata.get("demandPreset", "").strip())
        written = self.trigger.metadata.get(self.threshold_key)
        if written is None and preset is not None and self.is_demand:
            return preset.threshold
        is_number = written is not None and values.NUMBER.fullmatch(written.strip())
        return float(written) if written and is_number else None


def reading_of(trigger: Trigger, key: str) -> Reading | None:
    """Return what is known of the numbers behind a key; None: it is not there, or unreadable."""
    text = trigger.metadata.get(key, "").strip()
    if key == "demandPreset":
        return _of_preset(text)
    root = readings.parsed(text)
    return None if root is None else readings.of(root)


def _of_preset(name: str) -> Reading | None:
    preset = PRESETS.get(name)
    if preset is None:
        return None
    names = frozenset(quantity[0].names[0] for quantity in preset.added)
    (unit, *_) = (known.unit for known in preset.known)
    return Reading(names, unit=unit if unit is Unit.SHARE else Unit.AMOUNT)


def numbers(manifest: Manifest) -> Iterator[Number]:
    """Yield the numbers that replicas follow; a formula makes something unknown of them."""
    for trigger in manifest.triggers if not manifest.formula else ():
        if trigger.is_ours:
            for key in ("demandPreset", "demandQuery"):
                number = _number(trigger, key, "demandThreshold")
                given = {"demandThreshold", f"demandThreshold{FROM_ENV}"} & trigger.metadata.keys()
                if number is not None and (given or number.threshold is not None):
                    yield number
        if trigger.is_ours or trigger.type == "prometheus":
            number = _number(trigger, "query", "threshold")
            if number is not None:
                yield number


def _number(trigger: Trigger, key: str, threshold_key: str) -> Number | None:
    reading = reading_of(trigger, key)
    return None if reading is None else Number(trigger, key, reading, threshold_key)


def demand_not_a_sum(manifest: Manifest) -> Iterator[Wrong]:
    for trigger, key, reading, _ in filter(lambda number: number.is_demand, numbers(manifest)):
        unlike = reading.unlike_sum
        fix = "Write sum(...) of what the replicas have to do, or multiply a mean by count(...)."
        if unlike == readings.LATENCY:
            why = (
                f"this demand is {unlike}, which neither adds up over the replicas nor grows in "
                "proportion to the work: the replicas do not follow the load"
            )
            fix = (
                "Scale by the requests in progress, with a demandThreshold at which a load test "
                "still meets that latency."
            )
        elif unlike and trigger.average:
            why = (
                f"this demand is {unlike}, and the HPA divides it by the replicas again: of four "
                "full replicas it removes busy ones"
            )
        elif reading.unit is Unit.COUNTER:
            why = "this demand is a counter, which only grows: the replicas never become fewer"
            fix = "Write sum(rate(...[1m])), and as demandThreshold what one replica does a second."
        else:
            continue
        yield Wrong(trigger.place(key), why, fix)


def several_elements(manifest: Manifest) -> Iterator[Wrong]:
    for number in numbers(manifest):
        if number.is_demand and _is_several(number):
            why = (
                "this demand has an element for each pod: from the second pod on it is unknown, "
                "and the scaler holds the replicas"
            )
            yield Wrong(number.place, why, "Write sum(...) around it.")


def _is_several(number: Number) -> bool:
    """Tell whether there are several elements as soon as there are several pods."""
    reading = number.reading
    is_of_pods = reading.is_per_pod and reading.is_of(Owner.SERVER, Owner.EXPORTER)
    if not is_of_pods or reading.unlike_sum:  # that is the cause then
        return False
    return not any(
        matcher.label in readings.PER_POD and matcher.sign == "="
        for node in readings.nodes(number.trigger.metadata.get(number.key, ""))
        if isinstance(node, tree.Selector)
        for matchers in node.alternatives
        for matcher in matchers
    )


def queue_alone(manifest: Manifest) -> Iterator[Wrong]:
    given = list(numbers(manifest))
    if len(manifest.triggers) != 1 or "threshold" in manifest.triggers[0].metadata:
        return
    for number in given:
        known = number.reading.known
        reason = min((row.never_alone for row in known), default="")
        # The scaler refuses such a preset.
        if number.key == "demandQuery" and reason and number.reading.is_known:
            if number.reading.is_per_pod or number.reading.unlike_sum:
                continue  # another rule's
            why = f"only this demand sets the replicas, and {reason}: the HPA removes busy ones"
            fix = "Count the requests in work as well, or write threshold for the GPUs beside it."
            yield Wrong(number.place, why, fix)


def percent_for_fraction(manifest: Manifest) -> Iterator[Wrong]:
    for number in numbers(manifest):
        threshold, spec = number.threshold, number.trigger.spec
        most = _MOST_PODS if spec is not None and spec.pods.group_regex else 1
        if number.reading.unit is Unit.SHARE and threshold is not None and threshold > most:
            why = (
                f"the number is a share of 1, and {number.threshold_key} {threshold:g} a "
                "percentage: full replicas ask for one, and busy ones are removed"
            )
            fix = f"Write {threshold / 100:g}."
            if not number.is_demand:
                fix = f"Write {threshold / 100:g}, or 100 * before the query."
            yield Wrong(number.trigger.place(number.threshold_key), why, fix)


def fraction_for_percent(manifest: Manifest) -> Iterator[Wrong]:
    gpus = (
        (trigger, "threshold", spec.threshold, "a busy GPU")
        for trigger, spec in percentages(manifest)
    )
    others = (
        (number.trigger, number.threshold_key, number.threshold, "a full one")
        for number in numbers(manifest)
        if number.reading.unit is Unit.PERCENT
    )
    for trigger, key, threshold, one in (*gpus, *others):
        if threshold is not None and 0 < threshold <= 1:
            why = f"{key} is in percent: at {threshold:g} {one} asks for"
            meant = 100 * threshold if threshold < 1 else 70
            fix = f"Write a percentage, such as {meant:g}."
            replicas = f"{-(-100 // threshold):g} replicas"
            yield Wrong(trigger.place(key), f"{why} {replicas}", fix)


def percentages(manifest: Manifest) -> Iterator[tuple[Trigger, TriggerSpec]]:
    """Yield the triggers with a threshold in percent of a GPU that KEDA uses."""
    for trigger in manifest.ours if not manifest.formula else ():
        spec = trigger.spec
        if spec is not None and spec.query is None and spec.unit == "%":
            yield trigger, spec


def gpus_beside_requests(manifest: Manifest) -> Iterator[Wrong]:
    requests = [number for number in numbers(manifest) if _counts_requests(number.reading)]
    for trigger, spec in percentages(manifest):
        # The least that is out of reach of a sum depends on the GPUs of a pod.
        if requests and spec.gpu_aggregation is not GpuAggregation.SUM:
            (first, *_) = requests
            named = first.trigger.metadata.get("demandPreset", first.key)
            why = (
                "the GPUs of an LLM server are near 100 % from the first request: with threshold "
                f"{spec.threshold:g} they ask for more replicas than {shown(named)} does"
            )
            fix = "Remove threshold: then only the demand sets the replicas."
            yield Wrong(trigger.place("threshold"), why, fix)


def _counts_requests(reading: Reading) -> bool:
    known = reading.known
    needs_threshold = all(row.never_alone or row.doubt_alone for row in known)
    is_of_llm = reading.is_known and all(row.fills_gpus for row in known)
    return is_of_llm and not needs_threshold and not reading.unlike_sum


def query_without_pods(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.ours:
        reading = reading_of(trigger, "query")
        if reading is None or reading.labels is None or reading.labels >= readings.OTHERS:
            continue
        if profiles.pod_of(dict.fromkeys(reading.labels, "x")) is None:
            what = "namespace" if reading.labels & _PODS_LABELS else "pod"
            why = f"the elements of this query name no {what}: none of them counts for the workload"
            fix = (
                "Keep the labels, as in max by (namespace, pod) (...), or by (exported_namespace, "
                "exported_pod); for the usual metrics of GPUs write workload and no query."
            )
            yield Wrong(trigger.place("query"), why, fix)


def average_recipe(manifest: Manifest) -> Iterator[Wrong]:
    if manifest.formula or manifest.maximum == 1:
        return
    for trigger in manifest.triggers:
        found = _recipes_fault(trigger) if trigger.type == "prometheus" else None
        if found is not None:
            reading = reading_of(trigger, "query")
            instead = "workload and threshold in percent, which sums over the workload's pods"
            if reading is not None and not reading.is_of(Owner.EXPORTER):
                instead = "a demandPreset, or a demandQuery"
            why, fix = found
            fix += f" Or use a trigger of type external for this scaler, with {instead}."
            yield Wrong(trigger.node.position, why, fix)


def _recipes_fault(trigger: Trigger) -> tuple[str, str] | None:
    """Return what is wrong with a query of KEDA's own on GPUs or servers, and what to write."""
    query, reading = trigger.metadata.get("query", ""), reading_of(trigger, "query")
    if reading is None:
        is_meant = any(name in query for name in metrics.METRICS)
        why = "Prometheus refuses this query, which is not PromQL: KEDA's trigger always fails"
        return (why, "Correct it on Prometheus' own query page.") if is_meant else None
    if _is_several(Number(trigger, "query", reading)):
        why = "KEDA fails with several elements, and from the second pod on this query has them"
        return why, "Write sum(...) around the metric."
    unlike = reading.unlike_sum
    if unlike == readings.LATENCY and reading.known:
        why = f"{unlike} does not grow in proportion to the work: replicas do not follow the load"
        return why, "Scale by the requests in progress."
    if unlike and trigger.average and reading.is_of(Owner.SERVER, Owner.EXPORTER):
        why = (
            f"the HPA divides this number, {unlike} over the pods, by the replicas again, so the "
            "replicas do not follow the load; without data KEDA uses 0, and the HPA scales in"
        )
        return why, "Write sum(...), or metricType: Value beside the trigger's metadata."
    return None


def other_namespace(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.ours:
        for key in ("demandQuery", "query"):
            namespace = manifest.namespace
            if key == "query" and trigger.spec is not None:
                namespace = trigger.spec.pods.namespace
            others = sorted(_other_namespaces(trigger.metadata.get(key, ""), namespace))
            if others:
                why = (
                    f"{key} reads namespace {shown(others[0])}, and the scaler confines it to "
                    f"{shown(namespace)} unless its settings allow more: it finds nothing"
                )
                fix = (
                    "Read series of this namespace, or have KEDA_GPU_SCALER_OWN_PROMQL=allow set; "
                    "a demandPreset reads a router elsewhere with demandRouterNamespace."
                )
                yield Wrong(trigger.place(key), why, fix)


def _other_namespaces(query: str, namespace: str) -> Iterator[str]:
    for node in readings.nodes(query):
        alternatives = node.alternatives if isinstance(node, tree.Selector) else ()
        for matcher in (one for matchers in alternatives for one in matchers):
            wanted = matcher.value.replace("{namespace}", namespace)
            if matcher.label not in profiles.NAMESPACE_LABELS:
                continue
            if matcher.sign == "=" and wanted not in {"", namespace}:
                yield matcher.value
            if matcher.sign == "=~" and not re2.compile(wanted).fullmatch(namespace):
                yield matcher.value


def wakes(trigger: Trigger, query: str) -> bool:
    """Tell whether PromQL can say that there is work while the workload has no pods."""
    root = readings.parsed(query)
    return root is None or readings.shows(root, lambda selector: _is_silent(trigger, selector))


def _is_silent(trigger: Trigger, selector: tree.Selector) -> bool:
    """Tell whether a selector has no series then, or none that tells of work.

    GPUs may be another workload's, of which this scaler's trigger may ask.
    """
    reading = readings.of(selector)
    spoken = (Owner.EXPORTER,) if trigger.is_ours else ()
    if not reading.is_known or any(row.at_zero for row in reading.known) or reading.is_of(*spoken):
        return False
    own = trigger.of.node.text("spec", "scaleTargetRef", "name")
    for matcher in (one for matchers in selector.alternatives for one in matchers):
        if matcher.label in _PODS_LABELS:
            (start,) = _NAME.findall(matcher.value)[:1]
            if start and not (own.startswith(start) or start.startswith(own)):
                return False  # another workload's
    return True
