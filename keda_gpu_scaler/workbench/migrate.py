"""ScaledObjects with KEDA's prometheus trigger → the same with this scaler's, in the user's text.

Pure. Only lines that change are written anew: comments, order and the rest of a file stay. A query
is read as `check` reads it, and `check` judges the result. What no key of a trigger says stays as
it is, with the reason.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from keda_gpu_scaler import errors
from keda_gpu_scaler.demand import known_metrics
from keda_gpu_scaler.demand.known_metrics import MetricOwner, Unit
from keda_gpu_scaler.demand.presets import PRESETS, Preset
from keda_gpu_scaler.promql import tree
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.spec import durations, workload
from keda_gpu_scaler.spec.spec import Aggregation, GpuAggregation, Signal
from keda_gpu_scaler.spec.workload import Kind
from keda_gpu_scaler.trigger.metadata import NUMBER
from keda_gpu_scaler.workbench import check
from keda_gpu_scaler.workbench.check import demands, documents, readings
from keda_gpu_scaler.workbench.check.documents import Position
from keda_gpu_scaler.workbench.check.findings import Finding, Severity
from keda_gpu_scaler.workbench.check.manifests import Manifest, Trigger
from keda_gpu_scaler.workbench.check.readings import Meaning

_LONGEST_POLL_SECONDS = 30
"""docs/operations.md says why."""
_REMEDIED = frozenset({"nothing-wakes", "unused-fallback"})
"""Rules whose findings are the reason for a change beside the triggers."""
_WORKLOAD_LABELS = frozenset({"__name__", *profiles.POD_LABELS, *profiles.NAMESPACE_LABELS})
"""What is selected by these, `workload` says."""
_SAID = frozenset(
    {
        *("avg", "count", "max", "sum", "*", "+", "/", "or"),
        *("avg_over_time", "label_join", "label_replace", "scalar", "vector"),
    }
)
"""What a query may do for keys to say all of it."""
_WITHIN_PODS = {"max": GpuAggregation.MAX, "sum": GpuAggregation.SUM}
_SUMMED = frozenset({Signal.MEMORY_USED, Signal.POWER})
"""Over the GPUs of a pod, unless gpuAggregation says something else."""
_TO_PERCENT = {Unit.PERCENT: 1.0, Unit.SHARE: 100.0}
_NUMBERS = ("threshold", "activationThreshold")
_BESIDE = ("authenticationRef", "metricType", "useCachedMetrics")
"""Fields beside the metadata that the new trigger does not have."""
_SOURCE = "a source is in the scaler's settings"
_WHY_GONE = {
    "ignoreNullValues": "without data the replicas are held",
    "metricName": "KEDA does not read it",
    "metricType": "the number is a sum over the replicas",
    "useCachedMetrics": "the scaler asks its source once for all triggers",
}
_COMMENT = re.compile(r"\s+#[^'\"\r]*(?=\r?$)")
"""At the end of a line, unless it is in quotes."""
_LINE_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
"""What YAML takes for the end of a line, and most programs do not."""
_PAGE = "docs/migrate/keda-prometheus.md says what to write"


class Migration(NamedTuple):
    """What becomes of a text."""

    text: str
    """With those of its triggers moved that can be."""
    triggers: int
    """How many prometheus triggers it had."""
    kept: tuple[str, ...]
    """Where those are that stay, each with the reason."""


class _Edit(NamedTuple):
    first: int
    end: int
    lines: Sequence[str]


class _KeptError(Exception):
    """A trigger stays; the message is the reason."""


@dataclass
class _Asked:
    """What a query asks for, in keys of a trigger."""

    keys: dict[str, str]
    factor: float = 1.0
    """What its thresholds are multiplied by."""
    prefix: str = ""
    """What the keys of its thresholds begin with."""


@dataclass
class _Plan:
    """What changes in one object."""

    manifest: Manifest
    edits: list[_Edit] = field(default_factory=list)
    wanted: dict[int, Mapping[str, str]] = field(default_factory=dict)
    """The new metadata of its triggers, by their places."""
    kept: list[tuple[Position, str]] = field(default_factory=list)


def migrate(file: str, text: str, address: str) -> Migration:
    """Return a text in which KEDA's prometheus triggers ask the scaler at this address instead.

    ValueError if the text is no YAML, or has lines that other programs count otherwise.
    """
    if _LINE_BREAK.search(text):
        raise ValueError(f"{file}: it has other ends of lines than LF and CRLF")
    manifests, problems = check.read_objects({file: text}, "")
    if problems:
        raise ValueError(f"{file}:{problems[0].position.line}: {problems[0].why}")
    lines = text.split("\n")
    plans = [_plan(lines, manifest, address) for manifest in manifests]
    before, after = check.check({file: text}, ""), _text(lines, plans)
    report, (written, broken) = (
        check.check({file: after}, ""),
        check.read_objects({file: after}, ""),
    )
    if broken or not report.is_complete:
        raise ValueError(f"{file}: its YAML has a form that is not known here, or too many objects")
    known = {(finding.rule, finding.message) for finding in before.findings}
    for plan, becomes in zip(plans, written, strict=True):
        found = [finding for finding in report.findings if finding.subject == becomes.subject]
        new = (finding for finding in found if (finding.rule, finding.message) not in known)
        reason = _reason(plan, becomes, new)
        if reason:
            position = plan.manifest.triggers[min(plan.wanted)].node.position
            plan.kept.append((position, reason))
            plan.edits.clear()
        elif plan.wanted:
            plan.edits += _of_spec(lines, plan.manifest, {finding.rule.name for finding in found})
    kept = sorted((*reason, plan.manifest.subject) for plan in plans for reason in plan.kept)
    said = (f"{file}:{place.line}:{place.column}: {subject}: {why}" for place, why, subject in kept)
    triggers = [trigger.type for manifest in manifests for trigger in manifest.triggers]
    moved, reasons = _text(lines, plans), tuple(map(errors.without_controls, said))
    return Migration(moved, triggers.count("prometheus"), reasons)


def _plan(lines: Sequence[str], manifest: Manifest, address: str) -> _Plan:
    plan = _Plan(manifest)
    for place, trigger in enumerate(manifest.triggers):
        if trigger.type == "prometheus":
            try:
                wanted, comments = _metadata(trigger, address)
                plan.edits.append(_rewritten(lines, trigger, wanted, comments))
                plan.wanted[place] = wanted
            except _KeptError as error:
                plan.kept.append((trigger.node.position, str(error)))
    return plan


def _reason(plan: _Plan, becomes: Manifest, found: Iterable[Finding]) -> str:
    """Return why an object stays as it is, by what it would be and what `check` finds then."""
    if any(becomes.triggers[place].metadata != keys for place, keys in plan.wanted.items()):
        return "it has an alias, or a form that is not known here"
    wrong = (
        f"{finding.why}. {finding.fix}"
        for finding in found
        if finding.rule.severity is Severity.ERROR and finding.rule.name not in _REMEDIED
    )
    return next(wrong, "") if plan.wanted else ""


def _metadata(trigger: Trigger, address: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the new metadata, and what comments say above its keys."""
    query = trigger.metadata.get("query", "")
    reading, root = demands.reading_of(trigger, "query"), readings.parsed(query.strip())
    if trigger.of.kind != "ScaledObject" or not trigger.of.is_whole or trigger.of.formula:
        raise _KeptError("only a whole ScaledObject without a formula can be moved")
    if reading is None or root is None or not reading.is_known:
        raise _KeptError(f"nothing is known of the metrics that its query reads; {_PAGE}")
    asked = (_of_gpus if reading.is_of(MetricOwner.EXPORTER) else _of_requests)(
        trigger, root, reading
    )
    pods = _workload(trigger.of)
    new = {"scalerAddress": address} | ({"workload": pods} if pods else {}) | asked.keys
    instead = [f"Was: {' '.join(query.split())}", *_not_kept(trigger, root)]
    if not pods:
        instead.append("Without workload the scaler needs KEDA_GPU_SCALER_KUBERNETES.")
    said = {"scalerAddress": _gone(trigger)}
    said.setdefault([*new, "scalerAddress"][1], []).extend(instead)
    for key in _NUMBERS:
        given = trigger.metadata.get(key, "").strip()
        if not NUMBER.fullmatch(given) and (given or key == "threshold"):
            raise _KeptError(f"its {key} is no number")
        if given:
            name = f"{asked.prefix}{key[0].upper()}{key[1:]}" if asked.prefix else key
            new[name] = given if asked.factor == 1 else f"{float(given) * asked.factor:.6g}"
            said[name] = [] if asked.factor == 1 else [f"Was: {given}"]
    return new, said


