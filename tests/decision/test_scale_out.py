"""Claims about scale-outs that did not help."""

from dataclasses import replace

import pytest

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.decision.scale_out import Moment, ScaleOuts, moment_of
from keda_gpu_scaler.spec.spec import Demand

# Minute, replicas, load of a replica, demand.
BEFORE = (0, 4, 95.0, 40.0)
GROWN = (1, 5, 95.0, 40.0)
FUTILE = [BEFORE, GROWN, (6, 5, 95.0, 40.0)]
SENTENCE = (
    "5 replicas instead of 4 did not help: 5m later the demand is 40 (it was 40) and the load of a "
    "replica 95 (it was 95)"
)


def judged(moments: list[tuple[float, int, float, float] | None]) -> str:
    """Return what is known after some moments, of which none is longer than five minutes away."""
    scale_outs, sentence = ScaleOuts(), ""
    for known in moments:
        moment = None if known is None else Moment(60 * known[0], *known[1:])
        sentence = scale_outs.judge(moment)
    return sentence


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param(FUTILE, id="neither fell"),
        pytest.param(
            [(0, 4, 95.0, 10.0), GROWN, (6, 5, 85.5, 9.0)], id="both fell by no more than a tenth"
        ),
        pytest.param(
            [(0, 4, 95.0, 10.0), GROWN, (6, 5, 95.0, 11.0)], id="the demand rose by a tenth"
        ),
        pytest.param([(0, 4, 95.0, 1.0), GROWN, (6, 5, 95.0, 1.0)], id="a demand of one"),
        pytest.param([BEFORE, GROWN, None, (6, 5, 95.0, 40.0)], id="unknown in between"),
        pytest.param([*FUTILE, None], id="unknown since"),
        pytest.param([*FUTILE, (8, 5, 20.0, 5.0)], id="it stands while the replicas stay"),
        pytest.param(
            [(0, 3, 90.0, 42.0), *[(minute + 1, *rest) for minute, *rest in FUTILE]],
            id="two scale-outs, the first of which is not judged yet",
        ),
    ],
)
def test_neither_fell(moments: list[tuple[float, int, float, float] | None]) -> None:
    assert judged(moments).startswith("5 replicas instead of")


def test_the_sentence_says_what_was_compared() -> None:
    assert judged([*FUTILE]) == SENTENCE


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param([BEFORE], id="no scale-out"),
        pytest.param([BEFORE, GROWN, (5.9, 5, 95.0, 40.0)], id="too early to tell"),
        pytest.param([BEFORE, GROWN, (6, 5, 85.4, 40.0)], id="the load fell"),
        pytest.param([BEFORE, GROWN, (6, 5, 95.0, 35.9)], id="the demand fell"),
        pytest.param([BEFORE, GROWN, (6, 5, 95.0, 44.1)], id="the demand rose: a ramp"),
        pytest.param([(0, 4, 95.0, 0.0), GROWN, (6, 5, 95.0, 0.0)], id="there was no demand"),
        pytest.param([(0, 4, 0.0, 40.0), GROWN, (6, 5, 0.0, 40.0)], id="there was no load"),
        pytest.param([BEFORE, (5.1, 5, 95.0, 40.0), (10.1, 5, 95.0, 40.0)], id="after a gap"),
        pytest.param([*FUTILE, (7, 4, 95.0, 40.0)], id="fewer replicas since"),
        pytest.param([*FUTILE, (7, 6, 95.0, 40.0)], id="more replicas since"),
        pytest.param([*FUTILE, (12, 5, 95.0, 40.0)], id="a gap since"),
        pytest.param(
            [BEFORE, GROWN, (4, 6, 95.0, 40.0), (8, 6, 95.0, 40.0)],
            id="the next scale-out is too new",
        ),
    ],
)
def test_nothing_is_said(moments: list[tuple[float, int, float, float] | None]) -> None:
    assert judged(moments) == ""


MEASURED = Decision(
    state=State.MEASURED, reason="", value=380.0, active=True, average=95.0, expected=5, measured=4
)


@pytest.mark.parametrize(
    ("changes", "demand", "moment"),
    [
        ({}, Demand(40.0), Moment(7.0, 4, 95.0, 40.0)),
        ({}, Demand(None, "no answer"), None),
        ({"average": None}, Demand(40.0), None),
        ({"state": State.PARTIAL}, Demand(40.0), None),
    ],
)
def test_a_moment_needs_all_loads_and_the_demand(
    changes: dict[str, object], demand: Demand, moment: Moment | None
) -> None:
    assert moment_of(7.0, replace(MEASURED, **changes), demand) == moment  # type: ignore[arg-type]
