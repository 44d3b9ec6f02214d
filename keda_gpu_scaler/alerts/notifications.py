"""What Alertmanager and Grafana send → what it says of each alert. Pure.

Three kinds of message: Alertmanager's webhook, version 4; Grafana's alerting since 8, which writes
the same with fields of its own; and Grafana's dashboard alerts from 4 to 8, one message for one
rule, without times, and with labels (as `tags`) only in the newer ones.

A message is read alert by alert: a mistake in one of them does not cost the others.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

import orjson

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts.store import AlertUpdate, Key
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.spec import ScaledObject

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
    updates: tuple[AlertUpdate, ...]
    passed_over: int = 0
    """Alerts of which the sender says that it does not know."""
    refused: tuple[str, ...] = ()
    """What cannot be taken, why, and what would help: a sentence for each alert."""
    truncated: int = 0
    """Alerts that the sender left out."""


def read_labels(value: object) -> Mapping[str, str]:
    """Read labels: names and values are text.

    Raises:
        errors.RequestError: they are not.
    """
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise errors.RequestError("expected labels that are an object of texts")
    return value


def labelled_scaled_object(found: Mapping[str, str]) -> ScaledObject:
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


def read_time(value: object, field: str) -> float | None:
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


UNKNOWN_ALERTS = frozenset({"DatasourceNoData", "DatasourceError"})
"""Alerts of Grafana's own making: its query brought nothing, or failed. Nothing follows from that:
neither that the alert fires whose rule it was, nor that it does not."""
_FINGERPRINT = re.compile(r"[0-9A-Za-z]{1,64}")


def read_alertmanager(payload: Json, scaled_object: ScaledObject | None) -> Notification:
    """Return what a message says; `payload` has a list of alerts."""
    said, refused = list[AlertUpdate](), list[str]()
    for number, alert in enumerate(payload["alerts"]):
        try:
            said.append(_update(alert, scaled_object))
        except errors.RequestError as error:
            refused.append(f"alerts[{number}]{_called(alert)}: {error}")
    updates = tuple(update for update in said if update.name not in UNKNOWN_ALERTS)
    truncated = payload.get("truncatedAlerts")
    return Notification(
        # Only Grafana has organisations.
        sender=Sender.GRAFANA if "orgId" in payload else Sender.ALERTMANAGER,
        updates=updates,
        passed_over=len(said) - len(updates),
        refused=tuple(refused),
        truncated=truncated if isinstance(truncated, int) else 0,
    )


def _update(alert: object, scaled_object: ScaledObject | None) -> AlertUpdate:
    if not isinstance(alert, dict):
        raise errors.RequestError("expected an object")
    labels, status = read_labels(alert.get("labels")), alert.get("status")
    if status not in ("firing", "resolved"):
        message = f"expected the status firing or resolved, found {shown(status)}"
        raise errors.RequestError(message)
    return AlertUpdate(
        Key(scaled_object or labelled_scaled_object(labels), _mark(alert, labels)),
        shown(labels.get("alertname", "an alert without a name")),
        fires=status == "firing",
        starts_at=read_time(alert.get("startsAt"), "startsAt"),
        ends_at=read_time(alert.get("endsAt"), "endsAt") if status == "resolved" else None,
    )


def _mark(alert: Json, labels: Mapping[str, str]) -> str:
    """Return what tells alerts apart: equal labels, of which the sender has a fingerprint."""
    fingerprint = alert.get("fingerprint")
    if isinstance(fingerprint, str) and _FINGERPRINT.fullmatch(fingerprint):
        return fingerprint
    return mark(labels)


def _called(alert: object) -> str:
    """Return the name of an alert in brackets, as far as it has one."""
    labels = alert.get("labels") if isinstance(alert, dict) else None
    name = labels.get("alertname") if isinstance(labels, dict) else None
    return "" if name is None else f" ({shown(name)})"


STATES = {
    "alerting": True,
    "ok": False,
    "no_data": None,
    "pending": None,
    "paused": None,
    "unknown": None,
}
"""Whether a rule in this state fires; None: the state does not say, and changes nothing."""


def read_grafana(payload: Json, scaled_object: ScaledObject | None) -> Notification:
    """Return what a message says.

    Raises:
        errors.RequestError: it has no state that Grafana knows.
    """
    state = payload["state"]
    if not isinstance(state, str) or state not in STATES:
        raise errors.RequestError(
            f"expected one of Grafana's states ({', '.join(STATES)}), found {shown(state)}"
        )
    fires = STATES[state]
    if fires is None:
        return Notification(Sender.GRAFANA_DASHBOARD, (), passed_over=1)
    name = shown(payload.get("ruleName") or "a rule without a name")
    try:
        whose = scaled_object or labelled_scaled_object(read_labels(payload.get("tags") or {}))
    except errors.RequestError as error:
        return Notification(Sender.GRAFANA_DASHBOARD, (), refused=(f"{name}: {error}",))
    update = AlertUpdate(Key(whose, mark(_rule(payload))), name, fires)
    return Notification(Sender.GRAFANA_DASHBOARD, (update,))


def _rule(payload: Json) -> list[str]:
    """Return what tells a rule from every other: its number, which is one Grafana's own.

    Its name is not a part of that: whoever renames a rule while it fires wants it to end all the
    same.
    """
    number, url = shown(payload.get("ruleId")), payload.get("ruleUrl")
    try:
        grafana = urlsplit(url if isinstance(url, str) else "")
    except ValueError:
        return [number]
    return [number, grafana._replace(path="", query="", fragment="").geturl()]


def read_notification(payload: object, whose: ScaledObject | None) -> Notification:
    """Return what a message says.

    Args:
        payload: the message, decoded.
        whose: what all of its alerts are about; None: their labels tell.

    Raises:
        errors.RequestError: it is a message of no known sender.
    """
    if isinstance(payload, dict) and isinstance(payload.get("alerts"), list):
        return read_alertmanager(payload, whose)
    if isinstance(payload, dict) and "state" in payload:
        return read_grafana(payload, whose)
    raise errors.RequestError(
        "expected a message of Alertmanager or of Grafana: a JSON object with `alerts`, a list, or "
        "with `state`"
    )
