"""Alertmanager's webhook, version 4, and Grafana's, which adds fields of its own.

A message is about a group: the alerts of it that fire, and those that are resolved. What its own
`status` says follows from these.
"""

import re
from collections.abc import Mapping

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts import Notice
from keda_gpu_scaler.alerts.entry import Key
from keda_gpu_scaler.notifications import fields
from keda_gpu_scaler.notifications.fields import Json, Notification, Sender
from keda_gpu_scaler.spec import ScaledObject

UNKNOWN_ALERTS = frozenset({"DatasourceNoData", "DatasourceError"})
"""Alerts of Grafana's own making: its query brought nothing, or failed. Nothing follows from that:
neither that the alert fires whose rule it was, nor that it does not."""
_FINGERPRINT = re.compile(r"[0-9A-Za-z]{1,64}")


def read(payload: Json, scaled_object: ScaledObject | None) -> Notification:
    """Return what a message says; `payload` has a list of alerts."""
    said, refused = list[Notice](), list[str]()
    for number, alert in enumerate(payload["alerts"]):
        try:
            said.append(_notice(alert, scaled_object))
        except errors.RequestError as error:
            refused.append(f"alerts[{number}]{_called(alert)}: {error}")
    notices = tuple(notice for notice in said if notice.name not in UNKNOWN_ALERTS)
    truncated = payload.get("truncatedAlerts")
    return Notification(
        # Only Grafana has organisations.
        sender=Sender.GRAFANA if "orgId" in payload else Sender.ALERTMANAGER,
        notices=notices,
        passed_over=len(said) - len(notices),
        refused=tuple(refused),
        truncated=truncated if isinstance(truncated, int) else 0,
    )


def _notice(alert: object, scaled_object: ScaledObject | None) -> Notice:
    if not isinstance(alert, dict):
        raise errors.RequestError("expected an object")
    labels, status = fields.labels(alert.get("labels")), alert.get("status")
    if status not in ("firing", "resolved"):
        message = f"expected the status firing or resolved, found {fields.shown(status)}"
        raise errors.RequestError(message)
    return Notice(
        Key(scaled_object or fields.whose(labels), _mark(alert, labels)),
        fields.shown(labels.get("alertname", "an alert without a name")),
        fires=status == "firing",
        starts_at=fields.time(alert.get("startsAt"), "startsAt"),
        ends_at=fields.time(alert.get("endsAt"), "endsAt") if status == "resolved" else None,
    )


def _mark(alert: Json, labels: Mapping[str, str]) -> str:
    """Return what tells alerts apart: equal labels, of which the sender has a fingerprint."""
    fingerprint = alert.get("fingerprint")
    if isinstance(fingerprint, str) and _FINGERPRINT.fullmatch(fingerprint):
        return fingerprint
    return fields.mark(labels)


def _called(alert: object) -> str:
    """Return the name of an alert in brackets, as far as it has one."""
    labels = alert.get("labels") if isinstance(alert, dict) else None
    name = labels.get("alertname") if isinstance(labels, dict) else None
    return "" if name is None else f" ({fields.shown(name)})"
