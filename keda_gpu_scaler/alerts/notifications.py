"""Messages of Alertmanager and Grafana → what they say of each alert. Pure.

There are three kinds of message: Alertmanager's webhook, version 4; Grafana's alerting since 8,
which writes the same with more fields; and Grafana's dashboard alerts from 4 to 8, with one message
per rule, without times, and with labels (as `tags`) only in the newer ones.

A message is read alert by alert: a mistake in one alert does not affect the others.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

import msgspec

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts.store import LIMIT, AlertUpdate, Key
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.spec import ScaledObject

Json = Mapping[str, Any]

OBJECT_LABELS = ("scaled_object", "scaledObject", "scaledobject")
"""The label as in this scaler's own metrics, as in KEDA's, and as Kubernetes would write it."""
NAME_CHARACTERS = 100
SMALLER = "group_by in Alertmanager's route makes messages smaller"
SENTENCES = 10
"""How many refused alerts are shown; a rule makes the same mistake in all of them."""

UNKNOWN_ALERTS = frozenset({"DatasourceNoData", "DatasourceError"})
"""Alerts that Grafana sends when a rule's query returned nothing or failed. They do not say whether
the rule's alert fires."""
STATES = {
    "alerting": True,
    "ok": False,
    "no_data": None,
    "pending": None,
    "paused": None,
    "unknown": None,
}
"""Whether a rule in this state fires; None: the state does not say, so nothing changes."""

_KINDS: Mapping[type, str] = {list: "a list", dict: "an object"}


class Sender(StrEnum):
    """The sender of a message."""

    ALERTMANAGER = "alertmanager"
    GRAFANA = "grafana"
    GRAFANA_DASHBOARD = "grafana-dashboard"
    """Grafana's older alerts, on the panels of dashboards."""


@dataclass(frozen=True, slots=True)
class Notification:
    """What one message says."""

    sender: Sender
    updates: tuple[AlertUpdate, ...]
    passed_over: int = 0
    """Alerts with a state that the sender itself does not know."""
    refused: tuple[str, ...] = ()
    """A sentence for each of the first refused alerts: why it is refused, and how to fix it."""
    more_refused: int = 0
    """The refused alerts without a sentence."""
    truncated: int = 0
    """Alerts that the sender left out."""


