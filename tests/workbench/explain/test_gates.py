"""The gates behind a value: on objects of real clusters, and on each branch of their rules."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from keda_gpu_scaler.autoscaling import api_objects, rules
from keda_gpu_scaler.workbench.explain import gates
from keda_gpu_scaler.workbench.explain.gates import Facts

RECORDED = Path(__file__).parents[2] / "data" / "gates"
AT = 1767268800.0
"""12:00:00 UTC."""
PAUSED = "autoscaling.keda.sh/paused"
Json = dict[str, Any]
Says = Mapping[str, tuple[str, str]]
"""Status and reason of each type of condition."""
READY: Says = {
    "Ready": ("True", "ScaledObjectReady"),
    "Active": ("True", "ScalerActive"),
    "Fallback": ("False", "NoFallbackFound"),
}
STEADY: Says = {
    "AbleToScale": ("True", "ReadyForNewScale"),
    "ScalingActive": ("True", "ValidMetricFound"),
    "ScalingLimited": ("False", "DesiredWithinRange"),
}
IDLE: Says = {"Active": ("False", "ScalerNotActive")}
RESTING_UNKNOWN: Says = {"ScalingActive": ("False", "FailedGetExternalMetric")}
RESTING: Says = {"ScalingActive": ("False", "ScalingDisabled")}


def conditions(says: Says) -> list[Json]:
    return [
        {"type": kind, "status": status, "reason": reason, "message": f"{reason} it is"}
        for kind, (status, reason) in says.items()
    ]


def scaled_object(
    says: Says | None = None, *annotations: str, **more: Any
) -> api_objects.ScaledObject:
    status_keys = {"lastActiveTime", "health", "triggersActivity"} & more.keys()
    status = {key: more.pop(key) for key in status_keys}
    plain = {
        "metadata": {
            "annotations": dict(each.split("=") for each in annotations),
            "creationTimestamp": "2026-01-01T11:00:00Z",
        },
        "spec": {"scaleTargetRef": {"name": "bert"}, "minReplicaCount": 1} | more,
        "status": {"conditions": conditions({**READY, **(says or {})})} | status,
    }
    return msgspec.convert(plain, api_objects.ScaledObject)


def hpa(says: Says | None = None, average: str = "60", **more: Any) -> api_objects.HpaObject:
    """Return an HPA that has 2 replicas and a target of 70 per replica."""
    replicas = more.pop("replicas", 2)
    target = {"external": {"metric": {"name": "s0-gpu"}, "target": {"averageValue": "70"}}}
    now = {"external": {"metric": {"name": "s0-gpu"}, "current": {"averageValue": average}}}
    status = {
        "currentReplicas": replicas,
        "desiredReplicas": replicas,
        "currentMetrics": more.pop("now", [now]),
        "conditions": conditions({**STEADY, **(says or {})}),
    }
    spec = {"minReplicas": 1, "maxReplicas": 10, "metrics": more.pop("metrics", [target])} | more
    return msgspec.convert({"spec": spec, "status": status}, api_objects.HpaObject)


def scale(replicas: int, existing: int | None = None) -> api_objects.ScaleObject:
    there = replicas if existing is None else existing
    plain = {"spec": {"replicas": replicas}, "status": {"replicas": there}}
    return msgspec.convert(plain, api_objects.ScaleObject)


def facts(
    given: api_objects.ScaledObject | None = None,
    its: api_objects.HpaObject | None = None,
    **more: Any,
) -> Facts:
    known: Json = {"active": True, "asked": 2, **more}
    return Facts("kind", AT, given or scaled_object(), its, **known)


def names(known: Facts) -> list[str]:
    return [gate.name for gate in gates.gates(known).gates]


def recorded(name: str, **more: Any) -> Facts:
    plain = json.loads((RECORDED / f"{name}.json").read_text())
    its = plain["hpa"] if plain["hpa"].get("kind") == "HorizontalPodAutoscaler" else None
    return Facts(
        "kind",
        AT,
        msgspec.convert(plain["scaledObject"], api_objects.ScaledObject),
        None if its is None else msgspec.convert(its, api_objects.HpaObject),
        msgspec.convert(plain["scale"], api_objects.ScaleObject),
        **more,
    )


def _zero(says: Says, **more: Any) -> api_objects.ScaledObject:
    return scaled_object(says, minReplicaCount=0, **more)


SILENT_KEDA = _zero({"Active": ("Unknown", "")})


def metric(name: str, key: str, average: str) -> Json:
    return {"external": {"metric": {"name": name}, key: {"averageValue": average}}}


GPU, GPU_NOW = metric("s0-gpu", "target", "70"), metric("s0-gpu", "current", "10")
OTHER, OTHER_NOW = metric("s1-requests", "target", "5"), metric("s1-requests", "current", "5")
CPU = {"resource": {"name": "cpu", "target": {"averageUtilization": 80}}}
FORMULA = {"scalingModifiers": {"formula": "gpu + cron", "target": "70"}}
BY_CRON = {"s0-gpu": {"isActive": False}, "s1-cron": {"isActive": True}}


@pytest.mark.parametrize(
    ("known", "words"),
    [
        pytest.param(facts(its=hpa()), "replicas: 2 wanted, 2 running", id="right"),
        pytest.param(facts(its=hpa(), asked=3), "3 wanted, 2 running; the HPA looks", id="soon"),
        pytest.param(facts(its=hpa(), asked=None), "no number is wanted, 2 running", id="no value"),
        pytest.param(facts(its=hpa(RESTING), scale=scale(0)), "wakes", id="asleep and active"),
        pytest.param(
            facts(SILENT_KEDA, hpa(RESTING), scale=scale(0), active=False),
            "the workload waits for an active trigger",
            id="asleep and inactive",
        ),
        pytest.param(
            facts(SILENT_KEDA, hpa(RESTING), scale=scale(0), active=None),
            "the workload waits for an active trigger",
            id="asleep and unknown",
        ),
        pytest.param(
            facts(its=hpa(RESTING), scale=scale(0), active=False),
            "KEDA wakes",
            id="below the minimum",
        ),
        pytest.param(
            facts(_zero({}, advanced=FORMULA), hpa(RESTING), scale=scale(0)),
            "the formula of scalingModifiers decides whether",
            id="asleep with a formula",
        ),
        pytest.param(
            facts(scaled_object(advanced=FORMULA), hpa(), asked=9),
            "how many replicas it gets, and not the value",
            id="a formula",
        ),
        pytest.param(
            facts(its=hpa(metrics=[GPU, OTHER], now=[GPU_NOW, OTHER_NOW], replicas=5), asked=1),
            "15 s; the HPA takes the most: at its last sync s1-requests needed 5",
            id="another metric",
        ),
        pytest.param(
            facts(its=hpa(metrics=[GPU, CPU], now=[GPU_NOW]), asked=1, scale=scale(3)),
            "15 s; the HPA has cpu too, and its number is not known here",
            id="a metric of another kind",
        ),
        pytest.param(
            facts(_zero({}, triggersActivity=BY_CRON), hpa(), active=False),
            "2 running; another trigger is active: s1-cron",
            id="another trigger",
        ),
        pytest.param(
            facts(_zero({}), hpa(), active=False),
            "another trigger is active: KEDA does not show which",
            id="another trigger of an older KEDA",
        ),
    ],
)
def test_where_nothing_holds_that_is_said(known: Facts, words: str) -> None:
    shown = gates.gates(known)
    assert (shown.gates, words in shown.reason) == ((), True), shown.reason


def limited(reason: str) -> Says:
    return {"ScalingLimited": ("True", reason)}


def stabilized(reason: str) -> Says:
    return {"AbleToScale": ("True", reason)}


def not_ready(reason: str) -> Says:
    return {"Ready": ("False", reason)}


COOLING: Says = {"Active": ("False", "ScalerCooldown")}
FALLS_BACK: Says = {"Fallback": ("True", "FallbackExists")}
FALLBACK = {"failureThreshold": 3, "replicas": 4}
ONE_POD = {"type": "Pods", "value": 1, "periodSeconds": 60}
A_TENTH = {"type": "Percent", "value": 10, "periodSeconds": 30}


class Holding(NamedTuple):
    """What a cluster shows, and the first gate that holds, with its sentence."""

    known: Facts
    gate: str
    sentence: str


HOLDING = {
    "not ready": Holding(
        facts(scaled_object(not_ready("ScaledObjectCheckFailed")), hpa()),
        "ready",
        "KEDA cannot work on the ScaledObject: ScaledObjectCheckFailed it is",
    ),
    "paused": Holding(
        facts(scaled_object(None, f"{PAUSED}=true")),
        "paused",
        f"KEDA is paused by the annotation {PAUSED}: there is no HPA, and the replicas stay as "
        "they are",
    ),
    "paused by an annotation without a value": Holding(
        facts(scaled_object(None, f"{PAUSED}=")),
        "paused",
        f"KEDA is paused by the annotation {PAUSED}: there is no HPA, and the replicas stay as "
        "they are",
    ),
    "paused at a number": Holding(
        facts(scaled_object(None, f"{PAUSED}-replicas=3", f"{PAUSED}=false")),
        "paused",
        f"KEDA is paused by the annotation {PAUSED}-replicas: there is no HPA, and the replicas "
        "stay at 3",
    ),
    "fallback": Holding(
        facts(
            scaled_object(
                FALLS_BACK,
                fallback=FALLBACK,
                health={"s0-gpu": {"numberOfFailures": 5, "status": "Failing"}},
            ),
            hpa(),
        ),
        "fallback",
        "KEDA answers the HPA with its fallback in place of the value: 4 replicas, behavior "
        "static; 5 failures in a row, failureThreshold 3",
    ),
    "a fallback without a number": Holding(
        facts(
            scaled_object(FALLS_BACK, fallback={**FALLBACK, "behavior": "currentReplicas"}), hpa()
        ),
        "fallback",
        "KEDA answers the HPA with its fallback in place of the value: behavior currentReplicas; "
        "0 failures in a row, failureThreshold 3",
    ),
    "a trigger fails": Holding(
        facts(scaled_object(not_ready("TriggerError"), minReplicaCount=0), hpa(), active=None),
        "activation",
        "a trigger answers with an error: KEDA neither wakes nor goes to zero",
    ),
    "asleep": Holding(
        facts(scaled_object(IDLE, minReplicaCount=0), hpa(RESTING), scale=scale(0), active=False),
        "activation",
        "no trigger is active: KEDA leaves the workload at 0 replicas",
    ),
    "idle at the idle count": Holding(
        facts(
            scaled_object(IDLE, minReplicaCount=2, idleReplicaCount=0),
            hpa(RESTING, replicas=0),
            active=False,
        ),
        "activation",
        "no trigger is active: KEDA leaves the workload at 0 replicas",
    ),
    "asleep by a formula": Holding(
        facts(_zero(IDLE, advanced=FORMULA), hpa(RESTING), scale=scale(0)),
        "activation",
        "the formula of scalingModifiers is not active: KEDA leaves the workload at 0 replicas",
    ),
    "not to be woken": Holding(
        facts(
            scaled_object(None, f"{PAUSED}-scale-out=true", minReplicaCount=0),
            hpa(RESTING),
            scale=scale(0),
        ),
        "paused-scale-out",
        f"no scale-out while the annotation {PAUSED}-scale-out is there",
    ),
    "not to grow": Holding(
        facts(scaled_object(None, f"{PAUSED}-scale-out=yes"), hpa(limited("ScaleUpLimit"))),
        "paused-scale-out",
        f"no scale-out while the annotation {PAUSED}-scale-out is there",
    ),
    "not to end": Holding(
        facts(
            scaled_object(IDLE, f"{PAUSED}-scale-in=true", minReplicaCount=0), hpa(), active=False
        ),
        "paused-scale-in",
        f"no scale-in while the annotation {PAUSED}-scale-in is there",
    ),
    "not to shrink": Holding(
        facts(scaled_object(None, f"{PAUSED}-scale-in="), hpa(limited("ScaleDownLimit"))),
        "paused-scale-in",
        f"no scale-in while the annotation {PAUSED}-scale-in is there",
    ),
    "cooling": Holding(
        facts(
            scaled_object(COOLING, minReplicaCount=0, lastActiveTime="2026-01-01T11:58:30Z"),
            hpa(),
            active=False,
        ),
        "cooldown",
        "KEDA waits to scale to 0: cooldownPeriod 300 s from when a trigger was active last at "
        "11:58:30Z, so until 12:03:30Z and the poll after it",
    ),
    "cooling from the beginning": Holding(
        facts(
            scaled_object(
                COOLING, minReplicaCount=2, idleReplicaCount=0, initialCooldownPeriod=7200
            ),
            hpa(),
            active=None,
        ),
        "cooldown",
        "KEDA waits to scale to 0: initialCooldownPeriod 7200 s from when the ScaledObject was "
        "created at 11:00:00Z, so until 13:00:00Z and the poll after it",
    ),
    "no HPA": Holding(facts(), "hpa", "KEDA has created no HPA"),
    "a new HPA": Holding(
        facts(its=msgspec.convert({"spec": {"maxReplicas": 3}}, api_objects.HpaObject)),
        "hpa",
        "the HPA has not looked yet",
    ),
    "no scale": Holding(
        facts(its=hpa({"AbleToScale": ("False", "FailedGetScale")})),
        "hpa",
        "the HPA cannot scale the workload: FailedGetScale it is",
    ),
    "no value": Holding(
        facts(its=hpa(RESTING_UNKNOWN)),
        "hold",
        "the HPA keeps 2 replicas: FailedGetExternalMetric it is",
    ),
    "near": Holding(
        facts(its=hpa(average="75")),
        "tolerance",
        "the HPA keeps 2 replicas: 75 / 70 = 1.071 is within its "
        "tolerance (the cluster's, 0.1 unless set otherwise); without it 3 would be needed",
    ),
    "near by its own tolerance": Holding(
        facts(its=hpa(average="52500m", replicas=8, behavior={"scaleDown": {"tolerance": "300m"}})),
        "tolerance",
        "the HPA keeps 8 replicas: 52.5 / 70 = 0.750 is within its "
        "tolerance (0.3); without it 6 would be needed",
    ),
    "settling": Holding(
        facts(
            its=hpa(
                stabilized("ScaleDownStabilized"),
                average="10",
                behavior={"scaleDown": {"stabilizationWindowSeconds": 300}},
            )
        ),
        "stabilization",
        "the HPA waits: stabilizationWindowSeconds 300 s, the highest recommendation in it was at "
        "least 2 replicas; now the metrics need 1 replica, until 12:05:00Z at the latest, if "
        "that stays so",
    ),
    "settling by the cluster's window": Holding(
        facts(its=hpa(stabilized("ScaleDownStabilized"), average="10")),
        "stabilization",
        "the HPA waits: stabilizationWindowSeconds the controller manager's, 300 s unless it is "
        "told another, the highest recommendation in it was at least 2 replicas; now the metrics "
        "need 1 replica, the HPA does not show until when",
    ),
    "rising slowly": Holding(
        facts(
            its=hpa(
                stabilized("ScaleUpStabilized"),
                now=[],
                behavior={"scaleUp": {"stabilizationWindowSeconds": 60}},
            )
        ),
        "stabilization",
        "the HPA waits: stabilizationWindowSeconds 60 s, the lowest recommendation in it was at "
        "most 2 replicas; now the metrics need another number of replicas, until 12:01:00Z at "
        "the latest, if that stays so",
    ),
    "policies": Holding(
        facts(
            its=hpa(
                limited("ScaleDownLimit"),
                now=[],
                behavior={"scaleDown": {"selectPolicy": "Min", "policies": [ONE_POD, A_TENTH]}},
            )
        ),
        "policy",
        "the HPA's scaleDown policy limits how many replicas are removed: 1 Pods in 60 s, 10 "
        "Percent in 30 s, selectPolicy Min; it set 2, and the metrics need another number of "
        "replicas",
    ),
    "a forbidden direction": Holding(
        facts(
            its=hpa(
                limited("ScaleDownLimit"),
                average="10",
                behavior={"scaleDown": {"selectPolicy": "Disabled"}},
            )
        ),
        "policy",
        "the HPA's scaleDown policy limits how many replicas are removed: selectPolicy Disabled; "
        "it set 2, and the metrics need 1 replica",
    ),
    "no behavior": Holding(
        facts(its=hpa(limited("ScaleUpLimit"), average="700")),
        "policy",
        "the HPA's scaleUp policy limits how many replicas are added: no more than twice the "
        "replicas, or 4, at once; it set 2, and the metrics need 20 replicas",
    ),
    "the maximum": Holding(
        facts(scaled_object(maxReplicaCount=2), hpa(limited("TooManyReplicas"), average="100")),
        "max",
        "maxReplicaCount 2 is reached, and the metrics need 3 replicas",
    ),
    "the minimum": Holding(
        facts(scaled_object(minReplicaCount=2), hpa(limited("TooFewReplicas"), average="1")),
        "min",
        "minReplicaCount 2 is reached, and the metrics need 1 replica",
    ),
    "the HPA's own minimum": Holding(
        facts(
            scaled_object(minReplicaCount=0),
            hpa(limited("TooFewReplicas"), average="0", replicas=1),
        ),
        "min",
        "1 replica, the least that an HPA sets, is reached, and the metrics need 0 replicas",
    ),
}


@pytest.mark.parametrize(("known", "gate", "sentence"), HOLDING.values(), ids=HOLDING)
def test_the_first_gate_that_holds_is_named_with_its_numbers(
    known: Facts, gate: str, sentence: str
) -> None:
    shown = gates.gates(known)
    assert shown.reason == sentence
    assert (shown.gates[0].name, shown.gates[0].reason) == (gate, sentence)


def test_several_gates_come_in_the_order_in_which_keda_and_the_hpa_apply_them() -> None:
    says = {**not_ready("ScaledObjectCheckFailed"), **FALLS_BACK, **COOLING}
    its = hpa({**stabilized("ScaleDownStabilized"), **RESTING_UNKNOWN}, average="10")
    known = facts(scaled_object(says, minReplicaCount=0, fallback=FALLBACK), its, active=False)
    found = names(known)
    assert found == ["ready", "fallback", "cooldown", "hold", "stabilization"]
    assert found == [name for name in gates.NAMES if name in found]


FEWER_EXIST = scale(4, existing=3)
NOT_HOLDING = {
    "a fallback that does not run": (facts(scaled_object(fallback=FALLBACK), hpa()), "fallback"),
    "a fallback that was taken out": (facts(scaled_object(FALLS_BACK), hpa()), "fallback"),
    "woken soon": (facts(_zero({}), hpa(RESTING), scale=scale(0)), "activation"),
    "a trigger fails above a minimum": (
        facts(scaled_object(not_ready("TriggerError")), hpa()),
        "activation",
    ),
    "no word of KEDA's": (
        facts(SILENT_KEDA, hpa(RESTING), scale=scale(0), active=False),
        "activation",
    ),
    "a minimum": (
        facts(scaled_object(IDLE), hpa(RESTING), scale=scale(0), active=False),
        "activation",
    ),
    "a pause without effect": (
        facts(scaled_object(None, f"{PAUSED}-scale-in=true"), hpa()),
        "paused-scale-in",
    ),
    "a pause that is off": (
        facts(scaled_object(None, f"{PAUSED}-scale-in=false"), hpa(limited("ScaleDownLimit"))),
        "paused-scale-in",
    ),
    "a cooldown that ends": (facts(_zero(COOLING), hpa()), "cooldown"),
    "no HPA in a pause": (facts(scaled_object(None, f"{PAUSED}=true")), "hpa"),
    "a metric of another kind": (
        facts(its=hpa(average="75", metrics=[{"type": "Resource"}])),
        "tolerance",
    ),
    "a metric without a value": (facts(its=hpa(average="75", now=[{"type": ""}])), "tolerance"),
    "far off": (facts(its=hpa(average="105"), scale=scale(2)), "tolerance"),
    "fewer pods exist": (
        facts(its=hpa(average="93334m", replicas=4), scale=FEWER_EXIST),
        "tolerance",
    ),
}


@pytest.mark.parametrize(("known", "name"), NOT_HOLDING.values(), ids=NOT_HOLDING)
def test_a_gate_that_does_not_hold_is_not_there(known: Facts, name: str) -> None:
    assert name not in names(known)


def test_the_hpa_is_read_as_of_its_last_sync_though_the_replicas_have_changed_since() -> None:
    shown = gates.gates(facts(its=hpa(average="75"), scale=scale(3)))
    assert shown.replicas == 3
    assert shown.reason.startswith("the HPA keeps 2 replicas: 75 / 70")


def test_the_end_of_a_long_message_is_shown() -> None:
    long = {**STEADY, "ScalingActive": ("False", f"{'x' * 5000}: no matching metrics found")}
    shown = gates.gates(facts(its=hpa(long)))
    assert shown.reason.endswith("x: no matching metrics found it is")
    assert len(shown.reason) < 250


@pytest.mark.parametrize(
    ("name", "expected", "condition"),
    [
        ("near", "tolerance", "AbleToScale=True/ReadyForNewScale"),
        ("starting", "hold", "ScalingActive=False/FailedGetExternalMetric"),
        ("settling", "stabilization", "AbleToScale=True/ScaleDownStabilized"),
        ("slow", "policy", "ScalingLimited=True/ScaleUpLimit"),
        ("full", "max", "ScalingLimited=True/TooManyReplicas"),
        ("least", "min", "ScalingLimited=True/TooFewReplicas"),
        ("unknown", "hold", "ScalingActive=False/FailedGetExternalMetric"),
        ("paused", "paused", "Paused=True/ScaledObjectPaused"),
        ("cooling", "cooldown", "Active=False/ScalerCooldown"),
        ("failing", "fallback", "Fallback=True/FallbackExists"),
        ("kept", "paused-scale-in", "ScalingLimited=True/ScaleDownLimit"),
        ("wrong", "ready", "Ready=False/ScaledObjectCheckFailed"),
        ("asleep", "activation", "Active=False/ScalerNotActive"),
    ],
)
def test_on_objects_of_kubernetes_1_36_and_keda_2_21(
    name: str, expected: str, condition: str
) -> None:
    found = gates.gates(recorded(name, active=name not in {"cooling", "asleep"}, asked=3))
    assert (found.gates[0].name, found.gates[0].condition) == (expected, condition)


@given(
    st.integers(1, 200),
    st.integers(1_000, 100_000),
    st.floats(0.85, 1.15),
    st.sampled_from(["100m", "0", "50m", None]),
)
def test_tolerance_holds_where_the_hpas_arithmetic_changes_nothing_for_it(
    replicas: int, target: int, ratio: float, own: str | None
) -> None:
    value = int(ratio * target * replicas)
    allowed = 0.1 if own is None else api_objects.quantity(own) or 0.0
    step = rules.recommend(
        [rules.Metric(value=value / 1000, target=target / 1000)],
        rules.Scale.steady(replicas),
        rules.Tolerances(up=allowed, down=allowed),
    )
    assert step is not None
    # The HPA rounds what it shows: not more than that from a whole number, nothing can be told.
    assume(value % target > replicas)
    # It says ReadyForNewScale only where it wants no other number.
    says = STEADY if step.replicas == replicas else {"AbleToScale": ("True", "SucceededRescale")}
    metrics = [{"external": {"target": {"averageValue": f"{target}m"}}}]
    now = [{"external": {"current": {"averageValue": f"{-(-value // replicas)}m"}}}]
    behavior = {"scaleUp": {"tolerance": own}, "scaleDown": {"tolerance": own}}
    its = hpa(says, replicas=replicas, metrics=metrics, now=now, behavior=behavior)
    without = math.ceil(value / target)
    assert ("tolerance" in names(facts(its=its))) == (step.replicas == replicas != without)
