"""What the messages of all senders have in common."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson

from keda_gpu_scaler import errors, workload
from keda_gpu_scaler.alerts import Notice
from keda_gpu_scaler.spec import ScaledObject

Json = Mapping[str, Any]

OBJECT_LABELS = ("scaled_object", "scaledObject", "scaledobject")
"""As this scaler's own metrics write it, as KEDA's do, and as Kubernetes would."""
NAME_CHARACTERS = 100
"""Of an alert's name that is shown in reasons and logs."""

_CALLED: Mapping[type, str] = {list: "a list", dict: "an object"}


class Sender(StrEnum):
    """Who wrote a message."""

    ALERTMANAGER = "alertmanager"
    GRAFANA = "grafana"
    GRAFANA_DASHBOARD = "grafana-dashboard"
    """Grafana's alerts of old, on the panels of dashboards."""


@dataclass(frozen=True, slots=True)
class Notification:
    """What one message says."""

    sender: Sender
    notices: tuple[Notice, ...]
    passed_over: int = 0
    """Alerts of which the sender says that it does not know."""
    refused: tuple[str, ...] = ()
    """What cannot be taken, why, and what would help: a sentence for each alert."""
    truncated: int = 0
    """Alerts that the sender left out."""


def labels(value: object) -> Mapping[str, str]:
    """Read labels: names and values are text.

    Raises:
        errors.RequestError: they are not.
    """
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise errors.RequestError("expected labels that are an object of texts")
    return value


def whose(found: Mapping[str, str]) -> ScaledObject:
    """Return the ScaledObject that labels name.

    Raises:
        errors.RequestError: they name none.
    """
    names = {found[label] for label in OBJECT_LABELS if label in found}
    if len(names) > 1:
        raise errors.RequestError(f"expected one ScaledObject, found {shown(str(sorted(names)))}")
    named = {"namespace": "namespace" in found, "scaled_object": bool(names)}
    missing = [label for label, is_there in named.items() if not is_there]
    if missing:
        raise errors.RequestError(
            f"no label {' and no label '.join(missing)}; add namespace and scaled_object, the "
            "ScaledObject's, to the labels of the rule, or send to /webhook/NAMESPACE/NAME"
        )
    return scaled_object(found["namespace"], names.pop())


def scaled_object(namespace: str, name: str) -> ScaledObject:
    """Return the ScaledObject of this name.

    Raises:
        errors.RequestError: there can be none.
    """
    if not (workload.is_namespace(namespace) and workload.is_name(name)):
        raise errors.RequestError(
            f"expected the names of a namespace and of a ScaledObject, found "
            f"{shown(namespace)} and {shown(name)}"
        )
    return ScaledObject(namespace, name)


def time(value: object, field: str) -> float | None:
    """Read a time as RFC 3339 writes it; Go's year 1, which stands for none, is None.

    Raises:
        errors.RequestError: it is something else.
    """
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise errors.RequestError(f"expected {field} to be a time, found {shown(value)}")
    return None if at.year == 1 else at.timestamp()


def mark(found: object) -> str:
    """Return what tells one from another: the same for the same, whatever the order of names."""
    return hashlib.sha256(orjson.dumps(found, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def shown(value: object) -> str:
    """Return a sender's words on one line, without control characters, cut to a bound.

    Lists and objects are only called so: what is in them can be nested too deeply to be written.
    """
    text = _CALLED.get(type(value)) or str(value)
    safe = "".join(char if char.isprintable() else "?" for char in text)
    return safe if len(safe) <= NAME_CHARACTERS else f"{safe[:NAME_CHARACTERS]}…"
