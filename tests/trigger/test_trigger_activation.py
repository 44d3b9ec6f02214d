"""Keys about a demand and about another workload: their meanings, limits and mistakes."""

import pytest

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.query import promql
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.spec import demand
from keda_gpu_scaler.spec.demand import DemandSpec, OnEmpty
from keda_gpu_scaler.spec.kinds import Kind
from keda_gpu_scaler.spec.spec import OnUnknown, ScaledObject, TriggerSpec
from keda_gpu_scaler.spec.workload import ScaleTarget, Workload
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access
from tests.support.triggers import access

BERT = ScaledObject("ml", "bert")
MINIMAL = {"workload": "bert", "threshold": "70"}
RATE = "sum(rate(router_requests_total[1m]))"
DEMAND = MINIMAL | {"demandQuery": RATE}
ALONE = {"demandActivationThreshold": "1", "demandThreshold": "2", "demandOnEmpty": "active"}


def parse(metadata: dict[str, str], allowed: Access | None = None) -> TriggerSpec:
    """Return the spec of a trigger; an empty value stands for a key that is not given."""
    given_ones = {key: text for key, text in metadata.items() if text}
    return trigger.parse(BERT, given_ones, allowed or access())


def wanted(**metadata: str) -> DemandSpec:
    found = parse(DEMAND | metadata).demand
    assert found is not None
    return found


def mistakes(metadata: dict[str, str], allowed: Access | None = None) -> list[str]:
    """Return the lines of the message, without the heading."""
    with pytest.raises(errors.SpecError) as caught:
        parse(metadata, allowed)
    return str(caught.value).splitlines()[1:]


def mistake(metadata: dict[str, str], allowed: Access | None = None) -> str:
    (line,) = mistakes(metadata, allowed)
    return line


# The demand


def test_a_trigger_without_a_demand_has_none() -> None:
    assert parse(MINIMAL).demand is None
    assert parse(MINIMAL).neighbour is None


def test_a_query_is_enough_and_any_demand_wakes() -> None:
    assert wanted() == DemandSpec(
        text=promql.number(RATE, Policy.NAMESPACED, "ml"),
        activation_threshold=0,
        threshold=None,
        on_empty=OnEmpty.ERROR,
    )


def test_every_key_of_the_demand_is_read() -> None:
    found = wanted(demandActivationThreshold="1.5", demandThreshold="20", demandOnEmpty="inactive")
    assert (found.activation_threshold, found.threshold) == (1.5, 20)
    assert found.on_empty is OnEmpty.INACTIVE


def test_one_text_of_a_demand_serves_every_trigger() -> None:
    text = 'sum(rate(requests{service="{namespace}/{workload}",pod!~"{podPattern}"}[1m]))'
    for name in ("bert", "llama"):
        pods = Workload(Kind.DEPLOYMENT, "ml", name)
        by_hand = f'service="ml/{name}",pod!~{promql.quoted(pods.regex)}'
        right = f"sum(rate(requests{{{by_hand}}}[1m]))"
        found = wanted(demandQuery=text, workload=name)
        assert found.text == promql.number(right, Policy.NAMESPACED, "ml")


def test_triggers_whose_values_are_not_in_the_text_share_it() -> None:
    text = 'sum(queue{namespace="{namespace}"})'
    assert wanted(demandQuery=text) == wanted(demandQuery=text, workload="llama")


def test_what_the_cluster_has_yet_to_tell_is_not_filled_in() -> None:
    """Without workload, what is scaled is asked for after the trigger was read."""
    unnamed = DEMAND | {"workload": "", "demandQuery": 'sum(queue{a="{workload}"})'}
    line = mistake(unnamed, access(knows_targets=True))
    assert "nothing to fill in for {workload}: the trigger has no workload" in line
    named = {**unnamed, "demandQuery": 'sum(queue{a="{namespace}"})'}
    assert isinstance(parse(named, access(knows_targets=True)).pods, ScaleTarget)


