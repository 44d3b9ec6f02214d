r"""What is filled into a user's PromQL: only strings, exactly, and nothing breaks out of them."""

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.promql import Policy, number, own
from keda_gpu_scaler.promql.lexer import MisplacedError, tokens, unquoted
from keda_gpu_scaler.promql.placeholders import NAMES, Values, are_in, filled
from keda_gpu_scaler.query.promql_texts import quoted
from keda_gpu_scaler.spec.workload import Kind, parse
from tests.support.computing import MOST_SECONDS, cpu_seconds
from tests.support.naming import names

BERT = Values("ml", "bert", "bert-[0-9a-f]+-.{5}")
DOTTED = Values("ml", "llama-3.1", r"llama-3[.]1-\d+|x")
HOSTILE = st.text(st.characters(codec="utf-8")) | st.sampled_from(
    [
        '"} or secret{a="',
        "'} or secret{a='",
        "`} or secret{a=`",
        "\\",
        '\\"',
        "\n",
        "{workload}",
        "{podPattern}",
        '")) or secret #',
        "$1",
        "\\E",
        "\\Q",
        ")|(.*",
    ]
)
TEMPLATES = (
    'load{pod=~"{podPattern}"}',
    "load{pod=~'{podPattern}', namespace=\"{namespace}\"}",
    "load{pod=~`({podPattern})|{workload}-x`}",
    'sum by (pod) (rate(requests{service="{workload}"}[1m])) / 2',
    'label_replace(load{a!="{workload}{namespace}"}, "b", "{workload}", "pod", "{podPattern}")',
    'load{a!~".*{namespace}.*"} or power{a="b"} unless load{service="x-{workload}-y"}',
)


@pytest.mark.parametrize(
    ("text", "values", "right"),
    [
        ('a{pod=~"{podPattern}"}', BERT, 'a{pod=~"bert-[0-9a-f]+-.{5}"}'),
        ("a{pod=~'{podPattern}'}", DOTTED, r'a{pod=~"llama-3[.]1-\\d+|x"}'),
        ("a{pod!~`{podPattern}|y`}", DOTTED, r'a{pod!~"(?:llama-3[.]1-\\d+|x)|y"}'),
        ('a{s="{workload}"}', DOTTED, 'a{s="llama-3.1"}'),
        ('a{s!="x/{namespace}/{workload}"}', DOTTED, 'a{s!="x/ml/llama-3.1"}'),
        ('a{s=~"{workload}-.*"}', DOTTED, 'a{s=~"llama-3[.]1-.*"}'),
        ('a{s=~"(x{workload})+"}', DOTTED, 'a{s=~"(xllama-3[.]1)+"}'),
        ('a{s=~"{workload}?"}', DOTTED, 'a{s=~"(?:llama-3[.]1)?"}'),
        ('a{s=~"{namespace}{workload}"}', BERT, 'a{s=~"(?:ml)bert"}'),
        (
            'label_replace(a, "b", "{workload}$1${workload}$$", "c", "{workload}(.)")',
            DOTTED,
            'label_replace(a, "b", "llama-3.1$1${workload}$$", "c", "llama-3[.]1(.)")',
        ),
        (
            'label_replace(a{x="y"}[1m:5s], "{workload}", (("b")), "c", "{podPattern}")',
            BERT,
            'label_replace(a{x="y"}[1m:5s], "bert", (("b")), "c", "bert-[0-9a-f]+-.{5}")',
        ),
        (
            'label_replace((a), "b", (("${workload}{workload}")), "c", (("{workload}(.*)")))',
            DOTTED,
            'label_replace((a), "b", (("${workload}llama-3.1")), "c", (("llama-3[.]1(.*)")))',
        ),
        (
            'label_replace((sum(a{s="{workload}"}) by (c)), "b", "", "c", ("{workload}"))',
            DOTTED,
            'label_replace((sum(a{s="llama-3.1"}) by (c)), "b", "", "c", ("llama-3[.]1"))',
        ),
        ('label_join(a, "x", "{workload}", "b", "c")', DOTTED, None),
        ('{"{workload}_requests", job="x"}', BERT, '{"bert_requests", job="x"}'),
    ],
)
def test_values_are_filled_into_strings_exactly(
    text: str, values: Values, right: str | None
) -> None:
    assert filled(text, values) == (right or text.replace("{workload}", "llama-3.1"))


