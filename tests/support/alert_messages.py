"""Messages as Alertmanager and Grafana write them, with every field they have."""

from typing import Any

from keda_gpu_scaler.spec.spec import ScaledObject

BERT = ScaledObject("ml", "bert")
NONE = "0001-01-01T00:00:00Z"
BEGAN = "2026-11-21T10:00:00.123456789Z"
BEGAN_AT = 1_795_255_200.123456
ENDED = "2026-11-21T11:30:00+01:00"
ENDED_AT = 1_795_257_000.0


def nested() -> list[Any]:
    """Return a list in a list and so on, as deep as a message can have it and none is written."""
    lists: list[Any] = []
    for _ in range(1_000):
        lists = [lists]
    return lists


def alert(*, fires: bool = True, **changes: Any) -> dict[str, Any]:
    labels = {"alertname": "Busy", "namespace": "ml", "scaled_object": "bert", "severity": "info"}
    return {
        "status": "firing" if fires else "resolved",
        "labels": labels,
        "annotations": {"summary": "GPUs are busy"},
        "startsAt": BEGAN,
        "endsAt": NONE if fires else ENDED,
        "generatorURL": "http://prometheus:9090/graph?g0.expr=up",
        "fingerprint": "c6eadffa33fcdf37",
    } | changes


def group(*alerts: object, **changes: Any) -> dict[str, Any]:
    """Return a message of Alertmanager's webhook, version 4."""
    return {
        "receiver": "scaler",
        "status": "firing",
        "alerts": list(alerts),
        "groupLabels": {"alertname": "Busy"},
        "commonLabels": {"alertname": "Busy"},
        "commonAnnotations": {},
        "externalURL": "http://alertmanager:9093",
        "version": "4",
        "groupKey": '{}:{alertname="Busy"}',
        "truncatedAlerts": 0,
    } | changes


def of_grafana(*alerts: dict[str, Any]) -> dict[str, Any]:
    """Return the same from Grafana, which adds fields of its own."""
    own = {"silenceURL": "http://grafana", "dashboardURL": "", "panelURL": "", "values": {"B": 44}}
    more = {"version": "1", "orgId": 1, "title": "[FIRING:1]", "state": "alerting", "message": "x"}
    return group(*(each | own for each in alerts), **more)


def of_dashboard(state: str = "alerting", **changes: Any) -> dict[str, Any]:
    """Return what Grafana 4 writes of a rule on a panel."""
    return {
        "title": "[Alerting] GPU usage of the cluster",
        "ruleId": 7,
        "ruleName": "GPU usage of the cluster",
        "ruleUrl": "http://grafana:3000/dashboard/db/gpu?fullscreen&edit&tab=alert&panelId=1",
        "state": state,
        "evalMatches": [{"value": 46.5, "metric": "mean", "tags": None}],
        "imageUrl": "http://grafana/image.png",
        "message": "above 45 %",
    } | changes
