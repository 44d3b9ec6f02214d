"""The rules of KEDA and the HPA by which a past load is replayed, against what both really do.

With RECORD=1 in the environment, what happens is written to `tests/autoscaling/episodes`, for
`tests/autoscaling/test_episodes.py`.
"""

import contextlib
import os
import time

from keda_gpu_scaler.autoscaling.rules import MetricType
from tests.e2e.episodes import Episode, ScriptedScaler, Trouble, recorded, says, watching
from tests.e2e.lab import Lab
from tests.e2e.recorder import serving
from tests.support import episodes

DURATION_SECONDS = 110
POLLING_SECONDS = 2
ERROR, EMPTY = Trouble.ERROR, Trouble.EMPTY
AT_REST = says(0, active=False)
# No window and no period is a multiple of the seconds between two syncs.
EPISODES = {
    "climb": Episode(
        replicas=5,
        min_replicas=1,
        max_replicas=20,
        behavior={"scaleDown": {"stabilizationWindowSeconds": 5}},
        script={
            0: says(10),
            14: says(25),
            22: says(60),
            32: says(120),
            44: says(190),
            56: says(240),
            66: says(100),
            76: says(109),
            82: says(91),
            90: says(87),
            100: says(10),
        },
    ),
    "burst": Episode(
        min_replicas=1,
        max_replicas=30,
        script={
            0: says(10),
            12: says(300),
            18: says(10),
            45: says(80),
            50: says(300),
            56: says(20),
            80: says(65),
            95: says(71),
        },
    ),
    "sawtooth": Episode(
        min_replicas=1,
        behavior={
            "scaleUp": {"stabilizationWindowSeconds": 7},
            "scaleDown": {"stabilizationWindowSeconds": 11},
        },
        script={
            9 * count: says(value)
            for count, value in enumerate((20, 90, 30, 110, 10, 60, 61, 100, 20, 20, 80, 40, 50))
        },
    ),
    "zero": Episode(
        replicas=0,
        behavior={"scaleDown": {"stabilizationWindowSeconds": 5}},
        script={
            0: AT_REST,
            10: says(30),
            25: AT_REST,
            45: says(10),
            50: AT_REST,
            53: says(20),
            62: says(50, active=False),
            82: says(5),
            90: AT_REST,
        },
    ),
    "outage": Episode(
        replicas=0,
        behavior={"scaleDown": {"stabilizationWindowSeconds": 5}},
        script={
            0: AT_REST,
            8: says(30),
            20: says(ERROR),
            38: says(50),
            48: says(EMPTY),
            58: says(EMPTY, active=False),
            70: says(20),
            76: says(0),
            83: AT_REST,
            86: says(ERROR),
            98: AT_REST,
        },
    ),
    "metrics": Episode(
        behavior={"scaleDown": {"stabilizationWindowSeconds": 5}},
        script={
            0: says(10, 20),
            12: says(40, 20),
            24: says(40, ERROR),
            34: says(10, ERROR),
            44: says(0, 0, active=False),
            48: says(10, 60),
            60: says(EMPTY, 90),
            70: says(10, 10),
            80: says(ERROR, ERROR),
            88: says(0, 0, active=False),
        },
    ),
    "policies": Episode(
        min_replicas=1,
        max_replicas=30,
        behavior={
            "scaleUp": {
                "stabilizationWindowSeconds": 3,
                "selectPolicy": "Min",
                "policies": [
                    {"type": "Pods", "value": 3, "periodSeconds": 9},
                    {"type": "Percent", "value": 50, "periodSeconds": 5},
                ],
            },
            "scaleDown": {
                "stabilizationWindowSeconds": 7,
                "policies": [
                    {"type": "Pods", "value": 1, "periodSeconds": 5},
                    {"type": "Percent", "value": 30, "periodSeconds": 13},
                ],
            },
        },
        script={
            0: says(10),
            8: says(150),
            50: says(30),
            75: says(200),
            90: says(20),
        },
    ),
    "ups-and-downs": Episode(
        replicas=8,
        min_replicas=1,
        max_replicas=20,
        behavior={
            "scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 31}]},
            "scaleDown": {
                "stabilizationWindowSeconds": 0,
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": 1}],
            },
        },
        script={0: says(80), 10: says(10), 20: says(120), 70: says(10), 76: says(120)},
    ),
    "tolerance": Episode(
        replicas=12,
        min_replicas=1,
        max_replicas=20,
        behavior={
            "scaleUp": {"tolerance": "0.25"},
            "scaleDown": {"stabilizationWindowSeconds": 0, "tolerance": "0"},
        },
        # 1.17, 1.33, 0.93, 1.23, 0.93 of what the replicas carry at their target, and so on.
        script={
            0: says(120),
            12: says(140),
            24: says(160),
            36: says(148),
            46: says(185),
            58: says(139),
            70: says(136),
            80: says(180),
            90: says(99),
        },
    ),
    "limits": Episode(
        replicas=3,
        min_replicas=1,
        behavior={
            "scaleUp": {"policies": [{"type": "Pods", "value": 3, "periodSeconds": 31}]},
            "scaleDown": {"stabilizationWindowSeconds": 5},
        },
        script={0: says(30), 8: says(100), 60: says(140), 95: says(60)},
        edits={50: {"maxReplicaCount": 4}, 62: {"maxReplicaCount": 15}},
    ),
    "idle": Episode(
        replicas=0,
        min_replicas=2,
        idle_replicas=0,
        behavior={"scaleDown": {"stabilizationWindowSeconds": 5}},
        script={
            0: AT_REST,
            10: says(10),
            25: says(50),
            40: AT_REST,
            60: says(50),
            75: says(10),
            85: AT_REST,
        },
    ),
    "minimum": Episode(
        replicas=0,
        min_replicas=2,
        behavior={"scaleDown": {"stabilizationWindowSeconds": 5}},
        script={
            0: AT_REST,
            15: says(50),
            30: AT_REST,
            45: says(ERROR),
            60: says(30),
            75: says(EMPTY),
            90: says(10),
        },
    ),
    "value": Episode(
        min_replicas=1,
        metric_type=MetricType.VALUE,
        startup_seconds=7,
        behavior={"scaleDown": {"stabilizationWindowSeconds": 5}},
        script={
            0: says(10),
            10: says(25),
            35: says(10.5),
            45: says(5),
            60: says(14),
            80: says(9.5),
            90: says(2),
        },
    ),
}


