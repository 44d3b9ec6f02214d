"""Users' own PromQL: what is invalid, what is allowed, and that rewriting keeps the tree."""

import itertools
import math
import time
from collections.abc import Sequence
from typing import Any

import promql_parser as parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import promql
from keda_gpu_scaler.promql import Policy, lexer
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.spec.spec import OwnQuery
from tests.query.test_promql_texts import selectors, takes
from tests.support.expressions import by_hand, vectors

OTHERS = tuple(
    f'{label}=~"|ml"'
    for label in (
        "exported_namespace",
        "pod_namespace",
        "NamespaceName",
        "namespace_name",
        "kube_namespace",
        "k8s_namespace_name",
        "podnamespace",
        "hcu_pod_namespace",
        "dcu_pod_namespace",
    )
)
CONFINED = ('namespace="ml"', *OTHERS)
CONFINED_EXPORTED = ('exported_namespace="ml"', *OTHERS[1:])


@given(
    st.sampled_from(profiles.NAMESPACE_LABELS),
    st.dictionaries(
        st.sampled_from([*profiles.NAMESPACE_LABELS, "pod", "exported_pod"]),
        st.sampled_from(["", "ml", "other"]),
    ),
)
def test_whatever_label_is_asked_for_no_row_that_is_shown_is_about_another_namespace(
    label: str, row: dict[str, str]
) -> None:
    """The matchers follow the ranking by which elements are read."""
    (selector,) = selectors(own(f'load{{{label}!=""}}').text)
    is_shown = takes(selector, row)
    pod = profiles.pod_of(row)
    assert not is_shown or pod is None or pod[0] == "ml"


@pytest.mark.parametrize(
    "pattern",
    ["(", "[", "a{1001}", "\\\\C{0}\\\\Z", "(?P<a", "b(?=c)", "\\\\pX"],
)
def test_a_pattern_that_re2_cannot_read_is_refused(pattern: str) -> None:
    words = "a PromQL expression whose patterns RE2 can read"
    assert refusal(f'x{{a=~"{pattern}"}}') == words
    assert refusal(f'x{{a!~"{pattern}"}}') == words
    assert refusal(f'label_replace(x, "a", "", "b", "{pattern}")') == words
    assert own(f'label_replace(x{{a!="{pattern}"}}, "a", "{pattern}", "b", "c")').text


@pytest.mark.parametrize("pattern", [r"\pL{100}", r"(\pL{30}){30}", r"a{99}" * 33, r"\PN" * 33])
def test_a_pattern_that_takes_long_to_compile_is_refused(pattern: str) -> None:
    words = "a PromQL expression whose patterns are of a usual size"
    assert refusal(f"x{{a=~`{pattern}`}}") == words
    assert refusal(f"vector(1) + x{{a=~`{pattern[:36]}`,b!~`{pattern}`}}") == words
    assert refusal(f"label_replace(x, `a`, ``, `b`, `{pattern}`)") == words


@pytest.mark.parametrize("pattern", ["[a-z0-9-]{100}", r"\pL+", "a)|(b", "a{9}" * 32, "b|" * 400])
def test_a_usual_pattern_is_read_as_prometheus_reads_it(pattern: str) -> None:
    assert own(f"x{{a=~`{pattern}`}} + x{{b!~`{pattern}`}}").text


def test_groups_in_a_pattern_cost_nothing() -> None:
    """They took twenty times as long, by the CPU time of this thread."""
    seconds = dict.fromkeys(("(?:)", "()"), math.inf)
    for group, number in itertools.product(seconds, range(5)):
        text = f"x{{a=~`{'b' * number}{group * (1960 // len(group))}`}}"
        before = time.thread_time()
        assert own(text).text
        seconds[group] = min(seconds[group], time.thread_time() - before)
    assert seconds["()"] < 4 * seconds["(?:)"]


def own(text: str, policy: Policy = Policy.NAMESPACED) -> OwnQuery:
    return promql.own(text, policy, "ml")