def read_labels(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise errors.RequestError("expected labels that are an object of texts")
    return value


def labelled_scaled_object(labels: Mapping[str, str]) -> ScaledObject:
    names = {labels[label] for label in OBJECT_LABELS if label in labels}
    if len(names) > 1:
        raise errors.RequestError(f"expected one ScaledObject, found {shown(str(sorted(names)))}")
    is_given = {"namespace": "namespace" in labels, "scaled_object": bool(names)}
    missing = [label for label, given in is_given.items() if not given]
    if missing:
        raise errors.RequestError(
            f"no label {' and no label '.join(missing)}; add namespace and scaled_object, the "
            "ScaledObject's, to the labels of the rule, or send to /webhook/NAMESPACE/NAME"
        )
    return scaled_object(labels["namespace"], names.pop())


def scaled_object(namespace: str, name: str) -> ScaledObject:
    if not (workload.is_namespace(namespace) and workload.is_name(name)):
        raise errors.RequestError(
            f"expected the names of a namespace and of a ScaledObject, found "
            f"{shown(namespace)} and {shown(name)}"
        )
    return ScaledObject(namespace, name)


def read_time(value: object, field: str) -> float | None:
    """Read an RFC 3339 time; Go's year 1, which means no time, becomes None."""
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise errors.RequestError(f"expected {field} to be a time, found {shown(value)}")
    return None if at.year == 1 else at.timestamp()


def mark(value: object) -> str:
    """Return a short hash of a value, independent of the order of its names."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:16]


def shown(value: object) -> str:
    """Return a sender's text on one line, without control characters, cut to a limit.

    Lists and objects are only named as such: they can be nested too deeply to be written.
    """
    text = _KINDS.get(type(value)) or str(value)
    safe = errors.without_controls(text)
    return safe if len(safe) <= NAME_CHARACTERS else f"{safe[:NAME_CHARACTERS]}…"


def read_alertmanager(payload: Json, scaled_object: ScaledObject | None) -> Notification:
    """Return what a message with a list of alerts says; of more than a store keeps, nothing."""
    alerts = payload["alerts"]
    if len(alerts) > LIMIT:
        message = f"expected at most {LIMIT} alerts, found {len(alerts)}; {SMALLER}"
        raise errors.RequestError(message)
    valid_updates, refused = list[AlertUpdate](), list[str]()
    for number, alert in enumerate(alerts):
        try:
            valid_updates.append(_parse_alert(alert, scaled_object))
        except errors.RequestError as error:
            if len(refused) < SENTENCES:
                refused.append(f"alerts[{number}]{_name_in_brackets(alert)}: {error}")
    updates = tuple(update for update in valid_updates if update.name not in UNKNOWN_ALERTS)
    truncated = payload.get("truncatedAlerts")
    return Notification(
        # Only Grafana has organisations.
        sender=Sender.GRAFANA if "orgId" in payload else Sender.ALERTMANAGER,
        updates=updates,
        passed_over=len(valid_updates) - len(updates),
        refused=tuple(refused),
        more_refused=len(alerts) - len(valid_updates) - len(refused),
        truncated=truncated if isinstance(truncated, int) else 0,
    )


def _parse_alert(alert: object, scaled_object: ScaledObject | None) -> AlertUpdate:
    if not isinstance(alert, dict):
        raise errors.RequestError("expected an object")
    labels, status = read_labels(alert.get("labels")), alert.get("status")
    if status not in ("firing", "resolved"):
        message = f"expected the status firing or resolved, found {shown(status)}"
        raise errors.RequestError(message)
    fingerprint = alert.get("fingerprint")
    if not (isinstance(fingerprint, str) and re.fullmatch(r"[0-9A-Za-z]{1,64}", fingerprint)):
        fingerprint = mark(labels)
    return AlertUpdate(
        Key(scaled_object or labelled_scaled_object(labels), fingerprint),
        shown(labels.get("alertname", "an alert without a name")),
        fires=status == "firing",
        starts_at=read_time(alert.get("startsAt"), "startsAt"),
        ends_at=read_time(alert.get("endsAt"), "endsAt") if status == "resolved" else None,
    )


def _name_in_brackets(alert: object) -> str:
    labels = alert.get("labels") if isinstance(alert, dict) else None
    name = labels.get("alertname") if isinstance(labels, dict) else None
    return "" if name is None else f" ({shown(name)})"


def read_grafana(payload: Json, scaled_object: ScaledObject | None) -> Notification:
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
        target = scaled_object or labelled_scaled_object(read_labels(payload.get("tags") or {}))
    except errors.RequestError as error:
        return Notification(Sender.GRAFANA_DASHBOARD, (), refused=(f"{name}: {error}",))
    update = AlertUpdate(Key(target, mark(_rule_identity(payload))), name, fires)
    return Notification(Sender.GRAFANA_DASHBOARD, (update,))


def _rule_identity(payload: Json) -> list[str]:
    """Return the number of a rule and the Grafana that assigned it.

    The name is not part of it: a rule that is renamed while it fires must still end.
    """
    number, url = shown(payload.get("ruleId")), payload.get("ruleUrl")
    try:
        grafana = urlsplit(url if isinstance(url, str) else "")
    except ValueError:
        return [number]
    return [number, grafana._replace(path="", query="", fragment="").geturl()]


def read_notification(payload: object, scaled_object: ScaledObject | None) -> Notification:
    """Return what a message says, or raise RequestError if it is none of a known sender.

    All its alerts are about `scaled_object`; None: their labels name it.
    """
    if isinstance(payload, dict) and isinstance(payload.get("alerts"), list):
        return read_alertmanager(payload, scaled_object)
    if isinstance(payload, dict) and "state" in payload:
        return read_grafana(payload, scaled_object)
    raise errors.RequestError(
        "expected a message of Alertmanager or of Grafana: a JSON object with `alerts`, a list, or "
        "with `state`"
    )
