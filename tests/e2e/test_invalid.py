"""A wrong trigger: KEDA's log tells the operator what to write, and nothing else happens.

KEDA shows the error of a call in its log. Its conditions and Events say only that something is
wrong with the triggers: KEDA asks for the metric's name first, and gets no further.
"""

import json

import pytest

from tests.e2e import keda_log
from tests.e2e.lab import COOLDOWN_SECONDS, Lab

WRONG = {"threshold": "seventy", "activationTreshold": "5"}
EXPLAINED = (
    '"activationTreshold": unknown key; did you mean activationThreshold?',
    'threshold: "seventy"; expected a number without a unit, such as 70',
)


@pytest.mark.core
async def test_a_wrong_trigger_is_explained_in_kedas_log_and_works_once_it_is_corrected(
    lab: Lab,
) -> None:
    """Of one that was wrong from the beginning, and of one that becomes wrong at load."""
    await lab.deploy("bert", replicas=2, load=180)
    await lab.deploy("gpt", replicas=3, load=180)
    await lab.autoscale("bert", lab.gpu("bert", **WRONG))
    await lab.reaches("gpt", 3)
    # KEDA 2.20 can take an error for idleness; its cooldowns alone protect pods from that.
    cooldowns = {"cooldown_seconds": 120, "initialCooldownPeriod": 120}
    await lab.autoscale("gpt", lab.gpu("gpt"), min_replicas=0, **cooldowns)
    await lab.shows("gpt", "hpa ScalingActive", "True")
    await lab.patch("gpt", triggers=[lab.gpu("gpt", **WRONG)])
    for name in ("bert", "gpt"):
        await _is_explained(lab, name)
        await lab.shows(name, "keda Ready", "False")
    await lab.stays("gpt", 3, for_seconds=2 * COOLDOWN_SECONDS)
    assert lab.timeline.last("bert", "keda Ready") == "False ScaledObjectCheckFailed", lab.story()
    assert lab.path("bert") == [2], lab.story()

    for name in ("bert", "gpt"):
        await lab.patch(name, triggers=[lab.gpu(name)])
        await lab.shows(name, "keda Ready", "True")
    # 180 % over 70 % per replica: 2.6, so 3.
    await lab.reaches("bert", 3)
    await lab.offer("gpt", 60)
    await lab.reaches("gpt", 1)
    assert 0 not in lab.path("gpt"), lab.story()


async def _is_explained(lab: Lab, name: str) -> None:
    """Wait until KEDA's log names every mistake of a ScaledObject with its key and value."""

    def explained() -> bool:
        errors = [
            each["error"]
            for each in keda_log.errors(lab)
            if "error" in each and name in json.dumps(each)
        ]
        return any(all(words in error for words in EXPLAINED) for error in errors)

    await lab.wait(explained, f"KEDA's log says {EXPLAINED}")