def refusal(text: str, policy: Policy = Policy.NAMESPACED) -> str:
    """Return the message of the refusal: what was expected instead."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words are what is looked at
        own(text, policy)
    return str(caught.value)


def confined(selector: str, added: Sequence[str] = CONFINED) -> str:
    return f"{{{','.join([selector, *added])}}}"


LOAD, POWER = confined('__name__="load"'), confined('__name__="power"')


JOINED = "ignoring (x) group_right (y) fill_left (2.0)"


def shape(node: Any) -> Any:
    """Return a tree of the parser's without its parentheses, as everything that its nodes show."""
    if isinstance(node, parser.ParenExpr):
        return shape(node.expr)
    if isinstance(node, list):
        return [shape(each) for each in node]
    if isinstance(node, parser.VectorSelector):
        name = [parser.Matcher(parser.MatchOp.Equal, "__name__", node.name)] if node.name else []
        groups = [[*name, *node.matchers.matchers], *node.matchers.or_matchers]
        return shape([*groups, node.offset, node.at])
    names = dir(node) if type(node).__module__ == parser.__name__ else []
    values = {name: getattr(node, name) for name in names if name[0].islower()}
    return {name: shape(each) for name, each in values.items() if not callable(each)} or str(node)


@given(vectors)
def test_it_is_what_a_person_would_write_by_hand(marked: str) -> None:
    hand = by_hand(marked, ",".join(CONFINED), ",".join(CONFINED_EXPORTED))
    sent = own(by_hand(marked, "", "")).text
    assert shape(parser.parse(sent)) == shape(parser.parse(hand))


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ('{"http.requests", pod="a"}', confined('__name__="http.requests",pod="a"')),
        ('load{"k8s.pod"=~"a"}', confined('__name__="load","k8s.pod"=~"a"')),
        (r"""load{pod!='a"\\'}""", confined(r'__name__="load",pod!="a\"\\"')),
        (r"load{pod=~`a\d`}", confined(r'__name__="load",pod=~"a\\d"')),
        ('{"exported_namespace"!~""}', confined('exported_namespace!~""', CONFINED_EXPORTED)),
        (
            'load{exported_namespace!="",a!~"b"}',
            confined('__name__="load",exported_namespace!="",a!~"b"', CONFINED_EXPORTED),
        ),
        (
            'load{a="1" or b="2",exported_namespace="x"}',
            confined('__name__="load",a="1"')[:-1]
            + " or "
            + confined('__name__="load",b="2",exported_namespace="x"', CONFINED_EXPORTED)[1:],
        ),
        ("load @ 12.5 offset -90s", LOAD + " @ 12.500 offset -90s"),
        (
            "max_over_time((load)[5m:1500ms] @ end())",
            f"max_over_time(({LOAD})[300s:1500ms] @ end())",
        ),
        (
            'sum(load) by (pod, "a.b") + ignoring(x) group_right(y) fill_left(2) power',
            f'(sum by (pod, "a.b") ({LOAD})) + {JOINED} ({POWER})',
        ),
        ("load > bool +Inf", f"({LOAD}) > bool (Inf)"),
    ],
)
def test_a_confined_expression_is_written_anew(text: str, sent: str) -> None:
    assert own(text).text == sent


def test_a_function_that_reads_more_than_its_selectors_cannot_be_confined() -> None:
    assert own('info(load, {a="b"})', Policy.ALLOW).text == 'info(load, {a="b"})'
    assert "no info()" in refusal("sum by (pod) (info(load))")


