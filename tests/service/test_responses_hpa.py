"""An HPA's call, known by its deadline, proves replicas of a ScaledObject for a minute."""

from keda_gpu_scaler.service.responses import ASKED_SECONDS, HpaCallers
from keda_gpu_scaler.spec.spec import ScaledObject
from tests.support.clocks import Clock

BERT, GPT = ScaledObject("ml", "bert"), ScaledObject("ml", "gpt")


def test_a_poll_alone_tells_nothing() -> None:
    assert not HpaCallers().has_replicas(BERT, None)


def test_polls_after_a_call_of_the_hpa_are_about_replicas() -> None:
    awake = HpaCallers()
    assert awake.has_replicas(BERT, 60.0)
    assert awake.has_replicas(BERT, None)
    assert not awake.has_replicas(GPT, None)


def test_the_hpa_is_forgotten_when_it_stops_asking() -> None:
    clock = Clock()
    awake = HpaCallers(clock)
    awake.has_replicas(BERT, 60.0)
    clock.now += ASKED_SECONDS - 1
    assert awake.has_replicas(BERT, None)
    clock.now += 2
    assert not awake.has_replicas(BERT, None)