@pytest.mark.parametrize(
    "text",
    [
        'up{job="x"}',
        'sum by (workload, namespace) (rate(a{pod=~"b-.*"}[5m]))',
        'a{b=~"x{2}y{1,3}z{4,}"}',
        'a{b=~"\\\\{workload\\\\}"}',
        "a{b=~`\\{workload\\}`}",
        "a{b=~`\\p{Greek}+\\x{1F600}[{workload}][^]{id}][[:alpha:]{id}]`}",
        "a{b=~`\\Q{workload}\\E`}",
        "a{b=~`\\Q{workload}`}",
        "a{b=~`[x{workload}`}",
        'label_replace(a, "b", "${id}", "c", "(?P<id>.*)")',
        "a # {workload} in a comment",
        "{workload",
        'a{b="{workload}',
        'a{b="\\q{workload}"}',
        '{__name__="a"} offset 5m',
        "é {workload}",
        "a)} {",
        'sum(up{path="/v1/{id}"})',
        'sum(a{handler="/v1/models/{model_id}"})',
        'a{b="/{name}/{load}/{pod}/{_}"}',
        "a{b=~`/v1/{id}/.*`, c='{user name}'}",
        'label_replace(a, "b", "{id}", "c", "/{id}/(.*)")',
    ],
)
def test_what_is_no_placeholder_stays_as_it_was_written(text: str) -> None:
    assert filled(text, BERT) == text


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("{workload}", 0, "a placeholder outside of quotes; {workload} goes into a string"),
        ("sum(a_{ workload }_b)", 6, "outside of quotes; {workload} goes into a string, as in pod"),
        ("a{podpattern}", 1, "outside of quotes; {podPattern} goes"),
        (
            'a{b="{workloads}"}',
            4,
            "no placeholder; did you mean {workload}? (for a brace itself, =~ and [{]",
        ),
        ('a{b="{podpattern}"}', 4, "did you mean {podPattern}?"),
        ('a{b="{pod_pattern}"}', 4, "did you mean {podPattern}?"),
        ('a{b="{{ namespace }}"}', 4, "did you mean {namespace}?"),
        ('a{b="{work load}"}', 4, "did you mean {workload}?"),
        ('a{b="{POD-PATTERN}"}', 4, "did you mean {podPattern}?"),
        ('a{b=~"{_name_space_}"}', 5, "did you mean {namespace}?"),
        ('a{b="{workload_name}"}', 4, "did you mean {workload}?"),
        ('a{b="{podPattern}"}', 4, "{podPattern} is a pattern, and goes behind =~ or !~"),
        ('label_replace(a, "{podPattern}", "b", "c", "d")', 17, "is a pattern, and goes behind"),
    ],
)
def test_what_cannot_be_filled_in_is_refused_by_its_place(
    text: str, position: int, words: str
) -> None:
    with pytest.raises(MisplacedError) as caught:
        filled(text, BERT)
    assert caught.value.position == position
    assert words in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_trigger_does_not_say_is_not_made_up(name: str) -> None:
    text = f'a{{b=~"{{{name}}}"}}'
    none = Values("ml", None, None)
    if name == "namespace":
        assert filled(text, none) == 'a{b=~"ml"}'
        return
    with pytest.raises(MisplacedError, match=f"nothing to fill in for {{{name}}}: the trigger has"):
        filled(text, none)


@given(st.sampled_from(TEMPLATES), HOSTILE, HOSTILE, HOSTILE)
def test_no_value_breaks_out_of_its_string(
    template: str, namespace: str, workload: str, pattern: str
) -> None:
    """Whatever is filled in: the same tokens, of which only strings differ, each as it is meant."""
    text = filled(template, Values(namespace, workload, pattern))
    before, after = tokens(template), tokens(text)
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert other.kind == one.kind
        if one.kind != "literal":
            assert other.text == one.text
            continue
        meant = unquoted(one.text)
        if meant == "{podPattern}":
            assert unquoted(other.text) == pattern
        elif meant == "{namespace}":
            assert unquoted(other.text) == namespace
        elif "{" not in meant:
            assert other.text == one.text


