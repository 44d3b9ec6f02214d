"""Matchers: what is read as such, and that every selector of a query gets them."""

import promql_parser
import pytest

from keda_gpu_scaler.promql import policy
from keda_gpu_scaler.promql.tree import Matcher
from keda_gpu_scaler.query.kube_state_texts import JOBS
from keda_gpu_scaler.query.promql_texts import EXPORTERS, LOOK
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from tests.support.promql_texts import (
    ages_text,
    kube_state_text,
    reported_gpus_text,
    snapshot_text,
)

EU = Matcher("cluster", "=", "eu-1")
NEED = SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({"ml"}), 300.5, 120)
Selectors = list[list[tuple[str, str, str]]]


def selectors(text: str) -> Selectors:
    """Return the matchers of every selector, the metric's name among them, each in order."""
    found: Selectors = []

    def note(node: object) -> bool:
        if isinstance(node, promql_parser.VectorSelector):
            own = [(one.name, str(one.op), one.value) for one in node.matchers.matchers]
            name = [("__name__", str(promql_parser.MatchOp.Equal), node.name)] if node.name else []
            found.append(sorted([*name, *own]))
        return True

    promql_parser.walk(promql_parser.parse(text), note)
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('cluster="eu-1"', (EU,)),
        (" cluster = 'eu-1' , ", (EU,)),
        ('cluster="eu-1",env!~"test|dev.*"', (EU, Matcher("env", "!~", "test|dev.*"))),
        ('a=~"b",c!="d"', (Matcher("a", "=~", "b"), Matcher("c", "!=", "d"))),
        (r'a="\"} or up{\\"', (Matcher("a", "=", '"} or up{\\'),)),
    ],
)
def test_matchers_are_written_as_between_the_braces_of_a_selector(
    text: str, found: tuple[Matcher, ...]
) -> None:
    assert policy.parsed_matchers(text) == found


@pytest.mark.parametrize(
    "text",
    [
        *("", "cluster", "cluster=eu-1", '__name__="up"', '{cluster="eu-1"}', 'cluster="eu-1"}#'),
        *('cluster="eu-1"} or up{a="b"', 'cluster="eu-1"} offset 5m #', 'cluster="eu-1"}[5m'),
        *('cluster="eu-1" or cluster="us-1"', 'cluster="eu-1"} @ 5 or any{a="b"'),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match='matchers such as cluster="eu-1"'):
        policy.parsed_matchers(text)


def test_a_pattern_that_is_not_re2_is_refused() -> None:
    with pytest.raises(ValueError, match="an RE2 pattern for a"):
        policy.parsed_matchers('a=~"b{1001}"')


@pytest.mark.parametrize(
    "text",
    [
        snapshot_text(NEED, ["dcgm-exporter"], 2.5),
        ages_text(NEED),
        reported_gpus_text(["GPU-1"]),
        EXPORTERS,
        LOOK,
        JOBS,
        kube_state_text(["ml"], ["ksm"]),
        "sum by (a) (rate(x[5m] @ end())) / ignoring (b) group_left (c) max_over_time(y[1h:5m])",
        "-x offset -2500ms > bool 3 unless on () {a=~'b.*'}",
    ],
)
def test_every_selector_gets_them_and_keeps_its_own(text: str) -> None:
    env = Matcher("env", "!~", "test|d.v")
    added = [
        ("cluster", str(promql_parser.MatchOp.Equal), "eu-1"),
        ("env", str(promql_parser.MatchOp.NotRe), "test|d.v"),
    ]
    expected = [sorted([*one, *added]) for one in selectors(text)]
    assert expected
    assert selectors(policy.confined(text, (EU, env))) == expected


def test_without_matchers_a_text_stays_as_it_is() -> None:
    assert policy.confined("no PromQL (", ()) == "no PromQL ("
