"""The one message of a wrong trigger: complete, short, quoted, and without secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.spec.spec import ScaledObject
from testbed.triggers import BERT, access
from tests.trigger.cases import MINIMAL


def message(metadata: dict[str, str], scaled_object: ScaledObject = BERT) -> str:
    with pytest.raises(errors.SpecError) as caught:
        trigger.parse(scaled_object, metadata, access())
    return str(caught.value)


def test_all_mistakes_stand_below_one_heading() -> None:
    wrong = {"workload": "pod/bert", "treshold": "70", "windowFromEnv": "soon"}
    with pytest.raises(errors.SpecError) as caught:
        trigger.parse(BERT, wrong, access())
    heading, *lines = str(caught.value).splitlines()
    assert heading == "4 mistakes in the trigger of ScaledObject ml/bert:"
    assert [line.partition(";")[0] for line in lines] == [
        '- "treshold": unknown key',
        '- workload: "pod/bert"',
        "- threshold: not given",
        "- windowFromEnv: a value of 4 characters from the environment",
    ]
    keys = [mistake.key for mistake in caught.value.mistakes]
    assert keys == ["treshold", "workload", "threshold", "windowFromEnv"]


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("treshold", "did you mean threshold?"),
        ("pod_pattern", "did you mean podPattern?"),
        ("tresholdFromEnv", "did you mean thresholdFromEnv?"),
        ("serverAddressFromEnv", "a trigger names a source of the scaler's settings"),
        ("metricType", "belongs beside the trigger's metadata, not into it"),
        ("serverAddress", "a trigger names a source of the scaler's settings: use source"),
        ("deployment", "write workload: deployment/<name>"),
        ("FromEnv", "known are workload, namespace, podPattern"),
        ("scaleraddress", "did you mean scalerAddress?"),
        ("authModes", "remove it: a source's credentials, headers and limits are in the scaler's"),
        ("timeout", "remove it: a source's credentials, headers and limits are in the scaler's"),
        ("ignoreNullValues", 'write onUnknown: hold (the default), error for "false", zero for'),
        ("qqq", "known are workload, namespace, podPattern"),
    ],
)
def test_an_unknown_key_is_told_where_to_go(key: str, advice: str) -> None:
    text = message({**MINIMAL, key: "70"})
    assert f'- "{key}": unknown key; {advice}' in text


def test_a_value_of_an_unknown_key_is_never_shown() -> None:
    text = message({**MINIMAL, "passwordFromEnv": "hunter2", "token": "hunter3"})
    assert '"passwordFromEnv": unknown key' in text
    assert '"token": unknown key' in text
    assert "hunter" not in text


def test_a_value_out_of_the_environment_is_never_shown(subtests: pytest.Subtests) -> None:
    for key in trigger.KEYS.keys() - {"podPattern"}:
        minimal = {name: value for name, value in MINIMAL.items() if name != key}
        text = message({**minimal, f"{key}FromEnv": "Hunter2/\n"})
        with subtests.test(key):
            assert f"- {key}FromEnv: a value of 9 characters from the environment; " in text
            assert "unter" not in text


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("podPattern", "(hunter2", "RE2 says: missing )"),
        ("query", 'load{token="hunter2"} x', "this is none"),
        ("demandQuery", 'sum(x{a="hunter2"}))', "line 1, column 20: unexpected right parenthesis"),
        ("demandQuery", 'x{a="hunter2",pod=~"{podpattern}"}', "did you mean {podPattern}?"),
    ],
)
def test_what_a_parser_says_of_a_value_out_of_the_environment_does_not_show_it(
    key: str, text: str, said: str
) -> None:
    shown = message({**MINIMAL, "activationThreshold": "5", f"{key}FromEnv": text})
    assert said in shown
    assert "hunter" not in shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('a"b', r'"a\"b"'),
        ("a\\b", r'"a\\b"'),
        ("a\nb\r\tc\x00", r'"a\nb\r\tc\x00"'),
        ("50 \u20ac", r'"50 \u20ac"'),
        ("\ud800", r'"\ud800"'),
        ("a" * 100, '"' + "a" * 100 + '"'),
        ("a" * 101, '"' + "a" * 100 + '"...'),
    ],
)
def test_values_are_quoted_on_one_line(value: str, shown: str) -> None:
    _, line = message({**MINIMAL, "signal": value}).splitlines()
    assert line.startswith(f"- signal: {shown}; expected one of ")


def test_a_value_too_long_to_be_meant_is_refused_unread() -> None:
    text = message({**MINIMAL, "podPattern": "a" * 4097})
    assert "expected at most 4096 characters" in text
    assert len(text) < 300


def test_too_many_keys_are_refused_unread() -> None:
    text = message({**MINIMAL, **{f"key{number}": "" for number in range(63)}})
    assert text.splitlines()[1:] == ["- 65 keys; expected at most 64"]


def _bytes_on_the_wire(text: str) -> int:
    """Count as gRPC writes: what is not printable ASCII, and the percent sign, takes three."""
    return sum(1 if " " <= character <= "~" and character != "%" else 3 for character in text)


@pytest.mark.parametrize("text", ["0", "%"])
def test_what_does_not_fit_is_counted(text: str) -> None:
    shown = message({**MINIMAL, **{f"{number:02}{text * 98}": "x" for number in range(62)}})
    *lines, last = shown.splitlines()[1:]
    assert shown.startswith("62 mistakes ")
    assert last == f"... and {62 - len(lines)} more"
    assert all(line.startswith('- "') for line in lines)
    assert 3000 < _bytes_on_the_wire(shown) <= 4096


WORDS = st.sampled_from(
    [
        *("bert", "pod/bert", "router", "prod", "other", "edge", "default", "gpu-demand", "number"),
        *("power", "dcgm", "hami", "average", "sum", "hold", "0", "95", "-1", "2m", "load", "("),
    ]
)


@given(
    st.dictionaries(st.sampled_from(list(trigger.KEYS)), WORDS),
    st.sampled_from(list(Policy)),
)
def test_a_key_with_several_mistakes_is_named_once(
    metadata: dict[str, str], policy: Policy
) -> None:
    direct, old = frozenset({"edge"}), frozenset({"old"})
    allowed = access(
        *("default", "edge", "old"), own_promql=policy, direct_sources=direct, influxql_sources=old
    )
    try:
        trigger.parse(BERT, metadata, allowed)
    except errors.SpecError as error:
        keys = [line.partition(":")[0] for line in str(error).splitlines()[1:]]
        assert len(keys) == len(set(keys))
