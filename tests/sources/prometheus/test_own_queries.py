"""A user's own query: its texts, and its elements as GPUs of pods."""

import math
from collections.abc import Mapping

import promql_parser
import pytest

from keda_gpu_scaler import promql
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.query.promql_texts import (
    element_ages_text,
    element_targets_text,
    elements_text,
)
from keda_gpu_scaler.snapshot.observation import Row, Target
from keda_gpu_scaler.sources import series
from keda_gpu_scaler.spec.spec import OwnQuery

POD = {"namespace": "ml", "pod": "bert-0"}


def own(text: str) -> OwnQuery:
    return promql.own(text, Policy.ALLOW, "ml")


def row(labels: Mapping[str, str], *values: float) -> Row:
    return Row.of(labels, [(15.0 * number, value) for number, value in enumerate(values, 1)])


def test_points_and_the_health_of_targets_are_asked_for_over_the_same_span() -> None:
    elements = elements_text(own("load # a comment"), 240, 15)
    targets = element_targets_text(["b", "a"], 240, 15)
    assert elements == "(load # a comment\n)[4m:15s]"
    assert targets.endswith("[4m:15s]")
    assert 'job=~"a|b"' in targets
    for text in (elements, targets):
        promql_parser.parse(text)


def test_ages_are_those_of_the_samples_and_not_of_the_result() -> None:
    text = element_ages_text(own("avg_over_time(load[10m]) / on (pod) limit"), 15)
    assert 'max_over_time(timestamp({__name__="load"})[10m15s:15s])' in text
    assert ' (timestamp({__name__="limit"}))' in text
    assert text.endswith("> 60")
    promql_parser.parse(text)


def test_a_pod_is_as_old_as_the_oldest_of_what_its_number_is_made_of() -> None:
    other = {"exported_namespace": "ml", "exported_pod": "bert-1", "namespace": "gpu", "pod": "x"}
    rows = [row(POD, 90), row(POD, 300), row(POD, 120), row(other, 70)]
    assert series.oldest_ages(rows, []) == {("ml", "bert-0"): 300, ("ml", "bert-1"): 70}


def test_what_names_no_pod_is_as_old_for_everybody() -> None:
    rows = [row(POD, 90), row({"origin": "1"}, 200)]
    shown = [("ml", "bert-0"), ("ml", "bert-1")]
    assert series.oldest_ages(rows, shown) == {("ml", "bert-0"): 200, ("ml", "bert-1"): 200}
    assert series.oldest_ages([], shown) == {}


def test_the_target_of_a_model_server_is_the_workloads_pod() -> None:
    labels = {"namespace": "ml", "pod": "vllm-0", "job": "vllm", "instance": "10.0.0.7:8000"}
    rows = [row({**labels, "model_name": "llama"}, 20)]
    ((gpu,), *_) = series.read_elements(rows, {"ml"})
    assert (gpu.namespace, gpu.pod) == ("ml", "vllm-0")


def test_elements_of_one_pod_are_told_apart_by_what_else_they_carry_and_not_by_the_exporter() -> (
    None
):
    def names(*labels: dict[str, str]) -> list[str]:
        rows = [row(POD | more, 20) for more in labels]
        return [gpu.gpu for gpu in series.read_elements(rows, {"ml"})[0]]

    assert len(set(names({"engine": "0"}, {"engine": "1"}))) == 2
    # By its board it can be looked for.
    assert names({"UUID": "GPU-1", "gpu": "0"}) == ["GPU-1/UUID=GPU-1,gpu=0"]
    exported = {"exported_namespace": "ml", "exported_pod": "bert-0", "namespace": "gpu"}
    assert len(set(names(exported | {"pod": "a"}, exported | {"pod": "b"}))) == 1


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"pod": "bert-0"},
        {"namespace": "ml", "pod": ""},
        {"namespace": "other", "pod": "bert-0"},
        {"namespace": "ml", "pod": "exporter", "exported_namespace": "b", "exported_pod": "c"},
    ],
)
def test_an_element_that_names_no_pod_of_the_namespace_counts_for_nobody(
    labels: dict[str, str],
) -> None:
    element = row(labels, 90)
    assert series.read_elements([element], {"ml"}) == ((), 0, [element])


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.5, 2.0**53, 2147483635.0])
def test_a_number_that_is_none_is_refused_and_still_shows_the_pod(value: float) -> None:
    labels = POD | {"job": "vllm", "instance": "10.0.0.1:8000"}
    ((gpu,), refused, unmatched) = series.read_elements([row(labels, 20, value)], {"ml"})
    assert (gpu.namespace, gpu.pod, gpu.target) == ("ml", "bert-0", Target("vllm", "10.0.0.1:8000"))
    assert (gpu.present, gpu.times, gpu.values) == ((15.0, 30.0), (15.0,), (20.0,))
    assert (refused, unmatched, gpu.averaged) == (1, [], False)
