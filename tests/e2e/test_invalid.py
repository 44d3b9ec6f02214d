"""A wrong trigger: KEDA's log tells the operator what to write, and nothing else happens.

KEDA shows the error of a call in its log. Its conditions and Events say only that something is
wrong with the triggers: KEDA asks for the metric's name first, and gets no further.
"""

import pytest

from tests.e2e import keda_log
from tests.e2e.lab import COOLDOWN_SECONDS, Lab

WRONG = {"threshold": "seventy", "activationTreshold": "5"}
EXPLAINED = (
    '"activationTreshold": unknown key; did you mean activationThreshold?',
    'threshold: "seventy"; expected a number without a unit, such as 70',
)


async def is_explained(lab: Lab) -> None:
    """Wait until KEDA's log names every mistake with its key and value."""

    async def explained() -> bool:
        said = [one["error"] for one in keda_log.errors(lab) if "error" in one]
        return any(all(each in error for each in EXPLAINED) for error in said)

    await lab.wait(explained, f"KEDA's log says {EXPLAINED}")


@pytest.mark.core
async def test_a_wrong_trigger_is_explained_in_kedas_log_and_works_once_it_is_corrected(
    lab: Lab,
) -> None:
    await lab.deploy("bert", replicas=2, load=180)
    await lab.autoscale("bert", lab.gpu("bert", **WRONG))
    await lab.shows("bert", "keda Ready", "False ScaledObjectCheckFailed")
    await is_explained(lab)
    await lab.stays("bert", 2, for_seconds=4)

    await lab.patch("bert", triggers=[lab.gpu("bert")])
    await lab.shows("bert", "keda Ready", "True")
    # 180 % over 70 % per replica: 2.6, so 3.
    await lab.reaches("bert", 3)


async def test_a_trigger_that_becomes_wrong_takes_no_pod_away(lab: Lab) -> None:
    await lab.deploy("bert", replicas=3, load=180)
    await lab.reaches("bert", 3)
    # KEDA 2.20 can take an error for idleness; its cooldowns alone protect pods from that.
    cooldowns = {"cooldown_seconds": 120, "initialCooldownPeriod": 120}
    await lab.autoscale("bert", lab.gpu("bert"), min_replicas=0, **cooldowns)
    await lab.shows("bert", "hpa ScalingActive", "True")

    await lab.patch("bert", triggers=[lab.gpu("bert", **WRONG)])
    await is_explained(lab)
    await lab.shows("bert", "keda Ready", "False")
    await lab.stays("bert", 3, for_seconds=2 * COOLDOWN_SECONDS)

    await lab.patch("bert", triggers=[lab.gpu("bert")])
    await lab.offer("bert", 60)
    await lab.reaches("bert", 1)
    assert 0 not in lab.path("bert"), lab.story()
