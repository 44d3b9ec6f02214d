"""The log lines about alerts, their senders, and other replicas."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import LogCapture

from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.log_lines import LogObserver
from tests.support.clocks import Clock

BERT = ScaledObject("ml", "bert")
REFUSED = facts.Notified("alertmanager", 422, "taken: 0\nnot taken: 1\n- alerts[0]: no label")


@pytest.fixture
def lines() -> Iterator[LogCapture]:
    captured = LogCapture()
    structlog.configure(
        processors=[captured], wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG)
    )
    yield captured
    structlog.reset_defaults()


def written(lines: LogCapture) -> list[tuple[str, str]]:
    return [(line["event"], line["log_level"]) for line in lines.entries]


def test_an_alert_that_begins_and_one_that_ends_are_lines_with_their_reason(
    lines: LogCapture,
) -> None:
    observe = LogObserver()
    observe(facts.AlertChanged(BERT, "Busy", fires=True, reason="a message says that it fires"))
    observe(
        facts.AlertChanged(BERT, "Busy", fires=False, reason="a message says that it is resolved")
    )
    whose = {"namespace": "ml", "scaled_object": "bert", "alert": "Busy", "log_level": "info"}
    assert [dict(line) for line in lines.entries] == [
        {"event": "alert.fires", "reason": "a message says that it fires", **whose},
        {"event": "alert.ended", "reason": "a message says that it is resolved", **whose},
    ]


def test_a_message_that_is_taken_is_a_line_at_debug(lines: LogCapture) -> None:
    LogObserver()(facts.Notified("grafana", 200, "taken: 1"))
    assert written(lines) == [("webhook.taken", "debug")]


def test_a_message_that_is_refused_is_a_warning_with_the_answer(lines: LogCapture) -> None:
    LogObserver()(REFUSED)
    (line,) = lines.entries
    assert (line["event"], line["log_level"]) == ("webhook.refused", "warning")
    assert (line["sender"], line["status"], line["answer"]) == ("alertmanager", 422, REFUSED.text)


def test_the_same_refusal_is_written_once_in_ten_minutes(lines: LogCapture) -> None:
    clock = Clock()
    observe = LogObserver(clock)
    observe(REFUSED)
    observe(REFUSED)
    observe(facts.Notified("unknown", 401, "expected the token"))
    assert len(lines.entries) == 2
    clock.now += 601
    observe(REFUSED)
    assert len(lines.entries) == 3


def test_alerts_that_the_sender_left_out_are_a_warning(lines: LogCapture) -> None:
    LogObserver()(facts.Notified("alertmanager", 200, "taken: 1", truncated=3))
    assert written(lines) == [("webhook.truncated", "warning")]


def test_a_replica_that_is_lost_and_one_that_is_back_are_lines(lines: LogCapture) -> None:
    observe = LogObserver()
    peer = "http://10.0.0.1:8080"
    observe(facts.PeerChanged(peer, reachable=False, reason="refused"))
    observe(facts.PeersAsked(0, 1))
    observe(facts.PeerChanged(peer, reachable=True, reason="it answers"))
    assert written(lines) == [("peer.down", "warning"), ("peer.up", "info")]
    assert {line["peer"] for line in lines.entries} == {peer}
