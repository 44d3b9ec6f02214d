"""Names of pods: those that Kubernetes gives and no others, as `naming` writes them anew."""

from collections.abc import Callable, Iterator

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.spec import pod_names
from keda_gpu_scaler.spec.workload import Kind, Workload
from tests.support import naming

KINDS = st.sampled_from(list(Kind))
LENGTHS = (1, *range(26, 62), 253)
"""Those at which a name begins to be cut, or another part of it, are among them."""
RULES = {
    Kind.DEPLOYMENT: pod_names.of_deployment,
    Kind.DAEMON_SET: pod_names.of_set,
    Kind.STATEFUL_SET: pod_names.of_stateful_set,
    Kind.LEADER_WORKER_SET: pod_names.of_leader_worker_set,
    Kind.MODEL_SERVING: pod_names.of_model_serving,
    Kind.JOB: pod_names.of_job,
    Kind.CRON_JOB: pod_names.of_cron_job,
    Kind.KNATIVE_SERVICE: pod_names.of_knative_service,
    Kind.INFERENCE_SERVICE: pod_names.of_inference_service,
}


def near(pod: str) -> Iterator[str]:
    """Yield a name, and others with a character more, less or changed where parts of it meet."""
    yield from (pod, f"x{pod}", f"{pod}\n", f"{pod}b", pod[:-1], pod.replace(".", "x"))
    for at in [at for at, character in enumerate(pod) if character == "-"][-4:]:
        for changed in ("", "-0", "-b"):
            yield pod[:at] + changed + pod[at + 1 :]
            yield pod[:at] + changed + pod[at + 2 :]


@pytest.mark.parametrize("kind", RULES)
def test_a_name_fits_exactly_if_kubernetes_could_have_given_it(kind: Kind) -> None:
    for length in LENGTHS:
        owner = ("v.web" + "a" * 250)[:length]
        names = pod_names.union(RULES[kind](owner))
        pods = list(naming.examples(kind, owner))
        assert names.prefix == pod_names.shared_prefix(pods)
        assert all(map(names.match, pods))
        regex = re2.compile(names.regex)
        for name in {name for pod in pods for name in near(pod)}:
            could_be = naming.could_be(kind, owner, name)
            assert (names.match(name), regex.fullmatch(name) is not None) == (could_be,) * 2, name


@given(st.data(), KINDS, KINDS, naming.names(1, 80), st.sampled_from(["", "-2", "-canary", "b"]))
def test_a_pod_of_any_owner_fits_exactly_if_it_could_be_the_workloads(
    data: st.DataObject, kind: Kind, other: Kind, name: str, more: str
) -> None:
    """Also where names are ambiguous, which `Workload` lists: there it could be either's."""
    owner = Workload(kind, "prod", name)
    assert owner.matches(data.draw(naming.pods(kind, name)))
    pod = data.draw(naming.pods(other, (name + more)[:253]))
    assert owner.matches(pod) is naming.could_be(kind, name, pod)


RANDOM, HASH, INDEX = "[b-df-hj-np-tv-xz24-9]{5}", "[4-9bcdf]", "(?:0|[1-9][0-9]*)"
A46, A47, A57 = "a" * 46, "a" * 47, "a" * 57
TEXTS = {
    (Kind.DEPLOYMENT, "v1.b"): f"v1[.]b-{HASH}{{1,10}}-{RANDOM}",
    (Kind.DEPLOYMENT, A47): f"{A47}-(?:{HASH}{{1,9}}-|{HASH}{{10}}){RANDOM}",
    (Kind.DEPLOYMENT, A57): f"{A57}-{RANDOM}",
    (Kind.JOB, A46): f"{A46}-{RANDOM}|{A46}-{INDEX}-{RANDOM}",
}


@pytest.mark.parametrize(("kind", "name"), TEXTS)
def test_the_text_for_a_server_is_as_short_as_it_can_be(kind: Kind, name: str) -> None:
    assert pod_names.union(RULES[kind](name)).regex == TEXTS[kind, name]


def test_forms_that_become_the_same_by_cutting_are_written_once() -> None:
    names = pod_names.union(pod_names.of_inference_service("a" * 60))
    assert len(names.forms) == 2


@pytest.mark.parametrize(
    ("texts", "shared"),
    [(["ab", "abc"], "ab"), (["ab", "b"], ""), (["a"], "a"), ([], ""), (["", "a"], "")],
)
def test_the_shared_prefix_is_what_all_start_with(texts: list[str], shared: str) -> None:
    assert pod_names.shared_prefix(texts) == shared


@given(st.sampled_from(list(RULES.values())), naming.names(1, 80))
def test_nothing_of_an_owners_name_follows_the_prefix(
    rule: Callable[[str], Iterator[pod_names.Form]], name: str
) -> None:
    forms = pod_names.union(rule(name)).forms
    others = pod_names.union(rule("x" * len(name))).forms
    assert [rest for _, rest in forms] == [rest for _, rest in others]
