"""What the API server and KEDA refuse of any ScaledObject is found, with what to write."""

import pytest

from tests.workbench.check.cases import STAYS, beside, changed, found, key, report, spec

OTHERS = """apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: web
  annotations: {autoscaling.keda.sh/paused: "true"}
  creationTimestamp: null
spec:
  scaleTargetRef: {name: web}
  minReplicaCount: 0x1
  maxReplicaCount: 10
  triggers:
    - type: cpu
      metricType: Utilization
      metadata: {value: "70"}
status: {}
"""
"""One with which this scaler has nothing to do."""
MODIFIED = "advanced: {scalingModifiers: {formula: gpu, target: '70'}}"
TAKEN = [
    OTHERS,
    changed(OTHERS, ("0x1", "null")),
    changed(OTHERS, ("value: ", 'containerName: "", value: ')),
    spec(OTHERS, "idleReplicaCount: 0"),
    spec(beside(STAYS, "name: gpu"), MODIFIED),
    key(spec(STAYS, "fallback: {failureThreshold: 3, replicas: 8}"), "onUnknown: error"),
    # A patch is a part of an object, and may remove what is in the other part.
    changed(OTHERS, ("  scaleTargetRef: {name: web}\n", ""), ('{value: "70"}', "{value: null}")),
    changed(OTHERS, ("scaleTargetRef: {name: web}", "fallback: {replicas: 2}")),
]
_REFUSED_BY_RULE = {
    "unknown-field": [
        ("0x1", "1\n  cooldownperiod: 9", "spec has no field cooldownperiod, and kubectl"),
        ("0x1", "1\n  cooldownperiod: 9", "Did you mean cooldownPeriod?"),
        ("0x1", "1\n  formula: a", "Write one of advanced, cooldownPeriod, "),
        ("0x1", "1\n  threshold: 9", "Write one of advanced, cooldownPeriod"),
        ("kind: S", "minReplicaCount: 1\nkind: S", "the object has no field minReplica"),
        ("name: web\n", "name: web\n  label: {}\n", "Did you mean labels?"),
        ("metricType: Ut", "threshold: '9'\n      metricType: Ut", "the trigger's metadata."),
        ("metricType: Ut", "metaData: {}\n      metricType: Ut", "Did you mean metadata?"),
    ],
    "wrong-type": [
        ("0x1", "'1'", "spec.minReplicaCount is a string (1), and the API server accepts only a w"),
        ("0x1", "'1'", "Remove the quotes: 1."),
        ("0x1", "1\n  cooldownPeriod: 10m", "Write the seconds alone: 600."),
        ("0x1", "1\n  cooldownPeriod: ten", "Write a whole number."),
        ("0x1", "1.5", "is a number (1.5), and the API server accepts only a whole number here"),
        ("0x1", "one", "is a string (one)"),
        ("0x1", ".inf", "Write a whole number."),
        ("0x1", "{}", "spec.minReplicaCount is a mapping, and the API server accepts only a wh"),
        (
            "0x1",
            "1\n  advanced: {restoreToOriginalReplicaCount: 'true'}",
            "Remove the quotes: true.",
        ),
        ('"true"', "true", "is a boolean (true), and the API server accepts only a string"),
        ('"70"', "70", 'Put it in quotes: "70".'),
        ('"70"', "null", "refuses it in a server-side apply. Write a string, or remove the key."),
    ],
    "unknown-value": [
        ("ScaledObject", "ScaleObject", "kind is ScaleObject, which does not exist. D"),
        ("ScaledObject", "scaledobject", "Did you mean ScaledObject?"),
        ("v1alpha1", "v1", "apiVersion is keda.sh/v1, which does not exist. Did you mean"),
        ("type: cpu", "type: CPU", "spec.triggers[0].type is CPU, which does not"),
        ("type: cpu", "type: gpu-scaler", "for this scaler, external or external-push."),
        (
            "metricType: Ut",
            "authenticationRef: {name: a, kind: Secret}\n      metricType: Ut",
            "Write one of TriggerAuthentication, ClusterTriggerAuthentication.",
        ),
    ],
    "refused-value": [
        ("0x1", "-1", "spec.minReplicaCount is -1, below 0. Write 0 or more."),
        ("0x1", "1\n  cooldownPeriod: 5000000000", "too large for int32. Write a smaller"),
        ("type: cpu", 'type: ""', "spec.triggers[0].type is empty. Write a value."),
        ('{value: "70"}', "", "spec.triggers[0] has no metadata. Write metadata."),
        ("apiVersion: keda.sh/v1alpha1\n", "", "the object has no apiVersion. Write apiV"),
        (
            "metricType: Ut",
            "authenticationRef: {kind: TriggerAuthentication}\n      metricType: Ut",
            "spec.triggers[0].authenticationRef has no name. Write name.",
        ),
    ],
    "refused-by-keda": [
        ("0x1", "11", "minReplicaCount 11 is above maxReplicaCount 10: the API server"),
        ("minReplicaCount: 0x1", "idleReplicaCount: 0", "which is 0 where it is missing"),
        ("0x1", "1\n  fallback: {failureThreshold: 3, replicas: 2}", "other than cpu and"),
        ("0x1", "1\n  advanced: {scalingModifiers: {formula: a}}", "no target: KEDA's webhook"),
        ("Utilization", "Value", "KEDA's operator refuses it in this trigger. Write Average"),
        ("metricType: Ut", "useCachedMetrics: true\n      metricType: Ut", "a cpu trigger has no"),
        (
            "    - type",
            "    - {type: cron, name: a, metadata: {}}\n    - name: a\n      type",
            "a second trigger has the name a: KEDA's webhook refuses it. Write another name.",
        ),
    ],
    "idle-replicas": [
        ("0x1", "2\n  idleReplicaCount: 1", "Remove idleReplicaCount, or write 0."),
    ],
}
REFUSED = [(rule, *row) for rule, rows in _REFUSED_BY_RULE.items() for row in rows]
_POLICY = "scaleUp: {{policies: [{{type: {}}}]}}"
OF_THE_HPA = [
    (
        "refused-value",
        "scaleDown: {stabilizationWindowSeconds: 3601}",
        "3601, above 3600. Write 3600",
    ),
    ("refused-value", _POLICY.format("Pods, value: 1, periodSeconds: 1801"), "1801, above 1800."),
    ("refused-value", _POLICY.format("Percent, value: 0, periodSeconds: 60"), "is 0, below 1."),
    ("unknown-value", _POLICY.format("Pod, value: 1, periodSeconds: 60"), "Did you mean Pods?"),
    ("unknown-value", "scaleUp: {selectPolicy: Least}", "selectPolicy is Least, which does not"),
]
"""What Kubernetes refuses only when KEDA writes the HPA."""