def test_own_promql_can_be_denied_and_the_refusal_says_who_can_change_it() -> None:
    words = refusal("load", Policy.DENY)
    assert "the operator can allow it with KEDA_GPU_SCALER_OWN_PROMQL" in words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a PromQL expression, such as"),
        ("a b", "a PromQL expression: this is none, and Prometheus' own query page shows where"),
        ("load{pod=}", "a PromQL expression: this is none"),
        ("load != 'a'", "a PromQL expression: this is none"),
        ("\n)\n", "line 2, column 1: unexpected right parenthesis"),
        ("a\n + # (\n  (b", "line 3, column 3: unclosed left parenthesis"),
        ("load{pod= b}", "unexpected identifier ... in label matching, expected string"),
        ("load{pod}", "invalid label matcher, expected label matching operator"),
        ("load + 0e5", "a PromQL expression: a number in it is none that the parser reads"),
        ("load\n+ \udcff", "line 2, column 3: unexpected character"),
        ("load + ä", "line 1, column 8: unexpected character"),
        ('load{a="\udcff"}', "line 1, column 8: an escape that is not Prometheus', or a text that"),
        (r'load{a="\d"}', "line 1, column 8: an escape that is not Prometheus'"),
        ('{a=""}', "selectors each name a metric, or a label that has to be there"),
        ('{a!="b",c=~"d*",e!~"f+"}', "selectors each name a metric, or a label that has to"),
        ("load and 1", "set operator ... not allowed in binary scalar expression"),
        ("rate(load) + rate (", "line 1, column 19: unclosed left parenthesis"),
        (")", "line 1, column 1: unexpected right parenthesis"),
        ("load{pod", "line 1, column 5: unexpected end of input inside braces"),
        ("rate(load[5m)", "line 1, column 13: unexpected character inside brackets"),
        ('load{pod="a}', "line 1, column 10: unterminated quoted string"),
        ("1 + rate(load)", "line 1, column 5: expected type matrix in call to function 'rate'"),
        ("loda(load)", "line 1, column 1: unknown function with name 'loda'"),
        ("load + load[5m]", "binary expression must contain only scalar and instant vector types"),
        ("1", "for an instant vector, and this is a scalar"),
        ("(time() + 1)", "for an instant vector, and this is a scalar"),
        ("scalar(load)", "for an instant vector, and this is a scalar"),
        ("-(1)", "for an instant vector, and this is a scalar"),
        ("load[5m]", "for an instant vector, and this is a range"),
        ("load[5m:1m]", "for an instant vector, and this is a range"),
        ('("load")', "for an instant vector, and this is a text"),
        ("vector(1)", "an expression with a metric in it"),
        ("rate(load[61m])", "reach back at most 1h"),
        ("max_over_time(rate(load[31m])[30m:1m])", "reach back at most 1h"),
        ("+".join(f"load_{number}" for number in range(21)), "at most 20 different selectors"),
        pytest.param("abs(" * 100 + "load" + ")" * 100, "nested at most 100 deep", id="deep calls"),
        pytest.param("-" * 399 + "load", "nested at most 100 deep", id="deep signs"),
        ("+".join(["load"] * 201), "at most 400 names, numbers and signs"),
        ("#\r".join(["x+"] * 300) + "x", "at most 400 names, numbers and signs"),
        ("load" * 501, "at most 2000 characters"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_place(text: str, expected: str) -> None:
    assert expected in refusal(text)


@pytest.mark.parametrize("text", ['a{b="hunter2"} c', 'a{b="hunter2}', 'a{b=~"hunter2["}'])
def test_what_was_written_is_not_repeated_for_it_may_be_a_secret(text: str) -> None:
    assert "hunter2" not in refusal(text)


@given(vectors, st.data())
def test_a_bracket_that_is_left_out_is_found(marked: str, data: st.DataObject) -> None:
    text = by_hand(marked, "", "")
    found = lexer.tokens(text)
    assert lexer.unmatched(found) is None
    cut = data.draw(st.sampled_from([at for at, one in enumerate(found) if one.text in "})"]))
    assert lexer.unmatched(found[:cut]) is not None


def test_a_query_knows_how_far_back_each_of_its_selectors_looks() -> None:
    found = own("max_over_time(sum by (pod) (rate(a[1m]) + b)[5m:15s]) + rate(a[2m])").origins
    a, b = confined('__name__="a"'), confined('__name__="b"')
    assert [(one.selector, one.lookback_seconds) for one in found] == [(a, 360), (b, 300)]


@pytest.mark.parametrize(
    ("text", "is_complete"),
    [
        ("load", True),
        ('sum by (namespace, pod, job, instance) (100 * -load{gpu!="0"})', True),
        ("clamp_max(avg_over_time(load[5m]), 100)", True),
        ("max_over_time(load[5m:1m])", True),
        ("load > bool 5", True),
        ('label_replace(load, "pod", "$1", "id", "(.*)")', True),
        ("load > 5", False),
        ("load and load", False),
        ("load or power", False),
        ("load / on (pod) power", False),
        ("topk(3, load)", False),
        ("absent(load)", False),
        ("load offset 5m", False),
        ("load @ 1", False),
        ("max_over_time(load[5m:1m] offset 1m)", False),
        ('label_replace(load, "job", "dcgm", "", "")', False),
        ('label_join(load, ("UUID"), "-", "pod")', False),
    ],
)
def test_absence_means_something_only_where_every_series_shows(
    text: str,
    is_complete: bool,
) -> None:
    assert own(text).is_complete is is_complete


def test_a_query_has_a_short_name_of_its_own() -> None:
    first, again, other = own("load"), own(" load "), own("power")
    assert first.name == again.name != other.name
    assert len(first.name) == len("query-") + 8


# An expression for one number


@given(vectors, st.sampled_from(list(Policy)))
def test_a_number_is_asked_for_as_elements_are(marked: str, policy: Policy) -> None:
    text = by_hand(marked, "", "")
    if policy is Policy.DENY:
        with pytest.raises(ValueError, match="custom PromQL is denied here"):
            promql.number(text, policy, "ml")
    else:
        assert promql.number(text, policy, "ml") == own(text, policy).text


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("1", "1.0"),
        ("-(1)", "-(1.0)"),
        ("time() / 60", "(time()) / (60.0)"),
        ("scalar(load)", f"scalar({LOAD})"),
        ("vector(1)", "vector(1.0)"),
        ("sum(load) or vector(0)", f"(sum({LOAD})) or (vector(0.0))"),
    ],
)
def test_a_number_needs_neither_a_vector_nor_a_metric(text: str, sent: str) -> None:
    assert promql.number(text, Policy.NAMESPACED, "ml") == sent
    assert promql.number(text, Policy.ALLOW, "ml") == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("load[5m]", "for one number, and this is a range of each series; a function such as"),
        ("load[5m:1m]", "for one number, and this is a range"),
        ('("load")', "for one number, and this is a text"),
        ("sum(load", "a PromQL expression: line 1, column 4: unclosed left parenthesis"),
        ("", "a PromQL expression, such as"),
    ],
)
def test_what_is_no_number_is_refused_with_its_place(text: str, expected: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words are what is looked at
        promql.number(text, Policy.NAMESPACED, "ml")
    assert expected in str(caught.value)


@pytest.mark.parametrize("policy", [Policy.NAMESPACED, Policy.ALLOW])
@pytest.mark.parametrize(
    "text",
    [
        "sum_over_time(sum_over_time(vector(1)[30m:1ms])[30m:1ms])",
        "max_over_time(load[10001ms:1ms])",
        "max_over_time(vector(1)[10001s:])",
        "1 + -(max_over_time(max_over_time(load[101s:])[100s:]))",
        "quantile_over_time(0.5, rate(load[1m])[2d:15s])",
    ],
)
def test_subqueries_of_too_many_steps_are_refused(text: str, policy: Policy) -> None:
    with pytest.raises(ValueError, match="subqueries take at most 10,000 steps, multiplied"):
        promql.number(text, policy, "ml")
    assert "10,000 steps" in refusal(text, policy)


@pytest.mark.parametrize(
    "text",
    [
        "max_over_time(load[10s:1ms])",
        "max_over_time(rate(load[5m])[50m:])",
        "max_over_time(max_over_time(load[100s:])[100s:])",
        "max_over_time(load[50m:1s]) + max_over_time(load[40m:1s]) + max_over_time(load[1h:1s])",
        "max_over_time(max_over_time(load[1m:2m])[50m:300ms])",
    ],
)
def test_subqueries_as_people_write_them_are_not(text: str) -> None:
    assert promql.number(text, Policy.ALLOW, "ml") == text
    assert own(text, Policy.ALLOW).text == text
