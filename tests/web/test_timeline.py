"""The timeline of a trigger: what is not known is shaded, and no two times have the same label."""

from collections.abc import Sequence

import pytest

from keda_gpu_scaler.telemetry.history import Change
from keda_gpu_scaler.web import timeline
from keda_gpu_scaler.web.timeline import Period, Step

PERIOD = Period(1000.0, 2000.0)


def changes(steps: Sequence[tuple[float, float | None]]) -> list[Change]:
    """Return changes at these times, each with this load."""
    return [
        Change(
            at=at,
            metric_name="a",
            workload="deployment/bert",
            state="measured",
            value=load,
            active=None if load is None else load > 0,
            average=load,
            replicas=1,
            recommended=None,
            reason="",
        )
        for at, load in steps
    ]


@pytest.mark.parametrize(
    ("steps", "drawn"),
    [
        ([], []),
        ([(500, 50)], [Step(0, 100, 55, 45, 50)]),
        ([(500, 1), (900, 50)], [Step(0, 100, 55, 45, 50)]),
        ([(1500, 100)], [Step(50, 50, 10, 90, 100)]),
        ([(500, 0), (1500, None)], [Step(0, 50, 98, 2, 0), Step(50, 50, 0, 100, None)]),
        ([(2500, 1)], []),
    ],
    ids=["nothing", "from before", "the newer", "from within", "zero, then unknown", "later"],
)
def test_a_load_holds_until_the_next_one(
    steps: list[tuple[float, float | None]], drawn: list[Step]
) -> None:
    active, load, replicas, asked_for = timeline.rows(changes(steps), PERIOD, threshold=100)
    assert load.steps == drawn
    assert load.target_y == 10
    assert {step.value for step in asked_for.steps} <= {None}
    assert len(active.steps) == len(replicas.steps) == len(drawn)
