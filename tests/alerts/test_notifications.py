"""Messages of Alertmanager and of Grafana, and which alerts fire by them."""

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
ENDED = AlertUpdate(
    Key(BERT, "c6eadffa33fcdf37"), "Busy", fires=False, starts_at=BEGAN_AT, ends_at=ENDED_AT
)


def labelled(**labels: str) -> dict[str, Any]:
    return alert(labels={"alertname": "Busy", **labels})


def read(*alerts: object) -> Notification:
    return read_notification(group(*alerts), None)


def test_alerts_that_fire_and_alerts_that_are_resolved_come_in_one_message() -> None:
    notification = read_notification(group(alert(), alert(fires=False)), None)
    assert notification == Notification(Sender.ALERTMANAGER, (FIRES, ENDED))


def test_grafana_writes_the_same_and_more() -> None:
    notification = read_notification(of_grafana(alert()), None)
    assert notification == Notification(Sender.GRAFANA, (FIRES,))


def test_the_path_says_what_all_alerts_are_about() -> None:
    gpt = ScaledObject("ml", "gpt")
    notification = read_notification(group(alert(), labelled()), gpt)
    assert [update.key.scaled_object for update in notification.updates] == [gpt, gpt]


@pytest.mark.parametrize("label", ["scaled_object", "scaledObject", "scaledobject"])
def test_the_label_is_written_as_our_metrics_do_or_as_keda_s_or_as_kubernetes_would(
    label: str,
) -> None:
    notification = read(labelled(**{"namespace": "ml", label: "bert"}))
    assert [update.key.scaled_object for update in notification.updates] == [BERT]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"namespace": "ml"}, "no label scaled_object; add namespace and scaled_object"),
        ({"scaled_object": "bert"}, "no label namespace; add namespace and scaled_object"),
        ({}, "no label namespace and no label scaled_object; add"),
        (
            {"namespace": "ml", "scaled_object": "bert", "scaledObject": "gpt"},
            "expected one ScaledObject, found ['bert', 'gpt']",
        ),
        (
            {"namespace": "m l", "scaled_object": "b\n"},
            "expected the names of a namespace and of a ScaledObject, found m l and b?",
        ),
    ],
)
def test_an_alert_that_names_no_object_is_refused_beside_the_others(
    labels: dict[str, str], words: str
) -> None:
    notification = read(labelled(**labels), alert())
    assert notification.updates == (FIRES,)
    (sentence,) = notification.refused
    assert sentence.startswith(f"alerts[0] (Busy): {words}")


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("text", "alerts[0]: expected an object"),
        (alert(labels=None), "alerts[0]: expected labels that are an object of texts"),
        (alert(labels={"alertname": 1}), "alerts[0] (1): expected labels that are an object of"),
        (
            alert(status="pending"),
            "alerts[0] (Busy): expected the status firing or resolved, found",
        ),
        (alert(startsAt="noon"), "alerts[0] (Busy): expected startsAt to be a time, found noon"),
        (alert(startsAt="2026-11-21T10:00:00"), "alerts[0] (Busy): expected startsAt to be a time"),
        (alert(status=nested()), "alerts[0] (Busy): expected the status firing or resolved, found"),
        (
            alert(startsAt=nested()),
            "alerts[0] (Busy): expected startsAt to be a time, found a list",
        ),
        (
            alert(labels={"alertname": nested()}),
            "alerts[0] (a list): expected labels that are an object of texts",
        ),
        (alert(startsAt={}), "alerts[0] (Busy): expected startsAt to be a time, found an object"),
        (alert(fires=False, endsAt=7), "alerts[0] (Busy): expected endsAt to be a time, found 7"),
    ],
)
def test_an_alert_of_another_shape_is_refused_beside_the_others(broken: object, words: str) -> None:
    notification = read(broken, alert())
    assert notification.updates == (FIRES,)
    assert notification.refused[0].startswith(words)


def test_a_time_that_is_not_there_is_none() -> None:
    notification = read(alert(fires=False, startsAt=NONE, endsAt=None))
    assert (notification.updates[0].starts_at, notification.updates[0].ends_at) == (None, None)


@pytest.mark.parametrize("fingerprint", [None, "", 'x"y', "a" * 65])
def test_without_a_usable_fingerprint_the_labels_tell_alerts_apart(fingerprint: object) -> None:
    here = {"namespace": "ml", "scaled_object": "bert"}
    plain, same, other = (
        labelled(**here, zone="a") | {"fingerprint": fingerprint},
        alert(labels={"zone": "a", **here, "alertname": "Busy"}) | {"fingerprint": fingerprint},
        labelled(**here, zone="b") | {"fingerprint": fingerprint},
    )
    marks = [update.key.alert for update in read(plain, same, other).updates]
    assert marks[0] == marks[1] != marks[2]


