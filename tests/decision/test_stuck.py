"""Claims about what is said of GPUs with a metric that is stuck at 0."""

from dataclasses import replace

from keda_gpu_scaler.snapshot.snapshot import Pod
from tests.decision.deciding import decide_about, ready

SAID = "A is stuck at 0, so B is read"


def _stuck(pod: Pod, *clauses: str) -> Pod:
    return replace(pod, stuck=frozenset(clauses))


def test_the_reason_names_the_metric_and_the_pods_that_have_not_ended() -> None:
    first, second, third, fourth, fifth, ended = ready(80, count=6)
    stuck = [_stuck(pod, SAID) for pod in (first, second, third, fourth)]
    decided = decide_about(*stuck, fifth, replace(_stuck(ended, SAID), ended=True))
    before = decide_about(first, second, third, fourth, fifth, replace(ended, ended=True))
    names = f"{first.name}, {second.name}, {third.name} and 1 more"
    assert decided == replace(before, reason=f"{before.reason}; {SAID} for {names}")


def test_each_metric_is_named_once() -> None:
    first, second = ready(80, count=2)
    other = "C is stuck at 0, so D is read"
    decided = decide_about(_stuck(first, SAID, other), _stuck(second, SAID))
    assert decided.reason.endswith(
        f"; {SAID} for {first.name}, {second.name}; {other} for {first.name}"
    )


def test_nothing_is_said_of_samples_that_are_too_old() -> None:
    (pod,) = ready(80)
    assert SAID not in decide_about(_stuck(pod, SAID), now=10_000 + 181).reason
