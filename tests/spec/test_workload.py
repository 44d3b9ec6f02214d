"""Workloads and patterns of pods: which texts are one, and whose a pod is by its name."""

import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.workload import Kind, PodPattern, Workload

LONG_NAMES = ("web-" + "a-b" * 83, "a" * 253)
WORST_SECONDS = 0.1
"""Ten times what the worst pattern takes for such a name; groups that capture took 1.3 s."""


def test_a_workload_is_a_name_or_a_kind_and_a_name() -> None:
    assert workload.parse("bert", "prod") == Workload(Kind.DEPLOYMENT, "prod", "bert")
    owner = workload.parse("sts/bert.v2", "prod")
    assert owner == Workload(Kind.STATEFUL_SET, "prod", "bert.v2")
    assert str(owner) == "statefulset/bert.v2"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("", "sts/", "Bert", "-bert", "bert-", "a..b"), "a Kubernetes name"),
        (("a|b", ".*", 'a"b', "a\\b", "a\n", "b" * 254), "a Kubernetes name"),
        (("/", "/bert", "pod/bert", "sts/sts/bert"), "a kind out of"),
    ],
)
def test_what_no_object_can_be_called_is_refused(texts: tuple[str, ...], expected: str) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=expected):
            workload.parse(text, "prod")


def test_names_of_253_characters_and_namespaces_of_63_are_the_longest() -> None:
    assert workload.is_name("b" * 253)
    assert workload.is_namespace("b" * 63)
    assert not any(map(workload.is_namespace, ("b" * 64, "a.b", "")))


LOOKALIKES = {
    "foo": (
        "foo-bar-7b6667bd9-kgx2g",
        "foo-0",
        "xfoo-7b6667bd9-kgx2g",
        "foo-7b6667bd9-kgx2g\n",
        "",
    ),
    "f.o": ("fxo-7b6667bd9-kgx2g",),
    "sts/foo": ("foo-01", "foo-bar-0", "foo-2-0"),
    "lws/foo": ("foo-2-0",),
    "modelserving/foo": ("foo-2", "foo-2-1", "foo-02-decode-0-0", "foo-0-longest-role-x-0-0"),
    "ds/foo": ("foo-aeiou",),
}


@pytest.mark.parametrize("owner", LOOKALIKES)
def test_a_lookalike_is_not_caught(owner: str) -> None:
    pods = workload.parse(owner, "prod")
    assert not any(map(pods.matches, LOOKALIKES[owner]))


def test_two_pods_seen_in_clusters_are_found() -> None:
    cut = "dlapi-5caeac72582e35c560667d21-6141a02e0d828f8e81bee064"
    assert workload.parse(cut, "prod").matches(f"{cut}-595z5d2")
    long = "fashion-mnist-eci-2-predictor-0-tfserving-proxy-tfserving"
    assert workload.parse(long, "prod").matches(f"{long}-v789b")


@pytest.mark.parametrize(
    ("owner", "pod", "replica"),
    [
        ("lws/bert", "bert-3", "bert-3"),
        ("lws/bert", "bert-3-1", "bert-3"),
        ("lws/bert-2", "bert-2-0-12", "bert-2-0"),
        ("lws/bert", "other-3-1", "other-3-1"),
        ("modelserving/bert", "bert-3-prefill-0-0", "bert-3"),
        ("modelserving/bert", "bert-3-decode-1-2", "bert-3"),
        ("modelserving/bert-2", "bert-2-0-decode-0-12", "bert-2-0"),
        ("modelserving/bert", "other-3-decode-0-0", "other-3-decode-0-0"),
        ("sts/bert", "bert-3", "bert-3"),
        ("bert", "bert-7b9f8c6d5f-x2kqz", "bert-7b9f8c6d5f-x2kqz"),
    ],
)
def test_a_replica_is_a_pod_or_its_group(owner: str, pod: str, replica: str) -> None:
    assert workload.parse(owner, "prod").replica_of(pod, frozenset()) == replica


def test_a_pattern_is_anchored_at_both_ends() -> None:
    pattern = PodPattern("prod", "bert-[0-9]|bertha")
    assert all(map(pattern.matches, ("bert-1", "bertha")))
    assert not any(map(pattern.matches, ("bert-12", "xbert-1")))
    assert pattern.regex == str(pattern) == "bert-[0-9]|bertha"
    assert pattern.replica_of("bert-1", frozenset()) == "bert-1"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", "in ASCII"),
        ("bärt-.*", "in ASCII"),
        ("\ud800", "in ASCII"),
        ("(", "missing \\)"),
        ("a)|(b", "unexpected \\)"),
        ("\\Qa", "missing \\)"),
        ("(?=a)", "invalid perl operator"),
        ("(a)\\1", "invalid escape sequence"),
        ("((a{100}){100}){100}", "invalid repetition size"),
        ("\\pL{1000}", "pattern too large"),
        ("a\\", "trailing \\\\"),
    ],
)
def test_a_pattern_that_re2_refuses_is_refused_with_re2s_reason(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        PodPattern("prod", pattern)


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("(" * 2040 + "web-.*" + ")" * 2040, [True, False]),
        ("()" * 1300 + "web-.*", [True, False]),
        ("(?:(?:a?){30}){30}", [False, True]),
        ("(a|aa|a*)*b", [False, False]),
        ("(?:[a-z-]*a[a-z-]{0,30}){0,33}", [True, True]),
        ("(?:a{0,10}){0,100}(?:[ab]{0,10}){0,100}", [False, True]),
    ],
    ids=["nested groups", "empty groups", "options", "stars", "overlaps", "repetitions"],
)
def test_no_pattern_takes_long_for_a_name(pattern: str, matched: list[bool]) -> None:
    """The CPU time of this thread, which other work on the machine does not lengthen."""
    selector = PodPattern("prod", pattern)
    before = time.thread_time()
    assert [selector.matches(pod) for pod in LONG_NAMES] == matched
    assert time.thread_time() - before < len(LONG_NAMES) * WORST_SECONDS


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [
        ("bert-.*", "bert-"),
        ("bert-(?:a|b)-.*", "bert-"),
        ("bert[.]x-[0-9]+", "bert.x-"),
        ("bert|albert", ""),
        ("(?i)bert", ""),
        ("berts?", "bert"),
        (".*", ""),
        ("\\w{900}", ""),
    ],
)
def test_a_patterns_literal_prefix_is_derived(pattern: str, prefix: str) -> None:
    assert PodPattern("prod", pattern).prefix == prefix


@given(st.data(), st.from_regex(r"\A[ab]{0,3}(\(\?:a\|b[ab]\))?[ab.]?[*?+]?[ab]?\Z"))
def test_every_match_of_a_pattern_starts_with_its_prefix(data: st.DataObject, text: str) -> None:
    try:
        pattern = PodPattern("prod", text)
    except ValueError:
        return
    pod = data.draw(st.from_regex(re.compile(text), fullmatch=True))
    assume("\n" not in pod)
    assert pattern.matches(pod)
    assert pod.startswith(pattern.prefix)
