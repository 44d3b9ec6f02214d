"""Refused triggers are remembered until they change, or for as long as KEDA waits to try again."""

from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.refusals import KEPT_SECONDS, TOTAL_BYTES, Refusals
from tests.support.scripted import Clock
from tests.support.triggers import BERT

OTHER = ScaledObject("ml", "other")


def test_a_refusal_is_told_with_its_age_until_a_trigger_is_right() -> None:
    clock = Clock()
    refused = Refusals(clock)
    assert refused.of(BERT) is None
    refused(facts.TriggerRefused(BERT, "treshold: unknown key"))
    clock.seconds += 5
    assert refused.of(BERT) == "5 s ago KEDA was refused: treshold: unknown key"
    refused(facts.TriggerChanged(OTHER))
    refused(facts.Called("GetMetrics", "OK", 0.1))
    assert refused.of(BERT) is not None
    refused(facts.TriggerChanged(BERT))
    assert refused.of(BERT) is None


def test_a_refusal_is_forgotten_when_keda_would_have_tried_again() -> None:
    clock = Clock()
    refused = Refusals(clock)
    refused(facts.TriggerRefused(BERT, "wrong"))
    clock.seconds += KEPT_SECONDS - 1
    assert refused.of(BERT) is not None
    clock.seconds += 1
    assert refused.of(BERT) is None


def test_a_flood_of_refusals_takes_bounded_room() -> None:
    refused = Refusals()
    reason = "w" * 8192
    names = [ScaledObject("ml", f"bert-{number}") for number in range(500)]
    for name in names:
        refused(facts.TriggerRefused(name, reason))
    kept = [name for name in names if refused.of(name)]
    assert kept == names[-len(kept) :]
    assert 0 < len(kept) * 4 * len(reason) <= TOTAL_BYTES