def test_a_demand_of_another_namespaces_pods_stays_confined_to_its_own() -> None:
    found = parse(
        DEMAND | {"namespace": "other", "demandQuery": 'sum(queue{namespace="{namespace}"})'},
        access(others=EVERY_NAMESPACE),
    ).demand
    assert found is not None
    assert found.text == promql.number('sum(queue{namespace="other"})', Policy.NAMESPACED, "ml")


def test_a_demand_changes_nothing_about_the_load() -> None:
    plain, demanding = parse(MINIMAL), parse(DEMAND | {"demandThreshold": "20"})
    assert demanding.demand is not None
    assert (demanding.metric_name, demanding.threshold) == (plain.metric_name, plain.threshold)
    assert (demanding.signal, demanding.profile) == (plain.signal, plain.profile)
    assert demanding.warnings == plain.warnings == ()


@pytest.mark.parametrize("text", [None, *OnEmpty])
@pytest.mark.parametrize("on_unknown", list(OnUnknown))
def test_what_an_unknown_demand_means_is_not_what_an_unknown_load_means(
    text: str | None, on_unknown: OnUnknown
) -> None:
    spec = parse(DEMAND | {"demandOnEmpty": text or "", "onUnknown": on_unknown})
    assert spec.demand is not None
    assert (spec.demand.on_empty, spec.on_unknown) == (text or OnEmpty.ERROR, on_unknown)


def test_the_keys_around_a_query_mean_nothing_without_it() -> None:
    assert mistakes(MINIMAL | ALONE) == [
        '- demandActivationThreshold: "1"; expected demandQuery or demandPreset with it',
        '- demandThreshold: "2"; expected demandQuery or demandPreset with it',
        '- demandOnEmpty: "active"; expected demandQuery or demandPreset with it',
    ]


def test_every_mistake_about_the_demand_is_named_once() -> None:
    wrong = {
        "demandQuery": "load[5m]",
        "demandActivationThreshold": "-1",
        "demandThreshold": "0",
        "demandOnEmpty": "Active",
    }
    assert mistakes(MINIMAL | wrong) == [
        (
            '- demandQuery: "load[5m]"; expected a PromQL expression for one number, and this is a '
            "range of each series; a function such as rate(...) makes a vector of it"
        ),
        '- demandActivationThreshold: "-1"; expected a number from 0 to below 2^53, such as 5',
        '- demandThreshold: "0"; expected a number from 0.001 to below 2^53, such as 70',
        '- demandOnEmpty: "Active"; expected one of error, inactive, active (did you mean active?)',
    ]


def test_mistakes_about_different_keys_come_in_one_message() -> None:
    wrong = DEMAND | {"demandThreshold": "abc", "activationWorkload": "pod/router", "window": "x"}
    assert [line.partition(":")[0] for line in mistakes(wrong)] == [
        "- demandThreshold",
        "- window",
        "- activationWorkload",
    ]


def test_an_unknown_key_is_told_of_the_demands_own() -> None:
    assert "did you mean demandQuery?" in mistake(MINIMAL | {"demandqueryy": "x"})


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "time()",
        "scalar(load)",
        "load",
        'absent(load{pod="a"})',
        "sum(load) or vector(0)",
        "sum(rate(load[1h]))",
        "hour() >= bool 8 < bool 18",
        'count(ALERTS{alertname="Busy",alertstate="firing"})',
    ],
)
def test_whatever_can_give_one_number_is_a_demand(text: str) -> None:
    found = parse(DEMAND | {"demandQuery": text}, access(own_promql=Policy.ALLOW)).demand
    assert found is not None
    assert found.text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("load[5m]", "for one number, and this is a range of each series"),
        ("load[5m:1m]", "for one number, and this is a range of each series"),
        ('"load"', "for one number, and this is a text"),
        (" ", "a PromQL expression, such as sum(rate(http_requests_total[1m]))"),
        ("sum(load", "line 1, column 4: unclosed left parenthesis"),
        ("rate(load[61m])", "reach back at most 1h"),
        ("+".join(f"load_{number}" for number in range(21)), "at most 20 different selectors"),
    ],
)
@pytest.mark.parametrize("policy", [Policy.ALLOW, Policy.NAMESPACED])
def test_what_gives_no_number_is_refused(text: str, expected: str, policy: Policy) -> None:
    assert expected in mistake(DEMAND | {"demandQuery": text}, access(own_promql=policy))


