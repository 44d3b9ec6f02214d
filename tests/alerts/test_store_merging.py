"""However messages travel between replicas, all replicas agree in the end, on the truth."""

from dataclasses import dataclass
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.alerts import AlertRecord, Alerts, AlertUpdate
from keda_gpu_scaler.alerts.store import NEVER, Key, merged
from keda_gpu_scaler.spec.spec import ScaledObject
from testbed.clocks import Clock

BERT = ScaledObject("ml", "bert")
KEY = Key(BERT, "a")
LIFETIME = 18_000.0
REPLICAS = 3

# Few different times: equal times matter as much as earlier ones.
times = st.integers(0, 40).map(float)


@st.composite
def records(draw: st.DrawFn) -> AlertRecord:
    """Make a record as any replica may have one."""
    record = AlertRecord(KEY, draw(st.sampled_from(["A", "B"])))
    if draw(st.booleans()):
        record = merged(record, AlertRecord(KEY, "A", began_at=draw(times), heard_at=draw(times)))
    if record.heard_at == NEVER or draw(st.booleans()):
        record = merged(record, AlertRecord(KEY, "A", ended_at=draw(times), told_at=draw(times)))
    return record


@given(records(), records(), records())
def test_neither_order_nor_grouping_nor_repetition_of_merges_matters(
    first: AlertRecord, second: AlertRecord, third: AlertRecord
) -> None:
    assert merged(first, second) == merged(second, first)
    assert merged(merged(first, second), third) == merged(first, merged(second, third))
    assert merged(first, first) == first
    assert merged(merged(first, second), second) == merged(first, second)


@dataclass(frozen=True)
class Step:
    """The next message of the sender, and which replicas receive it when."""

    seconds: float
    replica: int
    lost_for: frozenset[int]
    """Replicas that the message is not passed on to."""
    twice: bool


steps = st.lists(
    st.builds(
        Step,
        seconds=st.floats(0.1, 600),
        replica=st.integers(0, REPLICAS - 1),
        lost_for=st.frozensets(st.integers(0, REPLICAS - 1)),
        twice=st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


def _update(number: int, began_at: float, now: float, *, timed: bool) -> AlertUpdate:
    """Return a firing and a resolved update in turn, with the sender's times or without."""
    fires = number % 2 == 0
    starts_at, ends_at = (began_at, None if fires else now) if timed else (None, None)
    return AlertUpdate(KEY, "A", fires, starts_at, ends_at)


@given(steps, st.booleans(), st.randoms(use_true_random=False))
def test_replicas_agree_on_the_truth_once_each_has_asked_all(
    planned: list[Step],
    timed: bool,
    random: Random,
) -> None:
    clock = Clock(100_000.0)
    replicas = [Alerts(LIFETIME, clock) for _ in range(REPLICAS)]
    began_at = clock.now
    for number, step in enumerate(planned):
        clock.now += step.seconds
        began_at = clock.now if number % 2 == 0 else began_at
        update = _update(number, began_at, clock.now, timed=timed)
        # The sender also reaches a replica that missed the earlier messages.
        for _ in range(1 + step.twice):
            known = [record for record in replicas[step.replica].receive([update]) if record]
            for other in set(range(REPLICAS)) - step.lost_for:
                list(replicas[other].merge(known))
    _ask_all(replicas, random)

    truth = "A" if len(planned) % 2 == 1 else None
    assert [replica.firing(BERT) for replica in replicas] == [truth] * REPLICAS
    assert all(first.records() == second.records() for first, second in pairwise(replicas))


def _ask_all(replicas: list[Alerts], random: Random) -> None:
    """Have all replicas ask all replicas, in any order."""
    pairs = [(asking, asked) for asking in replicas for asked in replicas]
    for _ in range(2):  # the first to ask could not yet learn what the last one learned
        random.shuffle(pairs)
        for asking, asked in pairs:
            list(asking.merge(asked.records()))
