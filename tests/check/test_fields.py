"""Fields of KEDA's objects: those that it does not know, that are missing, or of a wrong type."""

import pytest

from keda_gpu_scaler.check import FIELDS_LIMIT
from keda_gpu_scaler.check.fields import SPECS
from tests.check.cases import SLEEPS, STAYS, changed, report, text

CACHED = "spec.triggers[0].useCachedMetrics"
HPA_FIELD = 'KEDA has no field "spec.advanced.horizontalPodAutoscalerConfig.behaviour"'


def only(source: str) -> tuple[str, str, str]:
    """Return the rule of the only finding, why, and what to do."""
    (one,) = report(source).findings
    return one.rule.name, one.why, one.fix


@pytest.mark.parametrize(
    ("before", "after", "rule", "why", "fix"),
    [
        (
            "minReplicaCount: 1",
            "minReplicaCount: -1",
            "wrong-type",
            "spec.minReplicaCount is -1: the API server refuses less than 0",
            "Write 0 or more.",
        ),
        (
            "maxReplicaCount: 8",
            "maxReplicaCount: 8.5",
            "wrong-type",
            "spec.maxReplicaCount is a number, and the API server takes a whole number alone",
            "Write a whole number.",
        ),
        (
            "minReplicaCount: 1",
            "fallback: 4",
            "wrong-type",
            "spec.fallback is a number, and the API server takes a mapping alone",
            "Write a mapping.",
        ),
        (
            "    name: bert\n",
            "    name: 5\n",
            "wrong-type",
            "spec.scaleTargetRef.name is a number, and the API server takes a string alone",
            'Put it in quotes: "5".',
        ),
        (
            "    - type: external\n",
            "    - type: external\n      useCachedMetrics: 'false'\n",
            "wrong-type",
            f"{CACHED} is a string, and the API server takes true or false alone",
            "Write true or false, without quotes.",
        ),
        (
            "    - type: external\n",
            "    - external\n    - type: external\n",
            "wrong-type",
            "spec.triggers[0] is a string, and has to be a mapping",
            "Write its fields as keys below it.",
        ),
        (
            "  triggers:\n",
            "  advanced:\n    horizontalPodAutoscalerConfig:\n      behaviour: {}\n  triggers:\n",
            "unknown-field",
            f"{HPA_FIELD}: the API server refuses it or drops it",
            "Did you mean behavior?",
        ),
        (
            "  triggers:\n",
            "  zzz: 1\n  triggers:\n",
            "unknown-field",
            'KEDA has no field "spec.zzz": the API server refuses it or drops it',
            f"Known are {', '.join(SPECS['ScaledObject'])}.",
        ),
        (
            "  name: bert\n",
            "",
            "missing-field",
            "metadata.name is missing, and KEDA requires it",
            "Add name.",
        ),
        (
            "minReplicaCount: 1",
            "idleReplicaCount: 2\n  minReplicaCount: 3",
            "replica-bounds",
            "idleReplicaCount is 2, and KEDA supports only 0",
            "Write 0, or remove it.",
        ),
        (
            "kind: ScaledObject",
            "kind: Scaled",
            "unknown-field",
            'KEDA has no kind "Scaled"',
            "Did you mean ScaledJob?",
        ),
    ],
)
def test_a_wrong_field_is_named_with_what_to_write(
    before: str, after: str, rule: str, why: str, fix: str
) -> None:
    assert only(changed(STAYS, (before, after))) == (rule, why, fix)


def test_idle_has_to_be_below_the_minimum() -> None:
    idle = "idleReplicaCount: 0\n  minReplicaCount"
    assert only(changed(SLEEPS, ("minReplicaCount", idle)))[0] == "replica-bounds"
    good = changed(SLEEPS, ("minReplicaCount: 0", "idleReplicaCount: 0\n  minReplicaCount: 2"))
    assert report(good).findings == ()


def test_triggers_that_are_none_are_missing() -> None:
    before, _, _ = STAYS.partition("  triggers:")
    assert only(before + "  triggers: []\n")[:2] == ("missing-field", "spec.triggers is empty")


def test_a_missing_spec_is_one_finding() -> None:
    before, _, _ = STAYS.partition("spec:")
    assert only(before)[:2] == ("missing-field", "spec is missing, and KEDA requires it")


def test_a_generated_name_and_null_values_are_none_of_ours() -> None:
    generated = changed(STAYS, ("  name: bert\n", "  generateName: bert-\n"))
    assert report(generated).findings == ()
    assert (
        report(changed(STAYS, ("minReplicaCount: 1", "minReplicaCount: 1\n  fallback:"))).findings
        == ()
    )


def test_metadata_that_are_no_strings_are_found_each() -> None:
    wrong = STAYS + "        window: [1m]\n        warmup: null\n        enableTLS: true\n"
    assert [(one.rule.name, one.position.line) for one in report(wrong).findings] == [
        ("wrong-type", 17),
        ("wrong-type", 19),
    ]


def test_the_fields_of_a_job_and_of_an_authentication_are_known_too() -> None:
    job = changed(text("scaled-job"), ("  jobTargetRef", "  jobTargetref"))
    assert [one.rule.name for one in report(job).findings] == ["missing-field", "unknown-field"]
    authentication = changed(text("half-client-certificate"), ("      key: ca.crt\n", ""))
    assert only(authentication)[0] == "missing-field"


@pytest.mark.parametrize(("field", "least"), [("minReplicaCount: 1", 0), ("maxReplicaCount: 8", 1)])
def test_a_count_that_is_refused_by_itself_is_one_finding(field: str, least: int) -> None:
    key, _, _ = field.partition(":")
    idle = "idleReplicaCount: 0\n  " if least == 0 else ""
    negative = changed(STAYS, (field, f"{idle}{key}: -1"))
    assert only(negative)[2] == f"Write {least} or more."


def test_unknown_fields_of_an_object_are_shown_up_to_a_limit() -> None:
    unknown = "".join(f"  unknown{number}: 1\n" for number in range(FIELDS_LIMIT + 50))
    assert len(report(changed(STAYS, ("  triggers:\n", f"{unknown}  triggers:\n"))).findings) == (
        FIELDS_LIMIT
    )
