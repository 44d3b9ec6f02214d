"""Which objects are looked at, and which of their triggers are for this scaler."""

import pytest

from keda_gpu_scaler.check.objects import Terms
from tests.check.cases import STAYS, changed, found, report, text

WRONG = changed(STAYS, ("threshold", "treshold"))
LONE = (
    'type: external\n      metadata:\n        scalerAddress: scaler.other:6000\n        {}: "1"\n'
)


def rules(source: str, terms: Terms = Terms()) -> set[str]:  # noqa: B008 - it is immutable
    return {place.rule for place in found(source, terms)}


def test_the_objects_of_a_list_are_looked_at_one_by_one() -> None:
    items = "".join(
        "  - " + one.replace("\n", "\n    ").rstrip(" ")
        for one in (WRONG, text("scaled-job", "fail"))
    )
    listed = report(f"apiVersion: v1\nkind: List\nitems:\n{items}")
    assert listed.checked == 2
    assert [one.rule.name for one in listed.findings] == [
        "missing-key",
        "unknown-key",
        "scaled-job",
    ]


def test_a_list_of_one_kind_is_a_list_as_well() -> None:
    items = "  - " + WRONG.replace("\n", "\n    ").rstrip(" ")
    source = f"apiVersion: keda.sh/v1alpha1\nkind: ScaledObjectList\nitems:\n{items}"
    assert rules(source) == {"missing-key", "unknown-key"}
    assert rules("apiVersion: keda.sh/v1alpha1\nkind: ScaledObjectList\n") == {"unknown-field"}


def test_other_objects_are_passed_over() -> None:
    assert report("kind: ConfigMap\n---\n[a]\n---\nkind: {a: b}\n") == ((), 0)


@pytest.mark.parametrize(
    "key", ["workload", "podPattern", "demandQuery", "demandPreset", "activationWorkload"]
)
def test_a_key_of_ours_makes_it_ours_wherever_it_asks(key: str) -> None:
    before, _, _ = STAYS.partition("type: external")
    assert "missing-key" in rules(before + LONE.format(key))


def test_a_trigger_of_another_scaler_is_not_ours() -> None:
    before, _, _ = STAYS.partition("type: external")
    assert rules(before + LONE.format("gpuThreshold")) == set()
    assert rules(changed(WRONG, ("type: external", "type: cron"))) == set()


def test_named_addresses_alone_are_ours() -> None:
    assert rules(WRONG, Terms(addresses=frozenset({"scaler.other:6000"}))) == set()
    ours = Terms(addresses=frozenset({"scaler.other:6000", "keda-gpu-scaler.keda.svc:6000"}))
    assert rules(WRONG, ours) == {"missing-key", "unknown-key"}


def test_a_value_of_the_environment_is_not_judged() -> None:
    from_env = changed(STAYS, ('threshold: "70"', "thresholdFromEnv: GPU_TARGET"))
    assert rules(from_env) == set()
    assert rules(from_env + "        windowFromEnv: W\n        maxAge: 5m\n") == set()
    assert rules(from_env + '        windowFromEnv: W\n        maxAge: "5"\n') == {"wrong-value"}
    assert rules(from_env + "        tresholdFromEnv: W\n") == {"unknown-key"}
    assert rules(STAYS + "        thresholdFromEnv: W\n") == {"wrong-value"}
    assert rules(from_env + "        caCertFromEnv: CA\n") == set()


def test_what_the_settings_decide_is_a_note() -> None:
    assert rules(STAYS + "        source: thanos\n") == set()
    assert rules(changed(STAYS, ("        workload: bert\n", ""))) == {"needs-setting"}
    influxql = "demandQuery: SELECT last(x) FROM y WHERE time > now() - 1m"
    assert rules(f"{STAYS}        {influxql}\n") == {"needs-setting"}


def test_a_wrong_name_or_namespace_is_no_mistake_of_the_trigger() -> None:
    assert rules(changed(STAYS, ("name: bert\n", "name: Bert_\n"))) == set()
    assert rules(changed(STAYS, ("namespace: inference", "namespace: In_"))) == set()


def test_what_is_shown_of_a_name_is_short_and_in_ascii() -> None:
    source = changed(WRONG, ("name: bert\n", f'name: "é\\n{"x" * 200}"\n'))
    subjects = {one.subject for one in report(source).findings}
    assert subjects == {f"ScaledObject inference/\\xe9\\n{'x' * 75}..."}


def test_a_comment_leaves_out_rules_of_its_line_or_of_the_next_that_is_none() -> None:
    comment = "# keda-gpu-scaler: ignore unknown-key , missing-key: for a test"
    key = next(line for line in WRONG.splitlines() if "treshold" in line)
    metadata = "      metadata:"
    assert rules(changed(WRONG, (key, f"{key} {comment}"))) == {"missing-key"}
    assert rules(changed(WRONG, (key, f"{comment}\n\n# more\n{key}"))) == {"missing-key"}
    assert rules(changed(WRONG, (key, f"{comment}\n        window: 1m\n{key}"))) == rules(WRONG)
    assert rules(changed(WRONG, (metadata, f"{metadata} {comment}"))) == {"unknown-key"}