def _gone(trigger: Trigger) -> list[str]:
    """Return what is said of the keys that nothing replaces."""
    gone: dict[str, list[str]] = {}
    for key in (*trigger.metadata, *filter(trigger.node.has, _BESIDE)):
        if key not in ("query", *_NUMBERS):
            gone.setdefault(_WHY_GONE.get(key, _SOURCE), []).append(key)
    return [f"No {', '.join(keys)}: {why}." for why, keys in gone.items()]


def _workload(manifest: Manifest) -> str:
    """Return the scale target as a trigger names it; empty: no rule finds its pods."""
    target = manifest.node.block("spec", "scaleTargetRef")
    group = (target.text("apiVersion") or "apps/v1").rpartition("/")[0]
    kind = workload.kind_of_target(group, target.text("kind") or Kind.DEPLOYMENT)
    name = target.text("name")
    return "" if kind is None else name if kind is Kind.DEPLOYMENT else f"{kind}/{name}"


def _not_kept(trigger: Trigger, root: tree.Node) -> Iterator[str]:
    """Yield what a query does and the trigger does not, where that matters little."""
    labels, namespace = set[str](), trigger.of.namespace
    if namespace and any(demands.other_namespaces(trigger.metadata["query"], namespace)):
        raise _KeptError("its query reads another namespace than the ScaledObject's")
    for node, _ in tree.nodes(root):
        match node:
            case tree.Operation("or"):
                yield "Not kept: or ... Without data the replicas are held."
            case tree.Selector() if demands.is_of_another(trigger, node):
                raise _KeptError("its query reads the pods of another workload")
            case tree.Selector():
                labels |= {matcher.label for matcher in tree.matchers(node)} - _WORKLOAD_LABELS
    if labels:
        yield f"Not kept: what selects by {documents.shown(', '.join(sorted(labels)))}."


