"""Which parts of the past a survey reads with one list of what there was."""

import pytest

from keda_gpu_scaler.spec.durations import DAY_SECONDS
from keda_gpu_scaler.workbench.survey.reading import PART_SECONDS, begin_of, day_of

MIDNIGHT = 20_000 * DAY_SECONDS


@pytest.mark.parametrize("hours", [1 / 12, 4, 12, 20, 287 / 12, 24])
def test_a_list_reaches_back_to_the_begin_of_each_part_of_its_day(hours: float) -> None:
    newest = MIDNIGHT + hours * 3600
    whole = newest // PART_SECONDS * PART_SECONDS
    ends = [newest, *(whole - number * PART_SECONDS for number in range(12))]
    for end in ends:
        listed_at = max(other for other in ends if day_of(other) == day_of(end))
        assert listed_at - DAY_SECONDS <= begin_of(end)