@pytest.mark.parametrize("source", TAKEN)
def test_what_the_api_server_and_keda_take_is_silent(source: str) -> None:
    assert found(source) == []


@pytest.mark.parametrize(("rule", "before", "after", "said"), REFUSED)
def test_what_they_refuse_is_said_with_its_path_and_what_to_write(
    rule: str, before: str, after: str, said: str
) -> None:
    (one,) = report(changed(OTHERS, (before, after))).findings
    assert one.rule.name == rule
    assert said in f"{one.why}. {one.fix}"


@pytest.mark.parametrize(("rule", "behavior", "said"), OF_THE_HPA)
def test_what_the_hpa_may_not_have_is_refused_before_keda_writes_it(
    rule: str, behavior: str, said: str
) -> None:
    hpa = f"advanced: {{horizontalPodAutoscalerConfig: {{behavior: {{{behavior}}}}}}}"
    (finding,) = report(spec(OTHERS, hpa)).findings
    assert finding.rule.name == rule
    assert said in f"{finding.why}. {finding.fix}"


def test_a_count_that_is_no_number_is_the_only_finding() -> None:
    source = changed(STAYS, ("minReplicaCount: 1", "minReplicaCount: one"))
    assert found(source) == [(9, "wrong-type")]


@pytest.mark.parametrize("line", ["    - ", "    - text"])
def test_a_trigger_that_is_no_mapping_is_found_in_its_line(line: str) -> None:
    source = f"{STAYS}{line}\n"
    assert found(source) == [(17, "wrong-type")]


@pytest.mark.parametrize("name", ["workload", "podPattern", "scalerAddress"])
def test_a_key_of_this_scaler_in_a_trigger_of_another_type_is_found(name: str) -> None:
    (one,) = report(changed(OTHERS, ("value:", f"{name}: bert, value:"))).findings
    assert (one.rule.name, one.fix) == ("other-type", "Write type: external.")
