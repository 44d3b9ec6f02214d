"""Triggers: every key with its default, its limits and its mistakes."""

import itertools

import pytest
import re2

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.spec.kinds import Kind
from keda_gpu_scaler.spec.spec import (
    Aggregation,
    GpuAggregation,
    OnUnknown,
    ScaledObject,
    Signal,
    TriggerSpec,
)
from keda_gpu_scaler.spec.workload import Owner, PodPattern, ScaleTarget, Workload
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access, Namespaces
from tests.support.triggers import access

BERT = ScaledObject("prod", "bert")
SOURCES = access("default", "thanos")
MINIMAL = {"workload": "bert", "threshold": "70"}
SHOWN = [signal for signal in Signal if signal is not Signal.NUMBER]


def parse(**metadata: str) -> TriggerSpec:
    return trigger.parse(BERT, {**MINIMAL, **metadata}, SOURCES)


def mistakes(metadata: dict[str, str]) -> list[str]:
    """Return the lines of the message, without the heading."""
    with pytest.raises(errors.SpecError) as caught:
        trigger.parse(BERT, metadata, SOURCES)
    return str(caught.value).splitlines()[1:]


def mistake(**metadata: str) -> str:
    """Return the only mistake of an otherwise good trigger."""
    (line,) = mistakes({**MINIMAL, **metadata})
    return line


def test_workload_and_threshold_are_enough() -> None:
    assert parse() == TriggerSpec(
        pods=Workload(Kind.DEPLOYMENT, "prod", "bert"),
        workload="deployment/bert",
        signal=Signal.UTILIZATION,
        profile="auto",
        threshold=70,
        aggregation=Aggregation.SUM,
        gpu_aggregation=GpuAggregation.AVERAGE,
        window_seconds=None,
        activation_threshold=2,
        activation_window_seconds=120,
        warmup_seconds=120,
        start_timeout_seconds=1800,
        on_unknown=OnUnknown.HOLD,
        max_age_seconds=180,
        source="default",
        metric_name="gpu-utilization",
        warnings=(),
    )


def test_every_key_is_read() -> None:
    assert parse(
        workload="sts/bert",
        namespace="prod",
        podPattern="bert-[0-9]+",
        signal="power",
        profile="dcgm",
        threshold="300.5",
        aggregation="average",
        gpuAggregation="max",
        window="90s",
        activationThreshold="120",
        activationWindow="5m",
        warmup="0s",
        onUnknown="error",
        maxAge="1m",
        source="thanos",
        metricName="bert_power.W-1",
    ) == TriggerSpec(
        pods=PodPattern("prod", "bert-[0-9]+"),
        workload="statefulset/bert",
        signal=Signal.POWER,
        profile="dcgm",
        threshold=300.5,
        aggregation=Aggregation.AVERAGE,
        gpu_aggregation=GpuAggregation.MAX,
        window_seconds=90,
        activation_threshold=120,
        activation_window_seconds=300,
        warmup_seconds=0,
        start_timeout_seconds=1800,
        on_unknown=OnUnknown.ERROR,
        max_age_seconds=60,
        source="thanos",
        metric_name="bert_power.W-1",
    )


def test_a_spec_is_a_key_of_a_cache() -> None:
    assert {parse(): 1, parse(threshold="60"): 2}[parse()] == 1


def test_what_keda_reads_itself_is_skipped() -> None:
    own = dict.fromkeys(trigger.KEDA_KEYS, "x") | {"tlsClientKeyFromEnv": "x"}
    assert parse(**own) == parse()


def test_a_value_may_come_from_the_environment() -> None:
    resolved = {"workloadFromEnv": "bert\n", "thresholdFromEnv": "60"}
    assert trigger.parse(BERT, resolved, SOURCES).threshold == 60


def test_a_key_and_its_environment_are_one_too_many() -> None:
    assert mistake(thresholdFromEnv="60") == (
        '- threshold: "70"; thresholdFromEnv is given as well; expected one of the two'
    )


def test_white_space_around_a_value_is_no_part_of_it() -> None:
    assert parse(workload=" bert\n", threshold="\t70 ") == parse()


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_can_be_measured(kind: Kind) -> None:
    spec = parse(workload=f"{kind}/bert")
    assert (spec.pods, spec.workload) == (Workload(kind, "prod", "bert"), f"{kind}/bert")


