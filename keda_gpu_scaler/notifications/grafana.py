"""The webhook of Grafana's dashboard alerts, from version 4 until unified alerting took over.

One message is about one rule and says which state it is in: no times, and labels (as `tags`) only
in the newer ones.
"""

from urllib.parse import urlsplit

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts import Notice
from keda_gpu_scaler.alerts.entry import Key
from keda_gpu_scaler.notifications import fields
from keda_gpu_scaler.notifications.fields import Json, Notification, Sender
from keda_gpu_scaler.spec import ScaledObject

STATES = {
    "alerting": True,
    "ok": False,
    "no_data": None,
    "pending": None,
    "paused": None,
    "unknown": None,
}
"""Whether a rule in this state fires; None: the state does not say, and changes nothing."""


def read(payload: Json, scaled_object: ScaledObject | None) -> Notification:
    """Return what a message says.

    Raises:
        errors.RequestError: it has no state that Grafana knows.
    """
    state = payload["state"]
    if not isinstance(state, str) or state not in STATES:
        raise errors.RequestError(
            f"expected one of Grafana's states ({', '.join(STATES)}), found {fields.shown(state)}"
        )
    fires = STATES[state]
    if fires is None:
        return Notification(Sender.GRAFANA_DASHBOARD, (), passed_over=1)
    name = fields.shown(payload.get("ruleName") or "a rule without a name")
    try:
        whose = scaled_object or fields.whose(fields.labels(payload.get("tags") or {}))
    except errors.RequestError as error:
        return Notification(Sender.GRAFANA_DASHBOARD, (), refused=(f"{name}: {error}",))
    notice = Notice(Key(whose, fields.mark(_rule(payload))), name, fires)
    return Notification(Sender.GRAFANA_DASHBOARD, (notice,))


def _rule(payload: Json) -> list[str]:
    """Return what tells a rule from every other: its number, which is one Grafana's own.

    Its name is not a part of that: whoever renames a rule while it fires wants it to end all the
    same.
    """
    number, url = fields.shown(payload.get("ruleId")), payload.get("ruleUrl")
    try:
        grafana = urlsplit(url if isinstance(url, str) else "")
    except ValueError:
        return [number]
    return [number, grafana._replace(path="", query="", fragment="").geturl()]
