"""The ScaledObjects of files, for commands that do something with their triggers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from keda_gpu_scaler import check
from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.objects import Manifest, Terms

_REFUSED = frozenset({"yaml-syntax", "too-large", "duplicate-key", "wrong-type"})
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
    report = check.check(texts, terms)
    matching = [
        manifest for manifest in report.objects if wanted in (None, str(manifest.scaled_object))
    ]
    subjects = {"", *(manifest.subject for manifest in matching)}
    refused = [
        finding
        for finding in report.findings
        if finding.rule.name in _REFUSED and finding.subject in subjects
    ]
    return Chosen(matching, refused, _nothing(list(texts), report.objects, matching, wanted))


def require(content: Chosen, triggers: Sequence[object], refused: Sequence[Finding]) -> None:
    """Raise FileError where something was refused, or no trigger is left."""
    if refused:
        lines = (
            f"{finding.file}:{finding.position.line}:{finding.position.column}: "
            f"{finding.rule.severity} {finding.rule.name}: {finding.message}"
            for finding in refused
        )
        raise FileError("\n".join(lines))
    if not triggers:
        raise FileError(content.nothing)


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
        names = ", ".join(str(manifest.scaled_object) for manifest in scaled)
        return f"{place}: there is no {wanted}, only {names}"
    names = ", ".join(str(manifest.scaled_object) for manifest in matching)
    return (
        f"{place}: no trigger of {names} is for this scaler: expected type "
        "external or external-push, and a scalerAddress with gpu-scaler in it or a key such as "
        "workload"
    )
