"""What a scale-in would cut off: the grace period and preStop."""

import pytest

from keda_gpu_scaler.check.objects import Terms
from tests.check.cases import STAYS, changed, found, report, text

GRACE = text("short-grace", "fail")
STOP = text("no-pre-stop", "fail")
ANNOTATION = "    keda-gpu-scaler/longest-request: 2m\n"
PERIOD = "      terminationGracePeriodSeconds: 120  # finds short-grace\n"
PAUSE = """          lifecycle:
            preStop:
              sleep:
                seconds: 10
"""
GROUP = """---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: bert
  namespace: inference
spec:
  leaderWorkerTemplate:
    leaderTemplate:
      spec:
        containers:
          - name: leader
            readinessProbe: {httpGet: {port: 8000}}
            lifecycle: {preStop: {exec: {command: [sleep, "10"]}}}
    workerTemplate:
      spec:
        terminationGracePeriodSeconds: 600
        containers:
          - name: worker
            resources: {limits: {nvidia.com/gpu: 8}}
"""


def rules(source: str, terms: Terms = Terms()) -> set[str]:  # noqa: B008 - it is immutable
    return {place.rule for place in found(source, terms)}


def test_a_grace_period_that_is_not_given_is_thirty_seconds() -> None:
    (one,) = report(changed(GRACE, (PERIOD, ""))).findings
    assert one.rule.name == "short-grace"
    assert "is not given, which means 30 s" in one.why
    assert one.fix == "Write 130 or more."


def test_a_grace_period_begins_with_pre_stop() -> None:
    (one,) = report(GRACE).findings
    assert "is 120 s, and a request takes up to 2m after a preStop of 10 s" in one.why
    other = "            preStop:\n              exec: {command: [/drain]}\n"
    assert rules(changed(GRACE, (PAUSE, f"          lifecycle:\n{other}"))) == set()


def test_the_longest_request_of_all_is_that_of_those_that_say_nothing() -> None:
    bare = changed(GRACE, (f"  annotations:\n{ANNOTATION}", ""))
    assert rules(bare) == set()
    assert rules(bare, Terms(longest_request_seconds=110)) == set()
    assert rules(bare, Terms(longest_request_seconds=111)) == {"short-grace"}
    assert rules(text("short-grace"), Terms(longest_request_seconds=3600)) == set()


@pytest.mark.parametrize("written", ["two minutes", "120", "8d"])
def test_a_request_that_takes_no_duration_is_found_where_it_is_written(written: str) -> None:
    (one,) = report(
        changed(GRACE, ("longest-request: 2m", f'longest-request: "{written}"'))
    ).findings
    assert (one.rule.name, one.position.line) == ("short-grace", 7)
    assert f'is "{written}"' in one.why


def test_a_workload_that_is_not_in_the_texts_is_not_judged() -> None:
    assert rules(changed(GRACE, ("kind: Deployment", "kind: StatefulSet"))) == set()


def test_a_workload_that_another_scales_is_not_judged() -> None:
    other = changed(STOP, ("type: external", "type: cron"), ("keda-gpu-scaler.keda.svc", "x.y.svc"))
    assert rules(changed(other, ("        workload: bart\n", ""))) == set()


@pytest.mark.parametrize(
    ("container", "serves"),
    [
        ("            - containerPort: 8000\n", True),
        ("            - {containerPort: 9400, name: metrics}\n", False),
        ("            []\n          readinessProbe: {exec: {command: [ok]}}\n", True),
    ],
)
def test_a_container_serves_if_it_is_probed_or_has_a_port_for_requests(
    container: str,
    serves: bool,  # noqa: FBT001 - a row of the table
) -> None:
    written = changed(STOP, ("            - containerPort: 8000\n", container))
    assert rules(written) == ({"no-pre-stop"} if serves else set())


def test_both_templates_of_a_leader_worker_set_are_looked_at() -> None:
    scaled = changed(
        STAYS,
        ("  scaleTargetRef:\n", "  scaleTargetRef:\n    kind: LeaderWorkerSet\n"),
        ("workload: bert", "workload: leaderworkerset/bert"),
    )
    assert rules(scaled + GROUP) == set()
    (one,) = found(scaled + GROUP, Terms(longest_request_seconds=300))
    assert (one.rule, one.line) == ("short-grace", 10 + scaled.count("\n"))