def test_a_pattern_needs_no_workload_and_is_its_name() -> None:
    spec = trigger.parse(BERT, {"podPattern": "bert-.*", "threshold": "70"}, SOURCES)
    assert (spec.pods, spec.workload) == (PodPattern("prod", "bert-.*"), "bert-.*")


def test_where_targets_are_known_the_workload_is_the_scale_target() -> None:
    spec = trigger.parse(BERT, {"threshold": "70"}, access(knows_targets=True))
    assert (spec.pods, spec.workload) == (ScaleTarget("prod"), "the scale target")
    given = {"threshold": "70", "workload": "sts/bert"}
    assert trigger.parse(BERT, given, access(knows_targets=True)) == parse(workload="sts/bert")


def test_a_scale_target_that_is_not_known_yet_has_no_pod() -> None:
    target = ScaleTarget("prod")
    assert not target.matches("bert-5d4f8-aaaaa")
    assert not target.owns(frozenset({Owner("Deployment", "bert")}))
    assert not re2.fullmatch(target.regex, "a")
    assert target.replica_of("bert-0") == "bert-0"
    assert (target.prefix, target.owner) == ("", None)


def test_without_threshold_and_workload_both_are_asked_for() -> None:
    assert mistakes({}) == [
        (
            "- workload: not given; expected [kind/]name such as deployment/bert, or podPattern; "
            "with KEDA_GPU_SCALER_KUBERNETES=true it is the ScaledObject's scaleTargetRef, "
            "in its own namespace"
        ),
        "- threshold: not given; expected the target per replica, such as 70",
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.001", 0.001),
        ("1e1", 10),
        ("+5", 5),
        (".5", 0.5),
        ("7.", 7),
        ("90", 90),
        ("90.0", 90),
    ],
)
def test_a_threshold_is_a_decimal_number(text: str, number: float) -> None:
    assert parse(threshold=text, activationThreshold="0").threshold == number


def test_what_is_no_number_is_refused(subtests: pytest.Subtests) -> None:
    wrong = ["", "abc", "70%", "70 %", "nan", "inf", "-inf", "infinity"]
    wrong += ["1_0", "0x10", "\u0667", "7,5", "--7"]
    for key, text in itertools.product(("threshold", "activationThreshold"), wrong):
        with subtests.test(f"{key}: {text!r}"):
            line = mistake(**{key: text})
            assert line.startswith(f"- {key}: ")
            assert line.endswith("; expected a number without a unit, such as 70")


@pytest.mark.parametrize("text", ["0", "-1", "0.0009", "1e400", "9007199254740992"])
def test_a_threshold_out_of_range_is_refused(text: str) -> None:
    assert mistake(threshold=text, signal="power", activationThreshold="0") == (
        f'- threshold: "{text}"; expected a number from 0.001 to below 2^53, such as 70'
    )


@pytest.mark.parametrize("text", ["-0.1", "1e400", "9007199254740992"])
def test_an_activation_threshold_out_of_range_is_refused(text: str) -> None:
    assert "expected a number from 0 to below 2^53" in mistake(activationThreshold=text)


@pytest.mark.parametrize("signal", [signal for signal in Signal if signal.is_percentage])
def test_a_percentage_above_90_can_never_scale_out(signal: Signal) -> None:
    given = {"signal": signal, "activationThreshold": "5"}
    assert parse(threshold="90", **given).threshold == 90
    assert "expected at most 90 for a percentage" in mistake(threshold="90.1", **given)
    assert "expected at most 90" in mistake(threshold="91", gpuAggregation="max", **given)


def test_the_sum_of_a_pods_gpus_and_other_units_have_no_such_limit() -> None:
    assert parse(threshold="560", gpuAggregation="sum").threshold == 560
    assert parse(threshold="560", signal="power", activationThreshold="90").threshold == 560


def test_the_limit_waits_for_what_it_depends_on() -> None:
    assert "signal" in mistake(signal="powr", threshold="300")
    assert "gpuAggregation" in mistake(gpuAggregation="summ", threshold="300")


def test_a_percentage_above_80_is_warned_of() -> None:
    assert parse(threshold="80").warnings == ()
    (warning,) = parse(threshold="81").warnings
    assert warning.startswith("threshold 81 leaves little room")
    assert parse(threshold="160", gpuAggregation="sum").warnings == ()


def test_an_activation_threshold_not_below_the_target_is_warned_of() -> None:
    assert parse(activationThreshold="69").warnings == ()
    (warning,) = parse(activationThreshold="70").warnings
    assert "can count as idle and be scaled to zero" in warning


