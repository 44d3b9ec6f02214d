"""Finds what is wrong with ScaledObjects before they are applied: texts in, findings out.

Pure: files are read by `cli/`. Every text is either read or refused with a finding.

    documents   text → YAML with positions, bounded
    objects     YAML → objects, and their triggers that are for this scaler
    findings    what is found, and where
    rules       every rule by its name; each is a function of one of these modules:
                fields, replicas, zero
    live        what the source and the cluster show of a trigger
    formats     findings → JSON and SARIF
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from keda_gpu_scaler.check import documents, fields, rules
from keda_gpu_scaler.check.findings import Finding, Rule, Wrong
from keda_gpu_scaler.check.objects import Manifest, Terms, Trigger, manifests
from keda_gpu_scaler.errors import Mistake
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.trigger.keys import FROM_ENV

_IGNORE = re.compile(
    r"#[ \t]*keda-gpu-scaler:[ \t]*ignore[ \t]+([a-z0-9-]+(?:[ \t]*,[ \t]*[a-z0-9-]+)*)"
)
_FIXES = {
    "yaml-syntax": "Correct the YAML; of a chart, check what helm template prints.",
    "too-large": "Split the text, or check the rendered ScaledObjects alone.",
    "duplicate-key": "Remove one of the two: readers differ in which one counts.",
}
FINDINGS_LIMIT = 1000
"""No person reads more; without it, a text of 16 MiB could have a million."""


class Report(NamedTuple):
    """What was found."""

    findings: tuple[Finding, ...]
    """By file, in the order in which they were given, and by position."""
    objects: tuple[Manifest, ...]
    """The ScaledObjects and ScaledJobs that it is about."""
    is_complete: bool = True
    """False: it stopped at the limit of findings."""


def read(
    texts: Mapping[str, str], terms: Terms, values_limit: int = documents.VALUES_LIMIT
) -> tuple[list[Manifest], list[Finding]]:
    """Return the objects in some texts, and what of the texts cannot be read.

    The texts have the names under which findings show them.
    """
    objects: list[Manifest] = []
    problems: list[Finding] = []
    for file, text in texts.items():
        reading = documents.read(text, values_limit)
        for document in reading.documents:
            objects += manifests(file, document, terms)
        for problem in reading.problems:
            rule, fix = rules.RULES[problem.rule], _FIXES[problem.rule]
            problems.append(Finding(rule, file, problem.position, "", problem.what, fix))
    return objects, problems


def check(
    texts: Mapping[str, str],
    terms: Terms,
    ignored: Iterable[str] = (),
    seen: Iterable[Finding] = (),
) -> Report:
    """Return what is wrong in some texts.

    The rules that are named in `ignored` are left out; `seen` is what was found beside the texts.
    """
    objects, problems = read(texts, terms)
    scaled = [manifest for manifest in objects if manifest.kind in ("ScaledObject", "ScaledJob")]
    everywhere = frozenset(ignored)
    by_line = {file: _ignored_by_line(text) for file, text in texts.items()}
    kept: dict[Finding, None] = {}
    is_complete = True
    for finding in chain(seen, problems, *map(_of_object, scaled)):
        here = by_line[finding.file].get(finding.position.line, frozenset())
        if finding.rule.name in everywhere | here or finding in kept:
            continue
        if len(kept) == FINDINGS_LIMIT:
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
    table: tuple[Rule, ...] = rules.OF_JOBS
    if manifest.kind == "ScaledObject":
        table = rules.OF_TRIGGERS + (rules.OF_SCALING if manifest.is_whole else ())
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
    for rule_name, wrong in fields.refused(trigger, mistakes):
        yield as_finding(rule_name, trigger.of, wrong)


def from_env(trigger: Trigger) -> Iterator[Finding]:
    """Yield what KEDA takes from the environment of what is scaled: the text names a variable."""
    for written_key in trigger.from_env:
        key = written_key.removesuffix(FROM_ENV)
        why = f"The value of {key} is in the environment of what is scaled, and not known here"
        fix = f"Write {key} with its value in a copy of the file."
        wrong = Wrong(trigger.place(written_key), why, fix)
        yield as_finding("wrong-value", trigger.of, wrong)


def parse(trigger: Trigger, access: Access) -> tuple[TriggerSpec | None, list[Finding]]:
    """Return what a trigger asks for, or why its text does not say that, for who decides it."""
    spec, mistakes = trigger.parse(access)
    return spec, [*from_env(trigger), *refused(trigger, mistakes)]


def as_finding(rule_name: str, manifest: Manifest, wrong: Wrong) -> Finding:
    """Return what a rule found wrong in an object, with the object."""
    rule = rules.RULES[rule_name]
    return Finding(rule, manifest.file, wrong.position, manifest.subject, wrong.why, wrong.fix)
