"""Workloads against pods named as Kubernetes does: none missed, and none of a sibling matched."""

import re
import time

import pytest
import re2
from hypothesis import assume, given
from hypothesis import strategies as st

from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.workload import Kind, PodPattern, Workload
from tests.support import naming

KINDS = st.sampled_from(list(Kind))
FOLLOWING = re.compile(
    r"(?:[0-9]{5}-deployment-?)?(?:[4-9bcdf]{1,10}|[0-9]+(?:-[0-9]+)?)?|[0-9]{5}"
)
"""Text that can be between an owner's name and the random end of its pods' names."""
OF_A_ROLE = re.compile(rf"[0-9]+(?:-.*)?|{FOLLOWING.pattern}")
"""The same where one of the owners is a ModelServing."""
LONG_NAMES = ("web-" + "a-b" * 83, "a" * 253)
WORST_SECONDS = 0.1
"""Ten times what the worst pattern takes for such a name; groups that capture took 1.3 s."""


def test_a_bare_name_is_a_deployment() -> None:
    assert workload.parse("bert", "prod") == Workload(Kind.DEPLOYMENT, "prod", "bert")


def test_a_kind_stands_before_the_slash() -> None:
    owner = workload.parse("sts/bert.v2", "prod")
    assert owner == Workload(Kind.STATEFUL_SET, "prod", "bert.v2")
    assert str(owner) == "statefulset/bert.v2"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "sts/",
        "Bert",
        "-bert",
        "bert-",
        "a..b",
        "a|b",
        ".*",
        'a"b',
        "a\\b",
        "a\n",
        "b" * 254,
    ],
)
def test_a_name_that_no_object_can_have_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"a Kubernetes name|a kind out of"):
        workload.parse(text, "prod")


@pytest.mark.parametrize("text", ["/bert", "pod/bert", "sts/sts/bert"])
def test_an_unknown_kind_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a kind out of"):
        workload.parse(text, "prod")


def test_names_of_253_characters_and_namespaces_of_63_are_the_longest() -> None:
    assert workload.is_name("b" * 253)
    assert not workload.is_name("b" * 254)
    assert workload.is_namespace("b" * 63)
    assert not workload.is_namespace("b" * 64)
    assert not workload.is_namespace("a.b")
    assert not workload.is_namespace("")


@given(st.data(), KINDS, naming.names())
def test_every_pod_of_the_workload_is_found(data: st.DataObject, kind: Kind, name: str) -> None:
    owner = Workload(kind, "prod", name)
    pod = data.draw(naming.pods(kind, name))
    assert owner.matches(pod)
    assert re2.fullmatch(owner.regex, pod)
    assert pod.startswith(owner.prefix)


@given(st.data(), KINDS, naming.names(40, 70))
def test_every_pod_is_found_where_names_begin_to_be_cut(
    data: st.DataObject, kind: Kind, name: str
) -> None:
    assert Workload(kind, "prod", name).matches(data.draw(naming.pods(kind, name)))


@given(st.data(), KINDS, naming.names(1, 80))
def test_prometheus_and_this_process_agree_on_near_misses(
    data: st.DataObject, kind: Kind, name: str
) -> None:
    owner = Workload(kind, "prod", name)
    pod = data.draw(naming.pods(kind, name))
    at = data.draw(st.integers(0, len(pod)))
    near = pod[:at] + data.draw(st.text("a4b-.0\n", max_size=2)) + pod[at + 1 :]
    assert owner.matches(near) == (re2.fullmatch(owner.regex, near) is not None)


def _stems(kind: Kind, name: str) -> list[str]:
    """The names of what owns the pods, one step up."""
    if kind is Kind.INFERENCE_SERVICE:
        return [f"{name}-predictor", f"{name}-predictor-default"]
    return [name]


def _is_ambiguous(one: str, other: str, *, has_roles: bool) -> bool:
    """Whether one name is the other's, or the other's with what may follow it in a pod's name."""
    short, long = sorted((one, other), key=len)
    if one == other:
        return True
    following = OF_A_ROLE if has_roles else FOLLOWING
    return long.startswith(f"{short}-") and bool(following.fullmatch(long[len(short) + 1 :]))


@given(
    st.data(),
    KINDS,
    KINDS,
    naming.names(1, 18),
    st.sampled_from(
        ["-canary", "-2", "2", "-worker", "-a", ".b", "-predictor", "-default", "-press"]
    )
    | naming.names(1, 10).map("-{}".format),
)
def test_no_pod_of_a_sibling_is_caught_unless_their_names_are_ambiguous(
    data: st.DataObject, kind: Kind, other: Kind, name: str, more: str
) -> None:
    sibling = name + more
    stems = [(a, b) for a in _stems(kind, name) for b in _stems(other, sibling)]
    has_roles = Kind.MODEL_SERVING in (kind, other)
    assume(not any(_is_ambiguous(a, b, has_roles=has_roles) for a, b in stems))
    assert not Workload(kind, "prod", name).matches(data.draw(naming.pods(other, sibling)))
    assert not Workload(other, "prod", sibling).matches(data.draw(naming.pods(kind, name)))


@given(st.data(), KINDS, KINDS, naming.names(1, 253), naming.names(1, 253))
def test_long_names_that_differ_early_are_never_confused(
    data: st.DataObject, kind: Kind, other: Kind, name: str, sibling: str
) -> None:
    pod = data.draw(naming.pods(other, f"x{sibling}"[:253].rstrip("-.")))
    assert not Workload(kind, "prod", f"y{name}"[:253].rstrip("-.")).matches(pod)


@pytest.mark.parametrize(
    ("owner", "pod"),
    [
        ("rollout/bert", "bert-7b9f8c6d5f-x2kqz"),
        ("deployment/bert", "bert-9c-x2kqz"),
        ("lws/bert", "bert-2-1"),
        ("modelserving/bert", "bert-2-decode-0-1"),
        ("job/bert", "bert-2-x2kqz"),
        (f"deployment/{'b' * 58}-one", "b" * 58 + "x2kqz"),
        (f"deployment/{'a' * 51}c71m", f"{'a' * 51}c71m-b-x2kqz"),
    ],
    ids=["kinds", "hash", "group", "role", "index", "cut", "glued"],
)
def test_the_ambiguous_names_are_known(owner: str, pod: str) -> None:
    assert workload.parse(owner, "prod").matches(pod)


@pytest.mark.parametrize(
    ("owner", "pod"),
    [
        ("foo", "foo-bar-7b6667bd9-kgx2g"),
        ("foo", "foo-0"),
        ("foo", "xfoo-7b6667bd9-kgx2g"),
        ("foo", "foo-7b6667bd9-kgx2g\n"),
        ("f.o", "fxo-7b6667bd9-kgx2g"),
        ("sts/foo", "foo-01"),
        ("sts/foo", "foo-bar-0"),
        ("sts/foo", "foo-2-0"),
        ("lws/foo", "foo-2-0"),
        ("modelserving/foo", "foo-2"),
        ("modelserving/foo", "foo-2-1"),
        ("modelserving/foo", "foo-02-decode-0-0"),
        ("modelserving/foo", "foo-decode-0-0"),
        ("modelserving/foo", "foo-0-longest-role-x-0-0"),
        ("ds/foo", "foo-aeiou"),
        ("foo", ""),
    ],
)
def test_a_lookalike_is_not_caught(owner: str, pod: str) -> None:
    assert not workload.parse(owner, "prod").matches(pod)


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
    assert [pattern.matches(pod) for pod in ("bert-1", "bertha", "bert-12", "xbert-1")] == [
        True,
        True,
        False,
        False,
    ]
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
