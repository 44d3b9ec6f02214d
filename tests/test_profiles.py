"""The table of exporters: every row can be read without guessing."""

import itertools

import pytest

from keda_gpu_scaler import profiles
from keda_gpu_scaler.profiles import Measure, Scheme
from keda_gpu_scaler.spec import Signal

DCGM_BLANKS = (2147483632, 9223372036854775792, 140737488355328.0)
ROWS = [
    pytest.param(profile, scheme, signal, measure, id=f"{profile}-{number}-{signal}")
    for profile, schemes in profiles.PROFILES.items()
    for number, scheme in enumerate(schemes)
    for signal, measure in scheme.measures.items()
]


@pytest.mark.parametrize("profile", profiles.PROFILES)
@pytest.mark.parametrize("signal", Signal)
def test_every_profile_reads_every_signal_it_can(profile: str, signal: Signal) -> None:
    ways = profiles.measures(profile, signal)
    schemes = profiles.PROFILES[profile]

    assert [(one.labels, one.measures[signal]) for one in schemes if signal in one.measures] == ways
    assert ways


@pytest.mark.parametrize(("profile", "scheme", "signal", "measure"), ROWS)
def test_no_blank_value_of_dcgm_is_believable(
    profile: str, scheme: Scheme, signal: Signal, measure: Measure
) -> None:
    del profile, scheme, signal
    assert all(metric.limit < blank for metric in measure.metrics for blank in DCGM_BLANKS)


@pytest.mark.parametrize(("profile", "scheme", "signal", "measure"), ROWS)
def test_percentages_end_at_about_a_hundred(
    profile: str, scheme: Scheme, signal: Signal, measure: Measure
) -> None:
    del profile, scheme
    largest = {metric.limit * metric.factor for metric in measure.metrics}
    if signal.is_percentage and not measure.is_ratio:
        assert all(100 <= limit <= 101 for limit in largest)


@pytest.mark.parametrize(("profile", "scheme", "signal", "measure"), ROWS)
def test_only_memory_is_a_ratio_and_has_both_halves(
    profile: str, scheme: Scheme, signal: Signal, measure: Measure
) -> None:
    del profile, scheme
    assert measure.is_ratio == (signal is Signal.MEMORY)
    assert len(measure.metrics) == 2 or not measure.is_ratio


@pytest.mark.parametrize(("profile", "scheme", "signal", "measure"), ROWS)
def test_only_profiling_metrics_are_averages(
    profile: str, scheme: Scheme, signal: Signal, measure: Measure
) -> None:
    del profile, scheme, signal
    for metric in measure.metrics:
        assert metric.averaged == ("_PROF_" in metric.name)
        assert metric.factor == (100 if metric.averaged else 1)


@pytest.mark.parametrize("signal", Signal)
def test_auto_reads_everything_that_any_profile_reads(signal: Signal) -> None:
    auto = {
        (labels, metric.name)
        for labels, measure in profiles.measures("auto", signal)
        for metric in measure.metrics
    }
    for profile in profiles.PROFILES:
        for labels, measure in profiles.measures(profile, signal):
            assert {(labels, metric.name) for metric in measure.metrics} <= auto


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("auto", ["DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"]),
        ("dcgm", ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"]),
        ("dcgm-exported", ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"]),
        ("dcgm-prof", ["DCGM_FI_PROF_GR_ENGINE_ACTIVE"]),
        ("dcgm-old", ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"]),
    ],
)
def test_a_profile_prefers_its_own_metric(profile: str, expected: list[str]) -> None:
    _, measure = profiles.measures(profile, Signal.UTILIZATION)[0]

    assert [metric.name for metric in measure.metrics] == expected


def test_no_two_label_schemes_fit_one_row() -> None:
    for one, other in itertools.combinations(profiles.PROFILES["auto"], 2):
        apart = one.labels.pod in other.labels.absent or other.labels.pod in one.labels.absent
        assert apart or one.labels == other.labels


@pytest.mark.parametrize("profile", profiles.PROFILES)
def test_utilization_is_known_of_every_exporter(profile: str) -> None:
    names = {
        metric.name
        for _, measure in profiles.measures(profile, Signal.UTILIZATION)
        for metric in measure.metrics
    }
    assert names <= set(profiles.UTILIZATION_METRICS)
