"""The recorded pages of exporters: complete, and read the same without a Prometheus."""

import pytest

from keda_gpu_scaler import profiles
from keda_gpu_scaler.observation import GpuReports, Target
from keda_gpu_scaler.sources import exposition
from keda_gpu_scaler.sources.client import Answer
from keda_gpu_scaler.sources.history import History
from keda_gpu_scaler.spec import Signal
from tests import exporters
from tests.exporters import SAMPLES, SHARED, SHARED_UUID, approximately, need, newest

SHOWN = [(name, signal) for name, sample in SAMPLES.items() for signal in sample.shown]


# The table


def test_every_profile_has_a_page_and_its_numbers() -> None:
    assert set(SAMPLES) == set(profiles.PROFILES)
    assert {path.stem for path in exporters.PAGES.iterdir()} == {*SAMPLES, SHARED}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_signal_of_a_profile_has_its_numbers(name: str) -> None:
    assert set(SAMPLES[name].shown) == set(profiles.signals(name))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_that_is_not_verified_says_so(name: str) -> None:
    first = exporters.page(name).splitlines()[0]

    assert first.startswith("# ")
    assert first.startswith("# UNVERIFIED") == (not profiles.PROFILES[name].verified)


@pytest.mark.parametrize(("name", "signal"), SHOWN)
def test_every_metric_of_a_profile_is_on_its_page(name: str, signal: Signal) -> None:
    text = exporters.page(name)
    optional = {
        "DCGM_FI_DEV_FB_TOTAL",  # collected only if asked for
        "gpu_power_usage",  # the third of three names
    }
    names = {metric for _, metric in profiles.metric_names(name, signal)} - optional
    old_only = {metric for metric in names if name == "dcgm-old" and "PROF_GR_" in metric}

    assert all(f"\n{metric}{{" in text for metric in names - old_only)


# Directly


def scraped(name: str) -> History:
    answer = Answer(200, "text/plain", exporters.page(name).encode())
    history = History(600)
    history.add(0, {Target("gpus", "http://exporter/metrics"): exposition.samples(answer)})
    return history


@pytest.mark.parametrize(("name", "signal"), SHOWN)
def test_a_page_that_is_scraped_directly_says_the_same(name: str, signal: Signal) -> None:
    sample = SAMPLES[name]
    if not sample.scrapable:
        return
    numbers = sample.auto.get(signal, sample.shown[signal])

    history = scraped(name)
    found = history.observation(need(name, profiles.AUTO, signal), 0)
    assert newest(found) == approximately(numbers)
    if name != "dcgm-exported":  # these labels are Prometheus' own
        found = history.observation(need(name, name, signal), 0)
        assert newest(found) == approximately(sample.shown[signal])


def test_the_devices_own_series_does_not_look_like_a_lost_pod() -> None:
    """Otherwise no pod that shared this GPU could ever be seen to have ended."""
    assert scraped(SHARED).gpus([SHARED_UUID]) == GpuReports(frozenset({SHARED_UUID}))
