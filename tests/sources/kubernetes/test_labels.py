"""Claims about label selectors: what the API server takes them for, and nothing else.

Source of the cases: the grammar and the comments of k8s.io/apimachinery, pkg/labels/selector.go.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.sources.kubernetes import selections
from keda_gpu_scaler.sources.kubernetes.selections import Requirement

BERT = {"app": "bert", "tier": "gpu", "empty": "", "generation": "7", "example.com/team": "a"}


SELECTS = {
    "app=bert": True,
    " app = bert ": True,
    "app=bert,tier=gpu": True,
    "other=bert": False,
    "app=": False,
    "empty=": True,
    "app!=bert": False,
    "other!=bert": True,
    "app": True,
    "empty": True,
    "!app": False,
    "! other": True,
    "app in(other, bert )": True,
    "app in (other)": False,
    "app in (,other)": False,
    "empty in (,other)": True,
    "other in (bert)": False,
    "app notin (bert,other)": False,
    "other notin (bert)": True,
    "in in (in)": False,
    "app=in": False,
    "example.com/team=a,!canary": True,
}


def test_what_a_selector_selects() -> None:
    assert {
        text: selections.selects(selections.parse_selector(text), BERT) for text in SELECTS
    } == SELECTS


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_an_empty_selector_is_refused_and_never_everything(text: str) -> None:
    with pytest.raises(ValueError, match="it is empty, which would be every pod of the namespace"):
        selections.parse_selector(text)


WRONG = [
    *(",", "app=bert,", "app=bert,,tier", "app=!bert", "!app=bert", "app in", "app in ()"),
    *("app in (bert", "app in (be rt)", "!app in (bert)", "app=(bert)", "app=-bert", "app=bért"),
    *("-app", "Example.com/app", "a/b/c", "generation>6", "app\x0b=bert"),
    *(f"app={'b' * 64}", f"{'a' * 64}=bert", f"{'a' * 254}/app"),
]


def test_what_is_no_selector_is_refused(subtests: pytest.Subtests) -> None:
    for text in WRONG:
        with subtests.test(text), pytest.raises(ValueError, match=r"it |is no "):
            selections.parse_selector(text)


PARTS = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,10}[A-Za-z0-9])?", fullmatch=True)
DOMAINS = st.from_regex(r"([a-z0-9]{1,5}[.]){0,2}[a-z0-9]{1,5}/", fullmatch=True)
KEYS = st.builds("".join, st.tuples(st.one_of(st.just(""), DOMAINS), PARTS))
VALUES = st.one_of(st.just(""), PARTS)
REQUIREMENTS = st.builds(
    Requirement, KEYS, st.booleans(), st.none() | st.frozensets(VALUES, min_size=1, max_size=4)
)


def _written(one: Requirement) -> str:
    """Write a requirement as the API server does."""
    if one.values is None:
        return one.key if one.is_in else f"!{one.key}"
    values = sorted(one.values)
    if len(values) == 1:
        return f"{one.key}{'=' if one.is_in else '!='}{values[0]}"
    return f"{one.key} {'in' if one.is_in else 'notin'} ({','.join(values)})"


@given(st.lists(REQUIREMENTS, min_size=1, max_size=5))
def test_what_is_written_is_read(requirements: list[Requirement]) -> None:
    text = ",".join(map(_written, requirements))
    assert selections.parse_selector(text) == tuple(requirements)


@given(st.text("ab=!<>(), \t/in.-0", max_size=30))
def test_any_text_is_a_selector_that_can_be_asked_or_no_selector(text: str) -> None:
    try:
        selector = selections.parse_selector(text)
    except ValueError:
        return
    assert selector
    assert selections.selects(selector, {"a": "b"}) in {True, False}


def test_a_long_text_is_read_in_time_linear_in_its_length() -> None:
    spaces = " " * 60
    text = f"app in ({','.join([spaces] * 30)}"
    with pytest.raises(ValueError, match="no label selector"):
        selections.parse_selector(text)


def test_a_text_that_nobody_writes_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 2000 characters"):
        selections.parse_selector(",".join(f"!a{number}" for number in range(1000)))
