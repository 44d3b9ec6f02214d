"""The ScaledObjects of files, for commands that do something with their triggers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from keda_gpu_scaler import check
from keda_gpu_scaler.check import documents, formats, rules
from keda_gpu_scaler.check.findings import Finding, Wrong
from keda_gpu_scaler.check.objects import Manifest, Terms, Trigger, manifests
from keda_gpu_scaler.trigger.keys import FROM_ENV, KEYS

_REFUSED = frozenset(
    {
        "yaml-syntax",
        "too-large",
        "duplicate-key",
        "unknown-field",
        "missing-field",
        "wrong-type",
    }
)
"""The rules of `check` about a file that cannot be read, or that Kubernetes would not take."""


class FileError(ValueError):
    """The files hold nothing to work with; the message says why, for people, one line each."""


class Chosen(NamedTuple):
    """What some texts hold."""

    objects: Sequence[Manifest]
    """The ScaledObjects and ScaledJobs that are wanted."""
    refused: Sequence[Finding]
    """What is so wrong with them, or with the texts, that Kubernetes would not take it."""
    nothing: str
    """What to say where they have no trigger for this scaler."""


def chosen(texts: Mapping[str, str], terms: Terms, wanted: str | None = None) -> Chosen:
    """Return the ScaledObjects of some texts.

    Args:
        texts: YAML by the names under which mistakes show it.
        terms: what is known beside it.
        wanted: the only ScaledObject, as namespace/name; None: all of them.
    """
    found = [
        one
        for file, text in texts.items()
        for document in documents.read(text).documents
        for one in manifests(file, document, terms)
        if one.kind in ("ScaledObject", "ScaledJob")
    ]
    those = [one for one in found if wanted in (None, name(one))]
    subjects = {"", *(one.subject for one in those)}
    refused = [
        one
        for one in check.check(texts, terms).findings
        if one.rule.name in _REFUSED and one.subject in subjects
    ]
    return Chosen(those, refused, _nothing(list(texts), found, those, wanted))


def require(found: Chosen, triggers: Sequence[object], refused: Sequence[Finding]) -> None:
    """Raise FileError where something was refused, or no trigger is left."""
    if refused:
        raise FileError("\n".join(_line(one) for one in refused))
    if not triggers:
        raise FileError(found.nothing)


def name(one: Manifest) -> str:
    """Return the name of an object as namespace/name."""
    return f"{one.namespace}/{one.name}"


def from_env(one: Trigger) -> Iterator[Finding]:
    """Yield what KEDA takes from the workload's environment: the file names a variable only."""
    for written in one.metadata:
        key = written.removesuffix(FROM_ENV)
        if key != written and key in KEYS:
            why = f"The value of {key} is in the environment of what is scaled, and not known here"
            fix = f"Write {key} with its value in a copy of the file."
            rule = rules.RULES["wrong-value"]
            yield check.as_finding(rule, one.of, Wrong(one.place(written), why, fix))


def _line(one: Finding) -> str:
    place = f"{one.file}:{one.position.line}:{one.position.column}"
    return f"{place}: {one.rule.severity} {one.rule.name}: {formats.message(one)}"


def _nothing(
    files: Sequence[str], found: Sequence[Manifest], those: Sequence[Manifest], wanted: str | None
) -> str:
    place = ", ".join(files)
    if not found:
        return f"{place}: there is no ScaledObject"
    if not those:
        return f"{place}: there is no {wanted}, only {', '.join(map(name, found))}"
    return (
        f"{place}: no trigger of {', '.join(map(name, those))} is for this scaler: expected type "
        "external or external-push, and a scalerAddress with gpu-scaler in it or a key such as "
        "workload"
    )
