"""The regular expressions of pod names, text by text, and the prefixes that go with them."""

import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.spec import pod_names

R5 = "[b-df-hj-np-tv-xz24-9]{5}"
H = "[4-9bcdf]"
L40 = "a" * 40
RULES = (
    pod_names.of_deployment,
    pod_names.of_set,
    pod_names.of_stateful_set,
    pod_names.of_leader_worker_set,
    pod_names.of_model_serving,
    pod_names.of_job,
    pod_names.of_cron_job,
    pod_names.of_knative_service,
    pod_names.of_inference_service,
)
NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,70}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("name", "regex"),
    [
        ("bert", f"bert-{H}{{1,10}}-{R5}"),
        ("v1.bert", f"v1[.]bert-{H}{{1,10}}-{R5}"),
        (f"{L40}123456", f"{L40}123456-{H}{{1,10}}-{R5}"),
        (f"{L40}1234567", f"{L40}1234567-(?:{H}{{1,9}}-|{H}{{10}}){R5}"),
        (f"{L40}1234567890", f"{L40}1234567890-(?:{H}{{1,6}}-|{H}{{7}}){R5}"),
        (f"{L40}12345678901234", f"{L40}12345678901234-(?:{H}{{1,2}}-|{H}{{3}}){R5}"),
        (f"{L40}123456789012345", f"{L40}123456789012345-(?:{H}-|{H}{{2}}){R5}"),
        (f"{L40}1234567890123456", f"{L40}1234567890123456-{H}{R5}"),
        (f"{L40}12345678901234567", f"{L40}12345678901234567-{R5}"),
        (f"{L40}123456789012345678", f"{L40}123456789012345678{R5}"),
        (f"{L40}123456789012345678" + "x" * 195, f"{L40}123456789012345678{R5}"),
    ],
    ids=lambda value: str(len(value)),
)
def test_a_deployments_pods_are_cut_as_kubernetes_cuts_them(name: str, regex: str) -> None:
    assert pod_names.union(pod_names.of_deployment(name)).regex == regex


@pytest.mark.parametrize(
    ("length", "regex"),
    [(4, f"a{{4}}-{R5}"), (57, f"a{{57}}-{R5}"), (58, f"a{{58}}{R5}"), (253, f"a{{58}}{R5}")],
)
def test_a_sets_pods_lose_their_dash_only_from_58_characters_on(length: int, regex: str) -> None:
    expected = regex.replace(f"a{{{min(length, 58)}}}", "a" * min(length, 58))
    assert pod_names.union(pod_names.of_set("a" * length)).regex == expected


def test_names_that_are_not_generated_are_never_cut() -> None:
    name = "a" * 250
    assert pod_names.union(pod_names.of_stateful_set(name)).regex == f"{name}-(?:0|[1-9][0-9]*)"
    leaders = pod_names.union(pod_names.of_leader_worker_set(name))
    assert leaders.regex == f"{name}-(?:0|[1-9][0-9]*)(?:-[1-9][0-9]*)?"
    assert pod_names.union(pod_names.of_model_serving(name)).match(f"{name}-0-decode-0-0")


@pytest.mark.parametrize(
    ("pod", "of_set", "of_groups"),
    [
        ("bert-0", True, True),
        ("bert-10", True, True),
        ("bert-01", False, False),
        ("bert-00", False, False),
        ("bert-0-1", False, True),
        ("bert-0-10", False, True),
        ("bert-0-0", False, False),
        ("bert-0-01", False, False),
        ("bert-01-1", False, False),
        ("bert-", False, False),
    ],
)
def test_kubernetes_writes_no_number_with_a_zero_in_front(
    pod: str, *, of_set: bool, of_groups: bool
) -> None:
    assert pod_names.union(pod_names.of_stateful_set("bert")).match(pod) is of_set
    assert pod_names.union(pod_names.of_leader_worker_set("bert")).match(pod) is of_groups


def test_a_jobs_pods_may_carry_a_completion_index() -> None:
    job = pod_names.union(pod_names.of_job("train"))
    assert job.regex == f"train-{R5}|train-(?:0|[1-9][0-9]*)-{R5}"
    assert job.prefix == "train-"


def test_an_index_shortens_the_jobs_name_and_keeps_its_dashes() -> None:
    name = L40 + "123456789012345"
    job = pod_names.union(pod_names.of_job(name))
    assert job.match(f"{name}-bcdfg")
    assert job.match(f"{name}-7-bcdfg")
    assert job.match(f"{name[:54]}-12-bcdfg")
    assert not job.match(f"{name}-12-bcdfg")
    assert not job.match(f"{name[:54]}-02-bcdfg")
    assert job.prefix == name[:46]


