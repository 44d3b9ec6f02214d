"""`keda-gpu-scaler explain` names what holds the replicas, and the cluster's conditions agree.

Each workload of one lab is brought to another gate, where it stays: the windows are longer than the
scenario. Then the real command is run against the running scaler and the API server.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from testbed.processes import bounded
from tests.e2e.lab import PATIENCE_SECONDS, Lab

_COMMAND = str(Path(sys.executable).with_name("keda-gpu-scaler"))
LONG_SECONDS = 900
"""A window, period or cooldown that does not end within the scenario."""
assert LONG_SECONDS > PATIENCE_SECONDS
GONE = "sources: {gone: {type: prometheus, url: http://127.0.0.1:9}}"
"""A second source, which nobody reaches: of its triggers the load is not known."""


class Gate(NamedTuple):
    """What is expected of one workload."""

    name: str
    condition: str
    """As type=status/reason, of the HPA or of the ScaledObject."""
    words: Sequence[str]
    """What the sentence has to say."""


GATES = {
    "near": Gate("tolerance", "AbleToScale=True/ReadyForNewScale", ["keeps 2", "75", "1.071"]),
    "settling": Gate(
        "stabilization",
        "AbleToScale=True/ScaleDownStabilized",
        [
            f"stabilizationWindowSeconds {LONG_SECONDS} s",
            "at least 3 replicas",
            "now the metrics need 1 replica",
        ],
    ),
    "slow": Gate("policy", "ScalingLimited=True/ScaleUpLimit", [f"1 Pods in {LONG_SECONDS} s"]),
    "full": Gate(
        "max", "ScalingLimited=True/TooManyReplicas", ["maxReplicaCount 2", "need 3 replicas"]
    ),
    "least": Gate(
        "min", "ScalingLimited=True/TooFewReplicas", ["minReplicaCount 2", "need 1 replica"]
    ),
    "unknown": Gate("hold", "ScalingActive=False/FailedGetExternalMetric", ["keeps 1 replica"]),
    "paused": Gate("paused", "Paused=True/ScaledObjectPaused", ["paused-replicas", "at 1"]),
    "cooling": Gate(
        "cooldown", "Active=False/ScalerCooldown", [f"cooldownPeriod {LONG_SECONDS} s"]
    ),
    "failing": Gate(
        "fallback", "Fallback=True/FallbackExists", ["2 replicas", "failureThreshold 1"]
    ),
    "kept": Gate("paused-scale-in", "ScalingLimited=True/ScaleDownLimit", ["no scale-in"]),
    "wrong": Gate("ready", "Ready=False/ScaledObjectCheckFailed", ["cannot work on"]),
    "asleep": Gate("activation", "Active=False/ScalerNotActive", ["no trigger is active"]),
}


def _behavior(up: Mapping[str, Any], down: Mapping[str, Any]) -> dict[str, Any]:
    behavior = {"scaleUp": up, "scaleDown": down}
    return {"horizontalPodAutoscalerConfig": {"behavior": behavior}}


async def _begin(lab: Lab) -> None:
    settings = lab.directory / "settings.yaml"
    settings.write_text(GONE)
    await lab.scaler.restart(CONFIG=str(settings))
    given = {"near": 150, "strict": 150, "settling": 200, "slow": 230, "full": 180, "kept": 200}
    begun = {"near": 2, "strict": 2, "settling": 3, "full": 2, "least": 2, "kept": 3, "asleep": 0}
    for name in ["strict", *GATES]:
        load = given.get(name, 20)
        await lab.deploy(name, replicas=begun.get(name, 1), load=load)
    await lab.autoscale("near", lab.gpu("near"))
    strict = _behavior({"tolerance": "0.01"}, {"tolerance": "0.01"})
    await lab.autoscale("strict", lab.gpu("strict"), advanced=strict)
    settling = lab.gpu("settling")
    await lab.autoscale("settling", settling, stabilization_seconds=LONG_SECONDS)
    policies = [{"type": "Pods", "value": 1, "periodSeconds": LONG_SECONDS}]
    slow = _behavior({"policies": policies}, {})
    await lab.autoscale("slow", lab.gpu("slow"), advanced=slow)
    await lab.autoscale("full", lab.gpu("full"), max_replicas=2)
    await lab.autoscale("least", lab.gpu("least"), min_replicas=2, stabilization_seconds=0)
    await lab.autoscale("unknown", lab.gpu("unknown", source="gone"))
    await lab.autoscale("paused", lab.gpu("paused"))
    cooling = {"min_replicas": 0, "cooldown_seconds": LONG_SECONDS}
    await lab.autoscale("cooling", lab.gpu("cooling"), **cooling)
    fallback = {"failureThreshold": 1, "replicas": 2}
    refusing = lab.gpu("failing", source="gone", onUnknown="error")
    await lab.autoscale("failing", refusing, fallback=fallback)
    await lab.autoscale("kept", lab.gpu("kept"), stabilization_seconds=0)
    await lab.annotate("kept", paused_scale_in="true")
    await lab.autoscale("wrong", lab.gpu("wrong", threshold="seventy"))
    await lab.is_known("asleep")
    await lab.autoscale("asleep", lab.gpu("asleep"), min_replicas=0)


async def _arrive(lab: Lab) -> None:
    """Bring each workload to its gate, and wait until the cluster says that it is there."""
    await lab.reaches("settling", 3)
    for name in "settling", "paused", "kept":
        await lab.shows(name, "hpa ScalingActive", "True")
    await lab.shows("cooling", "keda Active", "True")
    for name in "settling", "kept":
        await lab.offer(name, 60)
    await lab.offer("cooling", 0)
    await lab.annotate("paused", paused_replicas="1")
    await lab.shows("near", "hpa metric 0", "75")
    for name, gate in GATES.items():
        kind, _, said = gate.condition.partition("=")
        whose = "hpa" if kind in {"AbleToScale", "ScalingActive", "ScalingLimited"} else "keda"
        await lab.shows(name, f"{whose} {kind}", said.replace("/", " "))
    await lab.reaches("failing", 2)
    await lab.reaches("strict", 3)
    await lab.shows("strict", "hpa metric 0", "50")


def _conditions(lab: Lab, name: str) -> set[str]:
    """Return every condition of a ScaledObject and its HPA, as type=status/reason."""
    return {
        f"{aspect.partition(' ')[2]}={str(value).replace(' ', '/')}"
        for aspect, value in lab.timeline.now(name).items()
    }


async def _explain(lab: Lab, name: str, *arguments: str) -> str:
    """Run the real command as a person does, and return what it prints.

    The scaler knows nothing of a trigger that it has refused: then the gates alone are shown.
    """
    process = await asyncio.create_subprocess_exec(
        *bounded(PATIENCE_SECONDS),
        *(_COMMAND, "explain", f"{lab.name}/{name}", "--timeout", "60", *arguments),
        *("--server", f"http://{lab.scaler.http_address}", "--kubeconfig", str(lab.kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, complaints = await process.communicate()
    is_wrong = name == "wrong"
    assert (process.returncode, bool(complaints)) == (int(is_wrong), is_wrong), complaints.decode()
    return printed.decode()


async def test_explain_names_the_gate_that_the_cluster_shows(lab: Lab) -> None:
    await _begin(lab)
    await _arrive(lab)
    for name, gate in GATES.items():
        before = _conditions(lab, name)
        found = json.loads(await _explain(lab, name, "--output", "json"))["gates"]
        shown = before & _conditions(lab, name)
        first = found["gates"][0]
        assert first["name"] == gate.name, f"{name}: {found}\n{lab.story()}"
        assert first["condition"] == gate.condition, first
        assert gate.condition in shown, f"{name}: {shown}"
        assert [words for words in gate.words if words not in found["reason"]] == [], found
    found = json.loads(await _explain(lab, "strict", "--output", "json"))["gates"]
    assert (found["gates"], found["replicas"]) == ([], 3), f"{found}\n{lab.story()}"
    text = await _explain(lab, "settling")
    assert "stabilization: the HPA waits: stabilizationWindowSeconds 900 s" in text
