"""Recipes on the metrics of Alibaba Cloud's exporters, with their own names, labels and units.

The pages in docs/migrate translate these recipes; here the translations run.
"""

import pytest

from tests.e2e import exporters
from tests.e2e.lab import Lab

TARGET = "20"
MEMORY_MIB, MEMORY_PERCENT = 48935, 60
"""What the model of a simulated pod takes of its card, busy or not."""
LEGACY, CUSTOM = "ack-legacy", "ack-dcgm-custom"
EXAMPLES = {"managed-cloud": CUSTOM, "gpu-exporter": LEGACY}
SERVICE = "bert-intent-detection"


@pytest.mark.parametrize(("example", "exporter"), EXAMPLES.items(), ids=EXAMPLES)
async def test_one_pod_at_23_percent_of_20_becomes_two_and_is_one_again_afterwards(
    lab: Lab, example: str, exporter: str
) -> None:
    await exporters.show_as(lab, exporter)
    # These exporters show whole numbers: 22 is the last one that the HPA's 10 % leave alone.
    await lab.deploy("at-the-edge", replicas=1, load=22)
    await lab.autoscale("at-the-edge", lab.gpu("at-the-edge", profile=exporter, threshold=TARGET))
    await lab.deploy(SERVICE, replicas=1, load=23)
    applied = await exporters.autoscale_by(lab, example)
    assert (applied["threshold"], applied["profile"]) == (TARGET, exporter)

    await lab.reaches(SERVICE, 2)
    await lab.stays(SERVICE, 2, for_seconds=10)
    await lab.offer(SERVICE, 0)
    await lab.reaches(SERVICE, 1)
    assert lab.path(SERVICE) == [1, 2, 1], lab.story()
    assert lab.path("at-the-edge") == [1], lab.story()
    assert lab.timeline.last("at-the-edge", "hpa metric 0") == "22", lab.story()


@pytest.mark.parametrize("exporter", [CUSTOM, LEGACY])
async def test_the_cards_other_numbers_scale_in_their_own_units(lab: Lab, exporter: str) -> None:
    await exporters.show_as(lab, exporter)
    # 50 % of load are 50 °C, and half as much on each of two is 40. 100 % are 700 W, and then 385.
    loads = {"hot": 50, "drawing": 100, "in-mebibytes": 0, "in-percent": 0, "full": 0}
    asked = {
        "hot": {"signal": "temperature", "threshold": "40", "activationThreshold": "35"},
        "drawing": {"signal": "power", "threshold": "400", "activationThreshold": "80"},
        "in-mebibytes": {
            "signal": "memory-used",
            "threshold": str(MEMORY_MIB),
            "activationThreshold": "60000",
        },
        "in-percent": {
            "signal": "memory",
            "threshold": str(MEMORY_PERCENT),
            "activationThreshold": "70",
        },
        "full": {"signal": "memory", "threshold": "50", "activationThreshold": "70"},
    }
    for name, load in loads.items():
        await lab.deploy(name, replicas=1, load=load)
        trigger = lab.gpu(name, profile=exporter, **asked[name])
        await lab.autoscale(name, trigger, max_replicas=3)

    await lab.reaches("hot", 2)
    await lab.reaches("drawing", 2)
    # Each new replica takes the same memory again, so this one ends at its maximum.
    await lab.reaches("full", 3)
    for name, shown in {"in-mebibytes": MEMORY_MIB, "in-percent": MEMORY_PERCENT}.items():
        await lab.becomes(name, "measured")
        await _shows(lab, name, shown)
    await lab.stays("hot", 2, for_seconds=10)
    assert lab.path("hot") == lab.path("drawing") == [1, 2], lab.story()
    assert lab.path("in-mebibytes") == lab.path("in-percent") == [1], lab.story()


async def _shows(lab: Lab, name: str, number: float) -> None:
    """Wait until the HPA shows about this number for one replica."""

    async def shown() -> bool:
        value = lab.decisions(name)[-1]["value"]
        metric = lab.timeline.last(name, "hpa metric 0")
        return value == pytest.approx(number, rel=1e-3) and metric is not None

    await lab.wait(shown, f"{name} shows {number}")


async def test_63_percent_over_three_minutes_at_a_target_of_40_are_two_replicas(
    lab: Lab,
) -> None:
    await exporters.show_as(lab, LEGACY)
    service = "fast-style-transfer-serving"
    await lab.deploy(service, replicas=1, load=63)
    applied = await exporters.autoscale_by(lab, "duty-cycle")
    assert (applied["window"], applied["threshold"]) == ("3m", "40")
    # A pod counts once its samples fill half a window, which are 90 seconds here.
    await lab.reaches(service, 2)
    await lab.becomes(service, "starting")
    await lab.becomes(service, "measured")
    # 32 on each of two; the mean of the first has minutes at 63 in it, and still no third comes.
    await lab.stays(service, 2, for_seconds=10)

    await lab.offer(service, 0)
    await lab.reaches(service, 1)
    assert lab.path(service) == [1, 2, 1], lab.story()
