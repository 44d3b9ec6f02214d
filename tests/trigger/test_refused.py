"""What a trigger may not say: each mistake, with what was expected in its place."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.trigger.access import Access, Namespaces
from testbed.triggers import BERT, access
from tests.trigger.cases import MINIMAL, Given, mistakes, parse

HERE = Path(__file__).parent
VALUES = yaml.safe_load((HERE / "values.yaml").read_text(encoding="utf-8"))
RULES = yaml.safe_load((HERE / "rules.yaml").read_text(encoding="utf-8"))
ROUTED: Given = {"demandPreset": "vllm-router-rate", "demandRouter": "a", "demandModel": "b"}
LONGEST: Given = {
    "metricName": "a" * 201,
    "namespace": "a" * 64,
    "window": "9" * 400 + "h",
    **ROUTED,
    "demandModel": "x" * 257,
}
"""Values that are too long by a little, or by far."""


def beside(key: str) -> Given:
    """Return the keys without which a key means nothing."""
    if key in {"demandRouter", "demandRouterNamespace", "demandModel"}:
        return ROUTED
    return {"demandQuery": "load"} if key.startswith("demand") and key != "demandPreset" else {}


@pytest.mark.parametrize("row", VALUES, ids=lambda row: row["key"])
def test_a_value_that_cannot_be_is_refused_with_what_was_expected(
    row: dict[str, Any], subtests: pytest.Subtests
) -> None:
    key = row["key"]
    for text in row["texts"]:
        with subtests.test(text):
            (line,) = mistakes({**beside(key), key: text})
            assert line.startswith(f'- {key}: "')
            assert f"; expected {row['expected']}" in line


def test_values_have_a_length() -> None:
    assert [line.partition(":")[0] for line in mistakes(LONGEST)] == [
        "- namespace",
        "- demandModel",
        "- metricName",
        "- window",
    ]


@pytest.mark.parametrize("row", RULES, ids=lambda row: "-".join(row["given"]))
def test_what_does_not_go_together_or_is_not_allowed_is_refused(row: dict[str, Any]) -> None:
    lines = mistakes(
        row["given"],
        knows_targets=row.get("knows_targets", False),
        others=Namespaces(frozenset(row.get("others", ()))),
        own_promql=Policy(row.get("own_promql", "namespaced")),
    )
    assert len(lines) == len(row["said"]), lines
    for line, begin in zip(lines, row["said"], strict=True):
        assert line.startswith(begin)


@pytest.mark.parametrize("signal", ["memory", "memory-used", "power", "temperature"])
def test_what_stays_up_while_idle_needs_an_activation_threshold(signal: str) -> None:
    (line,) = mistakes({"signal": signal})
    assert line == (
        f"- activationThreshold: not given; required for {signal}, which a loaded model keeps up "
        "while it is idle; expected a number a little above that level"
    )


def test_the_query_of_a_preset_can_be_too_long_for_every_server() -> None:
    pattern = "|".join(f"llama-{number}" for number in range(400))
    (line,) = mistakes({"podPattern": pattern, "demandPreset": "knative-requests"})
    assert line.endswith("; its query is too long; expected a shorter podPattern")


@pytest.mark.parametrize("demand", [{"demandQuery": "load"}, ROUTED])
def test_a_demand_without_a_target_goes_with_an_average(demand: Given) -> None:
    spec = parse({"aggregation": "average", **demand})
    assert spec.demand is not None
    assert spec.demand.threshold is None


@pytest.mark.parametrize(
    ("allowed", "source", "said"),
    [
        (access("a"), {}, r'source: "default" \(default\); expected one of a'),
        (Access(), {}, "expected a source, of which none is set up here; sources are process"),
        (access(*map("r-{:02}".format, range(21))), {"source": "q"}, "r-19 and 1 more; sources"),
        (access(*map("r-{:02}".format, range(20))), {"source": "q"}, "r-19; sources are"),
    ],
)
def test_a_source_must_be_configured_and_only_the_first_ones_are_listed(
    allowed: Access, source: dict[str, str], said: str
) -> None:
    with pytest.raises(errors.SpecError, match=said):
        trigger.parse(BERT, MINIMAL | source, allowed)


def test_a_source_can_be_for_some_namespaces_only() -> None:
    ours, others = (Access({"default": Namespaces(frozenset({name}))}) for name in ("ml", "x"))
    assert trigger.parse(BERT, MINIMAL, ours).source == "default"
    with pytest.raises(errors.SpecError, match="expected a source, of which none is set up here"):
        trigger.parse(BERT, MINIMAL, others)


@pytest.mark.parametrize(
    ("scaled_object", "what"),
    [
        (ScaledObject("", "bert"), 'namespace ""; expected a namespace'),
        (ScaledObject("Prod", "bert"), 'namespace "Prod"; expected a namespace'),
        (ScaledObject("prod", ""), 'name ""; expected a Kubernetes name'),
        (ScaledObject("prod", "be\nrt"), 'name "be\\nrt"; expected a Kubernetes name'),
    ],
)
def test_a_scaled_object_without_a_proper_name_is_refused(
    scaled_object: ScaledObject, what: str
) -> None:
    with pytest.raises(errors.SpecError) as caught:
        trigger.parse(scaled_object, {**MINIMAL, "namespace": "prod"}, access())
    heading, line = str(caught.value).splitlines()
    assert heading.startswith("1 mistake in the trigger of ScaledObject ")
    assert line == f"- the ScaledObject's {what}"
