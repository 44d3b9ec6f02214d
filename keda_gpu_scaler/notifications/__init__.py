"""What senders of alerts write → what they say of each alert. Pure.

    alertmanager  Alertmanager's webhook, version 4; Grafana's alerting since 8 writes the same
    grafana       the webhook of Grafana's dashboard alerts, from 4 to 8
    fields        the fields of both, read with errors that name the place

A message is read alert by alert: what is wrong with one of them does not cost the others.
"""

from keda_gpu_scaler import errors
from keda_gpu_scaler.notifications import alertmanager, grafana
from keda_gpu_scaler.notifications.fields import Notification, Sender, scaled_object
from keda_gpu_scaler.spec import ScaledObject

__all__ = ["Notification", "Sender", "read", "scaled_object"]


def read(payload: object, whose: ScaledObject | None) -> Notification:
    """Return what a message says.

    Args:
        payload: the message, decoded.
        whose: what all of its alerts are about; None: their labels tell.

    Raises:
        errors.RequestError: it is a message of no known sender.
    """
    if isinstance(payload, dict) and isinstance(payload.get("alerts"), list):
        return alertmanager.read(payload, whose)
    if isinstance(payload, dict) and "state" in payload:
        return grafana.read(payload, whose)
    raise errors.RequestError(
        "expected a message of Alertmanager or of Grafana: a JSON object with `alerts`, a list, or "
        "with `state`"
    )
