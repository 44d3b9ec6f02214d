"""The document of kind Episode: what is read of it, what is refused, what fails."""

import re
from typing import Any

import pytest

from keda_gpu_scaler.workbench.backtest import episode
from keda_gpu_scaler.workbench.backtest.replay import Outcome

LOAD = {"load": {"0s": 40, "30s": "300"}, "expect": {"1m": 1, "45s": "2-4"}}


def test_a_curve_has_its_numbers_from_each_time_on() -> None:
    parsed = episode.parse({**LOAD, "replicas": 2, "startUp": "30s", "demand": {"15s": 7}})
    assert parsed.work.loads == [40, 40, 300, 300, 300]
    assert parsed.work.demands == [0, 7, 7, 7, 7]
    assert parsed.work.replicas == [2] * 5
    assert [str(one) for one in parsed.expectations] == ["2 to 4 replicas", "1 replica"]
    assert parsed[2:] == (30, 0, 100)
    parsed = episode.parse({"demand": {"0s": 30}, "capacity": 20, "expect": {"0s": 1}})
    assert parsed.work.loads == [150]


def test_a_size_that_is_not_expected_is_a_failure() -> None:
    outcome = Outcome(0, (), 0, 0, 0, (1, 1, 1, 5, 1))
    found = list(episode.failures(episode.parse(LOAD), outcome))
    assert found == ["at 45s: expected 2 to 4 replicas, there are 5"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expect": {}}, "expect: expected replicas at one time at least, such as 10m: 3"),
        ({"expect": {"1m": "2-"}}, "expect.1m '2-': expected a number, or a range: 2-4"),
        ({"expect": {"1": 2}}, "expect: '1': expected a duration such as 30s, 2m or 1h30m"),
        ({"expect": {"8d": 2}}, "expect: '8d': expected at most 7d"),
        ({"load": {"soon": 2}}, "load: 'soon': expected a duration"),
        ({"load": {}}, "expected a load, or a demand with the capacity of a replica"),
        ({"capacity": 5}, "expected a load, or a demand with the capacity of a replica"),
        ({"capacity": 0, "load": {}}, "Expected `float` > 0.0 - at `$.capacity`"),
        ({"load": {"0s": -1}}, "Expected `float` >= 0.0 - at `$.load[...]`"),
        ({"load": {"0s": "nan"}}, "Expected"),
        ({"load": {"0s": "inf"}}, "Expected"),
        ({"startup": "2m"}, "Object contains unknown field `startup`"),
        ({"startUp": "2"}, "startUp: '2': expected a duration"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        episode.parse({**LOAD, **change})
