"""What no history may break: hours at random, two scalers, one of which is restarted at random.

`make test` has a few of them. `HISTORY_DECISIONS=25000 HISTORY_SEED=7` judges so many decisions, of
that seed.
"""

import os
from collections import Counter

import pytest

from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.spec.spec import Aggregation
from tests.stories.loops.histories import THEMES, History, history
from tests.stories.loops.judge import RULES
from tests.stories.loops.truth import RAISING

LONG = os.environ.get("HISTORY_DECISIONS")
DECISIONS = int(LONG or "2000")
SEED = int(os.environ.get("HISTORY_SEED", "1"))
PERCENT = 1.0
"""How many of the decisions have to show each state and each rule."""

NUMBERS = [
    pytest.param(one, marks=[] if one % 8 == 0 else pytest.mark.nightly)
    for one in range(len(THEMES))
]


@pytest.mark.parametrize("number", range(5))
async def test_no_history_breaks_a_promise(number: int) -> None:
    await _judged(SEED, 5 * number)


@pytest.mark.parametrize(
    "decisions", [pytest.param(DECISIONS, marks=() if LONG else pytest.mark.slow)]
)
async def test_of_many_histories_none_does_and_every_rule_is_at_work(decisions: int) -> None:
    judged, number, shown = 0, 0, Counter[str]()
    while judged < decisions or number % len(THEMES):
        judge = (await _judged(SEED, number)).judge
        judged += judge.decisions
        shown += judge.states + judge.rules
        number += 1
    percent = {name: round(100 * shown[name] / judged, 1) for name in (*State, *RULES)}
    print(f"seed {SEED}: {judged} decisions in {number} histories; in percent: {percent}")  # noqa: T201 - of a long run
    assert min(percent.values()) >= PERCENT, percent


@pytest.mark.slow
@pytest.mark.parametrize("aggregation", RAISING)
@pytest.mark.parametrize("number", NUMBERS)
async def test_histories_keep_their_promises_where_max_or_p95_scales(
    aggregation: Aggregation, number: int
) -> None:
    await _judged(SEED, number, aggregation)


async def _judged(seed: int, number: int, aggregation: Aggregation = Aggregation.SUM) -> History:
    one = await history(seed, number, aggregation)
    where = f"seed {seed}, history {number}, {one.name} by {one.evidence} and {aggregation}"
    assert not one.judge.found, where
    return one
