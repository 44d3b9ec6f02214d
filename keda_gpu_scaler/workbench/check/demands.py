"""Rules about the numbers that replicas follow, by what is known of their metrics. Pure.

They are the same for a preset, for a user's PromQL and for KEDA's own prometheus trigger.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import re2

from keda_gpu_scaler.demand import known_metrics
from keda_gpu_scaler.demand.known_metrics import MetricOwner, Unit
from keda_gpu_scaler.demand.presets import PRESETS
from keda_gpu_scaler.promql import tree
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.spec.spec import GpuAggregation, TriggerSpec
from keda_gpu_scaler.trigger.keys import FROM_ENV
from keda_gpu_scaler.trigger.metadata import NUMBER
from keda_gpu_scaler.workbench.check import readings
from keda_gpu_scaler.workbench.check.documents import shown
from keda_gpu_scaler.workbench.check.findings import Wrong
from keda_gpu_scaler.workbench.check.manifests import Manifest, Trigger
from keda_gpu_scaler.workbench.check.readings import Meaning

DEMANDS = ("demandPreset", "demandQuery")
_THRESHOLDS = {"query": "threshold", **dict.fromkeys(DEMANDS, "demandThreshold")}
_MOST_PODS = 16
"""Of a replica that is a group, or is of data-parallel ranks: more than engines are spread over."""
_LEAST = 10
"""That may be meant as a percentage."""
_PODS_LABELS = frozenset(profiles.POD_LABELS)
_NAME = re.compile(r"(?:[a-z0-9]+(?:-(?=[a-z0-9]))?)*")
"""What a pattern begins with, as far as it is a name."""


class Followed(NamedTuple):
    """A number that replicas follow, where it is known what it is made of."""

    trigger: Trigger
    key: str
    """Where it is written."""
    reading: Meaning

    @property
    def threshold_key(self) -> str:
        return _THRESHOLDS[self.key]

    @property
    def threshold(self) -> float | None:
        """What one replica has of it, as it is written; None: it is not, or not here."""
        written = self.trigger.metadata.get(self.threshold_key, "").strip()
        return float(written) if NUMBER.fullmatch(written) else None


def reading_of(trigger: Trigger, key: str) -> Meaning | None:
    """Return what is known of the numbers behind a key; None: it is not there, or unreadable."""
    text = trigger.metadata.get(key, "").strip()
    preset = PRESETS.get(text) if key == "demandPreset" else None
    if preset is not None:
        names = frozenset(quantity[0].names[0] for quantity in preset.added)
        shares = [known.unit is Unit.SHARE for known in preset.known]
        return Meaning(names, unit=Unit.SHARE if all(shares) else Unit.AMOUNT)
    root = readings.parsed(text)
    return None if root is None else readings.of(root)


def numbers(manifest: Manifest) -> Iterator[Followed]:
    """Yield the numbers that replicas follow; a formula makes something unknown of them."""
    for trigger in manifest.triggers if not manifest.formula else ():
        keys = ("query",) if trigger.type == "prometheus" else ()
        for key in _THRESHOLDS if trigger.is_ours else keys:
            reading = reading_of(trigger, key)
            preset = PRESETS.get(trigger.metadata.get(key, "").strip())
            given = {_THRESHOLDS[key], _THRESHOLDS[key] + FROM_ENV} & trigger.metadata.keys()
            if reading is not None and (given or (preset and preset.threshold)):
                yield Followed(trigger, key, reading)


def _fault(number: Followed) -> tuple[str, str] | None:
    """Return why replicas cannot follow a number, and what to write; None: they can."""
    unlike = number.reading.unlike_sum
    if unlike == readings.LATENCY:
        why = (
            f"{unlike}, which neither adds up over the replicas nor grows in proportion to the "
            "work: the replicas do not follow the load"
        )
        return why, "Scale by requests in progress, with a threshold at which a load test meets it."
    if unlike and number.trigger.average:
        why = f"{unlike}, and the HPA divides it by the replicas again: busy replicas are removed"
        fix = "Write sum(...) of what the replicas have to do, or multiply a mean by count(...)."
        is_kedas = number.trigger.type == "prometheus"
        return why, f"{fix} metricType: Value fits an average too." if is_kedas else fix
    if number.reading.unit is Unit.COUNTER:
        why = "a counter, which only grows: the replicas never become fewer"
        return why, "Write sum(rate(...[1m])), and as threshold what one replica does in a second."
    return None


def demand_not_a_sum(manifest: Manifest) -> Iterator[Wrong]:
    for number in numbers(manifest):
        found = _fault(number) if number.key in DEMANDS else None
        if found is not None:
            why, fix = found
            yield Wrong(number.trigger.place(number.key), f"this demand is {why}", fix)


def average_recipe(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.triggers if manifest.maximum != 1 and not manifest.formula else ():
        if trigger.type != "prometheus":
            continue
        reading, query = reading_of(trigger, "query"), trigger.metadata.get("query", "")
        instead = "workload and threshold in percent, which sums over the workload's pods"
        found = None
        if readings.is_no_promql(query) and any(name in query for name in known_metrics.METRICS):
            why = "this query is not PromQL: Prometheus refuses it, and the trigger fails"
            found = why, "Correct it on Prometheus' own query page."
        elif reading is not None and reading.known:
            if not reading.is_of(MetricOwner.EXPORTER):
                instead = "a demandPreset, or a demandQuery"
            found = _fault(Followed(trigger, "query", reading))
            if found is not None:
                why = f"this number is {found[0]}; without data KEDA uses 0, and the HPA scales in"
                found = why, found[1]
            elif reading.is_several:
                why = "KEDA fails with several elements, which this has from the second pod on"
                found = why, "Write sum(...) around the metric."
        if found is not None:
            fix = f"{found[1]} Or use a trigger of type external for this scaler, with {instead}."
            yield Wrong(trigger.node.position, found[0], fix)


def several_elements(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.ours:
        reading = reading_of(trigger, "demandQuery")
        if reading is not None and reading.is_several:
            why = (
                "this demand has an element for each pod: from the second pod on it is unknown, "
                "and the scaler holds the replicas"
            )
            yield Wrong(trigger.place("demandQuery"), why, "Write sum(...) around it.")


def queue_alone(manifest: Manifest) -> Iterator[Wrong]:
    for number in numbers(manifest) if len(manifest.triggers) == 1 else ():
        reading, metadata = number.reading, number.trigger.metadata
        reason = min((row.never_alone for row in reading.known), default="")
        is_another_rules = reading.is_several or reading.unlike_sum or not reading.is_known
        # The scaler itself refuses such a preset.
        is_alone = number.key == "demandQuery" and "threshold" not in metadata
        if is_alone and reason and not is_another_rules:
            why = f"only this demand sets the replicas, and {reason}: the HPA removes busy ones"
            fix = "Count the requests in work as well, or write threshold for the GPUs."
            yield Wrong(number.trigger.place(number.key), why, fix)


def percent_for_fraction(manifest: Manifest) -> Iterator[Wrong]:
    for trigger, key, reading in numbers(manifest):
        number = Followed(trigger, key, reading)
        is_group = trigger.spec is not None and bool(trigger.spec.pods.group_regex)
        is_of_ranks = not all(row.adds_up for row in reading.known)
        most = _MOST_PODS if is_group or is_of_ranks else 1
        threshold = number.threshold if reading.unit is Unit.SHARE else None
        if threshold is not None and threshold > most:
            why = (
                f"the number is a share of 1, and {number.threshold_key} {threshold:g} a "
                "percentage: full replicas need one, and busy ones are removed"
            )
            other = "" if key == "demandPreset" else f", or 100 * before the {key}"
            share = "a share, such as 0.8" if threshold < _LEAST else f"{threshold / 100:g}"
            fix = f"Write {share}{other}."
            yield Wrong(trigger.place(number.threshold_key), why, fix)


def fraction_for_percent(manifest: Manifest) -> Iterator[Wrong]:
    gpus = (
        (trigger, "threshold", spec.threshold, "a GPU") for trigger, spec in percentages(manifest)
    )
    others = (
        (number.trigger, number.threshold_key, number.threshold, "a replica")
        for number in numbers(manifest)
        if number.reading.unit is Unit.PERCENT
    )
    for trigger, key, threshold, full in (*gpus, *others):
        if threshold is not None and 0 < threshold <= 1:
            replicas = -(-100 // threshold)
            why = f"{key} is in percent: at {threshold:g} {full} at 100 % needs {replicas:g}"
            fix = f"Write a percentage, such as {100 * threshold if threshold < 1 else 70:g}."
            yield Wrong(trigger.place(key), f"{why} replicas", fix)


def percentages(manifest: Manifest) -> Iterator[tuple[Trigger, TriggerSpec]]:
    """Yield the triggers with a threshold in percent of a GPU that KEDA uses."""
    for trigger, spec in manifest.accepted if not manifest.formula else ():
        if spec.query is None and spec.unit == "%":
            yield trigger, spec


def gpus_beside_requests(manifest: Manifest) -> Iterator[Wrong]:
    requests = [number for number in numbers(manifest) if _counts_requests(number.reading)]
    for trigger, spec in percentages(manifest):
        # The least that is out of reach of a sum depends on the GPUs of a pod.
        if requests and spec.gpu_aggregation is not GpuAggregation.SUM:
            named = requests[0].trigger.metadata.get("demandPreset", f"the {requests[0].key}")
            why = (
                "the GPUs of an LLM server are near 100 % from the first request: with threshold "
                f"{spec.threshold:g} they need more replicas than {shown(named)} does"
            )
            fix = "Remove threshold: then only the demand sets the replicas."
            yield Wrong(trigger.place("threshold"), why, fix)


def _counts_requests(reading: Meaning) -> bool:
    needs_threshold = all(row.never_alone or row.doubt_alone for row in reading.known)
    is_of_llm = reading.is_known and all(row.fills_gpus for row in reading.known)
    return is_of_llm and not needs_threshold and not reading.unlike_sum


def query_without_pods(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.ours:
        reading = reading_of(trigger, "query")
        labels = None if reading is None else reading.labels
        if labels is None or labels >= readings.OTHERS:
            continue
        if profiles.pod_of(dict.fromkeys(labels, "x")) is None:
            what = "namespace" if labels & _PODS_LABELS else "pod"
            why = f"the elements of this query name no {what}: none of them counts for the workload"
            fix = (
                "Keep the labels, as in max by (namespace, pod) (...), or by (exported_namespace, "
                "exported_pod); for the usual metrics of GPUs write workload and no query."
            )
            yield Wrong(trigger.place("query"), why, fix)


def other_namespace(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.ours:
        measured = trigger.metadata.get("namespace", manifest.namespace).strip()
        for key, own in (("demandQuery", manifest.namespace), ("query", measured)):
            for other in sorted(other_namespaces(trigger.metadata.get(key, ""), own))[:1]:
                why = (
                    f"{key} reads namespace {shown(other)}, and the scaler confines it to "
                    f"{shown(own)} unless its settings allow more: it finds nothing"
                )
                fix = (
                    "Read series of this namespace, or have KEDA_GPU_SCALER_OWN_PROMQL=allow set; "
                    "a demandPreset reads a router elsewhere with demandRouterNamespace."
                )
                yield Wrong(trigger.place(key), why, fix)


def other_namespaces(query: str, own: str) -> Iterator[str]:
    """Yield the namespaces that PromQL selects, and that are not this one."""
    for selector in readings.nodes(query):
        for matcher in tree.matchers(selector):
            wanted = matcher.value.replace("{namespace}", own)
            is_own = wanted in {"", own} or matcher.sign in {"!=", "!~"}
            if matcher.sign == "=~":
                is_own = re2.compile(wanted).fullmatch(own) is not None
            if matcher.label in profiles.NAMESPACE_LABELS and not is_own:
                yield matcher.value


def wakes(trigger: Trigger, query: str) -> bool:
    """Tell whether PromQL can say that there is work while the workload has no pods."""
    root = readings.parsed(query)
    if root is None:
        return True
    return readings.without_pods(root, lambda selector: _without_pods(trigger, selector)) == 1


def _without_pods(trigger: Trigger, selector: tree.Selector) -> int | None:
    """Return what a selector gives then, as `readings.without_pods` says.

    GPUs may be another workload's, of which this scaler's trigger may ask.
    """
    reading = readings.of(selector)
    is_asked = trigger.is_ours and reading.is_of(MetricOwner.EXPORTER)
    if not reading.is_known or is_asked or any(row.at_zero for row in reading.known):
        return 1
    if is_of_another(trigger, selector):
        return 1
    return 0 if reading.is_of(MetricOwner.ROUTER) else None


def is_of_another(trigger: Trigger, selector: tree.Selector) -> bool:
    """Tell whether a selector names pods that are not those of the scale target."""
    own = trigger.of.node.text("spec", "scaleTargetRef", "name")
    for matcher in tree.matchers(selector):
        match = _NAME.match(matcher.value) if matcher.label in _PODS_LABELS else None
        start = match[0] if match else ""
        if start and not (own.startswith(start) or start.startswith(own)):
            return True
    return False