def test_every_selector_is_confined_to_the_namespace_of_the_scaled_object() -> None:
    allowed = access(others=EVERY_NAMESPACE)
    found = parse(DEMAND | {"demandQuery": "sum(a) or vector(0)", "namespace": "other"}, allowed)
    assert found.pods.namespace == "other"
    assert found.demand is not None
    assert found.demand.text == promql.number("sum(a) or vector(0)", Policy.NAMESPACED, "ml")
    assert found.demand.text.startswith('(sum({__name__="a",namespace="ml",')
    assert found.demand.text.endswith(")) or (vector(0.0))")


def test_a_function_that_reads_more_than_its_selectors_cannot_be_confined() -> None:
    info = DEMAND | {"demandQuery": "sum(info(load))"}
    assert "expected no info()" in mistake(info)
    assert parse(info, access(own_promql=Policy.ALLOW)).demand is not None


def test_a_demand_is_denied_where_own_promql_is() -> None:
    line = mistake(DEMAND, access(own_promql=Policy.DENY))
    assert line.startswith(f'- demandQuery: "{RATE}"; expected none: custom PromQL is denied here')


@pytest.mark.parametrize("text", [RATE, "no PromQL at all"])
def test_exporters_that_are_asked_directly_are_asked_for_no_demand(text: str) -> None:
    allowed = access("default", "edge", direct_sources=frozenset({"edge"}))
    assert parse(DEMAND, allowed).source == "default"
    wrong = DEMAND | {"source": "edge", "demandQuery": text}
    assert mistake(wrong, allowed) == (
        f'- demandQuery: "{text}"; expected a source that understands PromQL: edge asks exporters '
        "directly"
    )


def test_a_source_that_is_not_known_is_not_held_against_the_demand() -> None:
    assert "- source:" in mistake(DEMAND | {"source": "nowhere"})


def test_a_demand_that_scales_needs_the_sum_for_the_load() -> None:
    average = DEMAND | {"aggregation": "average", "demandThreshold": "20"}
    assert mistake(average).startswith(
        '- demandThreshold: "20"; expected aggregation: sum beside it: with metricType Value'
    )
    assert parse(average | {"demandThreshold": ""}).demand is not None
    assert "- aggregation:" in mistake(average | {"aggregation": "averagee"})
    assert "expected a number" in mistake(average | {"demandThreshold": "0"})


@pytest.mark.parametrize("name", [demand.METRIC_NAME, "GPU-Demand"])
def test_the_load_cannot_have_the_name_of_the_demand(name: str) -> None:
    for given_ones in (MINIMAL, DEMAND):
        line = mistake(given_ones | {"metricName": name})
        assert line == (
            f'- metricName: "{name}"; expected another name: this one is that of the demand'
        )
    assert parse(DEMAND | {"metricName": "gpu-demand-2"}).metric_name == "gpu-demand-2"


def test_a_replicas_worth_of_demand_that_counts_as_none_is_warned_of() -> None:
    given_ones = DEMAND | {"demandThreshold": "2"}
    assert parse(given_ones | {"demandActivationThreshold": "1.9"}).warnings == ()
    assert parse(DEMAND | {"demandActivationThreshold": "1000"}).warnings == ()
    (warning,) = parse(given_ones | {"demandActivationThreshold": "2"}).warnings
    assert warning.startswith("demandActivationThreshold 2 is not below demandThreshold 2: ")