def _read(
    trigger: Trigger, root: tree.Node, reading: Meaning
) -> tuple[str, str, list[tree.Operation]]:
    """Return the outermost and the innermost aggregation of a query, and its arithmetic.

    A sum by a count is an average, as is what is not aggregated.
    """
    nodes = [node for node, _ in tree.nodes(root)]
    for node in nodes:
        match node:
            case tree.Aggregation(word) | tree.Call(word) | tree.Operation(word):
                unsaid = "" if word in _SAID else word
            case _:
                is_shifted = isinstance(node, tree.Selector) and node.shift != tree.Shift()
                unsaid = "offset or @" if is_shifted else ""
        if unsaid:
            raise _KeptError(f"no key says what {unsaid} does in its query; {_PAGE}")
    names = [node.name for node in nodes if isinstance(node, tree.Aggregation)] or ["avg"]
    signs = [node for node in nodes if isinstance(node, tree.Operation) and node.sign != "or"]
    is_ratio = reading.unlike_sum == readings.RATIO
    if is_ratio and sorted(names) == ["count", "sum"]:
        counted = [
            operation
            for operation in signs
            if operation.sign != "/" or not readings.counts(operation.right)
        ]
        return "avg", "avg", counted
    if is_ratio and {*names} == {"sum"}:
        return "avg", "avg", signs
    if "count" in names:
        raise _KeptError(f"no key says what count does in its query; {_PAGE}")
    if names[0] == "sum" and not trigger.average:
        raise _KeptError("metricType: Value multiplies its sum by the replicas: it is not clear")
    return names[0], names[-1], signs


