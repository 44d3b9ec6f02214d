"""Triggers on an InfluxDB: what they may ask in InfluxQL, and that PromQL is refused."""

import pytest

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.query import promql
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.spec.spec import TriggerSpec
from tests.support.triggers import BERT, access

MEAN = 'SELECT mean("gauge") FROM "DCGM_FI_DEV_GPU_UTIL" WHERE time > now() - 1m'


def parse(policy: Policy, **metadata: str) -> TriggerSpec:
    given = {"workload": "bert", "threshold": "70", "source": "old", **metadata}
    allowed = access("default", "old", own_promql=policy, influxql_sources=frozenset({"old"}))
    return trigger.parse(BERT, given, allowed)


def mistakes(policy: Policy, **metadata: str) -> list[str]:
    with pytest.raises(errors.SpecError) as caught:
        parse(policy, **metadata)
    return str(caught.value).splitlines()[1:]


def test_a_demand_query_is_influxql_there_and_is_sent_as_it_was_written() -> None:
    spec = parse(Policy.ALLOW, demandQuery=MEAN)
    assert spec.demand is not None
    assert spec.demand.text == MEAN


@pytest.mark.parametrize("policy", [Policy.NAMESPACED, Policy.DENY])
def test_influxql_is_refused_where_queries_are_confined(policy: Policy) -> None:
    (mistake,) = mistakes(policy, demandQuery=MEAN)
    assert mistake.endswith(
        "; InfluxQL cannot be confined to a namespace; expected KEDA_GPU_SCALER_OWN_PROMQL=allow "
        "of the scaler, or a source that understands PromQL"
    )


def test_what_would_write_is_refused_before_anybody_is_asked() -> None:
    (mistake,) = mistakes(Policy.ALLOW, demandQuery="DROP DATABASE telegraf")
    assert "expected InfluxQL that begins with SELECT" in mistake


def test_promql_of_ones_own_is_refused() -> None:
    (mistake,) = mistakes(Policy.ALLOW, query="cache_usage", activationThreshold="5")
    assert "expected a source that understands PromQL: old is an InfluxDB" in mistake


def test_a_source_beside_it_takes_promql_as_ever() -> None:
    spec = parse(Policy.NAMESPACED, source="default", demandQuery="queue_length")
    assert spec.demand is not None
    assert spec.demand.text == promql.number("queue_length", Policy.NAMESPACED, "ml")


@pytest.mark.parametrize("name", ["workload", "namespace", "podPattern"])
def test_nothing_is_filled_into_influxql_which_is_not_parsed(name: str) -> None:
    text = f"{MEAN} AND pod =~ /{{{name}}}/"
    (mistake,) = mistakes(Policy.ALLOW, demandQuery=text)
    assert mistake.endswith(
        "; InfluxQL is not parsed, so that nothing can be filled in safely; expected the names "
        "themselves in place of placeholders"
    )
    other = f"{MEAN} AND pod =~ /a{{2}}{{id}}/"
    demand = parse(Policy.ALLOW, demandQuery=other).demand
    assert demand is not None
    assert demand.text == other