@given(names(), st.sampled_from(["{workload}", "a{workload}", "{workload}+", "({workload}|b)"]))
def test_a_name_in_a_pattern_matches_itself_alone(name: str, pattern: str) -> None:
    text = filled(f'a{{b=~"{pattern}"}}', Values("ml", name, None))
    *_, literal, _ = tokens(text)
    compiled = re2.compile(unquoted(literal.text))
    whole = "a" + name if pattern.startswith("a") else name
    assert compiled.fullmatch(whole)
    if "." in name:
        assert not compiled.fullmatch(whole.replace(".", "x"))


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("name", ["bert", "llama-3.1", f"{'long-' * 11}name"])
def test_the_pattern_of_every_kind_fits_several_times_into_a_query(kind: Kind, name: str) -> None:
    pods = parse(f"{kind}/{name}", "ml")
    one = 'requests{pod=~"{podPattern}",service="{workload}"}'
    text = f"sum({one}) - (sum({one} offset 1m) or 0 * count(up{{pod=~`{{podPattern}}`}} == 1))"
    sent = number(text, Policy.NAMESPACED, "ml", Values("ml", name, pods.regex))
    assert sent.count(quoted(pods.regex)) == 3


def test_a_text_has_a_limit_as_it_was_written_and_one_with_its_values() -> None:
    long = Values("ml", "bert", "b" * 1500)
    twice = 'a{pod=~"{podPattern}"} + a{pod=~"{podPattern}"}'
    assert len(number(twice, Policy.ALLOW, "ml", long)) > 3000
    with pytest.raises(ValueError, match=r"at most 2000 characters$"):
        number(f"{twice} # {'x' * 2000}", Policy.ALLOW, "ml", long)
    often = " + ".join(['a{pod=~"{podPattern}"}'] * 6)
    with pytest.raises(ValueError, match="at most 8000 characters with its placeholders filled in"):
        number(often, Policy.ALLOW, "ml", long)


def test_the_text_that_is_allowed_as_it_is_is_sent_filled_in() -> None:
    asked = own('a{pod=~"{podPattern}"}', Policy.ALLOW, "ml", BERT)
    assert asked.text == 'a{pod=~"bert-[0-9a-f]+-.{5}"}'
    assert asked.origins[0].selector == '{__name__="a",pod=~"bert-[0-9a-f]+-.{5}"}'


def test_mistakes_beside_placeholders_are_told_by_their_place_in_what_was_written() -> None:
    with pytest.raises(ValueError, match="line 1, column 34: unexpected character inside brackets"):
        own('rate(load{pod=~"{podPattern}"}[5m)', Policy.NAMESPACED, "ml", BERT)
    with pytest.raises(ValueError, match="line 2, column 7: no placeholder; did you mean"):
        own('load\n/ b{c="{workloaf}"}', Policy.NAMESPACED, "ml", BERT)


def test_a_pattern_that_reaches_beyond_its_end_is_refused() -> None:
    r"""`\Q` without `\E` quotes all that follows, the closing bracket of its group among it."""
    quoting = Values("ml", "bert", r"\Qbert")
    for pattern in ("{podPattern}", "{podPattern}|b"):
        with pytest.raises(ValueError, match="patterns RE2 can read"):
            own(f'a{{pod=~"{pattern}"}}', Policy.NAMESPACED, "ml", quoting)


@pytest.mark.parametrize(
    "text", ["[" * 64_000 + "\\", "[[:a" * 64_000, r"\p{a" * 64_000, "{a " * 64_000]
)
def test_the_time_of_a_pattern_grows_with_its_length(text: str) -> None:
    query = f"a{{b=~`{text}`}}"
    assert cpu_seconds(lambda: filled(query, BERT)) < MOST_SECONDS
    assert filled(query, BERT) == query


@pytest.mark.parametrize("text", ['"' + r"\a" * 64_000, "'" + "a" * 200_000, "`" + "a" * 200_000])
def test_the_time_of_an_open_quote_grows_with_its_length(text: str) -> None:
    def refused() -> None:
        with pytest.raises(MisplacedError, match="unterminated"):
            tokens(text)

    assert cpu_seconds(refused) < MOST_SECONDS


def test_a_text_of_another_language_is_searched_for_placeholders() -> None:
    assert are_in("SELECT x WHERE pod =~ /{podPattern}/")
    assert not are_in("SELECT \"a{2}\" WHERE x = '{id}'")