def _of_gpus(trigger: Trigger, root: tree.Node, reading: Meaning) -> _Asked:
    signal, factor = known_metrics.SIGNALS.get(reading.names, (None, 0.0))
    if signal is None:
        raise _KeptError(f"no signal is made of {', '.join(sorted(reading.names))}; {_PAGE}")
    outer, inner, signs = _read(trigger, root, reading)
    asked = _Asked({} if signal is Signal.UTILIZATION else {"signal": str(signal)}, factor)
    if outer == "max" and not reading.is_several:
        asked.keys["aggregation"] = Aggregation.MAX
    within = _WITHIN_PODS.get(inner, GpuAggregation.AVERAGE)
    if within != (GpuAggregation.SUM if signal in _SUMMED else GpuAggregation.AVERAGE):
        asked.keys["gpuAggregation"] = within
    seconds = max(seconds for _, seconds in tree.lookbacks(root))
    if seconds:
        asked.keys["window"] = durations.text(seconds)
    # A share of the memory is what is in use, by the sum of that and what is free, or by all.
    divided = [readings.of(operation.left).names for operation in signs if operation.sign == "/"]
    in_use = [known_metrics.SIGNALS.get(names, (None, 0.0))[0] for names in divided]
    is_share = len(reading.names) > 1 and Signal.MEMORY_USED in in_use
    if signal.is_percentage:
        asked.factor = _TO_PERCENT.get(reading.unit or Unit.AMOUNT, 0.0)
    is_plain = len(reading.names) == 1 and all(operation.sign != "+" for operation in signs)
    if not asked.factor or not (is_share or is_plain) or (signs and not signal.is_percentage):
        raise _KeptError(f"the unit of its number is not known; {_PAGE}")
    return asked


def _of_requests(trigger: Trigger, root: tree.Node, reading: Meaning) -> _Asked:
    query, names = trigger.metadata["query"], reading.names
    for preset in PRESETS.values():
        read = [
            metric
            for metrics in preset.added
            for metric in metrics
            if not names.isdisjoint(metric.names)
        ]
        is_whole = len(read) == len(preset.added) and all(
            metric.matchers in query for metric in read
        )
        if is_whole and names <= {name for metric in read for name in metric.names}:
            break
    else:
        raise _KeptError(f"no preset counts {', '.join(sorted(names))}; {_PAGE}")
    if preset.is_of_router:
        raise _KeptError(f"no query names the demandRouter that demandPreset: {preset.name} needs")
    outer, _, signs = _read(trigger, root, reading)
    is_known = reading.unit in _TO_PERCENT or all(operation.sign == "+" for operation in signs)
    if outer not in ("avg", "sum") or not (is_known and _is_sum_of(preset, root)):
        raise _KeptError(f"no key says what its query makes of {preset.name}; {_PAGE}")
    asked = _Asked({"demandPreset": preset.name}, prefix="demand")
    asked.factor = 0.01 if reading.unit is Unit.PERCENT else 1.0
    return asked


def _is_sum_of(preset: Preset, root: tree.Node) -> bool:
    """Tell whether each quantity of a preset is added once; `or` is between its names, or for none.

    What else is added, a number or a quantity once more, no key says.
    """

    def read_by(node: tree.Node) -> set[int]:
        read = readings.of(node).names
        return {
            number
            for number, metrics in enumerate(preset.added)
            if any(not read.isdisjoint(metric.names) for metric in metrics)
        }

    for node, _ in tree.nodes(root):
        if isinstance(node, tree.Operation) and node.sign in ("+", "or"):
            left, right = read_by(node.left), read_by(node.right)
            if node.sign == "or" and right - left:
                return False
            if node.sign == "+" and (left & right or not (left and right)):
                return False
    return True


