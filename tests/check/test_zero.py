"""The way to zero and back: what wakes, what keeps awake, and times."""

import pytest

from tests.check.cases import SLEEPS, STAYS, changed, found, report

ZERO = changed(STAYS, ("minReplicaCount: 1", "minReplicaCount: 0"))
OTHER = "    - type: {}\n      metadata:\n        query: {}\n"
WORKLOAD = """---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: bert
  namespace: inference
spec:
  template:
    spec:
      containers:
        - name: sidecar
        - name: server
          startupProbe:
            initialDelaySeconds: 400
"""


def rules(source: str) -> set[str]:
    return {place.rule for place in found(source)}


@pytest.mark.parametrize(
    ("trigger", "query", "wakes"),
    [
        ("prometheus", "sum(requests)", True),
        ("cron", "none", True),
        ("cpu", "none", False),
        ("memory", "none", False),
        ("prometheus", "sum(DCGM_FI_DEV_GPU_UTIL)", False),
    ],
)
def test_another_trigger_wakes_unless_it_needs_pods(trigger: str, query: str, wakes: bool) -> None:  # noqa: FBT001 - a row of the table
    expected = set() if wakes else {"nothing-wakes"}
    assert rules(ZERO + OTHER.format(trigger, query)) == expected


@pytest.mark.parametrize("key", ["demandQuery: x", "activationWorkload: front"])
def test_a_signal_of_the_trigger_wakes(key: str) -> None:
    assert rules(f"{ZERO}        {key}\n") == set()


@pytest.mark.parametrize(
    ("written", "wakes"),
    [
        ("demandPreset: llm-d-epp-queue\n        demandRouter: deployment/epp", True),
        ("demandPreset: vllm-queue", False),
        ("demandPreset: llm-d-epp-running\n        demandRouter: deployment/epp", False),
    ],
)
def test_a_preset_wakes_where_its_router_shows_requests_at_zero(
    written: str,
    wakes: bool,  # noqa: FBT001 - a row of the table
) -> None:
    expected = set() if wakes else {"nothing-wakes"}
    assert rules(f"{ZERO}        {written}\n") == expected


@pytest.mark.parametrize("type_", ["external", "external-push"])
def test_who_wrote_a_preset_that_cannot_wake_is_told_which_can_and_of_alerts(type_: str) -> None:
    source = changed(ZERO, ("type: external", f"type: {type_}"))
    (one,) = report(f"{source}        demandPreset: vllm-queue\n").findings
    assert "an alert" in one.why
    assert ("vllm-queue shows no request" in one.why) == (type_ == "external")
    assert "a router's demandPreset (llm-d-epp-queue, llm-d-epp-requests, " in one.fix


@pytest.mark.parametrize("key", ["demandQuery", "demandPreset"])
def test_a_demand_out_of_the_environment_wakes(key: str) -> None:
    assert rules(f"{ZERO}        {key}FromEnv: DEMAND\n") == set()


def test_an_idle_count_of_zero_goes_to_zero_as_well() -> None:
    idle = changed(STAYS, ("minReplicaCount", "idleReplicaCount: 0\n  minReplicaCount"))
    assert rules(idle) == {"nothing-wakes"}


def test_idle_levels_are_those_of_the_signal() -> None:
    power = changed(SLEEPS, ('"70"', '"300"')) + "        signal: power\n"
    assert rules(power + '        activationThreshold: "5"\n') == {"never-idle"}
    assert rules(power + '        activationThreshold: "90"\n') == set()
    assert (
        rules(SLEEPS + '        signal: sm-activity\n        activationThreshold: "1"\n') == set()
    )
    own = "        query: x\n        activationThreshold: '0'\n"
    assert rules(SLEEPS + own) == set()


def test_a_start_that_its_probe_makes_long_needs_a_longer_cooldown() -> None:
    assert rules(f"{SLEEPS}{WORKLOAD}") == {"short-cooldown"}
    longer = changed(SLEEPS, ("  minReplicaCount", "  cooldownPeriod: 400\n  minReplicaCount"))
    assert rules(f"{longer}{WORKLOAD}") == set()


def test_times_of_a_workload_that_stays_are_not_judged() -> None:
    assert rules(f"{STAYS}        activationWindow: 10s\n") == set()
