"""Entries as replicas of the scaler tell them to each other: JSON's own types.

A replica may be of another version: fields that are new to it are passed over.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from keda_gpu_scaler import errors, workload
from keda_gpu_scaler.alerts.entry import NEVER, Entry, Key
from keda_gpu_scaler.spec import ScaledObject

LONGEST_BYTES = 16 * 2**20
"""As many alerts as a book holds, several times over."""
LONGEST_TEXT = 256
"""Of an alert's mark and of its name, in characters; what senders write is cut to less."""
FARTHEST_SECONDS = 253_402_300_800.0
"""The end of the year 9999, and of all times that a sender can write."""
_TIMES = ("began_at", "heard_at", "ended_at", "told_at")


def written(entries: Iterable[Entry]) -> dict[str, list[dict[str, object]]]:
    """Return entries as a replica sends them."""
    return {"alerts": [_written(entry) for entry in entries]}


def _written(entry: Entry) -> dict[str, object]:
    (namespace, name), alert = entry.key
    whose = {"namespace": namespace, "scaled_object": name, "alert": alert, "name": entry.name}
    times = {field: getattr(entry, field) for field in _TIMES}
    return whose | {field: None if at == NEVER else at for field, at in times.items()}


def read(payload: object) -> list[Entry]:
    """Return the entries that another replica sent.

    Raises:
        errors.RequestError: they are not what a replica sends.
    """
    alerts = payload.get("alerts") if isinstance(payload, dict) else None
    if not isinstance(alerts, list):
        raise errors.RequestError("expected the alerts that another replica knows of")
    return [_read(alert) for alert in alerts]


def _read(alert: object) -> Entry:
    if not isinstance(alert, dict):
        raise errors.RequestError("expected each alert to be an object")
    texts = [alert.get(field) for field in ("namespace", "scaled_object", "alert", "name")]
    if not all(isinstance(text, str) for text in texts):
        raise errors.RequestError("expected texts: namespace, scaled_object, alert, name")
    namespace, name, mark, shown = (str(text) for text in texts)
    if max(len(mark), len(shown)) > LONGEST_TEXT:
        raise errors.RequestError(f"expected alert and name of at most {LONGEST_TEXT} characters")
    if not (workload.is_namespace(namespace) and workload.is_name(name)):
        raise errors.RequestError("expected the names of a namespace and of a ScaledObject")
    times = {field: _time(alert, field) for field in _TIMES}
    if times["heard_at"] == times["told_at"] == NEVER:
        raise errors.RequestError("expected heard_at or told_at")
    return Entry(Key(ScaledObject(namespace, name), mark), shown, **times)


def _time(alert: Mapping[str, Any], field: str) -> float:
    at = alert.get(field)
    if at is None:
        return NEVER
    if not isinstance(at, int | float) or not abs(at) <= FARTHEST_SECONDS:
        raise errors.RequestError(f"expected {field} to be a number of seconds")
    return float(at)