# What the message shows


def test_an_expression_from_the_environment_is_never_repeated() -> None:
    secret = {"demandQuery": "", "demandQueryFromEnv": 'sum(load{token="hunter2"}))'}
    line = mistake(DEMAND | secret)
    assert line.startswith("- demandQueryFromEnv: a value of 27 characters from the environment; ")
    assert "line 1, column 27: unexpected right parenthesis" in line
    assert "hunter2" not in line


def test_an_expression_is_quoted_in_ascii_on_one_line_and_only_its_beginning() -> None:
    line = mistake(DEMAND | {"demandQuery": '<b>"\u20ac"\n</b>' + "x" * 2000})
    assert line.startswith(r'- demandQuery: "<b>\"\u20ac\"\n</b>xxx')
    assert line.isascii()
    assert '"...; expected a PromQL expression of at most 2000 characters' in line
    assert len(line) < 300


# Another workload


def test_another_workloads_gpus_count_as_well() -> None:
    spec = parse(MINIMAL | {"activationWorkload": "router"})
    assert spec.neighbour == Workload(Kind.DEPLOYMENT, "ml", "router")
    assert spec.pods == Workload(Kind.DEPLOYMENT, "ml", "bert")


@pytest.mark.parametrize("kind", list(Kind))
def test_another_workload_is_written_as_the_own_one(kind: Kind) -> None:
    spec = parse(MINIMAL | {"activationWorkload": f"{kind}/router"})
    assert spec.neighbour == Workload(kind, "ml", "router")
    assert parse(MINIMAL | {"activationWorkload": "sts/router"}).neighbour == Workload(
        Kind.STATEFUL_SET, "ml", "router"
    )


@pytest.mark.parametrize("text", ["pod/router", "svc/router", "Router", "a/b/c", 'r"', " "])
def test_what_is_no_workload_is_refused_as_in_workload(text: str) -> None:
    line = mistake(MINIMAL | {"activationWorkload": text})
    assert line == mistake({"threshold": "70", "workload": text}).replace(
        "- workload:", "- activationWorkload:"
    )


def test_another_workload_is_in_the_namespace_of_the_own_one() -> None:
    allowed = access(others=EVERY_NAMESPACE)
    spec = parse(MINIMAL | {"activationWorkload": "router", "namespace": "other"}, allowed)
    assert spec.neighbour == Workload(Kind.DEPLOYMENT, "other", "router")


@pytest.mark.parametrize("text", ["bert", "deployment/bert", "deploy/bert"])
def test_the_own_workload_is_not_another(text: str) -> None:
    line = mistake(MINIMAL | {"activationWorkload": text})
    assert line == (
        f'- activationWorkload: "{text}"; expected another workload: the GPUs of this one keep it '
        "active by themselves"
    )
    assert parse(MINIMAL | {"activationWorkload": "sts/bert"}).neighbour is not None


def test_where_a_pattern_says_which_pods_a_workload_of_that_name_can_be_another() -> None:
    pattern = MINIMAL | {"podPattern": "bert-overflow-.*", "activationWorkload": "bert"}
    assert parse(pattern).neighbour == Workload(Kind.DEPLOYMENT, "ml", "bert")


def test_the_scale_target_can_have_a_neighbour() -> None:
    known = access(knows_targets=True)
    spec = parse({"threshold": "70", "activationWorkload": "router"}, known)
    assert spec.pods == ScaleTarget("ml")
    assert spec.neighbour == Workload(Kind.DEPLOYMENT, "ml", "router")


@pytest.mark.parametrize("text", ["router", "pod/router", "bert"])
def test_a_query_does_not_show_another_workload(text: str) -> None:
    own = MINIMAL | {"query": "load", "activationThreshold": "5", "activationWorkload": text}
    assert mistake(own) == (
        f'- activationWorkload: "{text}"; expected none with query, which shows only what it is '
        "written for; a demandQuery can ask about another workload"
    )
