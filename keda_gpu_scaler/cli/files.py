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
    """Return the ScaledObjects of some texts, by the names under which mistakes show them.

    With `wanted`, only the one of this namespace/name.
    """
    scaled = [
        manifest
        for file, text in texts.items()
        for document in documents.read(text).documents
        for manifest in manifests(file, document, terms)
        if manifest.kind in ("ScaledObject", "ScaledJob")
    ]
    matching = [manifest for manifest in scaled if wanted in (None, name(manifest))]
    subjects = {"", *(manifest.subject for manifest in matching)}
    refused = [
        finding
        for finding in check.check(texts, terms).findings
        if finding.rule.name in _REFUSED and finding.subject in subjects
    ]
    return Chosen(matching, refused, _nothing(list(texts), scaled, matching, wanted))


def require(content: Chosen, triggers: Sequence[object], refused: Sequence[Finding]) -> None:
    """Raise FileError where something was refused, or no trigger is left."""
    if refused:
        lines = (
            f"{finding.file}:{finding.position.line}:{finding.position.column}: "
            f"{finding.rule.severity} {finding.rule.name}: {formats.message(finding)}"
            for finding in refused
        )
        raise FileError("\n".join(lines))
    if not triggers:
        raise FileError(content.nothing)


def name(manifest: Manifest) -> str:
    """Return the name of an object as namespace/name."""
    return f"{manifest.namespace}/{manifest.name}"


def from_env(trigger: Trigger) -> Iterator[Finding]:
    """Yield what KEDA takes from the workload's environment: the file names a variable only."""
    for written_key in trigger.metadata:
        key = written_key.removesuffix(FROM_ENV)
        if key != written_key and key in KEYS:
            why = f"The value of {key} is in the environment of what is scaled, and not known here"
            fix = f"Write {key} with its value in a copy of the file."
            wrong = Wrong(trigger.place(written_key), why, fix)
            yield check.as_finding(rules.RULES["wrong-value"], trigger.of, wrong)


def _nothing(
    files: Sequence[str],
    scaled: Sequence[Manifest],
    matching: Sequence[Manifest],
    wanted: str | None,
) -> str:
    place = ", ".join(files)
    if not scaled:
        return f"{place}: there is no ScaledObject"
    if not matching:
        return f"{place}: there is no {wanted}, only {', '.join(map(name, scaled))}"
    names = ", ".join(map(name, matching))
    return (
        f"{place}: no trigger of {names} is for this scaler: expected type "
        "external or external-push, and a scalerAddress with gpu-scaler in it or a key such as "
        "workload"
    )
