"""Messages of Alertmanager and of Grafana, and which alerts fire by them."""

from dataclasses import replace
from typing import Any

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts import AlertUpdate
from keda_gpu_scaler.alerts.notifications import Notification, Sender, read_notification
from keda_gpu_scaler.alerts.store import Key
from keda_gpu_scaler.spec.spec import ScaledObject
from tests.support.alert_messages import (
    BEGAN_AT,
    BERT,
    ENDED_AT,
    NONE,
    alert,
    group,
    nested,
    of_dashboard,
    of_grafana,
)

FIRES = AlertUpdate(Key(BERT, "c6eadffa33fcdf37"), "Busy", fires=True, starts_at=BEGAN_AT)
ENDED = replace(FIRES, fires=False, ends_at=ENDED_AT)
GPT = ScaledObject("ml", "gpt")
OF_GPT = replace(FIRES, key=Key(GPT, "c6eadffa33fcdf37"))
NOTHING = {"namespace": "ml", "scaled_object": "bert", "rulename": "Busy"}
"""Labels of what Grafana sends when it does not know."""


def labelled(**labels: str) -> dict[str, Any]:
    return alert(labels={"alertname": "Busy", **labels})


def told(*updates: AlertUpdate, truncated: int = 0) -> Notification:
    return Notification(Sender.ALERTMANAGER, updates, truncated=truncated)


@pytest.mark.parametrize(
    ("message", "path", "expected"),
    [
        (group(alert(), alert(fires=False)), None, told(FIRES, ENDED)),
        (of_grafana(alert()), None, Notification(Sender.GRAFANA, (FIRES,))),
        # The path says what all alerts are about.
        (group(alert(), labelled()), GPT, told(OF_GPT, OF_GPT)),
        # The label is written as our metrics do, or as KEDA's, or as Kubernetes would.
        *(
            (group(labelled(**{"namespace": "ml", label: "bert"})), None, told(FIRES))
            for label in ("scaled_object", "scaledObject", "scaledobject")
        ),
        # A time that is not there is none.
        (
            group(alert(fires=False, startsAt=NONE, endsAt=None)),
            None,
            told(replace(ENDED, starts_at=None, ends_at=None)),
        ),
        (group(alert(), truncatedAlerts=3), None, told(FIRES, truncated=3)),
        (group(alert(), truncatedAlerts="many"), None, told(FIRES)),
        # What Grafana does not know says nothing.
        *(
            (
                of_grafana(alert(labels={"alertname": name, **NOTHING})),
                None,
                Notification(Sender.GRAFANA, (), passed_over=1),
            )
            for name in ("DatasourceNoData", "DatasourceError")
        ),
        *(
            (
                of_dashboard(state),
                BERT,
                Notification(Sender.GRAFANA_DASHBOARD, (), passed_over=1),
            )
            for state in ("no_data", "pending", "paused", "unknown")
        ),
    ],
)
def test_what_a_message_says(
    message: object, path: ScaledObject | None, expected: Notification
) -> None:
    assert read_notification(message, path) == expected


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (
            labelled(namespace="ml"),
            "(Busy): no label scaled_object; add namespace and scaled_object",
        ),
        (
            labelled(scaled_object="bert"),
            "(Busy): no label namespace; add namespace and",
        ),
        (labelled(), "(Busy): no label namespace and no label scaled_object; add"),
        (
            labelled(namespace="ml", scaled_object="bert", scaledObject="gpt"),
            "(Busy): expected one ScaledObject, found ['bert', 'gpt']",
        ),
        (
            labelled(namespace="m l", scaled_object="b\n"),
            "(Busy): expected the names of a namespace and of a ScaledObject, found m l and b?",
        ),
        (alert(labels={"alertname": "y" * 200}), f"({'y' * 100}…): no label"),
        (alert(labels=None), ": expected labels that are an object of texts"),
        (alert(labels={"alertname": 1}), "(1): expected labels that are an object of"),
        (alert(labels={"alertname": nested()}), "(a list): expected labels that are an object of"),
        (alert(status="pending"), "(Busy): expected the status firing or resolved, found"),
        (alert(status=nested()), "(Busy): expected the status firing or resolved, found"),
        (alert(startsAt="noon"), "(Busy): expected startsAt to be a time, found noon"),
        (alert(startsAt="2026-11-21T10:00:00"), "(Busy): expected startsAt to be a time"),
        (alert(startsAt=nested()), "(Busy): expected startsAt to be a time, found a list"),
        (alert(startsAt={}), "(Busy): expected startsAt to be a time, found an object"),
        (alert(fires=False, endsAt=7), "(Busy): expected endsAt to be a time, found 7"),
        ("text", ": expected an object"),
    ],
)
def test_an_alert_that_is_refused_hides_no_other(broken: object, words: str) -> None:
    notification = read_notification(group(broken, alert()), None)
    assert notification.updates == (FIRES,)
    (sentence,) = notification.refused
    assert sentence.removeprefix("alerts[0]").lstrip().startswith(words)


