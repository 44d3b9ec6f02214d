"""Messages of Grafana's alerts on dashboards, as version 4 sends them."""

from typing import Any

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts.notifications import Notification, Sender, read_notification
from tests.support.alert_messages import BERT, nested, of_dashboard

NAME = "GPU usage of the cluster"


def read(state: str = "alerting", **changes: Any) -> Notification:  # noqa: ANN401 - any JSON
    return read_notification(of_dashboard(state, **changes), BERT)


def mark(**changes: Any) -> str:  # noqa: ANN401 - any JSON
    (update,) = read(**changes).updates
    return update.key.alert


@pytest.mark.parametrize(("state", "fires"), [("alerting", True), ("ok", False)])
def test_a_rule_fires_or_does_not(state: str, fires: bool) -> None:  # noqa: FBT001 - a table
    (update,) = read(state).updates
    assert (update.key.scaled_object, update.name, update.fires) == (BERT, NAME, fires)
    assert (update.starts_at, update.ends_at) == (None, None)


@pytest.mark.parametrize("state", ["no_data", "pending", "paused", "unknown"])
def test_a_state_that_does_not_say_changes_nothing(state: str) -> None:
    assert read(state) == Notification(Sender.GRAFANA_DASHBOARD, (), passed_over=1)


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


def test_older_versions_need_the_path() -> None:
    notification = read_notification(of_dashboard(), None)
    assert notification.updates == ()
    (sentence,) = notification.refused
    assert sentence.startswith(f"{NAME}: no label namespace and no label scaled_object; add")
    assert sentence.endswith("send to /webhook/NAMESPACE/NAME")


def test_what_is_no_text_where_one_belongs_is_not_written() -> None:
    (update,) = read(ruleName=nested(), ruleId=nested(), ruleUrl=nested()).updates
    assert update.name == "a list"