async def test_replicas_follow_the_rules_at_each_sync_and_poll(lab: Lab) -> None:
    scaler = ScriptedScaler(scripts={name: each.script for name, each in EPISODES.items()})
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(serving(scaler))
        for name, episode in EPISODES.items():
            startup = episode.startup_seconds
            await lab.deploy(name, replicas=episode.replicas, gpus=0, startup_seconds=startup)
        for name, episode in EPISODES.items():
            await lab.reaches(name, episode.replicas)
        watched = await stack.enter_async_context(watching(lab.client, lab.name))
        scaler.begin = time.time()
        for name, episode in EPISODES.items():
            await _autoscale(lab, name, episode, scaler.address)
        edits = [
            (seconds, name, fields)
            for name, episode in EPISODES.items()
            for seconds, fields in episode.edits.items()
        ]
        for seconds, name, fields in sorted(edits, key=lambda edit: edit[0]):
            await _comes(lab, scaler.begin + seconds)
            await lab.patch(name, **fields)
        await _comes(lab, scaler.begin + DURATION_SECONDS)
    recordings = {
        name: recorded(name, episode, scaler, watched) for name, episode in EPISODES.items()
    }
    if os.environ.get("RECORD"):
        for name, recording in recordings.items():
            episodes.write(name, recording)
    compared = [
        (name, comparison)
        for name, recording in recordings.items()
        for comparison in episodes.compared(recording)
    ]
    assert len(compared) > len(EPISODES) * DURATION_SECONDS / 3
    different = [f"{name} {each}" for name, each in compared if not each.is_equal]
    # On a busy machine, what happens at the same time can be seen in the wrong order.
    assert len(different) <= len(compared) / 100, "\n".join(different)


async def _autoscale(lab: Lab, name: str, episode: Episode, address: str) -> None:
    behavior = {} if episode.behavior is None else {"behavior": episode.behavior}
    idle = episode.idle_replicas
    await lab.autoscale(
        name,
        {
            "type": "external",
            "metricType": episode.metric_type,
            "metadata": {"scalerAddress": address},
        },
        min_replicas=episode.min_replicas,
        max_replicas=episode.max_replicas,
        polling_seconds=POLLING_SECONDS,
        initialCooldownPeriod=0,
        advanced={"horizontalPodAutoscalerConfig": behavior},
        **({} if idle is None else {"idleReplicaCount": idle}),
    )


async def _comes(lab: Lab, at: float) -> None:
    await lab.wait(lambda: time.time() >= at, "time goes by")
