"""Finds what is wrong with ScaledObjects before they are applied: texts in, findings out.

Pure: files are read by `cli/`. Every text is either read or refused with a finding.

    findings    rules, severities, findings at a place
    catalog     every rule by its name
    nodes       what a YAML document consists of, with positions
    documents   text → nodes, bounded
    objects     nodes → objects, and their triggers that are for this scaler
    fields      what KEDA's definitions refuse
    keys        what the scaler's own reader of triggers refuses
    workloads   what else the texts say of the workloads, and who shares one
    replicas, zero, around, leaving    rules about a ScaledObject
    formats     findings → JSON, SARIF, GitHub's annotations
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from keda_gpu_scaler.check import around, catalog, documents, fields, keys, leaving, replicas, zero
from keda_gpu_scaler.check.documents import Problem
from keda_gpu_scaler.check.findings import Finding, Position
from keda_gpu_scaler.check.objects import Manifest, Terms, manifests, shown
from keda_gpu_scaler.check.workloads import World

_IGNORE = re.compile(
    r"#[ \t]*keda-gpu-scaler:[ \t]*ignore[ \t]+([a-z0-9-]+(?:[ \t]*,[ \t]*[a-z0-9-]+)*)"
)
_PROBLEMS = {
    "syntax": (
        "yaml-syntax",
        "Correct the YAML; of a chart, check what helm template prints.",
    ),
    "limit": ("too-large", "Split the text, or check the rendered ScaledObjects alone."),
    "duplicate": ("duplicate-key", "Remove one of the two: readers differ in which one counts."),
}


class Report(NamedTuple):
    """What was found."""

    findings: tuple[Finding, ...]
    """By file, in the order in which they were given, and by position."""
    checked: int
    """How many of KEDA's objects there were."""


def check(texts: Mapping[str, str], terms: Terms, ignored: Iterable[str] = ()) -> Report:
    """Return what is wrong in some texts.

    Args:
        texts: by the names under which findings show them; one may refer to the others' objects.
        terms: what is known beside them.
        ignored: names of rules that are not looked at.
    """
    found: list[Finding] = []
    objects: list[Manifest] = []
    for file, text in texts.items():
        reading = documents.read(text)
        found += [_problem(file, one) for one in reading.problems]
        for document in reading.documents:
            objects += manifests(file, document, terms)
    world = World(objects)
    of_keda = [one for one in objects if one.kind in fields.SPECS or one.is_of_keda]
    for one in of_keda:
        found += _object(one, world)
    found += [*world.shared(), *around.authentications(world)]
    left_out = {file: _ignores(file, text) for file, text in texts.items()}
    for unknown, _ in left_out.values():
        found += unknown
    ignored = frozenset(ignored)
    kept = [
        one
        for one in found
        if one.rule.name not in ignored
        and one.rule.name not in left_out[one.file][1].get(one.position.line, ())
    ]
    order = {file: number for number, file in enumerate(texts)}
    kept.sort(key=lambda one: (order[one.file], one.position, one.rule.name))
    return Report(tuple(dict.fromkeys(kept)), len(of_keda))


def _object(one: Manifest, world: World) -> Iterator[Finding]:
    """Yield what is wrong with one object; how it scales only once its fields are right."""
    refused = tuple(fields.check(one))
    yield from refused
    if one.kind in ("ScaledObject", "ScaledJob"):
        for trigger in one.ours:
            yield from keys.check(trigger)
    if refused:
        return
    if one.kind == "ScaledJob":
        yield from around.jobs(one)
    if one.kind == "ScaledObject":
        yield from replicas.check(one, world)
        yield from zero.check(one, world)
        yield from around.check(one, world)
        yield from leaving.check(one, world)


def _problem(file: str, one: Problem) -> Finding:
    rule, fix = _PROBLEMS[one.kind]
    return Finding(catalog.RULES[rule], file, one.position, "", one.what, fix)


def _ignores(file: str, text: str) -> tuple[list[Finding], dict[int, set[str]]]:
    """Return what comments leave out, by line: their own, and the next that is no comment."""
    unknown: list[Finding] = []
    lines: dict[int, set[str]] = {}
    waiting: set[str] = set()
    for number, line in enumerate(text.split("\n"), 1):
        is_content = not line.lstrip().startswith("#") and bool(line.strip())
        names: set[str] = set()
        for match in _IGNORE.finditer(line):
            named = set(re.split(r"[ \t]*,[ \t]*", match[1]))
            names |= named
            for name in sorted(named - catalog.RULES.keys()):
                place = Position(number, match.start() + 1)
                why = f"there is no rule {shown(name)} to ignore"
                rule = catalog.RULES["unknown-rule"]
                fix = "Write a rule's name as findings show it."
                unknown.append(Finding(rule, file, place, "", why, fix))
        waiting |= names
        if is_content and waiting:
            lines[number], waiting = waiting, set()
    return unknown, lines
