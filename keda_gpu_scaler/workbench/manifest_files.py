"""The ScaledObjects of files, for commands that do something with their triggers."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from keda_gpu_scaler import errors
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.workbench import check
from keda_gpu_scaler.workbench.check.documents import BYTES_LIMIT
from keda_gpu_scaler.workbench.check.findings import Finding
from keda_gpu_scaler.workbench.check.manifests import Trigger

STANDARD_INPUT = "-"
_REFUSED = frozenset({"yaml-syntax", "too-large", "duplicate-key", "unknown-field", "wrong-type"})
"""The rules of `check` about a file that cannot be read, or that Kubernetes would not take."""


def read_text(name: str) -> str:
    """Return the text of a file, or of the standard input for `-`, as far as any is looked at.

    ValueError if it cannot be read, or is not in UTF-8.
    """
    try:
        if name == STANDARD_INPUT:
            data = sys.stdin.buffer.read(BYTES_LIMIT + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(BYTES_LIMIT + 1)
        return data.decode("utf-8-sig")
    except OSError as error:
        what = f"cannot read {name}: {error.strerror}"
        raise ValueError(errors.without_controls(what)) from error
    except UnicodeDecodeError as error:
        what = f"{name} is not in UTF-8: {error.reason} at byte {error.start}"
        raise ValueError(errors.without_controls(what)) from error


def triggers(
    texts: Mapping[str, str], namespace: str, wanted: ScaledObject | None = None
) -> list[Trigger]:
    """Return the triggers for this scaler in some texts.

    The texts have the names under which mistakes show them. `namespace` is that of objects that
    name none. With `wanted`, it is only about this ScaledObject. ValueError if there is none, or if
    Kubernetes would refuse an object.
    """
    report = check.check(texts, namespace)
    matching = [manifest for manifest in report.objects if wanted in (None, manifest.scaled_object)]
    subjects = {"", *(manifest.subject for manifest in matching)}
    refuse(
        finding
        for finding in report.findings
        if finding.rule.name in _REFUSED and finding.subject in subjects
    )
    ours = [trigger for manifest in matching for trigger in manifest.ours]
    if not ours:
        place = errors.without_controls(", ".join(texts))
        scaled_objects = [str(manifest.scaled_object) for manifest in matching or report.objects]
        names = errors.without_controls(", ".join(scaled_objects))
        if not report.objects:
            raise ValueError(f"{place}: there is no ScaledObject")
        if not matching:
            raise ValueError(f"{place}: there is no {wanted}, only {names}")
        raise ValueError(
            f"{place}: no trigger of {names} is for this scaler: expected type external or "
            "external-push, and a scalerAddress with gpu-scaler in it or a key such as workload"
        )
    return ours


def refuse(findings: Iterable[Finding]) -> None:
    """Raise ValueError if something is wrong."""
    lines = [
        errors.without_controls(
            f"{finding.file}:{finding.position.line}:{finding.position.column}: "
            f"{finding.rule.severity} {finding.rule.name}: {finding.message}"
        )
        for finding in findings
    ]
    if lines:
        raise ValueError("\n".join(lines))