@pytest.mark.parametrize("signal", ["memory", "memory-used", "power", "temperature"])
def test_what_stays_up_while_idle_needs_an_activation_threshold(signal: str) -> None:
    assert f"required for {signal}" in mistake(signal=signal)
    assert parse(signal=signal, activationThreshold="0").activation_threshold == 0


@pytest.mark.parametrize("signal", SHOWN)
def test_the_gpus_of_a_pod_are_added_up_only_for_amounts(signal: Signal) -> None:
    spec = parse(signal=signal, activationThreshold="1")
    added_up = signal in {Signal.MEMORY_USED, Signal.POWER}
    assert spec.gpu_aggregation is (GpuAggregation.SUM if added_up else GpuAggregation.AVERAGE)
    assert spec.metric_name == f"gpu-{signal}"


@pytest.mark.parametrize("key", ["window", "activationWindow", "maxAge", "warmup"])
def test_durations_end_at_one_hour(key: str) -> None:
    assert parse(**{key: "1h"}).source == "default"
    assert "1h, such as 2m" in mistake(**{key: "3601s"})
    assert "1h, such as 2m" in mistake(**{key: "9" * 400 + "h"})


@pytest.mark.parametrize("key", ["window", "activationWindow", "maxAge"])
def test_windows_begin_at_one_second(key: str) -> None:
    assert parse(**{key: "1s"}).source == "default"
    assert "expected a duration from 1s to 1h" in mistake(**{key: "999ms"})


def test_how_long_a_pod_may_take_to_start_is_from_a_second_to_a_day() -> None:
    assert parse(startTimeout="1s").start_timeout_seconds == 1
    assert parse(startTimeout="1d").start_timeout_seconds == 86_400
    for text in ("999ms", "86401s"):
        assert "expected a duration from 1s to 1d" in mistake(startTimeout=text)


def test_what_is_no_duration_is_refused(subtests: pytest.Subtests) -> None:
    keys = ("window", "activationWindow", "maxAge", "warmup", "startTimeout")
    for key, text in itertools.product(keys, ("", "-1s", "120", "2 m", "m", "nan")):
        with subtests.test(f"{key}: {text!r}"):
            assert f'- {key}: "{text}"; expected a duration such as 30s' in mistake(**{key: text})


@pytest.mark.parametrize(
    ("key", "text", "nearest"),
    [
        ("signal", "utilisation", "utilization"),
        ("aggregation", "Average", "average"),
        ("gpuAggregation", "maxx", "max"),
        ("onUnknown", "zeros", "zero"),
        ("profile", "dcgm-expored", "dcgm-exported"),
        ("source", "thanoss", "thanos"),
    ],
)
def test_a_typo_in_a_choice_names_the_nearest(key: str, text: str, nearest: str) -> None:
    line = mistake(**{key: text})
    assert f'- {key}: "{text}"; expected one of ' in line
    assert f"did you mean {nearest}?" in line


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("aggregation", "sum, average, max, p95"),
        ("gpuAggregation", "average, max, sum"),
        ("onUnknown", "hold, error, zero"),
    ],
)
def test_a_choice_far_from_all_names_them_all(key: str, names: str) -> None:
    assert mistake(**{key: "qqq"}) == f'- {key}: "qqq"; expected one of {names}'


def test_a_profile_is_accepted_for_the_signals_it_shows(subtests: pytest.Subtests) -> None:
    for name, signal in itertools.product(profiles.NAMES, SHOWN):
        given = {"profile": name, "signal": signal, "activationThreshold": "5"}
        refused = f'- profile: "{name}"; '
        with subtests.test(f"{name} {signal}"):
            if signal in profiles.signals(name):
                assert parse(**given).profile == name
            elif profiles.signals(name):
                assert f"{refused}it does not show {signal}; expected one" in mistake(**given)
            else:
                assert f"{refused}this exporter names no pod" in mistake(**given)


def test_a_wrong_signal_is_not_held_against_the_profile() -> None:
    assert "profile" not in mistake(profile="hami", signal="heat")


def test_a_source_must_be_configured() -> None:
    assert "expected one of default, thanos" in mistake(source="http://prometheus:9090")


def test_the_default_source_must_be_configured_too() -> None:
    with pytest.raises(errors.SpecError, match=r'source: "default" \(default\); expected one of a'):
        trigger.parse(BERT, MINIMAL, access("a"))
    with pytest.raises(errors.SpecError, match="of which none is set up"):
        trigger.parse(BERT, MINIMAL, Access())