def test_a_name_of_46_characters_has_room_for_every_index_and_a_longer_one_has_not() -> None:
    longest = L40 + "123456"
    every = "(?:0|[1-9][0-9]*)"
    assert pod_names.union(pod_names.of_job(longest)).match(f"{longest}-2147483646-bcdfg")
    assert not pod_names.union(pod_names.of_job(longest)).match(f"{longest[:45]}-7-bcdfg")
    assert pod_names.union(pod_names.of_job(longest)).regex.endswith(f"{longest}-{every}-{R5}")

    forms = [f"{longest}7-{R5}", f"{longest}7-[0-9]-{R5}", f"{longest}7-[1-9][0-9]-{R5}"]
    forms += [f"{longest}7-[1-9][0-9]{{{more}}}-{R5}" for more in range(2, 9)]
    forms += [f"{longest}-[1-9][0-9]{{9}}-{R5}"]
    assert pod_names.union(pod_names.of_job(f"{longest}7")).regex.split("|") == forms


def test_a_cron_jobs_jobs_are_named_by_the_minute() -> None:
    cron = pod_names.union(pod_names.of_cron_job("nightly"))
    assert cron.match("nightly-29123456-bcdfg")
    assert not cron.match("nightly-2912345-bcdfg")
    long = pod_names.union(pod_names.of_cron_job("n" * 52))
    assert long.match("n" * 52 + "-29123bcdfg")


@pytest.mark.parametrize(
    ("name", "regex"),
    [
        ("chat", f"chat-[0-9]{{5}}-deployment-{H}{{1,10}}-{R5}"),
        (f"{L40}a", f"{L40}a-[0-9]{{5}}-deployment{R5}"),
        (f"{L40}abcdef", f"{L40}abcdef-[0-9]{{5}}-deplo{R5}"),
        (f"{L40}abcdefg", f"{'a' * 20}[0-9a-f]{{32}}-deplo{R5}"),
    ],
    ids=["short", "glued", "longest", "hashed"],
)
def test_knative_revisions_follow_the_length_of_their_deployment(name: str, regex: str) -> None:
    assert pod_names.union(pod_names.of_knative_service(name)).regex == regex


def test_a_knative_service_with_a_hashed_revision_keeps_what_survives_of_its_name() -> None:
    names = pod_names.union(pod_names.of_knative_service("b" * 63))
    assert names.prefix == "b" * 20


def test_a_predictor_is_found_raw_and_serverless_and_its_workers_are_not() -> None:
    names = pod_names.union(pod_names.of_inference_service("llm"))
    assert names.match("llm-predictor-7b9f8c6d5f-x2kqz")
    assert names.match("llm-predictor-default-7b9f8c6d5f-x2kqz")
    assert names.match("llm-predictor-00001-deployment-7b9f8c6d5f-x2kqz")
    assert names.match("llm-predictor-default-00012-deployment-7b9f8c6d5f-x2kqz")
    assert not names.match("llm-predictor-worker-7b9f8c6d5f-x2kqz")
    assert not names.match("llm-7b9f8c6d5f-x2kqz")
    assert names.prefix == "llm-predictor-"


def test_forms_that_become_the_same_by_cutting_are_written_once() -> None:
    names = pod_names.union(pod_names.of_inference_service("a" * 60))
    assert names.regex == f"{'a' * 58}{R5}|{'a' * 20}[0-9a-f]{{32}}-deplo{R5}"


@pytest.mark.parametrize(
    ("texts", "shared"),
    [(["ab", "abc"], "ab"), (["ab", "b"], ""), (["a"], "a"), ([], ""), (["", "a"], "")],
)
def test_the_shared_prefix_is_what_all_start_with(texts: list[str], shared: str) -> None:
    assert pod_names.shared_prefix(texts) == shared


@given(st.sampled_from(RULES), NAMES, st.data())
def test_a_name_fits_if_it_fits_the_whole_regular_expression(
    rule: Callable[[str], Iterator[pod_names.Form]], name: str, data: st.DataObject
) -> None:
    names = pod_names.union(rule(name))
    fitting = data.draw(st.from_regex(names.regex, fullmatch=True))
    cut = data.draw(st.integers(0, len(fitting)))
    changed = fitting[:cut] + data.draw(st.sampled_from(["", "-", "0", "b", "\n"])) + fitting[cut:]
    assert names.match(fitting)
    for pod in (changed, fitting[:cut], fitting[cut:]):
        assert names.match(pod) is (re.fullmatch(names.regex, pod) is not None)


@given(st.sampled_from(RULES), NAMES)
def test_nothing_of_an_owners_name_follows_the_prefix(
    rule: Callable[[str], Iterator[pod_names.Form]], name: str
) -> None:
    forms = pod_names.union(rule(name)).forms
    others = pod_names.union(rule("x" * len(name))).forms
    assert [rest for _, rest in forms] == [rest for _, rest in others]
