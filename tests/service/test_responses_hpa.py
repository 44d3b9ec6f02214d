"""An HPA's call, known by its deadline, proves replicas of a ScaledObject for a minute."""

from keda_gpu_scaler.service.responses import ASKED_SECONDS, HpaCallers
from keda_gpu_scaler.spec.retention import TRIGGERS
from keda_gpu_scaler.spec.spec import ScaledObject
from tests.support.clocks import Clock

BERT, GPT = ScaledObject("ml", "bert"), ScaledObject("ml", "gpt")


def test_a_poll_alone_tells_nothing() -> None:
    awake = HpaCallers()
    awake.note(BERT, None)
    assert not awake.has_replicas(BERT)


def test_polls_after_a_call_of_the_hpa_are_about_replicas() -> None:
    awake = HpaCallers()
    awake.note(BERT, 60.0)
    awake.note(BERT, None)
    assert awake.has_replicas(BERT)
    assert not awake.has_replicas(GPT)


def test_the_hpa_is_forgotten_when_it_stops_asking() -> None:
    clock = Clock()
    awake = HpaCallers(clock)
    awake.note(BERT, 60.0)
    clock.now += ASKED_SECONDS - 1
    assert awake.has_replicas(BERT)
    clock.now += 2
    assert not awake.has_replicas(BERT)


def test_of_too_many_objects_those_are_forgotten_that_were_asked_about_longest_ago() -> None:
    awake = HpaCallers()
    awake.note(BERT, 60.0)
    awake.note(GPT, 60.0)
    awake.note(BERT, 60.0)
    for number in range(TRIGGERS - 1):
        awake.note(ScaledObject("ml", f"other-{number}"), 60.0)
    assert awake.has_replicas(BERT)
    assert not awake.has_replicas(GPT)