def test_only_the_first_sources_are_listed() -> None:
    names = [f"region-{number:02}" for number in range(30)]
    with pytest.raises(errors.SpecError, match="region-19 and 10 more"):
        trigger.parse(BERT, {**MINIMAL, "source": "qqq"}, access(*names))
    with pytest.raises(errors.SpecError, match="region-19; sources are"):
        trigger.parse(BERT, {**MINIMAL, "source": "qqq"}, access(*names[:20]))


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a%b", "a b", "-a", "a-", "gpu-\u00e9", "a" * 201, "a\nb"]
)
def test_a_metric_name_must_fit_the_metrics_api(name: str) -> None:
    assert "; expected letters, digits, " in mistake(metricName=name)


@pytest.mark.parametrize("name", ["s0-gpu", "s12-gpu"])
def test_a_metric_name_must_not_look_as_if_keda_had_numbered_it(name: str) -> None:
    assert "KEDA adds that itself" in mistake(metricName=name)


@pytest.mark.parametrize("name", ["s-gpu", "s0", "sx0-gpu", "GPU_load.1", "a", "a" * 200])
def test_other_metric_names_are_fine(name: str) -> None:
    assert parse(metricName=name).metric_name == name


def test_a_workload_of_another_namespace_has_to_be_allowed() -> None:
    refusal = (
        '- namespace: "other"; expected the ScaledObject\'s own; another one has to be in '
        "KEDA_GPU_SCALER_OTHER_NAMESPACES of the scaler"
    )
    assert mistake(namespace="other") == refusal
    metadata = {**MINIMAL, "namespace": "other"}
    with pytest.raises(errors.SpecError, match="KEDA_GPU_SCALER_OTHER_NAMESPACES"):
        trigger.parse(BERT, metadata, access(others=Namespaces(frozenset({"others"}))))


@pytest.mark.parametrize("allowed", [Namespaces(frozenset({"a", "other"})), EVERY_NAMESPACE])
def test_the_pods_are_those_of_another_namespace_where_that_is_allowed(
    allowed: Namespaces,
) -> None:
    for workload in ({"workload": "bert"}, {"podPattern": "bert-.*"}):
        metadata = {"threshold": "70", "namespace": "other", **workload}
        assert trigger.parse(BERT, metadata, access(others=allowed)).pods.namespace == "other"


def test_the_own_namespace_can_always_be_named() -> None:
    assert parse(namespace="prod").pods.namespace == "prod"


@pytest.mark.parametrize("name", ["", "a.b", "A", "a" * 64, 'a"b'])
def test_a_namespace_must_be_one(name: str) -> None:
    assert "; expected a namespace: lower-case letters" in mistake(namespace=name)


@pytest.mark.parametrize("pattern", ["(", "a)|(b", "(?=x)", "((a{100}){100}){100}", "\\", "é"])
def test_a_pattern_that_is_no_re2_is_refused(pattern: str) -> None:
    assert "; expected an RE2 pattern" in mistake(podPattern=pattern)


@pytest.mark.parametrize("text", ["Bert", "svc/bert", "a/b/c", 'b"', "b\\", "b{", ""])
def test_a_workload_that_cannot_be_is_refused(text: str) -> None:
    assert "- workload: " in mistake(workload=text)


@pytest.mark.parametrize(
    ("scaled_object", "what"),
    [
        (ScaledObject("", "bert"), 'namespace "";'),
        (ScaledObject("Prod", "bert"), 'namespace "Prod";'),
        (ScaledObject("prod", ""), 'name "";'),
        (ScaledObject("prod", "be\nrt"), 'name "be\\nrt";'),
    ],
)
def test_a_scaled_object_without_a_proper_name_is_refused(
    scaled_object: ScaledObject, what: str
) -> None:
    with pytest.raises(errors.SpecError) as caught:
        trigger.parse(scaled_object, {**MINIMAL, "namespace": "prod"}, SOURCES)
    heading, line = str(caught.value).splitlines()
    assert heading.startswith("1 mistake in the trigger of ScaledObject ")
    assert f"- the ScaledObject's {what} expected a" in line


def test_a_default_written_out_changes_nothing(subtests: pytest.Subtests) -> None:
    for key, row in trigger.KEYS.items():
        demand = {"demandQuery": "vector(1)"} if key.startswith("demand") else {}
        if row.default:
            with subtests.test(key):
                assert parse(**demand, **{key: row.default}) == parse(**demand)
