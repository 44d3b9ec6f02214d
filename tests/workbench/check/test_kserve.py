"""The triggers of an LLMInferenceService are checked as those of the ScaledObject of KServe's."""

import pytest

from tests.workbench.check.cases import Place, changed, found, key, report

SERVICE = """apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: big, namespace: serving}
spec:
  scaling:
    minReplicas: 1
    maxReplicas: 8
    keda:
      triggers:
        - type: external
          metadata:
            scalerAddress: keda-gpu-scaler.keda.svc:6000
            workload: big-kserve
            threshold: "70"
"""
TRIGGER = SERVICE[SERVICE.index("  scaling:") :]
PREFILL = "".join(f"  {line}\n" for line in TRIGGER.splitlines())
OWN = ("big-kserve", "big-kserve-prefill")
GROUPS = changed(SERVICE, ("spec:\n", "spec:\n  worker: {}\n"))
LONG = ("name: big", f"name: {'big' * 20}")


@pytest.mark.parametrize(
    "source",
    [
        SERVICE,
        changed(SERVICE, ("    minReplicas: 1\n", "")),
        changed(GROUPS, ("big-kserve", "lws/big-kserve-mn")),
        f"{SERVICE}  prefill:\n{changed(PREFILL, OWN)}",
        changed(SERVICE, LONG),
        changed(SERVICE, ("kind: LLM", "kind: ")),
    ],
)
def test_what_fits_the_workload_of_its_role_is_silent(source: str) -> None:
    assert found(source) == []


@pytest.mark.parametrize(
    ("source", "line", "rule"),
    [
        (changed(SERVICE, ("workload: big-kserve", "workload: big")), 13, "other-workload"),
        (changed(GROUPS, ("workload: ", "workload: lws/")), 14, "other-workload"),
        (f"{SERVICE}  prefill:\n{PREFILL}", 24, "other-workload"),
        (changed(SERVICE, ('"70"', "70")), 14, "wrong-type"),
        (changed(SERVICE, ("Replicas: 1", "Replicas: 9")), 6, "refused-by-keda"),
        (changed(SERVICE, ("    maxReplicas: 8\n", "")), 5, "no-maximum"),
        (changed(SERVICE, ("triggers", "cooldown: 5\n      triggers")), 9, "unknown-field"),
        (key(SERVICE, '    window: "5"'), 15, "wrong-value"),
    ],
)
def test_a_mistake_is_found_in_its_line(source: str, line: int, rule: str) -> None:
    assert found(source) == [Place(line, rule)]


def test_a_finding_names_the_object_that_kserve_writes() -> None:
    (one,) = report(changed(SERVICE, ('"70"', "70"))).findings
    assert one.subject == "ScaledObject serving/big-kserve-keda"
