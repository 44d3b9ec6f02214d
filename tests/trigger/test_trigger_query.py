"""The key `query`: what it changes about the other keys, and when it is refused."""

import pytest

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.query import promql
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.spec.kinds import Kind
from keda_gpu_scaler.spec.spec import GpuAggregation, ScaledObject, Signal, TriggerSpec
from keda_gpu_scaler.spec.workload import PodPattern, Workload
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE
from tests.support.triggers import access

BERT = ScaledObject("ml", "bert")
GIVEN = {"query": "cache_usage", "threshold": "70", "activationThreshold": "5"}


def parse(policy: Policy = Policy.NAMESPACED, /, **metadata: str) -> TriggerSpec:
    given = {key: text for key, text in (GIVEN | metadata).items() if text}
    allowed = access("default", "edge", own_promql=policy, direct_sources=frozenset({"edge"}))
    return trigger.parse(BERT, given, allowed)


def mistakes(policy: Policy = Policy.NAMESPACED, /, **metadata: str) -> list[str]:
    with pytest.raises(errors.SpecError) as caught:
        parse(policy, **metadata)
    return str(caught.value).splitlines()[1:]


def test_a_query_and_what_its_numbers_mean_are_enough() -> None:
    spec = parse()
    assert spec.query is not None
    assert spec.query == promql.own("cache_usage", Policy.NAMESPACED, "ml")
    assert (spec.signal, spec.shared_signal) == (Signal.NUMBER, Signal.NUMBER)
    assert (spec.metric_name, spec.profile) == ("gpu-number", spec.query.name)
    assert spec.gpu_aggregation is GpuAggregation.AVERAGE
    assert (spec.pods, spec.workload) == (PodPattern("ml", ".*"), "every pod of the query")
    assert spec.only_shown


@pytest.mark.parametrize(
    ("given", "pods", "name"),
    [
        (
            {"workload": "sts/bert"},
            Workload(Kind.STATEFUL_SET, "ml", "bert"),
            "statefulset/bert",
        ),
        ({"podPattern": ".*"}, PodPattern("ml", ".*"), ".*"),
    ],
)
def test_who_names_the_pods_has_said_which_should_report(
    given: dict[str, str], pods: Workload | PodPattern, name: str
) -> None:
    spec = parse(**given)
    assert (spec.pods, spec.workload, spec.only_shown) == (pods, name, False)


def test_a_signal_gives_the_numbers_a_unit_and_its_rules() -> None:
    spec = parse(signal="utilization", activationThreshold="")
    assert (spec.signal, spec.shared_signal) == (Signal.UTILIZATION, Signal.NUMBER)
    assert spec.activation_threshold == 2
    assert parse(signal="power").gpu_aggregation is GpuAggregation.SUM
    (line,) = mistakes(signal="utilization", threshold="91")
    assert "expected at most 90 for a percentage" in line


def test_a_plain_number_has_no_limit_and_no_usual_idle_level() -> None:
    assert parse(threshold="1000").threshold == 1000
    (line,) = mistakes(activationThreshold="")
    assert "required for number, of which only you know what an idle pod shows" in line


def test_a_plain_number_is_for_queries_alone() -> None:
    (line,) = mistakes(query="", workload="bert", signal="number")
    assert '- signal: "number"; expected one that exporters show' in line


def test_a_profile_beside_a_query_is_refused() -> None:
    (line,) = mistakes(profile="dcgm")
    assert '- profile: "dcgm"; expected none: query says what is read' in line


def test_a_wrong_query_is_named_with_its_place() -> None:
    (line,) = mistakes(query="rate(load[5m)")
    assert line == (
        '- query: "rate(load[5m)"; expected a PromQL expression: line 1, column 13: '
        "unexpected character inside brackets"
    )


def test_a_secret_in_a_wrong_query_is_not_shown() -> None:
    (line,) = mistakes(query="", queryFromEnv='load{token="hunter2"} x')
    assert "queryFromEnv: a value of 23 characters from the environment" in line
    assert "hunter2" not in line


def test_a_query_is_denied_where_own_promql_is() -> None:
    (line,) = mistakes(Policy.DENY)
    assert "expected none: custom PromQL is denied here" in line


def test_a_query_is_confined_to_the_namespace_whose_pods_are_measured() -> None:
    allowed = access(others=EVERY_NAMESPACE)
    query = trigger.parse(BERT, {**GIVEN, "namespace": "other"}, allowed).query
    assert query == promql.own("cache_usage", Policy.NAMESPACED, "other")


def test_a_query_is_sent_as_written_where_own_promql_is_allowed() -> None:
    query = parse(Policy.ALLOW).query
    assert query is not None
    assert query.text == "cache_usage"


def test_exporters_that_are_asked_directly_understand_no_query() -> None:
    assert parse().source == "default"
    (line,) = mistakes(source="edge")
    assert "expected a source that understands PromQL: edge asks exporters directly" in line


# Placeholders

ONE_TEXT = 'load{namespace="{namespace}",pod=~"{podPattern}",service="{workload}"}'


def sent(**metadata: str) -> str:
    query = parse(query=ONE_TEXT, **metadata).query
    assert query is not None
    return query.text


def test_one_text_asks_about_the_pods_of_each_trigger() -> None:
    for name, kind in (("bert", Kind.DEPLOYMENT), ("llama-3.1", Kind.STATEFUL_SET)):
        pods = Workload(kind, "ml", name)
        by_hand = (
            f'load{{namespace="ml",pod=~{promql.quoted(pods.regex)},service={promql.quoted(name)}}}'
        )
        assert sent(workload=str(pods)) == promql.own(by_hand, Policy.NAMESPACED, "ml").text


def test_a_pattern_says_which_pods_and_a_workload_beside_it_the_name() -> None:
    assert 'pod=~"b.+"' in sent(workload="sts/bert", podPattern="b.+")
    (line,) = mistakes(query=ONE_TEXT, podPattern="b.+")
    assert (
        "line 1, column 58: nothing to fill in for {workload}: the trigger has no workload" in line
    )


def test_without_workload_and_pod_pattern_there_is_only_the_namespace() -> None:
    query = parse(query='load{namespace="{namespace}"}').query
    assert query is not None
    assert query.text == promql.own('load{namespace="ml"}', Policy.NAMESPACED, "ml").text
    (line,) = mistakes(query='load{pod=~"{podPattern}"}')
    assert "the trigger has neither workload nor podPattern" in line


def test_the_namespace_that_is_filled_in_is_that_of_the_pods() -> None:
    allowed = access(others=EVERY_NAMESPACE)
    keys = {**GIVEN, "namespace": "other", "query": 'load{a="{namespace}"}'}
    query = trigger.parse(BERT, keys, allowed).query
    assert query == promql.own('load{a="other"}', Policy.NAMESPACED, "other")


def test_a_wrong_workload_is_one_mistake_and_not_one_more_for_each_placeholder() -> None:
    (line,) = mistakes(query=ONE_TEXT, workload="Bert!")
    assert line.startswith('- workload: "Bert!"')


def test_a_placeholder_that_is_none_is_named_with_the_nearest_and_shows_no_secret() -> None:
    (line,) = mistakes(query="", queryFromEnv='load{token="hunter2",pod=~"{podpattern}"}')
    assert "line 1, column 27: no placeholder; did you mean {podPattern}?" in line
    assert "hunter2" not in line
