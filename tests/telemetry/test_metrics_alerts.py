"""Facts about alerts → metrics."""

import pytest

from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics import Telemetry
from tests.support.clocks import Clock

BERT, GPT = ScaledObject("ml", "bert"), ScaledObject("ml", "gpt")


@pytest.fixture
def counted() -> Telemetry:
    return Telemetry(Clock())


def value(counted: Telemetry, name: str, **labels: str) -> float | None:
    return counted.registry.get_sample_value(f"keda_gpu_scaler_{name}", labels)


def changed(whose: ScaledObject = BERT, *, fires: bool) -> facts.AlertChanged:
    return facts.AlertChanged(whose, "Busy", fires, "so it was said")


def test_the_alerts_that_fire_are_counted_for_each_object(counted: Telemetry) -> None:
    bert = {"namespace": "ml", "scaled_object": "bert"}
    counted(changed(fires=True))
    counted(changed(fires=True))
    counted(changed(GPT, fires=True))
    assert value(counted, "alerts_firing", **bert) == 2
    counted(changed(fires=False))
    assert value(counted, "alerts_firing", **bert) == 1


def test_the_series_of_an_object_ends_with_its_last_alert(counted: Telemetry) -> None:
    counted(changed(fires=True))
    counted(changed(fires=False))
    assert value(counted, "alerts_firing", namespace="ml", scaled_object="bert") is None


def test_messages_are_counted_by_sender_and_status(counted: Telemetry) -> None:
    for status in (200, 200, 422):
        counted(facts.Notified("grafana", status, "taken: 1"))
    assert value(counted, "webhook_notifications_total", sender="grafana", code="200") == 2
    assert value(counted, "webhook_notifications_total", sender="grafana", code="422") == 1


def test_replicas_that_can_be_reached_are_shown_beside_those_that_cannot(
    counted: Telemetry,
) -> None:
    assert value(counted, "peers", state="reachable") is None
    counted(facts.PeerChanged("http://10.0.0.1:8080", reachable=False, reason="refused"))
    counted(facts.PeersAsked(2, 1))
    assert value(counted, "peers", state="reachable") == 2
    assert value(counted, "peers", state="unreachable") == 1
