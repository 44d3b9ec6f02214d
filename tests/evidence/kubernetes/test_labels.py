"""Claims about label selectors: labels with one value each, and nothing else.

Source of the cases: the grammar and the comments of k8s.io/apimachinery, pkg/labels/selector.go.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.evidence.kubernetes.selections import parse_selector

LABELS = {
    "app=bert": {"app": "bert"},
    " app=bert, tier==gpu ": {"app": "bert", "tier": "gpu"},
    "app=bert,app=bert": {"app": "bert"},
    "empty=": {"empty": ""},
    "app=in": {"app": "in"},
    "app in (bert)": {"app": "bert"},
    "app in ( bert ),tier = gpu": {"app": "bert", "tier": "gpu"},
    "app in ()": {"app": ""},
    "example.com/team=a": {"example.com/team": "a"},
}


def test_a_selector_names_labels_and_their_values() -> None:
    assert {text: parse_selector(text) for text in LABELS} == LABELS


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_an_empty_selector_is_refused_and_never_everything(text: str) -> None:
    with pytest.raises(ValueError, match="it is empty, which would be every pod of the namespace"):
        parse_selector(text)


WRONG = [
    ",",
    "app=bert,",
    "app=bert,,tier=gpu",
    "app=bert,app=gpu",
    "app",
    "!app",
    "app!=bert",
    "app=!bert",
    "app in (bert",
    "app=bert)",
    "app in (bert,other)",
    "app notin (bert)",
    "app=(bert)",
    "app=-bert",
    "app=bért",
    f"app={'b' * 64}",
    f"{'a' * 64}=bert",
    "-app=bert",
    "Example.com/app=bert",
    "a/b/c=bert",
    f"{'a' * 254}/app=bert",
    "generation>6",
    "app\x0b=bert",
]


def test_what_else_a_selector_can_say_is_refused(subtests: pytest.Subtests) -> None:
    for text in WRONG:
        with subtests.test(text), pytest.raises(ValueError, match="is no label with one value"):
            parse_selector(text)


PARTS = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,10}[A-Za-z0-9])?", fullmatch=True)
DOMAINS = st.from_regex(r"([a-z0-9]{1,5}[.]){0,2}[a-z0-9]{1,5}/", fullmatch=True)
KEYS = st.builds("".join, st.tuples(st.one_of(st.just(""), DOMAINS), PARTS))
VALUES = st.one_of(st.just(""), PARTS)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5))
def test_what_is_written_is_read(labels: dict[str, str]) -> None:
    assert parse_selector(",".join(f"{key}={value}" for key, value in labels.items())) == labels


@given(st.text("ab=!<>(), \t/in.-0", max_size=30))
def test_any_text_names_labels_or_is_refused(text: str) -> None:
    try:
        labels = parse_selector(text)
    except ValueError:
        return
    assert labels


def test_a_text_that_nobody_writes_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 2000 characters"):
        parse_selector(",".join(f"a{number}=b" for number in range(1000)))
