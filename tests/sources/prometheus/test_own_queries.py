"""A user's own query: its texts, and its elements as GPUs of pods."""

from collections.abc import Mapping

import promql_parser
import pytest

from keda_gpu_scaler.query import promql
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.query.promql_texts import (
    element_ages_text,
    element_targets_text,
    elements_text,
)
from keda_gpu_scaler.snapshot.observation import Row, Target
from keda_gpu_scaler.sources.prometheus import own_queries
from keda_gpu_scaler.spec.spec import OwnQuery

POD = {"namespace": "ml", "pod": "bert-0"}


def own(text: str) -> OwnQuery:
    return promql.own(text, Policy.ALLOW, "ml")


def row(labels: Mapping[str, str], *values: float) -> Row:
    return Row(labels, [(15.0 * number, value) for number, value in enumerate(values, 1)])


def test_points_are_asked_for_over_the_whole_span() -> None:
    text = elements_text(own("load # a comment"), 240, 15)
    assert text == "(load # a comment\n)[4m:15s]"
    promql_parser.parse(text)


def test_the_health_of_the_targets_is_asked_for_over_the_same_span() -> None:
    text = element_targets_text(["b", "a"], 240, 15)
    assert text.endswith("[4m:15s]")
    assert 'job=~"a|b"' in text
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
    assert own_queries.oldest_age(rows, []) == {("ml", "bert-0"): 300, ("ml", "bert-1"): 70}


def test_what_names_no_pod_is_as_old_for_everybody() -> None:
    rows = [row(POD, 90), row({"origin": "1"}, 200)]
    shown = [("ml", "bert-0"), ("ml", "bert-1")]
    assert own_queries.oldest_age(rows, shown) == {("ml", "bert-0"): 200, ("ml", "bert-1"): 200}


def test_nothing_is_old_where_nothing_is_said() -> None:
    assert own_queries.oldest_age([], [("ml", "bert-0")]) == {}


def test_an_element_is_a_gpu_of_the_pod_it_names() -> None:
    labels = POD | {"job": "vllm", "instance": "10.0.0.1:8000", "engine": "0"}
    ((gpu,), refused, unmatched_elements) = own_queries.element_series(
        [row(labels, 20, 30)], {"ml"}
    )
    assert (gpu.namespace, gpu.pod, gpu.target) == ("ml", "bert-0", Target("vllm", "10.0.0.1:8000"))
    assert gpu.present == gpu.times == (15.0, 30.0)
    assert gpu.values == (20.0, 30.0)
    assert not gpu.averaged
    assert (refused, unmatched_elements) == (0, 0)


def test_elements_of_one_pod_are_told_apart_by_what_else_they_carry() -> None:
    rows = [row(POD | {"engine": number}, 20) for number in "01"]
    first, second = own_queries.element_series(rows, {"ml"})[0]
    assert first.gpu != second.gpu


def test_an_element_that_names_its_board_can_be_looked_for() -> None:
    ((gpu,), *_) = own_queries.element_series(
        [row(POD | {"UUID": "GPU-1", "gpu": "0"}, 20)], {"ml"}
    )
    assert gpu.gpu == "GPU-1/UUID=GPU-1,gpu=0"


def test_the_pod_itself_does_not_tell_its_gpus_apart() -> None:
    exported = {"exported_namespace": "ml", "exported_pod": "bert-0", "namespace": "gpu"}
    moved = [row(exported | {"pod": name}, 20) for name in ("exporter-a", "exporter-b")]
    first, second = own_queries.element_series(moved, {"ml"})[0]
    assert first.gpu == second.gpu


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
    assert own_queries.element_series([row(labels, 90)], {"ml"}) == ((), 0, 1)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        -0.5,
        2.0**53,
        2147483632.0,
        2147483635.0,
        9223372036854775794.0,
        140737488355328.0,
        140737488355331.0,
    ],
)
def test_a_number_that_is_none_is_refused_and_still_shows_the_pod(value: float) -> None:
    ((gpu,), refused, _) = own_queries.element_series([row(POD, 20, value)], {"ml"})
    assert (gpu.present, gpu.times, refused) == ((15.0, 30.0), (15.0,), 1)
