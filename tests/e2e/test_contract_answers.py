"""What KEDA and the HPA make of a scaler's answers: the facts that the product is built on.

No scaler of ours is asked here, as in test_contract.py.
"""

import math
from collections.abc import Sequence
from contextlib import AsyncExitStack
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from lightkube.utils.quantity import parse_quantity

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from testbed.cluster import generation
from tests.e2e import keda_log
from tests.e2e.lab import Lab
from tests.e2e.recorder import METRIC, Recorder, recording


class _Case(NamedTuple):
    """What a scaler answers, each number as (integer, float), and what the HPA makes of it."""

    target: tuple[int, float]
    values: Sequence[tuple[int, float]]
    hpa_target: str
    hpa_value: str


_LARGE = 9_000_000_000_000_000
"""Just below `spec.TOO_LARGE`, and a number whose thousandths a float holds."""
_NUMBERS = {
    "both": _Case((7, 22.5), [(4, 8.25)], "22.5", "8.25"),
    "integers": _Case((7, 0), [(4, 0)], "7", "4"),
    "thousandths": _Case((0, 0.0014), [(0, 1.0006)], "0.001", "1.001"),
    "zero": _Case((10, 10), [(0, 0)], "10", "0"),
    "infinite": _Case((10, 10), [(4, math.inf)], "10", "0"),
    "nan": _Case((10, 10), [(4, math.nan)], "10", "4"),
    "negative": _Case((10, 10), [(-5, -5)], "10", "0"),
    "several": _Case((10, 10), [(0, 3), (0, 4)], "10", "7"),
    "largest": _Case((10, 10), [(_LARGE, _LARGE)], "10", str(_LARGE)),
}


@pytest.mark.generations
@pytest.mark.skipif(generation.KEDA_IS_OLDEST, reason="it reads whole numbers only")
async def test_keda_reads_the_float_where_it_is_above_zero_and_counts_in_thousandths(
    lab: Lab,
) -> None:
    async with AsyncExitStack() as stack:
        for name, case in _NUMBERS.items():
            recorder = await stack.enter_async_context(recording())
            recorder.targets = [_target(*case.target)]
            recorder.values = [_value(*value) for value in case.values]
            await lab.deploy(name, replicas=1)
            given = lab.gpu(name, scalerAddress=recorder.address)
            await lab.autoscale(name, given, max_replicas=1)
        await lab.wait(
            lambda: all(_seen(lab, name) == _expected(case) for name, case in _NUMBERS.items()),
            f"the HPAs have the numbers of {_NUMBERS}",
        )


def _target(whole: int, exact: float) -> Any:
    return pb.MetricSpec(metricName=METRIC, targetSize=whole, targetSizeFloat=exact)


def _value(whole: int, exact: float) -> Any:
    return pb.MetricValue(metricName=METRIC, metricValue=whole, metricValueFloat=exact)


def _seen(lab: Lab, workload: str) -> list[Decimal | None]:
    shown = (lab.timeline.last(workload, f"hpa {what} 0") for what in ("target", "metric"))
    return [parse_quantity(str(each)) if each else None for each in shown]


def _expected(case: _Case) -> list[Decimal]:
    return [Decimal(case.hpa_target), Decimal(case.hpa_value)]


@pytest.mark.core
@pytest.mark.generations
async def test_an_empty_list_holds_the_replicas_and_is_no_error_and_activity_counts_beside_it(
    lab: Lab, recorder: Recorder
) -> None:
    recorder.values = [_value(30, 30)]
    await lab.deploy("bert")
    await lab.autoscale(
        "bert",
        lab.gpu("bert", scalerAddress=recorder.address),
        min_replicas=0,
        # One error more than this, and there are 7 replicas.
        fallback={"failureThreshold": 1, "replicas": 7},
    )
    await lab.reaches("bert", 3)

    recorder.values = []
    lab.timeline.note("the list is empty")
    await lab.stays("bert", 3, for_seconds=10)
    assert "False FailedGetExternalMetric" in lab.timeline.path("bert", "hpa ScalingActive")
    recorder.values = [_value(40, 40)]
    await lab.reaches("bert", 4)

    recorder.values, recorder.active = [], False
    lab.timeline.note("the list is empty, and nothing is active")
    await lab.reaches("bert", 0)
    assert 7 not in lab.path("bert"), lab.story()
    assert keda_log.failures(lab) == [], lab.story()


@pytest.mark.generations
async def test_activity_counts_in_polls_only(lab: Lab, recorder: Recorder) -> None:
    recorder.active_for_hpa = False
    await lab.deploy("bert", replicas=1)
    given = lab.gpu("bert", scalerAddress=recorder.address)
    await lab.autoscale("bert", given, min_replicas=0)
    # Longer than the cooldown.
    await lab.stays("bert", 1, for_seconds=10)
    recorder.active, recorder.active_for_hpa = False, True
    await lab.reaches("bert", 0)