def _rewritten(
    lines: Sequence[str],
    trigger: Trigger,
    wanted: Mapping[str, str],
    comments: Mapping[str, Sequence[str]],
) -> _Edit:
    """Return the lines of a trigger with the new metadata; those that say the same stay."""
    node, block = trigger.node, trigger.node.block("metadata")
    first, column = node.position.line - 1, node.position.column - 1
    dash = lines[first].rfind("-", 0, column)
    end = _end(lines, first, dash)
    places = [entry.position for mapping in (node, block) for entry in mapping.entries.values()]
    befores = [lines[place.line - 1][: place.column - 1].strip() for place in places]
    is_inside = all(first < place.line <= end for place in places)
    if dash < 0 or not is_inside or befores[0] != "-" or any(befores[1:]):
        raise _KeptError("it is in braces, or has an alias: write each key in a line of its own")
    new = [f"{lines[first][:dash]} {lines[first][dash + 1 :]}", *lines[first + 1 : end]]
    kind = node.place("type").line - 1 - first
    edits = [_Edit(kind, kind + 1, [new[kind].replace("prometheus", "external", 1)])]
    edits += [_instead(new, node.place(key), first, []) for key in _BESIDE if key in node.entries]
    numbers = [key for key in _NUMBERS if trigger.metadata.get(key, "").strip()]
    keys = [*wanted]
    slots = {key: [new_key] for key, new_key in zip(numbers, keys[-len(numbers) :], strict=True)}
    slots["query"] = keys[1 : -len(numbers)]
    home = "serverAddress" if "serverAddress" in block.entries else "query"
    slots[home] = [keys[0], *slots.get(home, [])]
    for key, entry in block.entries.items():
        texts = [
            text
            for name in slots.get(key, [])
            for text in (*(f"# {said}" for said in comments.get(name, ())), _line(name, wanted))
        ]
        if slots.get(key) != [key] or wanted[key] != entry.value.scalar:
            edits.append(_instead(new, entry.position, first, texts))
    new = _applied(new, edits)
    top = next(number for number, line in enumerate(new) if line.strip()[:1] not in ("", "#"))
    new[top] = f"{new[top][:dash]}-{new[top][dash + 1 :]}"
    return _Edit(first, end, new)


def _line(key: str, wanted: Mapping[str, str]) -> str:
    """Return a key with its value, in quotes where YAML would read something else."""
    plain = f"{key}: {wanted[key]}"
    value = next((document.get(key) for document in documents.read(plain).documents), None)
    is_same = value is not None and (value.kind, value.scalar) == ("string", wanted[key])
    return plain if is_same else f"{key}: {json.dumps(wanted[key])}"


def _of_spec(lines: Sequence[str], manifest: Manifest, found: Collection[str]) -> Iterator[_Edit]:
    """Yield what changes beside the triggers, by the rules that found something in the new text."""
    spec = manifest.node.block("spec")
    if "unused-fallback" in found:
        said = ["# No fallback: while the load is unknown the replicas are held."]
        yield _instead(lines, spec.place("fallback"), 0, said)
    if "nothing-wakes" in found:
        key = "minReplicaCount" if manifest.minimum == 0 else "idleReplicaCount"
        said = ["# At zero nothing would say that there is work."]
        said += ["minReplicaCount: 1"] if manifest.minimum == 0 else []
        if key in spec.entries:
            yield _instead(lines, spec.place(key), 0, said)
        else:
            place = spec.place("maxReplicaCount" if spec.has("maxReplicaCount") else "triggers")
            indent = " " * (place.column - 1)
            yield _Edit(place.line - 1, place.line - 1, [indent + line for line in said])
    if (spec.integer("pollingInterval") or 0) > _LONGEST_POLL_SECONDS:
        said = [f"# Was: {spec.text('pollingInterval')}. Between polls nothing wakes or is active."]
        said += [f"pollingInterval: {_LONGEST_POLL_SECONDS}"]
        yield _instead(lines, spec.place("pollingInterval"), 0, said)


def _instead(lines: Sequence[str], place: Position, above: int, new: Iterable[str]) -> _Edit:
    """Return the edit that replaces a key with all that is below it; `above` lines are left out."""
    first, column = place.line - 1 - above, place.column - 1
    written = [" " * column + line for line in new]
    comment = _COMMENT.search(lines[first])
    if written and comment:
        written[-1] += comment[0]
    return _Edit(first, _end(lines, first, column), written)


def _end(lines: Sequence[str], first: int, column: int) -> int:
    """Return where a key ends: behind the last line that is further in than its column."""
    end = first + 1
    for number, line in enumerate(lines[end:], end):
        indent = len(line) - len(line.lstrip(" "))
        if line.strip() and indent <= column:
            break
        end = number + 1 if line.strip() else end
    return end


def _text(lines: Sequence[str], plans: Iterable[_Plan]) -> str:
    return "\n".join(_applied(lines, [edit for plan in plans for edit in plan.edits]))


def _applied(lines: Sequence[str], edits: Iterable[_Edit]) -> list[str]:
    changed, ending = list(lines), "\r" if lines[0].endswith("\r") else ""
    for first, end, new in sorted(edits, reverse=True):
        changed[first:end] = [line.rstrip("\r") + ending for line in new]
    return changed