@pytest.mark.parametrize("fingerprint", [None, "", 'x"y', "a" * 65])
def test_without_a_usable_fingerprint_the_labels_tell_alerts_apart(fingerprint: object) -> None:
    here = {"namespace": "ml", "scaled_object": "bert"}
    plain, same, other = (
        labelled(**here, zone="a") | {"fingerprint": fingerprint},
        alert(labels={"zone": "a", **here, "alertname": "Busy"}) | {"fingerprint": fingerprint},
        labelled(**here, zone="b") | {"fingerprint": fingerprint},
    )
    updates = read_notification(group(plain, same, other), None).updates
    marks = [update.key.alert for update in updates]
    assert marks[0] == marks[1] != marks[2]


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (None, "a message of Alertmanager or of Graf"),
        ([], "a message of Alertmanager or of Graf"),
        ({"alerts": "many"}, "a message of Alertmanager or of Graf"),
        ({"status": "firing"}, "a message of Alertmanager or of Graf"),
        *(
            (of_dashboard() | {"state": state}, "one of Grafana's states")
            for state in ("firing", "", None, 7, nested())
        ),
    ],
)
def test_a_message_of_nobody_we_know_is_refused(payload: object, words: str) -> None:
    with pytest.raises(errors.RequestError, match=f"expected {words}"):
        read_notification(payload, BERT)


# Alerts on dashboards of Grafana, as version 4 sends them


def rule(state: str = "alerting", **changes: Any) -> AlertUpdate:
    (update,) = read_notification(of_dashboard(state, **changes), BERT).updates
    return update


@pytest.mark.parametrize(("state", "fires"), [("alerting", True), ("ok", False)])
def test_a_rule_fires_or_does_not(state: str, fires: bool) -> None:
    said = AlertUpdate(rule().key, "GPU usage of the cluster", fires)
    assert said.key.scaled_object == BERT
    assert rule(state) == said


@pytest.mark.parametrize("url", [of_dashboard()["ruleUrl"], None, "", "http://[broken", nested()])
def test_a_rule_is_known_by_its_number_and_its_grafana(url: object) -> None:
    """Not by its name, nor by the place of its panel."""
    here = rule(ruleUrl=url).key
    assert rule(ruleUrl=url, ruleName=nested()).key == here
    assert rule(ruleUrl=url, ruleId=8).key != here
    assert rule(ruleUrl="http://another:3000/dashboard").key != here
    assert rule().key == rule(ruleUrl="http://grafana:3000/d/xyz?panelId=9").key


def test_newer_versions_name_the_object_in_tags_and_older_ones_need_the_path() -> None:
    tags = {"namespace": "ml", "scaled_object": "bert"}
    (update,) = read_notification(of_dashboard(tags=tags), None).updates
    assert update.key.scaled_object == BERT
    (sentence,) = read_notification(of_dashboard(), None).refused
    assert sentence.endswith("send to /webhook/NAMESPACE/NAME")
