"""The recorded pages of exporters: complete, and read the same without a Prometheus."""

import pytest

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.snapshot.observation import Target
from keda_gpu_scaler.sources.scrape.page_samples import parse
from keda_gpu_scaler.sources.scrape.rounds import Rounds, Scrape
from tests.support import exporters
from tests.support.exporters import SAMPLES, approximately, newest, snapshot_query

SHOWN = [(name, signal) for name, sample in SAMPLES.items() for signal in sample.shown]


# The table


def test_every_profile_has_a_page() -> None:
    assert set(SAMPLES) == set(profiles.PROFILES)


def test_every_signal_of_a_profile_has_its_numbers() -> None:
    assert {name: set(sample.shown) for name, sample in SAMPLES.items()} == {
        name: set(profiles.signals(name)) for name in SAMPLES
    }


def test_a_page_that_is_not_verified_says_so(subtests: pytest.Subtests) -> None:
    for name in SAMPLES:
        first = exporters.page(name).splitlines()[0]
        with subtests.test(name):
            assert first.startswith("# ")
            assert first.startswith("# UNVERIFIED") == (not profiles.PROFILES[name].verified)


def test_every_metric_of_a_profile_is_on_its_page(subtests: pytest.Subtests) -> None:
    optional = {
        "DCGM_FI_DEV_FB_TOTAL",  # collected only if asked for
        "gpu_power_usage",  # the third of three names
        "amd_gpu_power_usage",
    }
    for name, signal in SHOWN:
        text = exporters.page(name)
        names = profiles.metric_names(name, signal) - optional
        old_only = {metric for metric in names if name == "dcgm-old" and "PROF_GR_" in metric}
        with subtests.test(f"{name} {signal}"):
            missing = {metric for metric in names - old_only if f"\n{metric}{{" not in text}
            assert missing == set()


# Directly


def scraped(name: str) -> Rounds:
    samples, history = parse(exporters.page(name).encode(), 0), Rounds(600)
    history.add(0, {Target("gpus", "http://exporter/metrics"): Scrape(0, samples)})
    return history


def test_a_page_that_is_scraped_directly_says_the_same(subtests: pytest.Subtests) -> None:
    for name, sample in SAMPLES.items():
        history = scraped(name)
        for signal, shown in sample.shown.items() if sample.scrapable else ():
            with subtests.test(f"{name} {signal}"):
                observation = history.observation(snapshot_query(name, profiles.AUTO, signal), 0)
                assert newest(observation) == approximately(sample.auto.get(signal, shown))
                if name != "dcgm-exported":  # these labels are Prometheus' own
                    observation = history.observation(snapshot_query(name, name, signal), 0)
                    assert newest(observation) == approximately(shown)
