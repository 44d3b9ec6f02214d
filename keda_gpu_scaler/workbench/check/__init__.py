"""Finds what is wrong with ScaledObjects before they are applied: texts in, findings out.

Pure: files are read by `cli/`. Every text is either read or refused with a finding.

    documents         text → YAML with positions, bounded
    manifests         YAML → objects, and their triggers that are for this scaler
    findings          what is found, and where
    readings          PromQL → what is known of its numbers, by the metrics that it reads
    schema            what the API server and KEDA refuse of any ScaledObject
    fields, demands, scaling  the other rules, each a function; the table of all is below
    formulas          the formula of scalingModifiers → its names, and its value
    live              what the source and the cluster show of a trigger
    formats           findings → JSON and SARIF
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from keda_gpu_scaler.errors import Mistake
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.trigger.keys import FROM_ENV, KEYS
from keda_gpu_scaler.workbench.check import demands, documents, fields, scaling, schema
from keda_gpu_scaler.workbench.check.findings import Check, Finding, Rule, Severity, Wrong
from keda_gpu_scaler.workbench.check.manifests import Manifest, Trigger, manifests

_IGNORE = re.compile(
    r"#[ \t]*keda-gpu-scaler:[ \t]*ignore[ \t]+([a-z0-9-]+(?:[ \t]*,[ \t]*[a-z0-9-]+)*)"
)
_FIXES = {
    "yaml-syntax": "Correct the YAML; for a chart, check the output of helm template.",
    "too-large": "Split the text, or check only the rendered ScaledObjects.",
    "duplicate-key": "Remove one of the two: programs differ in which one they use.",
}
FINDINGS_LIMIT = 1000
"""No person reads more; without it, a text of 16 MiB could have a million."""
_ERROR, _WARNING, _NOTE = Severity


def _rule(severity: Severity, check: Check, meaning: str) -> Rule:
    """Return the rule of a function, which has its name."""
    return Rule(check.__name__.replace("_", "-"), severity, meaning, check)


OF_TEXTS = (
    Rule("yaml-syntax", _ERROR, "a document that is not YAML"),
    Rule("too-large", _ERROR, "a text beyond a limit: bytes, values, depth"),
    Rule("duplicate-key", _ERROR, "a key that occurs twice in one mapping"),
)
OF_TRIGGERS = (
    # The schemas of KEDA and Kubernetes say these.
    Rule("unknown-field", _ERROR, "a field that a ScaledObject does not have"),
    Rule("wrong-type", _ERROR, "a value of another type, such as a number for a string"),
    Rule("unknown-value", _ERROR, "a trigger type, or another word, that KEDA does not have"),
    Rule("refused-value", _ERROR, "a field that is missing, or a value out of its limits"),
    _rule(_ERROR, schema.other_type, "this scaler's keys in a trigger of another type"),
    # The scaler's own parser finds these.
    Rule("unknown-key", _ERROR, "a key of the trigger that does not exist"),
    Rule("missing-key", _ERROR, "a key that the trigger needs"),
    Rule("wrong-value", _ERROR, "a value of the trigger that the scaler refuses"),
    _rule(_WARNING, fields.doubtful_value, "what the scaler accepts with a warning in its log"),
    # What it refers to, and what it reads.
    _rule(_ERROR, fields.other_project, "a trigger of pmady/keda-gpu-scaler"),
    _rule(_ERROR, fields.wrong_address, "a `scalerAddress` where no scaler answers KEDA"),
    _rule(_WARNING, demands.other_namespace, "PromQL on a namespace that it may not read"),
    _rule(_WARNING, scaling.zero_for_unknown, "`or vector(0)` in a query that scales"),
)
OF_SCALING = (
    _rule(_ERROR, schema.refused_by_keda, "what KEDA refuses, such as a minimum above the maximum"),
    _rule(_ERROR, fields.wrong_target, "a `scaleTargetRef` without a scale subresource"),
    # How many replicas.
    _rule(_ERROR, scaling.sum_with_value, "a sum, `max` or `p95` beside `metricType: Value`"),
    _rule(_ERROR, scaling.average_without_value, "an average without `metricType: Value`"),
    _rule(_ERROR, demands.average_recipe, "KEDA's own trigger on GPUs, and not on their sum"),
    _rule(_ERROR, demands.demand_not_a_sum, "a demand that does not add up over replicas"),
    _rule(_WARNING, demands.several_elements, "a demand with an element for each pod"),
    _rule(_ERROR, demands.queue_alone, "a `demandQuery` of waiting requests that scales alone"),
    _rule(_ERROR, demands.query_without_pods, "a `query` whose elements name no pod"),
    _rule(_ERROR, scaling.threshold_out_of_reach, "a threshold that no load exceeds"),
    _rule(_ERROR, demands.fraction_for_percent, "a share of 1 where the number is in percent"),
    _rule(_ERROR, demands.percent_for_fraction, "a percentage where the number is a share of 1"),
    _rule(_WARNING, demands.gpus_beside_requests, "an LLM server's GPUs beside its requests"),
    _rule(_NOTE, scaling.formula_metric_type, "a formula whose `metricType` may not fit"),
    _rule(_WARNING, scaling.short_stabilization, "a scale-in that waits for less than `window`"),
    _rule(_NOTE, scaling.no_maximum, "no `maxReplicaCount`, which means 100"),
    _rule(_ERROR, fields.pod_pattern, "a `podPattern` that is a prefix or a glob"),
    _rule(_WARNING, fields.wide_pod_pattern, "a `podPattern` that matches other workloads"),
    _rule(_WARNING, scaling.other_workload, "a `workload` that the ScaledObject does not scale"),
    # To and from zero.
    _rule(_ERROR, scaling.missing_workload, "zero replicas and a `workload` that no file has"),
    _rule(_ERROR, scaling.nothing_wakes, "zero replicas and nothing that wakes the workload"),
    _rule(_NOTE, scaling.push_without_signal, "`external-push` that only an alert activates"),
    _rule(_WARNING, scaling.never_idle, "an `activationThreshold` that an idle GPU exceeds"),
    _rule(_WARNING, scaling.short_cooldown, "a `cooldownPeriod` shorter than `activationWindow`"),
    _rule(_WARNING, scaling.short_activation_window, "an `activationWindow` shorter than a poll"),
    _rule(_ERROR, scaling.formula_without_key, "a formula and zero, without `forFormula`"),
    _rule(_ERROR, scaling.formula_inactive, "a formula that is not active for one full replica"),
    _rule(_WARNING, scaling.new_object, "zero without `initialCooldownPeriod`"),
    # KEDA's other fields.
    _rule(_ERROR, scaling.cached_number_for_formula, "`useCachedMetrics` beside `forFormula`"),
    _rule(_WARNING, fields.cached_metrics, "`useCachedMetrics` beside the scaler's trigger"),
    _rule(_ERROR, fields.idle_replicas, "an `idleReplicaCount` other than 0"),
    _rule(_NOTE, fields.unused_fallback, "a `fallback` that no unknown load uses"),
    _rule(_ERROR, fields.fallback_to_zero, "a `fallback` of 0 replicas"),
    _rule(_WARNING, fields.fallback_scales_in, "a `fallback` that removes busy replicas"),
    _rule(_ERROR, fields.modifiers_with_demand, "`scalingModifiers` beside a demand"),
)
OF_JOBS = (_rule(_ERROR, fields.scaled_job, "a ScaledJob with the scaler's trigger"),)
"""Of ScaledJobs; the others are of ScaledObjects."""
OF_SOURCES = (
    Rule("no-answer", _ERROR, "a source that does not answer"),
    Rule("no-series", _ERROR, "no series of the signal"),
    Rule("no-pod-labels", _ERROR, "series of GPUs that name no pod, or no namespace"),
    Rule("no-pods", _ERROR, "no GPU of the workload's pods, but others"),
    Rule("late-samples", _WARNING, "samples that arrive late, or have ended"),
    Rule("slow-scrape", _WARNING, "samples that arrive less often than a window is long"),
    Rule("stuck-metric", _WARNING, "a metric of the GPUs that another one contradicts"),
    Rule("no-readiness", _WARNING, "no list of the pods and of those that are Ready"),
    Rule("demand-unknown", _ERROR, "a demand query without a number"),
)
"""What the source and the cluster show, with --live."""
RULES: Mapping[str, Rule] = {
    rule.name: rule for rule in (*OF_TEXTS, *OF_TRIGGERS, *OF_SCALING, *OF_JOBS, *OF_SOURCES)
}


class FileTrigger(NamedTuple):
    """A trigger that can be decided."""

    scaled_object: ScaledObject
    spec: TriggerSpec


class Report(NamedTuple):
    """What was found."""

    findings: tuple[Finding, ...]
    """By file, in the order in which they were given, and by position."""
    objects: tuple[Manifest, ...]
    """The ScaledObjects and ScaledJobs that it is about."""
    is_complete: bool = True
    """False: it stopped at the limit of findings."""


def read_objects(texts: Mapping[str, str], namespace: str) -> tuple[list[Manifest], list[Finding]]:
    """Return the objects in some texts, and what of the texts cannot be read.

    The texts have the names under which findings show them; `namespace` is that of objects that
    name none.
    """
    objects: list[Manifest] = []
    problems: list[Finding] = []
    for file, text in texts.items():
        reading = documents.read(text)
        for document in reading.documents:
            objects += manifests(file, document, namespace)
        for problem in reading.problems:
            rule, fix = RULES[problem.rule], _FIXES[problem.rule]
            problems.append(Finding(rule, file, problem.position, "", problem.what, fix))
    return objects, problems


def check(
    texts: Mapping[str, str],
    namespace: str,
    ignored: Iterable[str] = (),
    seen: Iterable[Finding] = (),
) -> Report:
    """Return what is wrong in some texts.

    The rules that are named in `ignored` are left out; `seen` is what was found beside the texts.
    """
    objects, problems = read_objects(texts, namespace)
    workloads = frozenset(filter(None, (manifest.workload for manifest in objects)))
    scaled = [
        replace(manifest, workloads=workloads)
        for manifest in objects
        if manifest.kind == "ScaledJob" or schema.is_of_keda(manifest)
    ]
    everywhere = frozenset(ignored)
    by_line = {file: _ignored_by_line(text) for file, text in texts.items()}
    kept: dict[Finding, None] = {}
    is_complete = True
    for finding in chain(seen, problems, *map(_of_object, scaled)):
        here = by_line[finding.file].get(finding.position.line, ())
        if finding.rule.name in everywhere or finding.rule.name in here:
            continue
        if len(kept) == FINDINGS_LIMIT and finding not in kept:
            is_complete = False
            break
        kept[finding] = None
    order = {file: number for number, file in enumerate(texts)}
    findings = sorted(
        kept, key=lambda finding: (order[finding.file], finding.position, finding.rule.name)
    )
    return Report(tuple(findings), tuple(scaled), is_complete)


def _of_object(manifest: Manifest) -> Iterator[Finding]:
    """Yield what is wrong with one object; how it scales only if it is no patch of one."""
    table: tuple[Rule, ...] = OF_JOBS
    if manifest.kind != "ScaledJob":
        is_known = manifest.is_whole
        for rule_name, wrong in schema.refused(manifest):
            yield as_finding(rule_name, manifest, wrong)
            # It may be in this field how it scales.
            is_elsewhere = rule_name != "wrong-type" or wrong.why.startswith("spec.triggers[")
            is_known &= rule_name != "unknown-field" and is_elsewhere
        table = OF_TRIGGERS + (OF_SCALING if is_known else ())
        for trigger in manifest.ours:
            yield from refused(trigger, trigger.mistakes)
    for rule in table:
        for wrong in rule.check(manifest) if rule.check is not None else ():
            yield as_finding(rule.name, manifest, wrong)


def _ignored_by_line(text: str) -> dict[int, frozenset[str]]:
    """Return the rules that comments leave out, by line: their own, and the next with content."""
    by_line: dict[int, frozenset[str]] = {}
    waiting: frozenset[str] = frozenset()
    for number, line in enumerate(text.split("\n"), 1):
        for match in _IGNORE.finditer(line):
            waiting |= frozenset(re.split(r"[ \t]*,[ \t]*", match[1]))
        if waiting and line.strip() and not line.lstrip().startswith("#"):
            by_line[number], waiting = waiting, frozenset()
    return by_line


def refused(trigger: Trigger, mistakes: Iterable[Mistake]) -> Iterator[Finding]:
    """Yield a finding for each mistake of a trigger, where its key is."""
    for mistake in mistakes:
        rule_name = "unknown-key"
        if not mistake.key or mistake.key.removesuffix(FROM_ENV) in KEYS:
            is_given = not mistake.key or mistake.key in trigger.metadata
            rule_name = "wrong-value" if is_given else "missing-key"
        end = "" if mistake.advice.endswith("?") else "."
        fix = f"{mistake.advice[:1].upper()}{mistake.advice[1:]}{end}"
        if fields.TYPESET.search(mistake.key + trigger.metadata.get(mistake.key, "")):
            fix = "Write plain quotes and spaces: curly and no-break ones are a part of the text."
        wrong = Wrong(trigger.place(mistake.key), f"The scaler refuses {mistake.what}", fix)
        yield as_finding(rule_name, trigger.of, wrong)


def from_env(trigger: Trigger) -> Iterator[Finding]:
    """Yield what KEDA takes from the environment of what is scaled: the text names a variable."""
    for written_key in trigger.from_env:
        key = written_key.removesuffix(FROM_ENV)
        why = f"The value of {key} is in the environment of the scale target, and not known here"
        fix = f"Write {key} with its value in a copy of the file."
        wrong = Wrong(trigger.place(written_key), why, fix)
        yield as_finding("wrong-value", trigger.of, wrong)


def parse(triggers: Iterable[Trigger], access: Access) -> tuple[list[FileTrigger], list[Finding]]:
    parsed: list[FileTrigger] = []
    findings: list[Finding] = []
    for trigger in triggers:
        spec, mistakes = trigger.parse(access)
        findings += [*from_env(trigger), *refused(trigger, mistakes)]
        if spec is not None:
            # Where a formula scales, no trigger says by itself how many replicas the HPA asks for.
            spec = replace(spec, for_formula=True) if trigger.of.formula else spec
            parsed.append(FileTrigger(trigger.of.scaled_object, spec))
    return parsed, findings


def as_finding(rule_name: str, manifest: Manifest, wrong: Wrong) -> Finding:
    rule = RULES[rule_name]
    return Finding(rule, manifest.file, wrong.position, manifest.subject, wrong.why, wrong.fix)