@pytest.mark.parametrize("name", ["DatasourceNoData", "DatasourceError"])
@pytest.mark.parametrize("fires", [True, False])
def test_that_grafana_does_not_know_says_nothing(name: str, fires: bool) -> None:  # noqa: FBT001 - a table
    labels = {"alertname": name, "namespace": "ml", "scaled_object": "bert", "rulename": "Busy"}
    notification = read_notification(of_grafana(alert(fires=fires, labels=labels)), None)
    assert (notification.updates, notification.passed_over, notification.refused) == ((), 1, ())


def test_what_was_left_out_is_counted() -> None:
    assert read_notification(group(alert(), truncatedAlerts=3), None).truncated == 3
    assert read_notification(group(alert(), truncatedAlerts="many"), None).truncated == 0


def test_a_name_is_shown_on_one_line_and_cut() -> None:
    labels = {"alertname": "Bu\nsy" + "y" * 200, "namespace": "ml", "scaled_object": "bert"}
    (update,) = read(alert(labels=labels)).updates
    assert update.name == "Bu?sy" + "y" * 95 + "…"


@pytest.mark.parametrize(
    "payload", [None, [], "text", {}, {"alerts": "many"}, {"status": "firing"}]
)
def test_a_message_of_nobody_we_know_is_refused(payload: object) -> None:
    with pytest.raises(errors.RequestError, match="expected a message of Alertmanager or of Graf"):
        read_notification(payload, None)


# Alerts on dashboards of Grafana, as version 4 sends them

NAME = "GPU usage of the cluster"


def read_rule(state: str = "alerting", **changes: Any) -> Notification:  # noqa: ANN401 - any JSON
    return read_notification(of_dashboard(state, **changes), BERT)


def mark(**changes: Any) -> str:  # noqa: ANN401 - any JSON
    (update,) = read_rule(**changes).updates
    return update.key.alert


@pytest.mark.parametrize(("state", "fires"), [("alerting", True), ("ok", False)])
def test_a_rule_fires_or_does_not(state: str, fires: bool) -> None:  # noqa: FBT001 - a table
    (update,) = read_rule(state).updates
    assert (update.key.scaled_object, update.name, update.fires) == (BERT, NAME, fires)
    assert (update.starts_at, update.ends_at) == (None, None)


@pytest.mark.parametrize("state", ["no_data", "pending", "paused", "unknown"])
def test_a_state_that_does_not_say_changes_nothing(state: str) -> None:
    assert read_rule(state) == Notification(Sender.GRAFANA_DASHBOARD, (), passed_over=1)


@pytest.mark.parametrize("state", ["firing", "", None, 7, nested()])
def test_a_state_that_grafana_does_not_have_is_refused(state: object) -> None:
    with pytest.raises(errors.RequestError, match="expected one of Grafana's states"):
        read_notification(of_dashboard() | {"state": state}, BERT)


def test_a_rule_stays_the_same_when_it_is_renamed_or_its_panel_moves() -> None:
    same = {"ruleName": "Another name", "ruleUrl": "http://grafana:3000/d/xyz?panelId=9"}
    assert mark(**same) == mark()


def test_rules_differ_by_their_number_and_by_their_grafana() -> None:
    assert mark(ruleId=8) != mark()
    assert mark(ruleUrl="http://another:3000/dashboard") != mark()


@pytest.mark.parametrize("url", [None, "", "http://[broken"])
def test_a_rule_without_a_usable_url_has_its_number(url: object) -> None:
    assert mark(ruleUrl=url) == mark(ruleUrl=url)
    assert mark(ruleUrl=url, ruleId=8) != mark(ruleUrl=url)


def test_what_is_no_text_where_one_belongs_is_not_written() -> None:
    (update,) = read_rule(ruleName=nested(), ruleId=nested(), ruleUrl=nested()).updates
    assert update.name == "a list"


def test_newer_versions_name_the_object_in_tags_and_older_ones_need_the_path() -> None:
    tags = {"namespace": "ml", "scaled_object": "bert"}
    (update,) = read_notification(of_dashboard(tags=tags), None).updates
    assert update.key.scaled_object == BERT
    (sentence,) = read_notification(of_dashboard(), None).refused
    assert sentence.endswith("send to /webhook/NAMESPACE/NAME")
