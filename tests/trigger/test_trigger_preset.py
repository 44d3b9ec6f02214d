"""The demandPreset of a trigger: a query of the scaler's own, for the workload or its router."""

import pytest

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.query.presets import NAMES, PRESETS
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.spec.demand import DemandSpec, OnEmpty
from keda_gpu_scaler.trigger.access import Access, Namespaces
from tests.support.triggers import BERT, access

MINIMAL = {"workload": "llama", "threshold": "70"}
ROUTED = {"demandRouter": "llama-epp", "demandModel": "llama"}


def parse(allowed: Access | None = None, /, **metadata: str) -> DemandSpec:
    given = {key: text for key, text in {**MINIMAL, **metadata}.items() if text}
    demand = trigger.parse(BERT, given, allowed or access()).demand
    assert demand is not None
    return demand


def mistakes(allowed: Access | None = None, /, **metadata: str) -> list[str]:
    with pytest.raises(errors.SpecError) as caught:
        parse(allowed, **metadata)
    _, *lines = str(caught.value).splitlines()
    return lines


def keys(name: str) -> dict[str, str]:
    """Return a preset with the keys that it needs."""
    return {"demandPreset": name, **(ROUTED if PRESETS[name].is_of_router else {})}


@pytest.mark.parametrize("name", NAMES)
def test_one_line_gives_a_query_a_target_and_what_an_unknown_demand_means(name: str) -> None:
    preset, demand = PRESETS[name], parse(**keys(name))
    assert (demand.preset, demand.threshold) == (name, preset.threshold)
    assert demand.activation_threshold == 0
    assert demand.is_of_pods is not preset.is_of_router
    assert demand.on_empty is (OnEmpty.INACTIVE if demand.is_of_pods else OnEmpty.ERROR)
    assert demand.name.startswith("demand-")


def test_every_part_of_it_can_be_said_otherwise() -> None:
    demand = parse(
        demandPreset="vllm-requests",
        demandThreshold="24",
        demandActivationThreshold="1",
        demandOnEmpty="active",
    )
    assert (demand.threshold, demand.activation_threshold) == (24, 1)
    assert demand.on_empty is OnEmpty.ACTIVE


def test_it_reads_the_workloads_pods_or_the_routers() -> None:
    assert '"llama-[4-9bcdf]' in parse(demandPreset="vllm-queue").text
    assert '"a|b"' in parse(demandPreset="vllm-queue", workload="", podPattern="a|b").text
    routed = parse(demandPreset="llm-d-epp-queue", demandRouter="sts/router").text
    assert '"router-(?:0|[1-9]' in routed
    assert "llama" not in routed


def test_it_is_in_the_namespace_of_the_workload() -> None:
    allowed = access(others=Namespaces(frozenset({"other"})))
    for name in ("vllm-queue", "llm-d-epp-queue"):
        text = parse(allowed, **keys(name), namespace="other").text
        assert '="other"' in text
        assert '="ml"' not in text


@pytest.mark.parametrize("policy", list(Policy))
def test_it_works_whatever_users_may_write_themselves(policy: Policy) -> None:
    assert parse(access(own_promql=policy), demandPreset="tgi-queue").text == (
        parse(demandPreset="tgi-queue").text
    )


def test_it_and_a_query_are_too_many() -> None:
    (mistake,) = mistakes(demandPreset="vllm-queue", demandQuery="sum(x)")
    assert mistake == (
        '- demandPreset: "vllm-queue"; expected one of the two: demandQuery is given as well'
    )


def test_a_name_that_is_none_is_told_the_nearest() -> None:
    (mistake,) = mistakes(demandPreset="vllm-queues")
    assert "; expected one of vllm-queue, vllm-running, " in mistake
    assert mistake.endswith("(did you mean vllm-queue?)")


@pytest.mark.parametrize("kind", ["direct_sources", "influxql_sources"])
def test_a_source_has_to_understand_promql(kind: str) -> None:
    allowed = access("default", **{kind: frozenset({"default"})})
    (mistake,) = mistakes(allowed, demandPreset="vllm-queue")
    assert mistake.startswith(
        '- demandPreset: "vllm-queue"; expected a source that understands PromQL: default '
    )


def test_a_preset_of_a_router_needs_its_name() -> None:
    assert mistakes(demandPreset="llm-d-epp-queue") == [
        "- demandRouter: not given; expected [kind/]name such as deployment/llama-epp"
    ]
    assert mistakes(demandPreset="vllm-router-rate") == [
        "- demandRouter: not given; expected [kind/]name such as deployment/llama-epp",
        "- demandModel: not given; expected the name of a model as requests write it",
    ]
    (mistake,) = mistakes(demandPreset="llm-d-epp-queue", demandRouter="svc/epp")
    assert mistake.startswith('- demandRouter: "svc/epp"; expected ')


@pytest.mark.parametrize("model", ["", "a\nb", "x" * 257])
def test_a_model_is_a_printable_name(model: str) -> None:
    given = MINIMAL | keys("vllm-router-rate") | {"demandModel": model}
    with pytest.raises(errors.SpecError, match="expected the name of a model as requests write"):
        trigger.parse(BERT, given, access())


def test_keys_of_a_router_mean_nothing_to_other_presets() -> None:
    assert mistakes(demandPreset="vllm-queue", **ROUTED) == [
        '- demandRouter: "llama-epp"; expected none: vllm-queue is of the workload\'s own pods',
        '- demandModel: "llama"; expected none: vllm-queue is of the workload\'s own pods',
    ]
    assert mistakes(**ROUTED, demandQuery="sum(x)") == [
        '- demandRouter: "llama-epp"; expected demandPreset with it',
        '- demandModel: "llama"; expected demandPreset with it',
    ]


def test_whose_pods_it_is_of_has_to_be_said() -> None:
    anything = {"workload": "", "query": "load", "activationThreshold": "1"}
    (mistake,) = mistakes(**anything, demandPreset="vllm-queue")
    assert mistake.endswith("; expected workload or podPattern with it")
    (mistake,) = mistakes(access(knows_targets=True), workload="", demandPreset="vllm-queue")
    assert mistake.endswith("; expected workload or podPattern with it")
    assert parse(**anything, **keys("llm-d-epp-queue")).text


def test_a_query_that_no_server_takes_is_refused() -> None:
    pattern = "|".join(f"llama-{number}" for number in range(400))
    (mistake,) = mistakes(workload="", podPattern=pattern, demandPreset="knative-requests")
    assert mistake.endswith("; its query is too long; expected a shorter podPattern")


def test_a_target_of_its_own_needs_the_sum_for_the_load_as_well() -> None:
    (mistake,) = mistakes(demandPreset="vllm-queue", aggregation="average")
    assert mistake.startswith("- demandThreshold: not given; expected aggregation: sum beside it")
    assert parse(**keys("vllm-router-rate"), aggregation="average").threshold is None


def test_mistakes_of_all_its_keys_come_in_one_message_once_each() -> None:
    wrong = mistakes(demandPreset="x", demandRouter="a b", demandModel="\t\n", demandThreshold="0")
    assert [line.partition(":")[0] for line in wrong] == [
        "- demandPreset",
        "- demandRouter",
        "- demandModel",
        "- demandThreshold",
    ]
